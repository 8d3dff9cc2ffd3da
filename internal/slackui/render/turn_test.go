package render_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	asked "deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/redact"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/threads"
)

var began = time.Date(2026, 3, 4, 14, 2, 11, 0, time.UTC)

func text(s string) claude.Item { return claude.Item{Kind: claude.ItemText, Text: s, Final: true} }

func tool(name, input string, state claude.ToolState, result string) claude.Item {
	id := "toolu_" + name + fmt.Sprint(len(input))
	return claude.Item{Kind: claude.ItemToolUse, ID: id, Final: true, Tool: &claude.ToolUse{
		ID: id, Name: name, Input: json.RawMessage(input), State: state, Result: result, ResultBytes: len(result),
	}}
}

// stepsOf counts the uses of tools, as the agent does.
func stepsOf(items []claude.Item) (n int) {
	for i := range items {
		if t := items[i].Tool; t != nil && !claude.ToolKeepsList(t.Name) {
			n++
		}
	}
	return n
}

func running(items ...claude.Item) agent.TurnView {
	return agent.TurnView{
		Steps: stepsOf(items),
		ID:    12, Thread: threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: "1.0"},
		Workspace: "/srv/work/app", RequestedBy: asker, State: agent.TurnRunning, StartedAt: began,
		Content: claude.Output{Items: items, Model: "claude-sonnet-4-5-20250929"},
	}
}

func ended(state agent.TurnState, items ...claude.Item) agent.TurnView {
	t := running(items...)
	t.State, t.EndedAt = state, began.Add(12*time.Second)
	t.AgentTurns, t.CostMicroUSD = 3, 12_345
	return t
}

func times(n int, it func(i int) claude.Item) []claude.Item {
	out := make([]claude.Item, n)
	for i := range out {
		out[i] = it(i)
	}
	return out
}

