package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// The plan of a random history: what people do and what breaks, drawn from a seed alone,
// so that the seed draws it again. How it then goes is up to the machine.

// tree and shop are the channels: in one every thread has a branch, in the other all
// threads share a folder.
const (
	shop = eng
	tree = "C0GENERAL"
)

type chaosPlan struct {
	seed      uint64
	posts     int // the number before that of the first post
	replicas  int
	postgres  bool // one of the history's own, which may be killed
	sandboxed bool // the threads of shop
	further   bool // tree has a further repository, lib
	idle      time.Duration
	slots     int
	settings  []string      // of the bots, beside those that all have
	program   string        // that the replicas are; empty for this test's binary
	database  string        // its address; empty for one of the tests' server
	unwritten time.Duration // how long what a bot has read of a call may not be written down
	steps     []chaosStep
}

// chaosStep is one thing that happens, some time after the one before.
type chaosStep struct {
	after time.Duration
	what  string        // a word of acts
	whose uint64        // which replica, thread or process, of those that there are by then
	long  time.Duration // until it is over
	fault map[string]any
	user  string
	text  string // of a post, where %s is where run.sh lies, or of an order
	n     int    // of a post
	in    string // channel of a post that begins a thread; moment of an ambush
}

func (s chaosStep) String() string {
	switch {
	case s.fault != nil:
		return fmt.Sprintf("%s %v", s.what, s.fault)
	case s.what == "ambush":
		return fmt.Sprintf("kill all bots %v after it has %s %d times", s.long, s.in, s.n)
	case s.n > 0:
		return fmt.Sprintf("%s answer-%04d", s.what, s.n)
	case s.what == "order":
		return s.text
	default:
		return fmt.Sprintf("%s %d for %v", s.what, s.whose%3, s.long)
	}
}

// drawChaos draws the first n steps after the one that begins it; posts are counted from
// after the given number.
func drawChaos(seed uint64, n, posts int) chaosPlan {
	r := rand.New(rand.NewPCG(seed, 12))
	p := chaosPlan{
		seed: seed, posts: posts,
		replicas: 1 + r.IntN(3), postgres: r.IntN(3) == 0, sandboxed: r.IntN(3) == 0,
		idle: []time.Duration{2 * time.Second, 30 * time.Minute}[r.IntN(2)], slots: []int{1, 2, 20}[r.IntN(3)],
		unwritten: 30 * time.Second, // on a busy machine
	}
	d := chaosDrawer{r: r, more: rand.New(rand.NewPCG(seed, 14)), plan: &p, posts: posts}
	d.post("mention")
	for i := range n {
		if i >= 3 && d.more.IntN(3) == 0 {
			d.rarity()
		}
		if r.IntN(2) == 0 {
			d.post([]string{"mention", "reply", "reply"}[r.IntN(3)])
		} else {
			d.accident()
		}
	}
	return p
}

type chaosDrawer struct {
	r     *rand.Rand
	more  *rand.Rand // for what came later: a seed's other steps stay what they were
	plan  *chaosPlan
	posts int
}

func (d *chaosDrawer) add(s chaosStep) {
	s.after = time.Duration(d.r.IntN(2500)) * time.Millisecond
	s.whose = d.r.Uint64()
	switch s.what {
	case "freeze bot", "cut database", "part database", "kill postgres": // it cannot write
		d.plan.unwritten = max(d.plan.unwritten, s.long+30*time.Second)
	}
	d.plan.steps = append(d.plan.steps, s)
}

// post is a mention or a reply with up to two tools.
func (d *chaosDrawer) post(what string) {
	d.posts++
	s := chaosStep{what: what, n: d.posts, user: []string{linus, ada, grace}[d.r.IntN(3)], in: []string{shop, tree}[d.r.IntN(2)]}
	var text []string
	if d.r.IntN(8) == 0 {
		text = append(text, "slow: 200")
	}
	for k := range d.r.IntN(3) {
		// In shop there is no branch: commit and loose are free there.
		verb := []string{"ask", "ask", "free", "commit", "loose"}[d.r.IntN(5)]
		text = append(text, fmt.Sprintf(`tool: Bash {"command":"%%s %s t%04d-%d %d"}`, verb, d.posts, k, d.r.IntN(3)))
	}
	if d.r.IntN(8) == 0 {
		text = append(text, `tool: AskUserQuestion {"questions":[{"question":"Which colour?","header":"Colour","multiSelect":false,"options":[{"label":"Red","description":"warm"},{"label":"Blue","description":"cold"}]}]}`)
	}
	text = append(text, d.work()...)
	s.text = strings.Join(append(text, fmt.Sprintf("say: answer-%04d", d.posts)), "\n")
	d.add(s)
}

