package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
)

// done is a turn that is over, and committed; nobody was shown it.
func (d *desk) done() {
	d.settle()
	d.turn.State, d.turn.EndedAt = agent.TurnDone, time.Now()
	d.shown[len(d.shown)-1] = d.turn
	d.commit()
}

// text is a turn that has said so.
func text(words string) []claude.Item {
	return []claude.Item{{Kind: claude.ItemText, ID: "0", Text: words, Final: true}}
}

// order are the calls that had an effect, without those that look something up.
func (s *scripted) order() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.ok && (strings.HasPrefix(c.method, "chat.") || c.method == "reactions.add") {
			out = append(out, c.method)
		}
	}
	return out
}

// TestLastWords: a process dies between the commit of a turn's end and Slack, at whatever
// moment. The next one shows the end, once, and marks the prompt after it.
func TestLastWords(t *testing.T) {
	t.Parallel()
	noted := func(d *desk) { // it dies between a post and the note of it
		bot := d.bot
		d.slack.answers(func(_ int, c slackCall) fault {
			if c.method == "chat.postMessage" {
				bot.dead.Store(true)
			}
			return fault{}
		})
	}
	for name, run := range map[string]func(d *desk){
		"before anything was posted": func(d *desk) { d.turn.Content.Items = text("Hello there.") },
		"before the last edit":       func(d *desk) { d.say("Hello.\n"); d.rest(); d.turn.Content.Items = text("Hello there.") },
		"before its post was noted":  func(d *desk) { noted(d); d.say("Hello.\n"); time.Sleep(time.Second) },
		"before its last page": func(d *desk) {
			d.say(mrkdwntest.Prose(6_000))
			d.rest()
			d.turn.Content.Items = text(mrkdwntest.Prose(20_000))
		},
		"after somebody asked something": func(d *desk) { d.ask("", approvals.Terms{}); d.rest(); d.turn.Content.Items = text("Well.") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				run(d)
				d.done()
				d.kill()
				d.slack.answers(nil)
				d.over()
				for _, p := range d.wrong() {
					t.Error(p)
				}
				calls := d.slack.order()
				if n := len(calls); calls[n-1] != "reactions.add" && !slices.Contains(calls, "reactions.add") || slices.Index(calls, "reactions.add") < slices.Index(calls, "chat.postMessage") {
					t.Errorf("the calls: %v", calls)
				}
				if n := d.slack.count("reactions.add"); n != 1 {
					t.Errorf("%d marks", n)
				}
			})
		})
	}
}

// TestLastWordsOutliveAnOutage: Slack is away for longer than a call is tried. The text is
// there when it is back, and then the mark.
func TestLastWordsOutliveAnOutage(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.say("Hello.\n")
		d.rest()
		back := time.Now().Add(40 * time.Minute)
		d.slack.answers(func(int, slackCall) fault {
			if time.Now().Before(back) {
				return fault{err: errors.New("connection refused")}
			}
			return fault{}
		})
		d.say(" there.")
		d.end(agent.TurnDone, "")
		d.over()
		for _, p := range d.wrong() {
			t.Error(p)
		}
		calls := d.slack.order()
		if n := len(calls); calls[n-1] != "reactions.add" || calls[n-2] != "chat.update" {
			t.Errorf("the calls: %v", calls)
		}
	})
}

// TestWhatSlackRefusesForGoodIsGivenUp: it is not tried for ever, and holds nothing up.
func TestWhatSlackRefusesForGoodIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"channel_not_found", "is_archived", "message_not_found", "account_inactive"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				d.say("Hello.\n")
				d.rest()
				d.slack.answers(func(int, slackCall) fault { return fault{err: &slack.SlackErrorResponse{Err: code}} })
				before := d.slack.count("chat.update") + d.slack.count("reactions.add")
				d.say(" there.")
				d.end(agent.TurnDone, "")
				d.over()
				if n := d.slack.count("chat.update") + d.slack.count("reactions.add") - before; n > 3 {
					t.Errorf("%d calls", n)
				}
			})
		})
	}
}

// TestAPostThatCameThroughIsNotMadeAgain: its post came through, and the answer to it did not.
func TestAPostThatCameThroughIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"and the process lives": false, "and the process dies": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				d.slack.answers(func(_ int, c slackCall) fault {
					if c.method == "chat.postMessage" {
						return fault{deaf: true}
					}
					return fault{}
				})
				w, err := d.store.Say(context.Background(), d.lease, "Look at this.", "")
				d.must(err)
				d.front().Tell(w)
				time.Sleep(time.Second)
				if kill {
					d.kill()
				}
				d.over()
				if got := d.slack.inThread(deskThread); len(got) != 1 || !strings.Contains(got[0].text, "Look at this.") {
					t.Errorf("the thread reads %+v", got)
				}
				d.end(agent.TurnDone, "")
				d.slack.answers(nil)
				d.over()
			})
		})
	}
}

// TestACardEndsWhoeverDies: its decision is committed, and the process that took it dies.
func TestACardEndsWhoeverDies(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.say("I look.\nI ask.")
		a := d.ask("", approvals.Terms{})
		d.rest()
		_, err := d.store.Decide(context.Background(), approvals.Decision{ApprovalID: a.ID, Status: approvals.Denied, By: "UGRACE", Via: "button"})
		d.must(err)
		d.kill()
		d.over()
		if got := d.slack.inThread(deskThread); len(got) != 2 || strings.Contains(got[1].blocks, `"Approve"`) || !strings.Contains(strings.ToLower(got[1].text), "denied") {
			t.Errorf("the card reads %+v", got)
		}
	})
}