// turns are the shapes that a turn can take.
func exampleTurns() map[string]agent.TurnView {
	story := []claude.Item{
		text("I'll look at the failing test first."),
		tool("Read", `{"file_path":"/srv/work/app/calc_test.go"}`, claude.ToolDone, "1\tpackage calc\n2\t\n3\tfunc Test…"),
		tool("Grep", `{"pattern":"func Add","path":"/srv/work/app"}`, claude.ToolDone, "Found 2 files\ncalc.go\ncalc_test.go"),
		text("`Add` subtracts. I'll fix that:\n\n```go\nreturn a + b\n```"),
		tool("Edit", `{"file_path":"/srv/work/app/calc.go","old_string":"func Add(a, b int) int {\n\treturn a - b\n}","new_string":"func Add(a, b int) int {\n\treturn a + b\n}"}`, claude.ToolDone, "The file has been updated"),
		tool("Bash", `{"command":"go test ./...\ngo vet ./...","description":"Run tests"}`, claude.ToolAsked, ""),
	}
	waiting := running(story...)
	waiting.Waiting = 1

	done := append(append([]claude.Item(nil), story[:5]...),
		tool("Bash", `{"command":"go test ./..."}`, claude.ToolDone, "ok  \tapp\t0.01s\n"),
		text("The test **passes** now."))

	failed := ended(agent.TurnFailed, story[:2]...)
	failed.Problem = "Claude Code is not logged in. Ask an admin to set ANTHROPIC_API_KEY, then try again."
	stopped := ended(agent.TurnInterrupted, story[0], tool("Bash", `{"command":"sleep 100"}`, claude.ToolRunning, ""))
	stopped.Problem, stopped.Unfinished = "Stopped by Ada.", true

	todos := running(text("On it."))
	todos.Content.Todos = []claude.Todo{
		{Text: "Read the <test>", State: "completed"}, {Text: "Fix Add", State: "in_progress"}, {Text: "Run the tests", State: "pending"},
	}
	manyTodos := running(text("On it."))
	for i := range 40 {
		status := "pending"
		if i < 20 {
			status = "completed"
		}
		manyTodos.Content.Todos = append(manyTodos.Content.Todos, claude.Todo{Text: fmt.Sprint("Step ", i), State: status})
	}

	task := tool("Task", `{"description":"Explore the parser","prompt":"…"}`, claude.ToolRunning, "")
	child := func(i int) claude.Item {
		c := tool("Grep", fmt.Sprintf(`{"pattern":"p%d"}`, i), claude.ToolDone, "No files found")
		c.ParentID, c.ID = task.ID, fmt.Sprint(task.ID, ":", i)
		return c
	}
	subagent := running(append([]claude.Item{text("I'll send somebody."), task}, append(times(5, child),
		claude.Item{Kind: claude.ItemText, ParentID: task.ID, Text: "a subagent's own words", Final: true})...)...)

	task.Tool = &claude.ToolUse{ID: task.Tool.ID, Name: "Task", Input: task.Tool.Input, State: claude.ToolDone, Result: "a report"}
	back := ended(agent.TurnDone, append([]claude.Item{text("I'll send somebody."), task}, append(times(5, child), text("They are back."))...)...)
	back.Spent = map[string]int64{task.Tool.ID: 4_321}

	retry := running(text("Well"))
	retry.Content.Status = "Retrying in 4 s (attempt 2 of 10)"

	held := running(text("Well"))
	held.Held = "Today's budget of the project <web>"

	return map[string]agent.TurnView{
		"held":           held,
		"first words":    running(claude.Item{Kind: claude.ItemText, Text: "Hel"}),
		"waiting":        waiting,
		"done":           ended(agent.TurnDone, done...),
		"failed":         failed,
		"stopped":        stopped,
		"thinking":       running(claude.Item{Kind: claude.ItemThinking, Text: "Hmm, let me see"}),
		"todos":          todos,
		"many todos":     manyTodos,
		"subagent":       subagent,
		"subagent back":  back,
		"retrying":       retry,
		"nothing to say": ended(agent.TurnDone),
		"failed at once": {ID: 12, State: agent.TurnFailed, Problem: "The project folder is not there."},
		"command output": ended(agent.TurnDone, claude.Item{Kind: claude.ItemCommandOutput, Text: "Context: ```12%```\n<!channel>", Final: true}),
		"notice":         running(claude.Item{Kind: claude.ItemNotice, Text: "Conversation <compacted>", Final: true}, claude.Item{Kind: claude.ItemImage, Final: true}, claude.Item{Kind: claude.ItemNotice, Text: "The account's rate limit is reached.", Error: true}),
		"many tools": running(times(20, func(i int) claude.Item {
			return tool([]string{"Read", "Read", "Grep"}[i%3], fmt.Sprintf(`{"file_path":"f%d.go","pattern":"x"}`, i), claude.ToolDone, "a\nb\n")
		})...),
		"parallel tools": running(times(12, func(i int) claude.Item {
			return tool("WebFetch", fmt.Sprintf(`{"url":"https://example.com/%d?a=1&b=2"}`, i), claude.ToolRunning, "")
		})...),
		"states of tools": running(toolStates()...),
	}
}

func toolStates() []claude.Item {
	return []claude.Item{
		tool("Bash", `{"command":"exit 3"}`, claude.ToolFailed, "Exit code 3\nboom"),
		tool("Bash", `{"command":"rm -rf /"}`, claude.ToolDenied, "no"),
		tool("mcp__github__create_issue", `{"owner":"me","title":"Broken `+"`"+`quotes`+"`"+` & <tags>"}`, claude.ToolStreaming, ""),
		tool("Write", `{"file_path":"/etc/passwd","content":"a\nb\nc"}`, claude.ToolDone, "File created"),
		text("and"),
		tool("Bash", `{"command":"true"}`, claude.ToolDone, ""),
		tool("Bash", `{"comm`, claude.ToolStreaming, ""),
		tool("Read", `{"file_path":"relative.go"}`, claude.ToolFailed, "<tool_use_error>File does not exist.</tool_use_error>"),
		tool("TodoWrite", `{"todos":[]}`, claude.ToolDone, ""),
		tool("Bash", `{"command":"sleep 9"}`, claude.ToolInterrupted, ""),
		{Kind: claude.ItemToolUse, Tool: &claude.ToolUse{ID: "b", Name: "Bash", Input: json.RawMessage(`{"command":"cat big"}`), State: claude.ToolDone, Result: "head", ResultBytes: 31_234}},
	}
}

func TestTurn(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	for name, turn := range exampleTurns() {
		t.Run(name, func(t *testing.T) {
			pages := render.Turn(turn, render.Options{})
			golden(t, "turn/"+strings.ReplaceAll(name, " ", "_"), pages)
			for _, p := range pages {
				for _, problem := range checkPage(p) {
					t.Error(problem)
				}
				j.page(t, p)
			}
		})
	}
}

