package slackui

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
	"deckhand/internal/store/approvals"
)

// TestAClosingAnswer: what a long turn says last is posted once, as a whole, and calls who
// asked if they have left.
func TestAClosingAnswer(t *testing.T) {
	t.Parallel()
	const first, last = "I look at it.", "All of it is green."
	for name, c := range map[string]struct {
		text string
		end  func(d *desk)
		here bool // who asked has done something since
		low  bool // others have written below a turn that was not long
	}{
		"of one page":             {text: last},
		"begun before":            {text: last + "\n\n" + mrkdwntest.Prose(9_000)},
		"while they are here":     {text: last, here: true},
		"below what others wrote": {text: last + "\n\n" + mrkdwntest.Prose(9_000), low: true},
		"killed before it is shown": {text: last + "\n\n" + mrkdwntest.Prose(9_000), end: func(d *desk) {
			rows := d.commit()
			d.kill()
			d.front().Tell(rows...)
		}},
		"killed when it is posted": {text: last + "\n\n" + mrkdwntest.Prose(9_000), end: func(d *desk) {
			d.slack.answers(func(_ int, c slackCall) fault {
				if c.method == "chat.postMessage" && strings.Contains(c.args.Get("metadata"), `"page":"16"`) {
					d.bot.dead.Store(true)
				}
				return fault{}
			})
			rows := d.commit()
			d.turn.OutboxID = rows[0].ID
			d.show()
			synctest.Wait()
			time.Sleep(time.Second)
			if !d.bot.dead.Load() {
				d.t.Error("it was not posted")
			}
			d.slack.answers(nil)
			d.kill()
			for i := range rows {
				rows[i].Again = true
			}
			d.front().Tell(rows...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				d.say(first)
				time.Sleep(time.Second)
				d.add(claude.Item{Kind: claude.ItemToolUse, Tool: &claude.ToolUse{ID: "toolu_1", Name: "Bash", State: claude.ToolDone}})
				if !c.low {
					time.Sleep(4 * time.Minute)
				}
				if c.here {
					d.clickOn("1.1", "ULINUS", view.ActionViewInput, approvals.Approval{ID: "none"})
				}
				for line := range strings.Lines(c.text) {
					d.say(line)
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(10 * time.Second)
				d.settle()
				d.turn.State, d.turn.EndedAt, d.turn.Closing = agent.TurnDone, time.Now(), 2
				if c.end == nil {
					d.end(agent.TurnDone, "")
				} else {
					c.end(d)
				}
				d.over()
				all := d.slack.inThread(deskThread)
				said, called := 0, 0
				for i, m := range all {
					said += strings.Count(m.blocks, last)
					called += strings.Count(m.text, "<@ULINUS>")
					if m.actions || strings.Contains(m.blocks, "Working…") || i == 0 && strings.Contains(m.blocks, last) {
						t.Errorf("message %d: %s", i, m.blocks)
					}
				}
				want := 1
				if c.here || c.low {
					want = 0
				}
				if said != 1 || called != want {
					t.Errorf("said %d times, and called %d times, want once and %d times", said, called, want)
				}
				if pages := len(render.Turn(d.turn, render.Options{Files: true})); len(all) != pages {
					t.Errorf("%d messages, want %d", len(all), pages)
				}
				for _, p := range d.slack.check() {
					t.Error(p)
				}
			})
		})
	}
}
