package slackui

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
)

// TestTheThreadReadsInOrder: whatever a turn says, does and asks, and whoever decides, what
// stands in the thread from top to bottom is in the order in which it happened, judged by what
// Slack has alone, also where another process shows the turn's end.
func TestTheThreadReadsInOrder(t *testing.T) {
	t.Parallel()
	kinds := []string{"say", "say", "use a tool", "use a tool", "ask", "ask", "join", "decide", "decide", "decide", "deny", "wait", "agent"}
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 25).Draw(rt, "steps")
		quorum := rapid.IntRange(1, 2).Draw(rt, "quorum")
		pause := rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, 20 * time.Second}).Draw(rt, "pause")
		dies := rapid.Bool().Draw(rt, "its process dies before the end is shown")
		var problems []string
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t)
			var marks []string // what happened, in order; steps may be summed up
			said := map[string]bool{}
			var asked []approvals.Approval
			for i, what := range steps {
				mark := fmt.Sprintf("mark%03d", i)
				switch what {
				case "say":
					d.say("It is " + mark + ".\n\n")
					marks, said[mark] = append(marks, mark), true
				case "use a tool", "agent":
					name := "Read"
					if what == "agent" {
						name = "Task"
					}
					d.add(claude.Item{Kind: claude.ItemToolUse, Tool: &claude.ToolUse{ID: mark, Name: name, Input: mustJSON(object{"file_path": mark, "description": mark}), State: claude.ToolDone}})
					marks = append(marks, mark)
				case "ask", "join":
					card := ""
					if n := len(d.turn.Cards); what == "join" && i > 0 && (steps[i-1] == "ask" || steps[i-1] == "join") && len(d.turn.Cards[n-1].Requests) < 8 {
						card = d.turn.Cards[n-1].ID
					}
					asked = append(asked, d.ask(card, approvals.Terms{Quorum: quorum}))
					mark = fmt.Sprintf("make %d`", d.asked)
					marks, said[mark] = append(marks, mark), true
				case "decide", "deny":
					if len(asked) == 0 {
						continue
					}
					a := asked[i%len(asked)]
					action := view.ActionApprove
					if what == "deny" {
						action = view.ActionDeny
					}
					d.click("UGRACE", action, a)
					d.click("UHEIDI", action, a)
					d.answered()
				case "wait":
					time.Sleep(5 * time.Second)
				}
				time.Sleep(pause)
			}
			if dies {
				d.rest()
				d.settle()
				d.turn.State, d.turn.EndedAt, d.turn.Waiting = agent.TurnDone, time.Now(), 0
				rows := d.commit()
				d.kill()
				d.front().Tell(rows...)
			} else {
				d.end(agent.TurnDone, "")
			}
			d.over()
			var thread strings.Builder
			for _, m := range d.slack.inThread(deskThread) {
				thread.WriteString(m.blocks)
			}
			at := 0
			for _, mark := range marks {
				switch i := strings.Index(thread.String()[at:], mark); {
				case i >= 0:
					at += i
				case said[mark], strings.Contains(thread.String(), mark):
					problems = append(problems, fmt.Sprintf("%q does not stand below what came before it: %s", mark, thread.String()))
				}
			}
			d.close()
		})
		for _, p := range problems {
			rt.Error(p)
		}
	})
}

// TestALaterCardWaitsForTheFirst: the second card is decided while it is still looked up whom
// the first one calls.
func TestALaterCardWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.ask("", approvals.Terms{})
		second := d.ask("", approvals.Terms{})
		decided, err := d.store.Decide(t.Context(), approvals.Decision{ApprovalID: second.ID, Status: approvals.Denied, By: "UADA", Via: "button"})
		d.must(err)
		d.front().ShowApproval(decided)
		d.answered()
		d.rest()
		thread := d.slack.inThread(deskThread)
		if len(thread) != 2 || !strings.Contains(thread[0].blocks, "make 1`") || !strings.Contains(thread[1].blocks, "make 2") {
			t.Errorf("the thread reads %+v", thread)
		}
		d.end(agent.TurnDone, "")
		d.over()
	})
}