func TestNothingIsShownBeforeThereIsAnything(t *testing.T) {
	t.Parallel()
	for name, turn := range map[string]agent.TurnView{
		"empty":       running(),
		"empty text":  running(claude.Item{Kind: claude.ItemText}),
		"only a todo": running(tool("TodoWrite", `{"todos":[]}`, claude.ToolDone, "")),
		"white space": running(claude.Item{Kind: claude.ItemText, Text: " \n "}),
		"no thinking": running(claude.Item{Kind: claude.ItemThinking}),
		"old todos":   {ID: 1, State: agent.TurnRunning, Content: claude.Output{Todos: []claude.Todo{{Text: "x", State: "pending"}}}},
	} {
		if pages := render.Turn(turn, render.Options{}); len(pages) != 0 {
			t.Errorf("%s: %d pages, want none", name, len(pages))
		}
	}
}

func TestThinkingIsNotShown(t *testing.T) {
	t.Parallel()
	turn := ended(agent.TurnDone, claude.Item{Kind: claude.ItemThinking, Text: "Let me\nsee", Final: true}, text("Seen."))
	if raw := string(asJSON(t, render.Turn(turn, render.Options{}))); strings.Contains(raw, "Let me") {
		t.Errorf("thinking is shown: %s", raw)
	}
}

// markdownOf joins the text of a page as people read it.
func markdownOf(p render.Page) string {
	var b strings.Builder
	for _, block := range p.Blocks {
		if m, ok := block.(*slack.MarkdownBlock); ok {
			b.WriteString(m.Text)
			b.WriteString("\x00")
		}
	}
	return b.String()
}

// TestPagesGrowAtTheEndOnly streams long turns in small steps: what stands on a
// page that is not the last stays as it is.
func TestPagesGrowAtTheEndOnly(t *testing.T) {
	t.Parallel()
	long := mrkdwntest.Prose(45_000)
	adversarial := strings.Repeat("`a <b> [x](y) ![i](u) <!chan", 1500)
	for name, full := range map[string]string{
		"prose":      long,
		"one line":   strings.ReplaceAll(mrkdwntest.Prose(20_000), "\n", " "),
		"code":       "```python\n" + strings.Repeat("x = 1  # <!channel> and so on\n", 900) + "```\nafter",
		"a table":    "| a | b |\n|---|---|\n" + strings.Repeat("| cell | another cell |\n", 900),
		"openings":   adversarial,
		"no blanks":  strings.Repeat("漢字", 8000),
		"long words": strings.Repeat("abcdefghij/klmnop.qrs?tuv=wx&", 800),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before []render.Page
			for i := 1; i < len(full); i += 211 {
				cut := i
				for cut < len(full) && full[cut]&0xc0 == 0x80 {
					cut++
				}
				turn := running(text("I begin."), tool("Read", `{"file_path":"a"}`, claude.ToolDone, "x"),
					claude.Item{Kind: claude.ItemText, Text: full[:cut], Final: false})
				pages := render.Turn(turn, render.Options{})
				grew(t, before, pages)
				before = pages
			}
			final := render.Turn(ended(agent.TurnDone, text("I begin."), tool("Read", `{"file_path":"a"}`, claude.ToolDone, "x"), text(full)), render.Options{})
			grew(t, before, final)
			for i, p := range final {
				for _, problem := range checkPage(p) {
					t.Errorf("page %d: %s", i, problem)
				}
			}
		})
	}
}

// grew reports an error when a page that was full has changed.
func grew(t *testing.T, before, after []render.Page) {
	t.Helper()
	if len(after) < len(before) {
		t.Fatalf("%d pages became %d", len(before), len(after))
	}
	for i := 0; i < len(before)-1; i++ {
		if a, b := markdownOf(before[i]), markdownOf(after[i]); a != b {
			t.Fatalf("page %d has changed:\n%q\n%q", i, a, b)
		}
	}
}