// TestOnlyTheHolderEditsACard: another replica takes the click, or calls people late. The turn's
// replica goes on in the card's message, and no edit of the other one may come after it; when
// the holder has died, the other one shows the card.
func TestOnlyTheHolderEditsACard(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		quorum     int
		calls      access.Call
		dies, vote bool
	}{
		"it lives":               {quorum: 1},
		"it dies":                {quorum: 1, dies: true},
		"a vote does not decide": {quorum: 2, vote: true},
		"people are sent copies": {quorum: 1, calls: access.CallDirect},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				if test.calls != "" {
					d.callsBy(test.calls)
				}
				a := d.ask("", approvals.Terms{Quorum: test.quorum})
				d.rest()
				holder := d.bot
				d.startAs("replica-2")
				other := d.bot
				for _, p := range d.all {
					p.app.Frontend().SetShare(agent.Share{Anywhere: 0.5})
				}
				card := func() string { return d.slack.inThread(deskThread)[0].blocks }
				before := card()
				holder.dead.Store(true) // it is frozen
				if test.calls == "" {
					d.click("UGRACE", view.ActionApprove, a)
				} else {
					d.slack.answers(func(_ int, c slackCall) (f fault) {
						if c.method == "conversations.open" {
							f.err = slack.SlackErrorResponse{Err: "internal_error"}
						}
						return f
					})
					d.front().Show(outbox.CardPost, a.CardID)
					time.Sleep(3 * time.Second)
					d.slack.answers(nil)
					d.click("UGRACE", view.ActionApprove, a)
				}
				time.Sleep(20 * time.Second)
				if card() != before {
					t.Fatalf("the card was edited while another replica holds the thread: %s", card())
				}
				if test.dies {
					d.must(d.store.ReleaseLease(context.Background(), d.lease, false))
					d.over()
					if !strings.Contains(card(), "UGRACE") || strings.Contains(card(), `"Approve"`) {
						t.Errorf("the card reads %s", card())
					}
					return
				}
				holder.dead.Store(false)
				d.bot = holder
				if test.vote {
					d.front().Show(outbox.CardPost, a.CardID) // as its supervisor does
					d.rest()
					if !strings.Contains(card(), "1 of 2") {
						t.Errorf("the vote is not shown: %s", card())
					}
					d.click("UHEIDI", view.ActionApprove, a)
				}
				d.front().ShowApproval(a)
				d.answered()
				d.say("It is done.")
				d.end(agent.TurnDone, "")
				d.over()
				d.bot = other
				d.over()
				if !strings.Contains(card(), "It is done.") || strings.Contains(card(), `"Approve"`) {
					t.Errorf("the card reads %s", card())
				}
			})
		})
	}
}

// TestATurnThatWasLeft: its process dies, and another one goes on with it. Nothing that it
// has left looks as if it worked, and where it has left nothing there is nothing to tell.
func TestATurnThatWasLeft(t *testing.T) {
	t.Parallel()
	const sentence = "Deckhand restarted here; the work goes on below."
	tool := func(state claude.ToolState, words string) claude.Item {
		return claude.Item{Kind: claude.ItemToolUse, Tool: &claude.ToolUse{Name: "Bash", State: state, Input: json.RawMessage(fmt.Sprintf(`{"command":%q}`, words))}}
	}
	for name, test := range map[string]struct {
		run  func(d *desk)
		want []string // that the messages read, without what stays
	}{
		"before it said anything":                    {func(*desk) {}, nil},
		"while tools run, of which nothing was told": {func(d *desk) { d.add(tool(claude.ToolRunning, "sleep 60")) }, nil},
		"while tools run": {func(d *desk) {
			d.add(tool(claude.ToolDone, "make"))
			d.add(tool(claude.ToolRunning, "sleep 60"))
			time.Sleep(quietFor)
		}, []string{"✅ `make`", "⏸ `sleep 60` · interrupted", "⏸ " + sentence}},
		"while a tool waits for people": {func(d *desk) {
			d.add(tool(claude.ToolAsked, "make"))
			time.Sleep(quietFor)
		}, []string{"⏸ `make` · interrupted"}},
		"while one of many runs": {func(d *desk) {
			d.add(tool(claude.ToolRunning, "sleep 60"))
			for range 4 {
				d.add(tool(claude.ToolRunning, "true"))
			}
			for range 8 {
				d.add(tool(claude.ToolDone, "make"))
			}
			time.Sleep(quietFor)
		}, []string{"⏸ 8 tool calls: Bash ×8 · 3 not finished", "⏸ `sleep 60` · interrupted"}},
		"after it said something": {func(d *desk) { d.say("⏳ is what I say.\n") }, []string{"⏳ is what I say."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				test.run(d)
				d.rest()
				d.kill()
				for range 2 { // it could not go on at once, and is left again
					w, err := d.store.LeaveTurn(context.Background(), d.lease, d.turn.ID, sentence)
					d.must(err)
					d.front().Tell(w)
					d.over()
					d.front().MarkPrompt(inbox.Prompt{ThreadKey: w.ThreadKey}, agent.PromptWaits)
				}
				got := d.slack.inThread(deskThread)
				if len(got) != min(1, len(test.want)) {
					t.Fatalf("the thread reads %+v", got)
				}
				if len(got) == 0 {
					return
				}
				for _, want := range test.want {
					if !strings.Contains(got[0].blocks, want) {
						t.Errorf("without %q: %s", want, got[0].blocks)
					}
				}
				rest := strings.ReplaceAll(got[0].blocks, "⏳ is what I say", "")
				for _, works := range []string{"⏳", "✋", "Working", `"Stop"`, "waiting for approval"} {
					if strings.Contains(rest, works) {
						t.Errorf("it looks as if it worked (%s): %s", works, got[0].blocks)
					}
				}
			})
		})
	}
}
