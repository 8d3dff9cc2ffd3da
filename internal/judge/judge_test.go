package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func second(s int) time.Time { return time.Unix(1_700_000_000+int64(s), 0) }

func ts(s int) string { return fmt.Sprintf("%d.000000", second(s).Unix()) }

func marked(m Message, names ...string) Message {
	m.Reactions = nil
	for _, n := range names {
		m.Reactions = append(m.Reactions, struct {
			Name string `json:"name"`
		}{n})
	}
	return m
}

// good is a history in which everything was kept: a post whose tool a person allows, one
// whose tool is denied, one that a rule allows to commit and to write, and a look at what
// there is.
func good() Evidence {
	tool := func(verb, id string) string { return `{"command":"/x/run.sh ` + verb + " " + id + `"}` }
	ask := func(s int, n int, tools ...string) Message {
		text := "<@U0BOT> "
		for _, t := range tools {
			text += "tool: Bash " + t + "\n"
		}
		return marked(Message{TS: ts(s), User: "U0ADA", Text: text + fmt.Sprintf("say: answer-%04d", n)}, "eyes", doneMark)
	}
	say := func(s, n int) Message {
		return Message{TS: ts(s), User: "U0BOT", Text: fmt.Sprintf("answer-%04d", n), Blocks: json.RawMessage(`[]`)}
	}
	card := func(s int, text string) Message {
		return Message{TS: ts(s), User: "U0BOT", Text: text, Blocks: json.RawMessage(`[{"type":"section"}]`)}
	}
	decidedAt := second(12)
	return Evidence{
		Bot: "U0BOT", Branched: "C0TREE",
		Threads: []Thread{{Channel: "C0TREE", Messages: []Message{
			ask(10, 1, tool("ask", "t0001-0")), card(11, "Approved"), say(15, 1),
			ask(20, 2, tool("ask", "t0002-0")), card(21, "Denied"), say(23, 2),
			ask(30, 3, tool("commit", "t0003-0"), tool("loose", "t0003-1")), say(36, 3),
			ask(40, 4, tool("look", "t0004-0")), say(43, 4),
		}}},
		Calls: []ModelCall{
			{At: second(10), Ended: second(11), Request: "r1", Session: "s", Main: true, Told: true, Seen: []string{"answer-0001"}, Uses: []ToolUse{{"u1", tool("ask", "t0001-0")}}},
			{At: second(20), Ended: second(21), Request: "r2", Session: "s", Main: true, Told: true, Seen: []string{"answer-0001", "answer-0002"}, Uses: []ToolUse{{"u2", tool("ask", "t0002-0")}}},
			{At: second(30), Ended: second(31), Request: "r3", Session: "s", Main: true, Told: true, Seen: []string{"answer-0001", "answer-0002", "answer-0003"}, Uses: []ToolUse{{"u3", tool("commit", "t0003-0")}, {"u4", tool("loose", "t0003-1")}}},
			{At: second(40), Ended: second(41), Request: "r4", Session: "s", Main: true, Told: true, Seen: []string{"answer-0001", "answer-0002", "answer-0003", "answer-0004"}, Uses: []ToolUse{{"u5", tool("look", "t0004-0")}}},
			{At: second(43), Ended: second(45), Request: "r5", Session: "s"},
			{At: second(43), Ended: second(47), Request: "r6", Session: "s", Told: true},
		},
		Cuts: []Span{{second(45), second(46)}},
		Runs: []Run{
			{At: second(13), What: "begin", Verb: "ask", ID: "t0001-0"},
			{At: second(14), What: "end", Verb: "ask", ID: "t0001-0"},
			{At: second(32), What: "begin", Verb: "commit", ID: "t0003-0"},
			{At: second(33), What: "end", Verb: "commit", ID: "t0003-0"},
			{At: second(34), What: "begin", Verb: "loose", ID: "t0003-1"},
			{At: second(35), What: "end", Verb: "loose", ID: "t0003-1"},
			{At: second(42), What: "begin", Verb: "look", ID: "t0004-0"},
			{At: second(42), What: "found", Verb: "look", ID: "t0004-0", Found: []string{"start", "t0003-0", "t0003-1"}},
		},
		Bill: map[string]int64{"r1": 100, "r2": 200, "r3": 300, "r4": 400, "r5": 500, "r6": 600},
		Rows: Rows{
			Decisions: []Decision{
				{second(12), "u1", "allowed", "button"},
				{second(22), "u2", "denied", "button"},
				{second(31), "u3", "allowed", "rule"},
				{second(31), "u4", "allowed", "rule"},
				{second(41), "u5", "allowed", "rule"},
			},
			Approvals: []Approval{
				{7, second(11), tool("ask", "t0001-0"), "allowed", "U0GRACE", &decidedAt},
				{7, second(21), tool("ask", "t0002-0"), "denied", "U0GRACE", &decidedAt},
			},
			Ledger: []Entry{
				{"r1", "s", "U0ADA", true, 100, 0},
				{"r2", "s", "U0ADA", true, 200, 0},
				{"r3", "s", "U0ADA", true, 300, 0},
				{"r4", "s", "U0ADA", true, 400, 0},
				{"r5", "s", "U0ADA", false, 450, 80},
				{"", "s", "U0ADA", false, 0, 900},
				{"", "s", "U0ADA", true, 0, 0},
			},
			Threads: []ThreadRow{{7, "C0TREE", ts(10), "deckhand/7"}},
		},
		Branches: map[string][]string{"deckhand/7": {"t0003-0", "start"}},
	}
}