func TestToolsBetweenTextsKeepPagesStable(t *testing.T) {
	t.Parallel()
	var items []claude.Item
	var before []render.Page
	for i := range 120 {
		if i%3 == 0 {
			items = append(items, text(fmt.Sprintf("Step %d. %s", i, strings.Repeat("word ", 40))))
		} else {
			items = append(items, tool("Bash", fmt.Sprintf(`{"command":"make step%d"}`, i), claude.ToolRunning, ""))
		}
		pages := render.Turn(running(items...), render.Options{})
		grew(t, before, pages)
		before = pages
		if i%20 == 0 {
			for _, p := range pages {
				for _, problem := range checkPage(p) {
					t.Fatal(problem)
				}
			}
		}
		if last := &items[len(items)-1]; last.Tool != nil && i%2 == 0 {
			done := *last.Tool
			done.State, done.Result = claude.ToolDone, strings.Repeat("line\n", i)
			last.Tool = &done
		}
	}
	if len(before) < 2 || len(before) > 4 {
		t.Errorf("%d pages", len(before))
	}
}

// TestLateResultsMoveNothing finishes calls after much else was said.
func TestLateResultsMoveNothing(t *testing.T) {
	t.Parallel()
	var items []claude.Item
	for i := range 50 {
		items = append(items, text(strings.Repeat("word ", 60)), tool("Bash", fmt.Sprintf(`{"command":"make step%d","run_in_background":true}`, i), claude.ToolRunning, ""))
	}
	before := render.Turn(running(items...), render.Options{})
	if len(before) < 3 {
		t.Fatalf("%d pages", len(before))
	}
	for i := range items {
		if items[i].Tool == nil {
			continue
		}
		done := *items[i].Tool
		done.State, done.Result = claude.ToolDone, strings.Repeat("line\n", 100)
		items[i].Tool = &done
		pages := render.Turn(running(items...), render.Options{})
		if len(pages) != len(before) {
			t.Fatalf("%d pages became %d", len(before), len(pages))
		}
		grew(t, before, pages)
		before = pages
	}
}

// TestWhatIsOpenAtTheEdgeOfAPage streams a line on which code begins just before
// the page is full and ends after it.
func TestWhatIsOpenAtTheEdgeOfAPage(t *testing.T) {
	t.Parallel()
	for at := 6300; at < 7600; at += 100 {
		full := strings.Repeat("word ", at/5) + "`" + strings.Repeat("<b> ", 60) + "` " + strings.Repeat("word ", 300)
		var before []render.Page
		for i := at; i < len(full); i += 40 {
			pages := render.Turn(running(claude.Item{Kind: claude.ItemText, Text: full[:i]}), render.Options{})
			grew(t, before, pages)
			before = pages
		}
		if len(before) != 2 {
			t.Errorf("%d pages", len(before))
		}
	}
}

func TestLongTurnSaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	full := mrkdwntest.Prose(60_000) + "\n\nTHE CONCLUSION"
	turn := ended(agent.TurnDone, text(full))
	pages := render.Turn(turn, render.Options{})
	if len(pages) != 4 {
		t.Fatalf("%d pages, want 4", len(pages))
	}
	last := pages[3]
	if !last.Cut || pages[2].Cut {
		t.Errorf("cut: %v and %v, want only the last", pages[2].Cut, last.Cut)
	}
	if !strings.Contains(markdownOf(last), "THE CONCLUSION") {
		t.Error("the end of the text is not shown")
	}
	whole := render.FullText(turn, render.Options{})
	if whole != strings.TrimSpace(full) {
		t.Error("FullText is not the whole text")
	}
	shown := 0
	for _, p := range pages {
		shown += len([]rune(markdownOf(p)))
	}
	raw := string(asJSON(t, last))
	if !strings.Contains(raw, "Ask for the part that you need.") {
		t.Errorf("it does not say how to get the rest: %s", raw)
	}
	total := len([]rune(whole))
	left := number(between(raw, "✂️ *", " characters* are left out"))
	if d := total - shown - left; d < -200 || d > 200 {
		t.Errorf("%d shown and %d left out make up %d, not %d", shown, left, shown+left, total)
	}
}

func between(s, a, b string) string {
	_, s, _ = strings.Cut(s, a)
	s, _, _ = strings.Cut(s, b)
	return s
}

func number(s string) int {
	n := 0
	for _, c := range s {
		if c >= '0' && c <= '9' {
			n = n*10 + int(c-'0')
		}
	}
	return n
}

