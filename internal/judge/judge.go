package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Rule names a promise.
type Rule string

// The rules.
const (
	Answered Rule = "every post is answered once, or told why not"
	Marked   Rule = "every post has one mark that says how it ended"
	Final    Rule = "no message says that work goes on when none does"
	Closed   Rule = "every card is final"
	Decided  Rule = "a tool runs once for each decision, and after it"
	Done     Rule = "an answer comes after its work"
	Remember Rule = "a conversation goes on with all that was answered in it"
	Kept     Rule = "branch and files are as the last turn left them"
	Booked   Rule = "the ledger is the bill, within its bounds"
	Settled  Rule = "nothing waits in the database"
	Chained  Rule = "the audit is whole"
	Gone     Rule = "no process is left"
)

// Violation is a broken promise.
type Violation struct {
	Rule   Rule
	Thread string // its first message's ts, or empty
	What   string
}

func (v Violation) String() string {
	if v.Thread == "" {
		return fmt.Sprintf("%s: %s", v.Rule, v.What)
	}
	return fmt.Sprintf("%s: thread %s: %s", v.Rule, v.Thread, v.What)
}

// endMarks are the reactions for a post's end.
var endMarks = map[string]bool{
	"white_check_mark": true, "warning": true, "black_square_for_stop": true, "double_vertical_bar": true, "money_with_wings": true,
}

const doneMark = "white_check_mark"

var (
	// handedOver is in a message that another one continues.
	handedOver = regexp.MustCompile(`(?i)restarted here|goes on below|went on elsewhere`)
	// forgot is in a message that says that the conversation begins again, or has a gap.
	forgot = regexp.MustCompile(`(?i)starts? anew|may be unknown|cannot be resumed|could not be resumed|new session`)
	// clears is in a person's order after which the model need not see what was said before.
	clears = regexp.MustCompile(`(?:^|\s)/(?:clear|compact)\b`)
	// lostWork is in a message that reports lost work.
	lostWork = regexp.MustCompile(`(?i)could not be (restored|kept|saved|published)|is lost|were lost|was lost`)
	// decides and works are buttons of something that still waits.
	decides = regexp.MustCompile(`"action_id":"(approve|deny|answer|pick)"`)
	works   = regexp.MustCompile(`"action_id":"stop"|⏳|💭 Thinking…|✋ Waiting|"status":"in_progress"`)
)

// post is a person's message with a request.
type post struct {
	Message
	answer string
	tools  []tool
}

type tool struct{ verb, id string }

func (m Message) all() string { return m.Text + "\n" + string(m.Blocks) }

// working is the message's sign that work continues or is awaited; or empty.
func (m Message) working() string {
	return works.FindString(strings.ReplaceAll(m.all(), "⏳ This waited", "")) // that line is about the past
}

// marks are the reactions about a post's end.
func (m Message) marks() (out []string) {
	for _, r := range m.Reactions {
		if endMarks[r.Name] {
			out = append(out, r.Name)
		}
	}
	return out
}

func (m Message) done() bool { return slices.Equal(m.marks(), []string{doneMark}) }

func (t Thread) root() string { return t.Messages[0].TS }

// posts are the requests in the thread.
func (t Thread) posts(bot string) (out []post) {
	for _, m := range t.Messages {
		if m.User == bot || m.EphemeralTo != "" {
			continue
		}
		answer := answerOf.FindStringSubmatch(m.Text)
		if answer == nil {
			continue
		}
		p := post{Message: m, answer: answer[1]}
		for _, found := range toolOf.FindAllStringSubmatch(m.Text, -1) {
			p.tools = append(p.tools, tool{verb: found[1], id: found[2]})
		}
		out = append(out, p)
	}
	return out
}

// anew is when somebody last wanted the conversation cleared or summed up before a post; or empty.
func (t Thread) anew(bot, before string) (since string) {
	for _, m := range t.Messages {
		if m.User != bot && m.TS < before && clears.MatchString(m.Text) {
			since = m.TS
		}
	}
	return since
}

// says are the matching messages of the bot.
func (t Thread) says(bot string, fits func(Message) bool) (out []Message) {
	for _, m := range t.Messages {
		if (m.User == bot || m.EphemeralTo != "") && fits(m) {
			out = append(out, m)
		}
	}
	return out
}

// Judge compares the evidence with the promises. Everything must be settled by then, see [Evidence.Unsettled].
func (e Evidence) Judge() []Violation {
	out := e.Unsettled()
	for _, t := range e.Threads {
		out = append(out, e.answers(t)...)
		out = append(out, e.memory(t)...)
		out = append(out, e.files(t)...)
	}
	out = append(out, e.runs()...)
	out = append(out, e.books()...)
	for _, p := range e.Processes {
		out = append(out, Violation{Rule: Gone, What: p})
	}
	if e.Rows.Broken > 0 {
		out = append(out, Violation{Rule: Chained, What: fmt.Sprintf("%d rows do not follow the one before", e.Rows.Broken)})
	}
	return out
}

