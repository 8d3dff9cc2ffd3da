package agent

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deckhand/internal/playground/model"
)

// op is something that happens in a history.
type op string

const (
	opSay       op = "say"       // a prompt that is answered in words
	opCrowd     op = "crowd"     // prompts of several people at once
	opTools     op = "tools"     // a prompt with tool calls, some in one response
	opAsked     op = "asked"     // a tool call that a person allows
	opSubagent  op = "subagent"  // a prompt whose work a subagent does
	opModel     op = "model"     // /model
	opClear     op = "clear"     // /clear
	opCompact   op = "compact"   // /compact
	opHibernate op = "hibernate" // the process is stopped; the next prompt resumes it
	opRestart   op = "restart"   // the bot stops in good order, between turns
	opRetry     op = "retry"     // a call of the model fails, and the CLI tries again
	opRefuse    op = "refuse"    // a call of the model fails for good
	opCut       op = "cut"       // an answer breaks off
	opStop      op = "stop"      // a person stops the turn
	opLeave     op = "leave"     // the bot stops in good order, in mid-turn
	opCrash     op = "crash"     // the bot is killed, between turns
	opLose      op = "lose"      // the CLI is killed, between turns
	opKillBot   op = "kill bot"  // the bot is killed, in mid-turn
	opKillCLI   op = "kill CLI"  // the CLI is killed, in mid-turn
	opSever     op = "sever"     // the gateway's connections are, in mid-turn
	opSteal     op = "steal"     // another replica takes the thread's lease, in mid-turn
	opNonsense  op = "nonsense"  // an answer is none
	opMute      op = "mute"      // an answer says nothing of its usage
)

// where is the moment of a turn that something happens in.
type where string

const (
	whileHanging  where = "hanging"  // the first call waits for its answer
	whileStarting where = "starting" // the first call's answer is on its way
	whileGoing    where = "going"    // so is the second one's, after a tool
	whileTool     where = "tool"     // a tool runs
	whileAsking   where = "asking"   // a person is asked
	whileBelow    where = "below"    // a subagent's second call is on its way
	nowhere       where = ""
)

// step is one step of a history, with all that is random about it.
type step struct {
	Op    op
	Where where
	Times int // how often the bot is killed on one prompt
	Text  string
	More  []string // of the crowd
	User  string
	Fault model.Fault
}

func (s step) String() string {
	out := string(s.Op)
	if s.Where != nowhere {
		out += " " + string(s.Where)
	}
	if s.Times > 1 {
		out += fmt.Sprintf(" ×%d", s.Times)
	}
	return out
}

// plan is a random history of about n steps.
func plan(r *rand.Rand, n int, version string) []step {
	bag := []op{
		opSay, opSay, opSay, opCrowd, opCrowd, opTools, opTools, opTools, opAsked, opSubagent, opSubagent, opModel, opClear, opCompact,
		opHibernate, opHibernate, opRestart, opRetry, opRefuse, opCut, opStop, opStop, opLeave, opCrash, opLose,
		opKillBot, opKillBot, opKillBot, opKillCLI, opKillCLI, opKillCLI,
		opSever, opSever, opSever, opSteal, opNonsense, opMute,
	}
	moments := []where{whileHanging, whileStarting, whileGoing, whileTool, whileAsking, whileBelow}
	// There is something to lose before the first accident.
	steps := []step{{Op: opSay, Text: words(r, version), User: person(r)}}
	for len(steps) < n {
		s := step{Op: bag[r.IntN(len(bag))], User: person(r), Times: 1}
		switch s.Op {
		case opSay, opCut, opRefuse, opNonsense, opMute:
			s.Text = words(r, version)
		case opCrowd:
			s.Text = words(r, version)
			for range 1 + r.IntN(3) {
				s.More = append(s.More, words(r, version))
			}
		case opTools:
			s.Text = toolCalls(r, version)
		case opAsked:
			s.Text = "%p asks\n" + bash("echo please let me") + words(r, version)
		case opSubagent:
			s.Text = below(r, version)
		case opModel:
			s.Text = "/model " + models[r.IntN(len(models))]
		case opRetry:
			s.Text = words(r, version)
			s.Fault = []model.Fault{{Status: 529}, {Status: 429, RetryAfter: 1}, {Status: 500, Message: "Overloaded"}}[r.IntN(3)]
		case opStop, opLeave:
			s.Where = moments[1+r.IntN(len(moments)-1)]
		case opKillBot:
			s.Where = moments[r.IntN(len(moments))]
			if r.IntN(4) == 0 {
				s.Times = 2 + r.IntN(2)
			}
		case opSever:
			s.Where = []where{whileHanging, whileStarting, whileGoing, whileBelow}[r.IntN(4)]
		case opKillCLI, opSteal:
			s.Where = moments[r.IntN(len(moments))]
		}
		if s.Where != nowhere {
			s.Text = eventful(r, s.Where, version)
		}
		if s.Op == opRefuse {
			s.Fault = model.Fault{Status: 400, Message: "bad luck"}
		}
		if s.Op == opNonsense {
			s.Fault = model.Fault{Garbage: true}
		}
		if s.Op == opCut {
			s.Fault = model.Fault{CutAfterChars: 1 + r.IntN(60)}
			s.Text = strings.ReplaceAll(s.Text, "think: about it\n", "") + "\nfill: 200"
		}
		steps = append(steps, s)
	}
	return append(steps, step{Op: opSay, Text: words(r, version), User: person(r)})
}