// TestMentionsOverDeltas renders every prefix of a text full of mentions.
func TestMentionsOverDeltas(t *testing.T) {
	t.Parallel()
	full := "Hi <!channel>, <!here|here> <@U12345> `<@U12345>` <#C123|x> <!subteam^S1|@x> @channel @here: &lt;!channel> \\<!everyone> <https://evil|https://good> ![x](http://e/i.png)\n```\n<!everyone> <@W1> <!date^1^{time}|x>\n```\n[https://good.com](https://evil.com) bye"
	for i := range len(full) + 1 {
		for _, state := range []agent.TurnState{agent.TurnRunning, agent.TurnDone} {
			turn := running(claude.Item{Kind: claude.ItemText, Text: full[:i]})
			turn.State = state
			for _, p := range render.Turn(turn, render.Options{}) {
				for _, problem := range checkPage(p) {
					t.Fatalf("%q: %s", full[:i], problem)
				}
			}
		}
	}
}

func TestSecretsAreTakenOut(t *testing.T) {
	t.Parallel()
	secret := "xoxb-" + "123456789012-abcdefghijkl"
	r := redact.New("hunter2hunter2")
	o := render.Options{Redact: r.Redact}
	turn := ended(agent.TurnFailed,
		text("The token is "+secret+" and hunter2hunter2."),
		claude.Item{Kind: claude.ItemThinking, Text: secret, Final: true},
		claude.Item{Kind: claude.ItemNotice, Text: secret, Final: true},
		claude.Item{Kind: claude.ItemCommandOutput, Text: secret, Final: true},
		tool("Bash", `{"command":"curl -H hunter2hunter2 `+secret+`"}`, claude.ToolFailed, secret),
	)
	turn.Problem = secret
	turn.Content.Todos = []claude.Todo{{Text: secret, State: "pending"}}
	raw := string(asJSON(t, render.Turn(turn, o))) + render.FullText(turn, o)
	if strings.Contains(raw, "xoxb-") || strings.Contains(raw, "hunter2") {
		t.Errorf("a secret got out:\n%s", raw)
	}
	// Nor where much else is taken out in front of it.
	long := strings.Repeat("hunter2hunter2", 40)
	for state, name := range map[claude.ToolState]string{claude.ToolFailed: "Bash", claude.ToolDone: "Grep"} {
		r := redact.New(long)
		turn := ended(agent.TurnDone, tool(name, `{"command":"`+long+` `+long+`"}`, state, "Found "+long+" "+long))
		if raw := string(asJSON(t, render.Turn(turn, render.Options{Redact: r.Redact}))); strings.Contains(raw, "hunter2") {
			t.Errorf("%s: a part of a secret got out:\n%s", name, raw)
		}
	}
	// Nor does it appear while it is being written.
	full := "The token is " + secret + " you know"
	for i := range len(full) {
		pages := render.Turn(running(claude.Item{Kind: claude.ItemText, Text: full[:i]}), o)
		if raw := string(asJSON(t, pages)); strings.Contains(raw, "xoxb-12345678") {
			t.Fatalf("a part of the secret is shown of %q:\n%s", full[:i], raw)
		}
	}
}

