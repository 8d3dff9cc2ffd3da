package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/redact"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
	"deckhand/internal/store/approvals"
)

// BenchmarkTurn renders a turn with 20 KB of text and 40 tool calls, as happens
// with each coalesced update.
func BenchmarkTurn(b *testing.B) {
	var items []claude.Item
	for i := range 10 {
		items = append(items, text(mrkdwntest.Prose(2000)))
		for j := range 4 {
			items = append(items, tool("Bash", fmt.Sprintf(`{"command":"go test ./pkg%d/... -run Test%d","description":"Run"}`, i, j), claude.ToolDone, "ok\nok\n"))
		}
	}
	turn := running(items...)
	o := render.Options{Redact: redact.New("correct horse/battery", "s3cr3t-value", "a token of the bot", "a token of the app").Redact}
	b.ReportAllocs()
	for b.Loop() {
		if len(render.Turn(turn, o)) < 2 {
			b.Fatal("too few pages")
		}
	}
}

func BenchmarkCard(b *testing.B) {
	a := exampleApprovals()["bash long"]
	b.ReportAllocs()
	for b.Loop() {
		render.Card([]approvals.Approval{a}, render.Options{})
	}
}

// BenchmarkCardOfMuchText renders the card of an edit of 2 MB.
func BenchmarkCardOfMuchText(b *testing.B) {
	var before, after strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&before, "line %d of a file that is edited\n", i)
		if i%2 == 0 {
			fmt.Fprintf(&after, "line %d of a file that was edited\n", i)
		}
	}
	input, err := json.Marshal(map[string]string{"file_path": "/w/a.txt", "old_string": before.String(), "new_string": after.String()})
	if err != nil {
		b.Fatal(err)
	}
	a := ask("Edit", string(input))
	o := render.Options{Redact: redact.New("correct horse/battery").Redact}
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		render.Card([]approvals.Approval{a}, o)
	}
}

// BenchmarkStepsOfMuchText renders the window with a result of 40 MB: in the list, and a page
// of it alone.
func BenchmarkStepsOfMuchText(b *testing.B) {
	long := step("Bash", `{"command":"cat long"}`, 1)
	found := results(map[string]string{long.ToolUseID: strings.Repeat("one line of a log, 漢字 and: all that=belongs to it\n", 800_000)})
	o := render.Options{Redact: redact.New("correct horse/battery").Redact}
	for name, page := range map[string]view.StepsPage{"list": {Turn: 1, First: -1}, "step": {Turn: 1, Step: 1, Page: 1}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				render.Steps(view.Steps{Page: page, Steps: approvals.Steps{Total: 1, List: []approvals.Step{long}}, Found: found}, o)
			}
		})
	}
}
