package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"deckhand/internal/chat/view"
	"deckhand/internal/redact"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
	"deckhand/internal/store/approvals"
	"deckhand/internal/transcript"
)

// step is one that was allowed, and ended after so many seconds; of less than 0, that is
// not known to have ended.
func step(name, input string, seconds int) approvals.Step {
	s := approvals.Step{SessionID: "s", ToolUseID: "toolu_" + name + input, ToolName: name, Input: json.RawMessage(input), Status: approvals.Allowed, DecidedAt: began}
	if seconds >= 0 {
		s.ResultAt, s.SHA256 = began.Add(time.Duration(seconds)*time.Second), "as it was"
	}
	return s
}

func results(of map[string]string) *transcript.Found {
	f := transcript.Found{Kept: true, Results: map[string]transcript.Result{}}
	for id, text := range of {
		f.Results[id] = transcript.Result{Text: text, SHA256: "as it was"}
	}
	return &f
}

func TestSteps(t *testing.T) {
	t.Parallel()
	tests, read := step("Bash", `{"command":"go test ./..."}`, 3), step("Read", `{"file_path":"/srv/work/app/calc.go"}`, 0)
	failed, denied := step("Bash", `{"command":"exit 3"}`, 0), step("Bash", `{"command":"rm -rf /"}`, -1)
	failed.Failed, denied.Status, denied.Reason = true, approvals.Denied, "<!channel> *never*"
	pending, cancelled := step("Write", `{"file_path":"a.txt","content":"a\nb"}`, -1), step("Bash", `{"command":"sleep 9"}`, -1)
	pending.Status, pending.DecidedAt, cancelled.Status = approvals.Pending, time.Time{}, approvals.Cancelled
	agents := step("Agent", `{"description":"look <around>","prompt":"p"}`, 65)
	below := step("Grep", `{"pattern":"x"}`, 0)
	found := results(map[string]string{
		tests.ToolUseID: "ok  \tapp\t0.01s\n" + strings.Repeat("FAIL <!channel> @here <https://evil.example|ok> ```\n", 40), read.ToolUseID: "1\tpackage calc\u202e\n",
		failed.ToolUseID: "Exit code 3\nboom", agents.ToolUseID: "It is *here*: ~/x",
	})
	found.Results[below.ToolUseID] = transcript.Result{Text: "No files found", SHA256: "as it was", Subagent: true}
	picture := *results(nil)
	picture.Results = map[string]transcript.Result{read.ToolUseID: {SHA256: "another", Pictures: 1}}
	all := approvals.Steps{Total: 8, List: []approvals.Step{tests, read, failed, denied, cancelled, agents, below, pending}}
	some := func(first, total int, running bool, list ...approvals.Step) approvals.Steps {
		return approvals.Steps{First: first, Total: total, Running: running, List: list}
	}
	at := view.StepsPage{Turn: 12, First: -1}
	one := func(n, page int) view.StepsPage { return view.StepsPage{Turn: 12, First: 10, Step: n, Page: page} }
	long := results(map[string]string{tests.ToolUseID: mrkdwntest.Prose(120_000)})
	j := newJudge(t)
	for name, v := range map[string]view.Steps{
		"list":             {Page: at, Steps: all, Found: found},
		"list being read":  {Page: at, Steps: all},
		"list unread":      {Page: at, Steps: all, Unread: true},
		"list of a page":   {Page: at, Steps: some(10, 34, true, tests, read), Found: &transcript.Found{}},
		"list gone":        {Page: at, Steps: some(0, 1, false, tests), Found: &transcript.Found{}},
		"list none":        {Page: at, Steps: some(0, 0, true)},
		"one":              {Page: one(11, 0), Steps: some(10, 34, false, tests), Found: found},
		"one long":         {Page: one(11, 1), Steps: some(10, 34, false, tests), Found: long},
		"one past the end": {Page: one(11, 99), Steps: some(10, 34, false, tests), Found: long},
		"one denied":       {Page: one(12, 0), Steps: some(11, 34, false, denied), Found: found},
		"one running":      {Page: one(12, 0), Steps: some(11, 34, true, step("Bash", `[]`, -1)), Found: found},
		"one forged":       {Page: one(12, 0), Steps: some(11, 34, false, read), Found: &picture},
		"one lost":         {Page: one(12, 0), Steps: some(11, 34, false, read), Found: &transcript.Found{Kept: true, Full: true}},
		"one unknown":      {Page: one(99, 0), Steps: some(98, 34, false), Found: found},
	} {
		m := render.Steps(v, render.Options{Workspace: "/srv/work/app"})
		golden(t, "view/steps_"+strings.ReplaceAll(name, " ", "_"), m)
		for _, problem := range checkModal(m) {
			t.Errorf("%s: %s", name, problem)
		}
		j.modal(t, m)
	}
}

// TestAStepIsShownWhole: every character of its result on one of its pages, secrets excepted.
func TestAStepIsShownWhole(t *testing.T) {
	t.Parallel()
	s := step("Bash", `{"command":"cat secrets"}`, 0)
	content := mrkdwntest.Prose(150_000) + "hunter2" + mrkdwntest.Prose(50_000)
	o := render.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "•••") }}
	var all strings.Builder
	for page := 0; ; page++ {
		m := render.Steps(view.Steps{
			Page: view.StepsPage{Turn: 12, Step: 1, Page: page}, Steps: approvals.Steps{Total: 1, List: []approvals.Step{s}},
			Found: results(map[string]string{s.ToolUseID: content}),
		}, o)
		for _, problem := range checkModal(m) {
			t.Errorf("page %d: %s", page, problem)
		}
		all.WriteString(preOf(m.Blocks.BlockSet))
		if !strings.Contains(string(asJSON(t, m)), view.ActionStepPage+":next") {
			break
		}
	}
	if want := "cat secrets" + strings.ReplaceAll(content, "hunter2", "•••"); all.String() != want {
		t.Errorf("%d characters are shown of %d", len(all.String()), len(want))
	}
}

func TestOnlyTurnsWithStepsShowThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turn []string
		want bool
	}{"words": {nil, false}, "the list of work": {[]string{"TodoWrite"}, false}, "a command": {[]string{"Bash"}, true}} {
		turn := ended("done", text("Well."))
		for _, name := range c.turn {
			turn.Content.Items = append(turn.Content.Items, tool(name, `{}`, "done", ""))
		}
		turn.Content.Items = append(turn.Content.Items, text("That is all."))
		turn.Closing, turn.Steps = len(turn.Content.Items)-1, stepsOf(turn.Content.Items)
		pages := render.Turn(turn, render.Options{})
		last := string(asJSON(t, pages[len(pages)-1]))
		if got := strings.Contains(last, `"Show steps"`); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestParseStepsPage(t *testing.T) {
	t.Parallel()
	p := view.StepsPage{Turn: 12, First: -1, Step: 3, Page: 2}
	if got, ok := view.ParseStepsPage(p.String()); !ok || got != p {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, bad := range []string{"", "12", "{}", `{"turn":-1}`, `{"turn":1,"first":-2}`, `{"turn":1,"step":-1}`, `{"turn":1,"page":-1}`, fmt.Sprint(nil)} {
		if _, ok := view.ParseStepsPage(bad); ok {
			t.Errorf("%q is a page", bad)
		}
	}
}

// TestStepsAreRedacted: what a tool was given has no secret, not in the names of its fields
// either, and one that a page would cut is none of any page.
// Of what no model reads at once the beginning is shown, without the half of a secret.
func TestALongResultIsBounded(t *testing.T) {
	t.Parallel()
	secret := "hunter2hunter2"
	s := step("Bash", `{"command":"cat all"}`, 0)
	for _, at := range []int{0, 1, len(secret) / 2, len(secret) - 1} { // the cut goes through it
		found := results(map[string]string{s.ToolUseID: strings.Repeat("x", 1<<20-at) + secret + strings.Repeat("漢", 2<<20)})
		v := view.Steps{Page: view.StepsPage{Turn: 12, Step: 1, Page: 1000}, Steps: approvals.Steps{Total: 1, List: []approvals.Step{s}}, Found: found}
		m := render.Steps(v, render.Options{Redact: redact.New(secret).Redact})
		shown := string(asJSON(t, m))
		if strings.Contains(shown, "hu") || strings.Contains(shown, "漢漢漢漢漢漢漢漢漢漢漢") || !strings.Contains(shown, "… another 6.3 MB of it are not shown here.") {
			t.Fatalf("cut at %d: %s", at, shown)
		}
	}
}

// What Claude Code puts around a result is not shown, and what it says of one that was too
// long for the model is.
func TestStepsWithoutFrames(t *testing.T) {
	t.Parallel()
	agent, long := step("Agent", `{"description":"look","prompt":"p"}`, 1), step("Bash", `{"command":"seq 9999"}`, 1)
	found := results(map[string]string{
		agent.ToolUseID: "<tools-used-before-summary>Bash, Read</tools-used-before-summary>\n\nIt is here.",
		long.ToolUseID:  "<persisted-output>\nOutput too large (48KB). Full output saved to: /home/x.txt\n\nPreview (first 2KB):\n1\n2\n</persisted-output>",
	})
	list := string(asJSON(t, render.Steps(view.Steps{Page: view.StepsPage{Turn: 12, First: -1}, Steps: approvals.Steps{Total: 2, List: []approvals.Step{agent, long}}, Found: found}, render.Options{})))
	one := string(asJSON(t, render.Steps(view.Steps{Page: view.StepsPage{Turn: 12, Step: 2}, Steps: approvals.Steps{Total: 2, List: []approvals.Step{long}}, Found: found}, render.Options{})))
	for _, shown := range []string{list, one} {
		if strings.Contains(shown, "done, 5 lines") || strings.Contains(shown, "persisted-output") || strings.Contains(shown, "before-summary") {
			t.Error(shown)
		}
	}
	if !strings.Contains(list, "Tools used: Bash, Read") || !strings.Contains(one, "too long for the model") || !strings.Contains(one, "Full output saved to: /home/x.txt") {
		t.Errorf("%s\n%s", list, one)
	}
}

func TestStepsAreRedacted(t *testing.T) {
	t.Parallel()
	secret := "hunter2hunter2"
	s := step("mcp__x__y", `{"`+secret+`":"a","b":{"`+secret+`":1}}`, 1)
	long := results(map[string]string{s.ToolUseID: strings.Repeat(strings.Repeat("x", 61)+secret, 900)})
	for page := range 9 {
		v := view.Steps{Page: view.StepsPage{Turn: 12, Step: 1, Page: page}, Steps: approvals.Steps{Total: 1, List: []approvals.Step{s}}, Found: long}
		shown, err := json.Marshal(render.Steps(v, render.Options{Redact: redact.New(secret).Redact}))
		if err != nil || strings.Contains(string(shown), "unter2") || !strings.Contains(string(shown), "[redacted]") {
			t.Errorf("page %d: %v: %s", page, err, shown)
		}
	}
}