// A turn goes on in the message of a card on which all is decided, and what was before it
// has no controls any more.
func TestATurnGoesOnInItsCards(t *testing.T) {
	t.Parallel()
	call := func(id string) claude.Item {
		return claude.Item{Kind: claude.ItemToolUse, ID: id, Final: true, Tool: &claude.ToolUse{ID: id, Name: "Bash", Input: []byte(`{"command":"` + id + `"}`), State: claude.ToolDone}}
	}
	card := func(id string, from int, calls ...string) asked.Card {
		c := asked.Card{ID: id, From: from}
		for _, call := range calls {
			c.Requests = append(c.Requests, asked.Request{ApprovalID: call, ToolUseID: call, ToolName: "Bash", Status: approvals.Allowed, By: []string{approver}})
		}
		return c
	}
	open, earlier, meanwhile := card("A", 1, "a"), card("A", 1, "a"), card("B", 3, "b")
	open.Requests[0].Status, earlier.Earlier, meanwhile.Meanwhile = approvals.Pending, true, true
	host := card("A", 2)
	host.Requests = []asked.Request{{ToolUseID: "x", Host: "example.com:443", Status: approvals.Allowed, By: []string{approver}}}
	one, two, short := text("one"+strings.Repeat(" word", 40)), text("two"), text("short")
	for name, c := range map[string]struct {
		items  []claude.Item
		cards  []asked.Card
		posted bool
		want   string // the pages, by number and card, and how their calls follow each other
	}{
		"no card":                     {[]claude.Item{one, call("x"), two}, nil, false, "0: one x two"},
		"words before it":             {[]claude.Item{one, call("a"), two}, []asked.Card{card("A", 1, "a")}, false, "0: one, 16 A: a two"},
		"a line before it":            {[]claude.Item{short, call("a"), two}, []asked.Card{card("A", 1, "a")}, false, "16 A: short a two"},
		"a line before it, posted":    {[]claude.Item{short, call("a"), two}, []asked.Card{card("A", 1, "a")}, true, "0: short, 16 A: a two"},
		"it waits, after a line":      {[]claude.Item{short, call("a"), two}, []asked.Card{open}, false, ""},
		"steps before it":             {[]claude.Item{call("x"), call("a"), two}, []asked.Card{card("A", 1, "a")}, false, "16 A: x a two"},
		"steps before it, posted":     {[]claude.Item{call("x"), call("a"), two}, []asked.Card{card("A", 1, "a")}, true, "0: x, 16 A: a two"},
		"nothing before it":           {[]claude.Item{call("a"), two}, []asked.Card{card("A", 0, "a")}, false, "16 A: a two"},
		"it waits":                    {[]claude.Item{one, call("a"), two}, []asked.Card{open}, false, "0: one"},
		"it waits, after steps":       {[]claude.Item{call("x"), call("a"), two}, []asked.Card{open}, false, ""},
		"two":                         {[]claude.Item{one, call("a"), two, call("b"), one}, []asked.Card{card("A", 1, "a"), card("B", 3, "b")}, false, "0: one, 16 A: a two, 32 B: b one"},
		"two calls on one":            {[]claude.Item{one, call("a"), call("b"), two}, []asked.Card{card("A", 1, "a", "b")}, false, "0: one, 16 A: a b two"},
		"asked in another order":      {[]claude.Item{one, call("b"), call("a"), two}, []asked.Card{card("A", 2, "a"), card("B", 2, "b")}, false, "0: one, 16 A: a, 32 B: b two"},
		"a host":                      {[]claude.Item{one, call("x"), two}, []asked.Card{host}, false, "0: one x, 16 A: example.com:443 two"},
		"an earlier attempt's":        {[]claude.Item{one, call("a"), two}, []asked.Card{earlier}, false, "16 A: one a two"},
		"an earlier attempt's, below": {[]claude.Item{one, call("a"), two}, []asked.Card{earlier}, true, "0: one a two"},
		"long, before the next":       {[]claude.Item{one, call("a"), text(mrkdwntest.Prose(20_000)), call("b"), two}, []asked.Card{card("A", 1, "a"), meanwhile}, false, "0: one, 16 A:, 32 B: b two"},
	} {
		turn := running(c.items...)
		turn.Cards = c.cards
		pages := render.Turn(turn, render.Options{Posted: c.posted})
		var got []string
		for i, p := range pages {
			line := strconv.Itoa(p.Number)
			if p.CardID != "" {
				line += " " + p.CardID
			}
			line += ":"
			stop := false
			for _, b := range p.Blocks {
				stop = stop || b.BlockType() == slack.MBTAction
				switch b := b.(type) {
				case *slack.MarkdownBlock:
					if len(b.Text) < 300 {
						line += " " + strings.Fields(b.Text)[0]
					}
				case *slack.ContextBlock:
					for _, code := range regexp.MustCompile("`[^`]+`").FindAllString(said(render.Page{Blocks: []slack.Block{b}}), -1) {
						if len(b.ContextElements.Elements) == 1 && strings.Contains(b.BlockID, "tools") || strings.Contains(b.BlockID, "note") {
							line += " " + strings.Trim(code, "`")
						}
					}
				}
			}
			if name == "long, before the next" && p.Number == 16 {
				line = "16 A:"
				if !p.Cut {
					t.Errorf("%s: nothing is said to be left out", name)
				}
			}
			got = append(got, line)
			waits := len(c.cards) > 0 && c.cards[len(c.cards)-1].Open()
			if last := i == len(pages)-1; stop != (last && !waits) {
				t.Errorf("%s: page %d has a Stop button: %v", name, p.Number, stop)
			}
			if p.CardID != "" && p.Stream != nil {
				t.Errorf("%s: a card's message cannot be a stream", name)
			}
		}
		if joined := strings.Join(got, ", "); joined != c.want {
			t.Errorf("%s: %q, want %q", name, joined, c.want)
		}
	}
}