func person(r *rand.Rand) string { return fmt.Sprintf("U%d", 1+r.IntN(4)) }

// words is a prompt, or its end, that is answered in words; often with a usage out of
// the ordinary.
func words(r *rand.Rand, version string) string {
	var b strings.Builder
	b.WriteString("%p\n")
	if r.IntN(3) == 0 {
		b.WriteString("think: about it\n")
	}
	if r.IntN(2) == 0 {
		u := map[string]any{"input_tokens": 1 + r.IntN(5000), "output_tokens": 1 + r.IntN(3000)}
		if r.IntN(3) == 0 {
			u["cache_read_input_tokens"] = r.IntN(90_000)
		}
		if r.IntN(3) == 0 {
			long := 0
			if version == pinnedCLI { // before, the CLI prices all of it as written for 5 minutes
				long = r.IntN(3000)
			}
			u["cache_creation"] = map[string]any{"ephemeral_5m_input_tokens": r.IntN(3000), "ephemeral_1h_input_tokens": long}
		}
		if r.IntN(4) == 0 {
			u["server_tool_use"] = map[string]any{"web_search_requests": 1 + r.IntN(3)}
		}
		text, err := json.Marshal(u)
		if err != nil {
			panic(err) // numbers always encode
		}
		fmt.Fprintf(&b, "usage: %s\n", text)
	}
	fmt.Fprintf(&b, "fill: %d", 1+r.IntN(400))
	return b.String()
}

func bash(command string) string {
	text, err := json.Marshal(map[string]string{"command": command, "description": "part of a history"})
	if err != nil {
		panic(err) // strings always encode
	}
	return "tool: Bash " + string(text) + "\n"
}

func toolCalls(r *rand.Rand, version string) string {
	var b strings.Builder
	b.WriteString("%p uses tools\n")
	for range 1 + r.IntN(3) {
		if r.IntN(3) == 0 {
			b.WriteString(`tools: [{"name":"Bash","input":{"command":"echo one"}},{"name":"Bash","input":{"command":"echo two"}}]` + "\n")
		} else {
			b.WriteString(bash(fmt.Sprintf("echo %d", r.IntN(1000))))
		}
	}
	return b.String() + words(r, version)
}

// below is a prompt for a subagent, which the turn waits for.
func below(r *rand.Rand, version string) string {
	task, err := json.Marshal(map[string]any{
		"description": "a job", "subagent_type": "general-purpose", "run_in_background": false,
		"prompt": subagentMark + " %p\n" + bash(fmt.Sprintf("echo sub %d", r.IntN(1000))) + words(r, version),
	})
	if err != nil {
		panic(err) // strings always encode
	}
	return "%p has somebody do it\ntool: Task " + string(task) + "\n" + words(r, version)
}

// eventful is a prompt in which there is the moment.
func eventful(r *rand.Rand, at where, version string) string {
	long := "\nfill: 300"
	switch at {
	case whileGoing:
		return "%p goes on\n" + bash("echo one") + words(r, version) + long
	case whileTool:
		return "%p waits\n" + bash("test -e started-%n || { touch started-%n; sleep 600; }") + words(r, version)
	case whileAsking:
		return "%p asks\n" + bash("echo please let me") + words(r, version)
	case whileBelow:
		return below(r, version)
	default:
		return words(r, version) + long
	}
}