// work is what else a post may have done: several calls in one answer, or a subagent; and what
// the last answer uses.
func (d *chaosDrawer) work() (text []string) {
	r := d.more
	switch r.IntN(6) {
	case 0:
		text = append(text, fmt.Sprintf(`tools: [{"name":"Bash","input":{"command":"%%s free t%04[1]d-5"}},{"name":"Bash","input":{"command":"%%s free t%04[1]d-6"}}]`, d.posts))
	case 1:
		task := fmt.Sprintf("tool: Bash {\"command\":\"%%s sub t%04d-7 %d\"}\n%s\nsay: below", d.posts, r.IntN(2), usage(r))
		text = append(text, fmt.Sprintf(`tool: Task {"description":"a job","subagent_type":"general-purpose","run_in_background":false,"prompt":%q}`, task))
	}
	if r.IntN(4) == 0 {
		text = append(text, "think: about it")
	}
	if r.IntN(2) == 0 {
		text = append(text, usage(r))
	}
	if r.IntN(3) == 0 { // for seconds, so that accidents cut it
		text = append(text, "slow: 60", fmt.Sprintf("fill: %d", 60+r.IntN(200)))
	}
	return text
}

// usage has an answer use any tokens, of caches and searches too.
func usage(r *rand.Rand) string {
	return fmt.Sprintf(`usage: {"input_tokens":%d,"output_tokens":%d,"cache_read_input_tokens":%d,"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d},"server_tool_use":{"web_search_requests":%d}}`,
		1+r.IntN(5000), 1+r.IntN(3000), r.IntN(90_000), r.IntN(3000), r.IntN(2)*r.IntN(3000), max(0, r.IntN(5)-2))
}

// rarity is one of the later kinds: orders about the session, several people at once, a stop in
// good order, and faults that the ledger must follow.
func (d *chaosDrawer) rarity() {
	defer func(r *rand.Rand) { d.r = r }(d.r)
	d.r = d.more
	fault := func(fault map[string]any) {
		fault["target"], fault["times"] = "model", 1
		d.add(chaosStep{what: "fault", fault: fault})
	}
	switch d.r.IntN(11) {
	case 0, 1:
		d.add(chaosStep{what: "order", text: "/clear"})
	case 2:
		d.add(chaosStep{what: "order", text: "/compact"})
	case 3, 4:
		d.add(chaosStep{what: "order", text: "model " + []string{"haiku", "opus", "default"}[d.r.IntN(3)]})
	case 5:
		for i := range 2 + d.r.IntN(2) {
			d.post("reply")
			if last := d.plan.steps; i > 0 {
				last[len(last)-1].after, last[len(last)-1].whose = 0, last[len(last)-2].whose
			}
		}
	case 6:
		d.add(chaosStep{what: "restart bot"})
	case 7:
		d.add(chaosStep{what: "cut model"})
	case 8:
		fault(map[string]any{"mute": true})
	case 9:
		fault(map[string]any{"status": 400, "message": "bad luck"})
	case 10:
		fault(map[string]any{"status": 429, "retry_after": 1})
	}
}

// accident is anything that people do beside work, and whatever breaks.
func (d *chaosDrawer) accident() {
	r := d.r
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	seconds := func(most int) time.Duration { return time.Duration(r.IntN(most*1000)) * time.Millisecond }
	method := pick("chat.update", "chat.postMessage", "reactions.add", "users.info", "*")
	switch what := pick("stop", "ambush", "ambush", "ambush", "kill bot", "kill bot", "kill CLI", "kill reaper", "freeze bot", "freeze CLI", "cut database", "part database", "part database",
		"fill disk", "postgres", "slack", "slack", "slack", "slack", "model", "model"); what {
	case "postgres":
		if d.plan.postgres {
			what = "kill postgres"
		} else {
			what = "cut database"
		}
		d.add(chaosStep{what: what, long: seconds(4)})
	case "slack":
		d.add(chaosStep{what: "fault", fault: []map[string]any{
			{"method": method, "status": 429, "retry_after": 1 + r.IntN(3), "times": 1 + r.IntN(3)},
			{"method": method, "status": 500, "times": 1 + r.IntN(3)},
			{"method": method, "error": "fatal_error", "times": 1},
			{"method": method, "slow": "2s", "times": 2},
			{"disconnect": pick("warning", "refresh_requested", "drop")},
			{"duplicate_events": 1 + r.IntN(2)},
			{"drop_clicks": 1},
			{"drop_acks": 1 + r.IntN(2)},
		}[r.IntN(8)]})
	case "model":
		d.add(chaosStep{what: "fault", fault: []map[string]any{
			{"target": "model", "status": 529, "times": 1 + r.IntN(2)},
			{"target": "model", "status": 500, "times": 1},
			{"target": "model", "hang": "3s", "times": 1},
			{"target": "model", "cut_after_chars": 5 + r.IntN(100), "times": 1},
			{"target": "model", "garbage": true, "times": 1},
		}[r.IntN(5)]})
	case "freeze bot":
		d.add(chaosStep{what: what, long: seconds([]int{3, 3, 25}[r.IntN(3)])})
	case "part database":
		d.add(chaosStep{what: what, long: seconds([]int{5, 5, 30}[r.IntN(3)])})
	case "ambush":
		d.add(chaosStep{what: what, in: pick(whenAsked, whenAnswered, whenShown, whenShown), n: 1 + r.IntN(6), long: time.Duration(r.IntN(30)) * time.Millisecond})
	default:
		d.add(chaosStep{what: what, long: seconds(4)})
	}
}
