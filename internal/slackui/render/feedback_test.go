package render_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/turns"
)

// The buttons stand below the answer of a turn that is done, once, and hold nothing of it.
func TestFeedbackButtons(t *testing.T) {
	t.Parallel()
	said := []claude.Item{{Kind: claude.ItemText, Text: strings.Repeat("It is done, secretly. ", 1500), Final: true}}
	for name, tt := range map[string]struct {
		turn agent.TurnView
		want int
	}{
		"done":              {agent.TurnView{State: agent.TurnDone, Content: claude.Output{Items: said}}, 1},
		"running":           {agent.TurnView{State: agent.TurnRunning, Content: claude.Output{Items: said}}, 0},
		"failed":            {agent.TurnView{State: agent.TurnFailed, Content: claude.Output{Items: said}}, 0},
		"stopped":           {agent.TurnView{State: agent.TurnInterrupted, Content: claude.Output{Items: said}}, 0},
		"offers to go on":   {agent.TurnView{State: agent.TurnDone, Continue: true, Content: claude.Output{Items: said}}, 0},
		"has said nothing":  {agent.TurnView{State: agent.TurnDone, Content: claude.Output{Items: []claude.Item{{Kind: claude.ItemCommandOutput, Text: "x"}}}}, 0},
		"a subagent's word": {agent.TurnView{State: agent.TurnDone, Content: claude.Output{Items: []claude.Item{{Kind: claude.ItemText, ParentID: "1", Text: "x"}}}}, 0},
	} {
		tt.turn.ID = 12
		n := 0
		for _, p := range render.Turn(tt.turn, render.Options{}) {
			for _, b := range p.Blocks {
				raw, err := json.Marshal(b)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(raw), `"context_actions"`) {
					continue
				}
				if n++; strings.Contains(string(raw), "secretly") || !strings.Contains(string(raw), `"good:12"`) || !strings.Contains(string(raw), `"bad:12"`) {
					t.Errorf("%s: %s", name, raw)
				}
			}
		}
		if n != tt.want {
			t.Errorf("%s: buttons on %d pages, want %d", name, n, tt.want)
		}
	}
}

func TestParseFeedback(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		id       int64
		good, ok bool
	}{
		"good:12": {12, true, true}, "bad:7": {7, false, true}, "": {}, "good:": {good: true}, "bad:-1": {id: -1}, "12": {}, "bad:good:1": {}, "good:1x": {good: true},
	} {
		if id, good, ok := view.ParseFeedback(value); id != want.id || good != want.good || ok != want.ok {
			t.Errorf("%q: %d, %t, %t", value, id, good, ok)
		}
	}
}

// What people wrote is a page that Slack takes, however much and whatever it is.
func TestFeedbackReport(t *testing.T) {
	t.Parallel()
	v := view.FeedbackReport{
		Period: "the last 30 days", Projects: []turns.FeedbackStats{{Project: "<!here>", Good: 1, Bad: 2}}, More: 3, Hidden: 2,
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "…") },
	}
	for range 60 {
		v.Reasons = append(v.Reasons, view.FeedbackReason{Permalink: "https://t.slack.com/archives/C1/p1", FeedbackReason: turns.FeedbackReason{
			Project: "web", ChannelID: "C0ENG", UserID: asker, At: time.Now(), Reason: strings.Repeat("<!channel> \u202ehunter2 & `x` *b*\n", 20),
		}})
	}
	p := render.FeedbackReport(v)
	for _, problem := range checkPage(p) {
		t.Error(problem)
	}
	newJudge(t).page(t, p)
	if raw, _ := json.Marshal(p.Blocks); strings.Contains(string(raw), "hunter2") || strings.Contains(string(raw), "\u202e") || !strings.Contains(string(raw), " more: `bot report feedback`") {
		t.Errorf("%s", raw)
	}
	empty := render.FeedbackReport(view.FeedbackReport{Period: "the last 30 days"})
	newJudge(t).page(t, empty)
	if !strings.Contains(empty.Text, "No answer has a rating") {
		t.Errorf("%s", empty.Text)
	}
}