// The judge says nothing of a good history, and sees each thing that goes wrong.
func TestTheJudgeSees(t *testing.T) {
	t.Parallel()
	if v := good().Judge(); len(v) > 0 {
		t.Fatalf("of a good history it says %v", v)
	}
	message := func(e *Evidence, i int) *Message { return &e.Threads[0].Messages[i] }
	with := func(blocks string) json.RawMessage { return json.RawMessage(blocks) }
	tests := []struct {
		name   string
		change func(*Evidence)
		want   Rule
	}{
		{"the last edit of an answer is lost", func(e *Evidence) {
			message(e, 2).Blocks = with(`[{"elements":[{"action_id":"stop"}]}]`)
		}, Final},
		{"a plan's step goes on for ever", func(e *Evidence) { message(e, 2).Blocks = with(`[{"status":"in_progress"}]`) }, Final},
		{"an answer is lost", func(e *Evidence) { message(e, 2).Text = "" }, Answered},
		{"an answer is said twice", func(e *Evidence) { message(e, 5).Text += " answer-0001" }, Answered},
		{"a mark is lost", func(e *Evidence) { *message(e, 0) = marked(*message(e, 0), "eyes") }, Marked},
		{"a post failed and was done", func(e *Evidence) { *message(e, 0) = marked(*message(e, 0), "warning", doneMark) }, Marked},
		{"a post failed without a word", func(e *Evidence) {
			*message(e, 8) = marked(*message(e, 8), "warning")
			e.Threads[0].Messages = e.Threads[0].Messages[:9]
		}, Answered},
		{"a card stays open", func(e *Evidence) { message(e, 1).Blocks = with(`[{"elements":[{"action_id":"approve"}]}]`) }, Closed},
		{"a tool runs twice", func(e *Evidence) {
			e.Runs = slices.Insert(e.Runs, 2, Run{At: second(14), What: "begin", Verb: "ask", ID: "t0001-0"})
		}, Decided},
		{"a tool that a rule allows runs twice", func(e *Evidence) {
			e.Runs = append(e.Runs, Run{At: second(50), What: "begin", Verb: "commit", ID: "t0003-0"})
		}, Decided},
		{"a tool runs before it was decided about", func(e *Evidence) { e.Runs[0].At = second(11) }, Decided},
		{"a tool runs that was denied", func(e *Evidence) {
			e.Runs = append(e.Runs, Run{At: second(50), What: "begin", Verb: "ask", ID: "t0002-0"})
		}, Decided},
		{"an allowed tool never ran", func(e *Evidence) { e.Runs = e.Runs[2:] }, Done},
		{"the conversation begins anew without a word", func(e *Evidence) { e.Calls[3].Seen = e.Calls[3].Seen[3:] }, Remember},
		{"a commit is lost from the branch", func(e *Evidence) { e.Branches["deckhand/7"] = []string{"start"} }, Kept},
		{"the branch is lost", func(e *Evidence) { e.Branches = nil }, Kept},
		{"a commit is lost from the workspace", func(e *Evidence) { e.Runs[7].Found = []string{"start", "t0003-1"} }, Kept},
		{"a file is lost from the workspace", func(e *Evidence) { e.Runs[7].Found = []string{"start", "t0003-0"} }, Kept},
		{"the ledger has too little", func(e *Evidence) { e.Rows.Ledger[0].Micro-- }, Booked},
		{"the ledger has too much", func(e *Evidence) { e.Rows.Ledger[0].Micro++ }, Booked},
		{"two entries differ, and their sum is right", func(e *Evidence) { e.Rows.Ledger[0].Micro--; e.Rows.Ledger[1].Micro++ }, Booked},
		{"a cut call is missing by more than it says", func(e *Evidence) { e.Rows.Ledger[4].Bound = 49 }, Booked},
		{"a cut call is booked at more than it is billed", func(e *Evidence) { e.Bill["r5"] = 449 }, Booked},
		{"a call is booked as cut, and nothing cut it", func(e *Evidence) { e.Rows.Ledger[0].Complete = false }, Booked},
		{"a call is not in the ledger", func(e *Evidence) { e.Rows.Ledger = e.Rows.Ledger[1:] }, Booked},
		{"a call of a bot that died is not in the ledger", func(e *Evidence) { e.Rows.Ledger[5].Bound = 599 }, Booked},
		{"a call is booked twice", func(e *Evidence) { e.Rows.Ledger = append(e.Rows.Ledger, e.Rows.Ledger[0]) }, Booked},
		{"a call is booked that was not billed", func(e *Evidence) { delete(e.Bill, "r1") }, Booked},
		{"a call is booked on another session", func(e *Evidence) { e.Rows.Ledger[0].Session = "other" }, Booked},
		{"a call is booked on another person", func(e *Evidence) { e.Rows.Ledger[0].User = "U0GRACE" }, Booked},
		{"the ledger has an estimate", func(e *Evidence) { e.Rows.Estimates = []string{"estimate"} }, Booked},
		{"an envelope waits", func(e *Evidence) { e.Rows.Waiting = []string{"message"} }, Settled},
		{"a turn runs on", func(e *Evidence) { e.Rows.Running = []string{"turn 3"} }, Settled},
		{"an approval waits", func(e *Evidence) { e.Rows.Approvals[0].Status = "pending" }, Settled},
		{"a call is not booked", func(e *Evidence) { e.Rows.Calls = 1 }, Settled},
		{"the audit is broken", func(e *Evidence) { e.Rows.Broken = 1 }, Chained},
		{"a process is left", func(e *Evidence) { e.Processes = []string{"7: claude"} }, Gone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := good()
			tt.change(&e)
			v := e.Judge()
			if !slices.ContainsFunc(v, func(v Violation) bool { return v.Rule == tt.want }) {
				t.Errorf("the judge says %v, want %q", v, tt.want)
			}
		})
	}
}