// Each end of a turn says which one it is.
func TestTheFooterSaysHowATurnEnded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state    agent.TurnState
		mark     agent.PromptMark
		by, want string
	}{
		{agent.TurnDone, agent.PromptDone, "", "✅ Done"},
		{agent.TurnFailed, agent.PromptFailed, "", "❌ Failed"},
		{agent.TurnInterrupted, agent.PromptStopped, "U0ADA", "⏹️ Stopped by <@U0ADA>"},
		{agent.TurnInterrupted, agent.PromptOverBudget, "", "💸 Stopped by a budget"},
		{agent.TurnInterrupted, agent.PromptPaused, "", "⏸️ Paused"},
		{agent.TurnInterrupted, "", "", "⏸️ Paused"}, // it goes on elsewhere
	} {
		view := ended(tt.state, text("It was begun."))
		view.Mark, view.StoppedBy = tt.mark, tt.by
		pages := render.Turn(view, render.Options{})
		if got := string(asJSON(t, pages)); !strings.Contains(got, tt.want) {
			t.Errorf("%s, %q: no %q in %s", tt.state, tt.mark, tt.want, got)
		}
	}
}

// A turn that left programs running names them, without the secrets in their arguments.
func TestTheFooterNamesWhatWasLeftRunning(t *testing.T) {
	t.Parallel()
	view := ended(agent.TurnDone, text("It serves."))
	view.Left = []string{"python3 -m http.server --token hunter2hunter2", "sleep `301`\nx"}
	got := string(asJSON(t, render.Turn(view, render.Options{Redact: redact.New("hunter2hunter2").Redact})))
	if want := "Left running: `python3 -m http.server --token " + redact.Mark + "`, "; !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
		t.Errorf("no %q in %s", want, got)
	}
}

// What the provider refuses is said once, though the model's text and the turn's problem both
// say it.
func TestAProblemIsSaidOnce(t *testing.T) {
	t.Parallel()
	turn := agent.TurnView{
		ID: 12, State: agent.TurnFailed, Problem: "Claude Code failed: API Error: 400 The request is not valid",
		Content: claude.Output{Items: []claude.Item{{Kind: claude.ItemText, Text: "API Error: 400 The request is not valid", Final: true}}},
	}
	page := render.Turn(turn, render.Options{})[0]
	if n := strings.Count(string(asJSON(t, page.Blocks)), "not valid"); n != 1 || strings.Count(page.Text, "not valid") != 1 {
		t.Errorf("it is said %d times in the blocks, and in the text: %s", n, page.Text)
	}
	turn.Content.Items[0].Text = "API"
	if page = render.Turn(turn, render.Options{})[0]; !strings.Contains(page.Text, "not valid") {
		t.Errorf("a word of it is not it: %s", page.Text)
	}
}