// Unsettled is what may still be done in a moment.
func (e Evidence) Unsettled() (out []Violation) {
	for _, t := range e.Threads {
		for _, p := range t.posts(e.Bot) {
			switch marks := p.marks(); {
			case len(marks) == 0:
				told := "; it was never received"
				for _, row := range e.Rows.Posts {
					if row.TS == p.TS {
						told = "; it was received and is " + row.State + " " + row.Outcome
					}
				}
				for _, m := range t.says(e.Bot, func(m Message) bool { return m.TS > p.TS && m.EphemeralTo == p.User }) {
					told += "; it was told: " + m.Text
				}
				out = append(out, Violation{Rule: Marked, Thread: t.root(), What: p.answer + " has none" + told})
			case len(marks) > 1:
				out = append(out, Violation{Rule: Marked, Thread: t.root(), What: fmt.Sprintf("%s has %s", p.answer, strings.Join(marks, " and "))})
			}
		}
		for _, m := range t.says(e.Bot, func(m Message) bool { return m.working() != "" }) {
			out = append(out, Violation{Rule: Final, Thread: t.root(), What: fmt.Sprintf("message %s shows %s: %.120s", m.TS, m.working(), oneLine(m.Text))})
		}
		for _, m := range t.says(e.Bot, func(m Message) bool { return m.EphemeralTo == "" && decides.MatchString(string(m.Blocks)) }) {
			out = append(out, Violation{Rule: Closed, Thread: t.root(), What: fmt.Sprintf("card %s: %.120s", m.TS, oneLine(m.Text))})
		}
	}
	for _, row := range e.Rows.Waiting {
		out = append(out, Violation{Rule: Settled, What: "inbox: " + row})
	}
	for _, row := range e.Rows.Running {
		out = append(out, Violation{Rule: Settled, What: row})
	}
	for _, a := range e.Rows.Approvals {
		if a.Status == "pending" {
			out = append(out, Violation{Rule: Settled, What: "approval of " + a.Input})
		}
	}
	if e.Rows.Calls > 0 {
		out = append(out, Violation{Rule: Settled, What: fmt.Sprintf("%d calls of the model are not booked", e.Rows.Calls)})
	}
	return out
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// answers: what is done was answered once; what is not done was reported.
func (e Evidence) answers(t Thread) (out []Violation) {
	broken := func(rule Rule, format string, args ...any) {
		out = append(out, Violation{Rule: rule, Thread: t.root(), What: fmt.Sprintf(format, args...)})
	}
	posts := t.posts(e.Bot)
	// After a full disk the session may not know what it has said, and people are told so.
	forgot := t.says(e.Bot, func(m Message) bool { return strings.Contains(m.all(), "may be unknown when the session is started") })
	for _, p := range posts {
		said := t.says(e.Bot, func(m Message) bool {
			// A waiting message may be quoted, with its request, and a branch is named after it.
			text := strings.NewReplacer("say: "+p.answer, "", "say-"+p.answer, "").Replace(m.all())
			return strings.Contains(text, p.answer) && !handedOver.MatchString(text)
		})
		if len(said) > 1 && slices.ContainsFunc(forgot, func(m Message) bool { return m.TS < said[1].TS }) {
			said = said[:1]
		}
		if p.done() {
			if len(said) != 1 {
				broken(Answered, "%s is marked as done and was said %d times", p.answer, len(said))
			}
			for _, w := range p.tools {
				// "full": its disk was full, and it reported that. A subagent may fail and be done.
				if w.verb != "sub" && e.count("end", w.id) == 0 && e.count("found", w.id) == 0 && e.count("full", w.id) == 0 && !e.denied(w.id) {
					broken(Done, "%s is marked as done, and %s has not run to its end, nor was it denied", p.answer, w.id)
				}
			}
			continue
		}
		if len(said) > 1 {
			broken(Answered, "%s was said %d times", p.answer, len(said))
		}
		if marks := p.marks(); slices.Contains(marks, "warning") || slices.Contains(marks, "double_vertical_bar") {
			told := t.says(e.Bot, func(m Message) bool {
				return m.TS > p.TS && !slices.ContainsFunc(posts, func(o post) bool { return o.answer != p.answer && strings.Contains(m.all(), o.answer) })
			})
			if len(told) == 0 {
				broken(Answered, "%s ended as %v, and no sentence says why", p.answer, marks)
			}
		}
	}
	return out
}

func (e Evidence) count(what, id string) (n int) {
	for _, r := range e.Runs {
		if r.What == what && r.ID == id {
			n++
		}
	}
	return n
}

// denied reports whether a person or a timeout denied a tool use.
func (e Evidence) denied(id string) bool {
	return slices.ContainsFunc(e.Rows.Approvals, func(a Approval) bool {
		return strings.Contains(a.Input, id) && (a.Status == "denied" || a.Status == "expired")
	})
}

// runs: the k-th run of a tool follows k decisions that allow it.
func (e Evidence) runs() (out []Violation) {
	uses := map[string]string{} // the run's id, by the tool use's
	for _, c := range e.Calls {
		for _, u := range c.Uses {
			if !strings.HasPrefix(u.Input, `{"command"`) {
				continue // a subagent's prompt may name what it is to run
			}
			if found := toolOf.FindStringSubmatch(u.Input); found != nil {
				uses[u.ID] = found[2]
			}
		}
	}
	decided := map[string][]time.Time{}
	for _, d := range e.Rows.Decisions {
		if id := uses[d.ToolUse]; id != "" && d.Status == "allowed" {
			decided[id] = append(decided[id], d.At)
		}
	}
	threads := map[string]string{}
	for _, t := range e.Threads {
		for _, p := range t.posts(e.Bot) {
			for _, w := range p.tools {
				threads[w.id] = t.root()
			}
		}
	}
	begun := map[string]int{}
	for _, r := range e.Runs {
		if r.What != "begin" {
			continue
		}
		begun[r.ID]++
		if at := decided[r.ID]; len(at) < begun[r.ID] || at[begun[r.ID]-1].After(r.At) {
			out = append(out, Violation{Rule: Decided, Thread: threads[r.ID], What: fmt.Sprintf("run %d of %s %s at %s has no decision of its own before it; decided %v",
				begun[r.ID], r.Verb, r.ID, clock(r.At), clocks(at))})
		}
	}
	return out
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

func clocks(list []time.Time) (out []string) {
	for _, t := range list {
		out = append(out, clock(t))
	}
	return out
}

// memory: when a post is first sent to the model, the conversation has the thread's earlier answers.
func (e Evidence) memory(t Thread) (out []Violation) {
	if len(t.says(e.Bot, func(m Message) bool { return forgot.MatchString(m.all()) })) > 0 {
		return nil
	}
	first := map[string]ModelCall{}
	for _, c := range e.Calls {
		if last := c.asked(); last != "" {
			if _, known := first[last]; !known {
				first[last] = c
			}
		}
	}
	posts := t.posts(e.Bot)
	for _, p := range posts {
		c, asked := first[p.answer]
		if !asked {
			continue
		}
		since := t.anew(e.Bot, p.TS)
		for _, earlier := range posts {
			before, known := first[earlier.answer]
			if earlier.TS > since && earlier.done() && known && before.At.Before(c.At) && !slices.Contains(c.Seen, earlier.answer) {
				out = append(out, Violation{Rule: Remember, Thread: t.root(), What: fmt.Sprintf("the model was asked for %s without %s, which was answered before; it saw %v", p.answer, earlier.answer, c.Seen)})
			}
		}
	}
	return out
}

// files: what was committed or only written exists for later turns, and commits are in the thread's branch.
func (e Evidence) files(t Thread) (out []Violation) {
	if len(t.says(e.Bot, func(m Message) bool { return lostWork.MatchString(m.all()) })) > 0 {
		return nil
	}
	broken := func(format string, args ...any) {
		out = append(out, Violation{Rule: Kept, Thread: t.root(), What: fmt.Sprintf(format, args...)})
	}
	mine := map[string]bool{}
	for _, p := range t.posts(e.Bot) {
		for _, w := range p.tools {
			mine[w.id] = true
		}
	}
	var committed, loose []string
	for _, r := range e.Runs {
		switch {
		case !mine[r.ID]:
		case r.What == "end" && r.Verb == "commit":
			committed = append(committed, r.ID)
		case r.What == "end" && r.Verb == "loose":
			loose = append(loose, r.ID)
		case r.What == "found":
			for _, id := range slices.Concat(committed, loose) {
				if !slices.Contains(r.Found, id) {
					broken("%s was written before %s looked at %s, which did not find it", id, r.ID, clock(r.At))
				}
			}
		}
	}
	i := slices.IndexFunc(e.Rows.Threads, func(row ThreadRow) bool { return row.Channel == t.Channel && row.TS == t.root() })
	if i < 0 || t.Channel != e.Branched {
		return out
	}
	branch := e.Rows.Threads[i].Branch
	for _, id := range committed {
		if !slices.Contains(e.Branches[branch], id) {
			broken("%s was committed and is not in the branch %s", id, branch)
		}
	}
	return out
}