// What is said in the thread is no violation.
func TestWhatWasToldIsNoViolation(t *testing.T) {
	t.Parallel()
	say := func(s int, text string) Message { return Message{TS: ts(s), User: "U0BOT", Text: text} }
	tests := map[string]func(*Evidence){
		"the conversation begins anew": func(e *Evidence) { e.Calls[3].Seen = e.Calls[3].Seen[3:] },
		"files are lost":               func(e *Evidence) { e.Runs[7].Found = nil },
		"a post failed":                func(e *Evidence) { e.Threads[0].Messages[8] = marked(e.Threads[0].Messages[8], "warning") },
	}
	cleared := good()
	tests["the conversation begins anew"](&cleared)
	cleared.Threads[0].Messages = slices.Insert(cleared.Threads[0].Messages, 8, Message{TS: ts(37), User: "U0ADA", Text: "<@U0BOT> /clear"})
	if v := cleared.Judge(); len(v) > 0 {
		t.Errorf("after a /clear: %v", v)
	}
	twice := good()
	twice.Threads[0].Messages[5].Text += " answer-0001"
	twice.Threads[0].Messages = slices.Insert(twice.Threads[0].Messages, 5, say(15, "The disk of the bot's data folder is full or broken. What was said and done in this turn may be unknown when the session is started the next time."))
	if v := twice.Judge(); len(v) > 0 {
		t.Errorf("after a full disk: %v", v)
	}
	for sentence, change := range map[string]string{
		"The session cannot be resumed, so it starts anew.":       "the conversation begins anew",
		"These files could not be restored: loose.txt, notes.txt": "files are lost",
		"This was interrupted 3 times and is given up.":           "a post failed",
	} {
		e := good()
		tests[change](&e)
		e.Threads[0].Messages = append(e.Threads[0].Messages, say(60, sentence))
		if v := e.Judge(); len(v) > 0 {
			t.Errorf("%s: %v", sentence, v)
		}
	}
}

// The story of a thread has all that happened, in order.
func TestTheStoryIsInOrder(t *testing.T) {
	t.Parallel()
	e := good()
	e.Accidents = []Line{{At: second(12), Text: "* kill bot"}}
	story := e.Story(ts(10))
	at := -1
	for _, want := range []string{"U0ADA posted", "is asked in session s", "asked: ", "kill bot", "allowed by U0GRACE", "begin of ask t0001-0", "end of ask t0001-0", "answer-0001"} {
		i := strings.Index(story[at+1:], want)
		if i < 0 {
			t.Fatalf("%q does not come next in\n%s", want, story)
		}
		at += 1 + i
	}
}