// What is posted first is what a notification shows: a sentence, and not that work goes on.
func TestTheFirstPostIsASentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"All green. A full week gets its discount now.":      "All green.",
		"*All green.* A full week.":                          "_All green._",
		"# What I found\n\nNothing":                          "*What I found*",
		"It is 1.5 times as fast, and v2.0 follows! Yes":     "It is 1.5 times as fast, and v2.0 follows!",
		"全部通过。还有":                                            "全部通过。",
		strings.Repeat("word ", 100):                         strings.Repeat("word ", 40),
		"**The scout is back:**\n\n- It is in `a.js`.\n- It": "*The scout is back:*\n\n• It is in `a.js`.",
	} {
		turn := agent.TurnView{ID: 12, State: agent.TurnRunning, Content: claude.Output{Items: []claude.Item{{Kind: claude.ItemText}}}}
		first := ""
		for _, r := range text {
			turn.Content.Items[0].Text += string(r)
			if pages := render.Turn(turn, render.Options{}); len(pages) > 0 {
				first = pages[0].Text
				break
			}
		}
		if !strings.HasPrefix(first, strings.TrimSpace(want)) || len(first) > len(want)+2 {
			t.Errorf("%q begins with the notification %q, not %q", text, first, want)
		}
	}
	after := agent.TurnView{ID: 12, State: agent.TurnRunning, Content: claude.Output{Items: []claude.Item{
		tool("Read", `{"file_path":"a.js"}`, claude.ToolDone, "x"), {Kind: claude.ItemText},
	}}}
	for _, r := range "The scout is back:\n\n- It is in `a.js`.\n- It is" {
		after.Content.Items[len(after.Content.Items)-1].Text += string(r)
		if pages := render.Turn(after, render.Options{Quiet: true}); len(pages) > 0 {
			if got := pages[0].Text; got != "The scout is back:\n\n• It is in `a.js`." {
				t.Errorf("after a step: %q", got)
			}
			break
		}
	}
	later := agent.TurnView{ID: 12, State: agent.TurnRunning, Content: claude.Output{Items: []claude.Item{{Kind: claude.ItemText, Text: "I'll have a look. First"}}}}
	if got := render.Turn(later, render.Options{})[0].Text; got != "I'll have a look." {
		t.Errorf("in the middle of the second sentence: %q", got)
	}
	for what, turn := range map[string]agent.TurnView{
		"thinking":               {Content: claude.Output{Items: []claude.Item{{Kind: claude.ItemThinking, Text: "hm"}}}},
		"a card":                 {Waiting: 1},
		"the beginning of words": {Content: claude.Output{Items: []claude.Item{{Kind: claude.ItemText, Text: "Let me"}}}},
	} {
		turn.State = agent.TurnRunning
		if pages := render.Turn(turn, render.Options{}); len(pages) > 0 {
			t.Errorf("%s is posted: %q", what, pages[0].Text)
		}
	}
}

// A turn in which people or the policy let nothing run is not said to be done.
func TestWhereNothingRanNothingIsDone(t *testing.T) {
	t.Parallel()
	denied := tool("Bash", `{"command":"npm test"}`, claude.ToolDenied, "no")
	for name, c := range map[string]struct {
		items []claude.Item
		want  string
	}{
		"denied":        {[]claude.Item{denied, text("So I stop here.")}, "🚫 Nothing ran · 1 step denied"},
		"a list, too":   {[]claude.Item{tool("TodoWrite", `{}`, claude.ToolDone, ""), denied}, "🚫 Nothing ran · 1 step denied"},
		"something ran": {[]claude.Item{denied, tool("Read", `{"file_path":"a"}`, claude.ToolDone, "")}, "✅ Done · 2 steps"},
		"a question":    {[]claude.Item{tool("AskUserQuestion", `{}`, claude.ToolDenied, "")}, "✅ Done · 1 step"},
		"words":         {[]claude.Item{text("Well.")}, "✅ Done"},
	} {
		pages := render.Turn(ended(agent.TurnDone, c.items...), render.Options{})
		if got := string(asJSON(t, pages[len(pages)-1].Blocks)); !strings.Contains(got, c.want+" · ") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A call that ran when its turn ended is said to be stopped where a person did it.
func TestWhoStoppedACall(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]string{"": "`sleep 9` · interrupted", asker: "`sleep 9` · stopped"} {
		turn := ended(agent.TurnInterrupted, tool("Bash", `{"command":"sleep 9"}`, claude.ToolInterrupted, "no"))
		turn.StoppedBy = by
		if got := string(asJSON(t, render.Turn(turn, render.Options{})[0].Blocks)); !strings.Contains(got, want) {
			t.Errorf("%q: %s", by, got)
		}
	}
}

// What nobody has denied is not said to be denied.
func TestAStoppedTurnsCardIsCancelled(t *testing.T) {
	t.Parallel()
	first, second := tool("Bash", `{"command":"npm test"}`, claude.ToolDenied, "no"), tool("Bash", `{"command":"ls"}`, claude.ToolDenied, "no")
	for name, c := range map[string]struct {
		items []claude.Item
		want  string
	}{
		"cancelled":                      {[]claude.Item{first}, "1 step cancelled · "},
		"and one that the policy denied": {[]claude.Item{first, second}, "1 step denied, 1 cancelled · "},
	} {
		turn := ended(agent.TurnInterrupted, c.items...)
		turn.Cards = []asked.Card{{Requests: []asked.Request{{ToolUseID: first.Tool.ID, ToolName: "Bash", Status: approvals.Cancelled}}}}
		pages := render.Turn(turn, render.Options{})
		if got := string(asJSON(t, pages[len(pages)-1].Blocks)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