// arrange sets the scene for a moment of the prompt that comes next, or of another
// attempt at it.
func (w *world) arrange(at where, marker string) {
	stall := model.Fault{StallAfterChars: 1}
	switch at {
	case whileHanging:
		w.model.failNext(marker, 1, model.Fault{Hang: model.Duration(time.Hour)})
	case whileStarting:
		w.model.failNext(marker, 1, stall)
	case whileGoing:
		w.model.failNext(marker, 2, stall)
	case whileBelow:
		w.model.failNext(marker, 3, stall)
	case whileTool:
		_ = os.Remove(w.started(marker)) // of another attempt
	case whileAsking:
		w.mu.Lock()
		w.holding = true
		w.mu.Unlock()
	}
}

func (w *world) started(marker string) string {
	return filepath.Join(w.config.Workspace, "started-"+strings.TrimPrefix(marker, "#"))
}

// reach waits for the moment; it is false when the prompt was over without it.
func (w *world) reach(at where, p sentPrompt) bool {
	w.t.Helper()
	marker, over := p.marker, false
	w.await(string(at)+" of "+marker, func() bool {
		if over = w.over(p); over {
			return true
		}
		switch at {
		case whileHanging:
			c, ok := w.model.find(func(c countedCall) bool { return c.Marker == marker })
			return ok && !c.Begun && !c.Ended
		case whileTool:
			_, err := os.Stat(w.started(marker))
			return err == nil
		case whileAsking:
			return w.pending() != ""
		default:
			c, ok := w.model.find(func(c countedCall) bool { return c.Marker == marker })
			return ok && c.Begun && !c.Whole && !c.Ended && c.stalled
		}
	})
	return !over
}

// leaveMoment ends what arrange has begun.
func (w *world) leaveMoment() {
	w.mu.Lock()
	w.holding = false
	w.mu.Unlock()
}

// play does one step.
func (w *world) play(s step) {
	w.t.Helper()
	switch s.Op {
	case opCrowd:
		sent := []sentPrompt{w.say(s.User, s.Text)}
		for i, text := range s.More {
			sent = append(sent, w.say(fmt.Sprintf("U%d", 5+i), text))
		}
		w.finish(sent...)
	case opClear:
		w.finish(w.say(s.User, "/clear"))
	case opCompact:
		w.finish(w.say(s.User, "/compact keep %p"))
	case opHibernate:
		w.command("hibernate")
		w.await("hibernation", func() bool { return len(w.cliPIDs()) == 0 })
	case opRestart:
		w.model.excuse(0, w.quit)
		w.start()
	case opCrash:
		w.crashes++
		w.model.excuse(2*time.Second, w.kill)
		w.start()
	case opLose:
		if len(w.cliPIDs()) > 0 {
			w.crashes++
			w.killCLI()
		}
	case opRetry, opRefuse, opCut, opNonsense:
		w.model.failNext(w.nextMarker(), 1, s.Fault)
		w.finish(w.say(s.User, s.Text))
	case opMute:
		w.model.muteNext(w.nextMarker())
		w.finish(w.say(s.User, s.Text))
	case opSever:
		p := w.event(s)
		w.crashes++
		w.command("sever")
		w.finish(p)
		w.model.goOn()
	case opSteal:
		p := w.event(s)
		w.crashes++
		w.steal()
		w.leaveMoment()
		w.finish(p)
		w.model.goOn()
	case opStop:
		p := w.event(s)
		w.model.excuse(0, func() {
			w.command("stop")
			w.finish(p)
		})
	case opLeave:
		p := w.event(s)
		w.model.excuse(0, w.quit)
		w.leaveMoment()
		w.start()
		w.finish(p)
	case opKillCLI:
		p := w.event(s)
		w.crashes++
		w.killCLI()
		w.finish(p)
		w.model.goOn()
	case opKillBot:
		p := w.event(s)
		for n := 1; ; n++ {
			w.crashes++
			w.model.excuse(2*time.Second, w.kill)
			if n == s.Times {
				break
			}
			w.arrange(s.Where, p.marker)
			w.start()
			w.reach(s.Where, p)
		}
		w.leaveMoment()
		w.start()
		w.finish(p)
	default:
		w.finish(w.say(s.User, s.Text))
	}
	w.leaveMoment()
}

// event posts a prompt and waits for its moment. One that was given to a process that
// had been killed just before is over without it, and is posted again.
func (w *world) event(s step) sentPrompt {
	w.t.Helper()
	for {
		marker := w.nextMarker()
		w.arrange(s.Where, marker)
		p := w.say(s.User, s.Text)
		if w.reach(s.Where, p) {
			return p
		}
	}
}
