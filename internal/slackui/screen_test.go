package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"
	"pgregory.net/rapid"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/outbox"
)

var (
	refusal    error = &slack.SlackErrorResponse{Err: "invalid_blocks"}
	errAlready error = &slack.SlackErrorResponse{Err: "already_reacted"}
)

// always is Slack with one fault for each call of a method.
func always(method string, f fault) func(int, slackCall) fault {
	return func(_ int, c slackCall) fault {
		if c.method == method {
			return f
		}
		return fault{}
	}
}

// TestATurnOnScreen goes through what can happen to a turn while it is shown. At its
// end the thread shows its last state, once.
func TestATurnOnScreen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(int, slackCall) fault
		run    func(d *desk)
		posts  int // calls of chat.postMessage
		edits  int // at most
	}{
		"in one piece": {posts: 1, edits: 1, run: func(d *desk) { d.say("Hello.") }},
		"in many": {posts: 1, edits: 25, run: func(d *desk) {
			for range 1000 {
				d.say("word ")
				time.Sleep(10 * time.Millisecond)
			}
		}},
		"with a card in between": {posts: 2, edits: 8, run: func(d *desk) {
			d.say("I look.\nI ask.")
			a := d.ask("", approvals.Terms{})
			time.Sleep(time.Second)
			d.click("UGRACE", view.ActionApprove, a)
			d.answered()
			d.say("I was allowed to.")
		}},
		"with a card at once behind a line": {posts: 1, edits: 5, run: func(d *desk) {
			d.say("I ask.")
			a := d.ask("", approvals.Terms{})
			time.Sleep(time.Second)
			d.click("UGRACE", view.ActionApprove, a)
			d.answered()
			d.say("I was allowed to.")
		}},
		"with a card before anything is said": {posts: 1, edits: 5, run: func(d *desk) {
			d.ask("", approvals.Terms{})
			time.Sleep(time.Second)
			d.say("Well.")
		}},
		"over several pages": {posts: 3, edits: 15, run: func(d *desk) {
			for i := range 20 {
				d.say(mrkdwntest.Prose(800))
				time.Sleep(300 * time.Millisecond)
				if i%4 == 3 { // what one message does not hold of one text is a file
					d.add(claude.Item{Kind: claude.ItemToolUse, Tool: &claude.ToolUse{ID: fmt.Sprint(i), Name: "Bash", State: claude.ToolDone}})
				}
			}
		}},
		"more than fits": {posts: 1, edits: 6, run: func(d *desk) { d.say(mrkdwntest.Prose(60_000)) }},
		"while Slack says 429": {posts: 1, edits: 3, run: func(d *desk) {
			d.say("Hello.\n")
			time.Sleep(time.Second)
			d.say(" there.")
		}, answer: func(n int, c slackCall) fault {
			if c.method == "chat.update" && n < 3 {
				return fault{err: &slack.RateLimitedError{RetryAfter: 30 * time.Second}}
			}
			return fault{}
		}},
		"while Slack refuses its blocks": {posts: 1, edits: 5, run: func(d *desk) {
			d.say("Hello.\n")
			time.Sleep(time.Second)
			d.say(" there.")
		}, answer: func(_ int, c slackCall) fault {
			if c.method == "chat.update" && c.args.Get("blocks") != "" && c.args.Get("blocks") != "[]" {
				return fault{err: refusal}
			}
			return fault{}
		}},
		"while Slack is slow": {posts: 1, edits: 3, run: func(d *desk) {
			for range 50 {
				d.say("word ")
				time.Sleep(100 * time.Millisecond)
			}
		}, answer: func(int, slackCall) fault { return fault{slow: 4 * time.Second} }},
		// A post that failed is looked for before it is made again.
		"while Slack is away": {posts: 2, edits: 1, run: func(d *desk) { d.say("Hello.") }, answer: func(n int, _ slackCall) fault {
			if n < 5 {
				return fault{err: errors.New("connection refused")}
			}
			return fault{}
		}},
		"while the database is slow": {posts: 1, edits: 3, run: func(d *desk) {
			d.store.saveTakes = 5 * time.Second
			d.say("Hello.\n")
			time.Sleep(time.Second)
			d.say(" there.")
		}},
	} {
		for _, end := range []agent.TurnState{agent.TurnDone, agent.TurnFailed, agent.TurnInterrupted} {
			t.Run(name+", "+string(end), func(t *testing.T) {
				t.Parallel()
				atDesk(t, func(d *desk) {
					d.slack.answers(c.answer)
					c.run(d)
					d.end(end, "It went as it went.")
					d.rest()
					for _, p := range d.wrong() {
						t.Error(p)
					}
					if n := d.slack.count("chat.postMessage"); n != c.posts {
						t.Errorf("%d posts, want %d", n, c.posts)
					}
					if n := d.slack.count("chat.update"); n > c.edits {
						t.Errorf("%d edits, want at most %d", n, c.edits)
					}
				})
			})
		}
	}
}

// What a turn has cost is told once more when its last calls have ended, at the line that
// said at least.
func TestTheCostOfATurnIsToldAgain(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.say("Hello.")
		d.turn.CostMicroUSD, d.turn.Unfinished, d.turn.Settling = 50_000, true, true
		d.end(agent.TurnDone, "")
		d.rest()
		d.turn.CostMicroUSD, d.turn.Unfinished, d.turn.Settling = 150_000, false, false
		d.show()
		d.rest()
		for _, p := range d.wrong() {
			t.Error(p)
		}
	})
}

// The first words are posted at once, whatever the pace.
func TestTheFirstWordsAreNotPaced(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.show()
		time.Sleep(10 * time.Millisecond)
		d.say("Hello.\n")
		synctest.Wait()
		if n := d.slack.count("chat.postMessage"); n != 1 {
			t.Errorf("%d posts", n)
		}
		d.end(agent.TurnDone, "")
		d.rest()
	})
}

// What a person deletes is not posted again; the rest of the turn goes on.
func TestADeletedMessageStaysDeleted(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.say("Hello.\n")
		time.Sleep(time.Second)
		d.slack.delete(0)
		d.say(" there.")
		d.ask("", approvals.Terms{})
		time.Sleep(time.Second)
		d.say("And here.")
		d.end(agent.TurnDone, "")
		d.rest()
		got := d.slack.inThread(deskThread)
		if len(got) != 1 || !strings.Contains(got[0].text, "And here.") || d.slack.count("chat.postMessage") != 2 {
			t.Errorf("the thread reads %+v", got)
		}
	})
}

// A turn that another process of ours showed is marked on all its messages.
func TestATurnOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(d *desk){
		"of one page":          func(d *desk) { d.say("Hello.\n") },
		"of several":           func(d *desk) { d.say(mrkdwntest.Prose(20_000)) },
		"killed between pages": func(d *desk) { d.say(mrkdwntest.Prose(6_000)); time.Sleep(time.Second); d.say(mrkdwntest.Prose(9_000)) },
		"with a card":          func(d *desk) { d.say("I look.\nI ask."); d.ask("", approvals.Terms{}) },
		"killed before its card was noted": func(d *desk) {
			d.slack.answers(func(_ int, c slackCall) fault {
				if strings.Contains(c.args.Get("metadata"), "deckhand_card") {
					d.bot.dead.Store(true)
				}
				return fault{}
			})
			d.say("I look.\nI ask.")
			a := d.ask("", approvals.Terms{})
			time.Sleep(time.Second)
			if d.slack.count("chat.postMessage") != 2 || d.cardTS(a) != "" {
				d.t.Error("the card is noted")
			}
		},
		"of which nothing came": func(*desk) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				// Edits wait for their rate, so that the kill comes between a page and the next.
				d.slack.answers(always("chat.update", fault{err: &slack.RateLimitedError{RetryAfter: 20 * time.Second}}))
				run(d)
				time.Sleep(2 * time.Second)
				posted := max(1, len(d.slack.inThread(deskThread))) // where nothing came the sentence is posted
				if len(d.store.Approvals()) > 0 {
					posted++ // a card cannot have it
				}
				d.kill()
				d.slack.answers(nil)
				for _, a := range d.store.Approvals() {
					d.front().ShowApproval(a) // bound to the next process's request
				}
				d.rest()
				_, rows, err := d.store.FinishTurn(context.Background(), d.lease, store.FinishedTurn{ID: d.turn.ID, State: "interrupted", Problem: "It is given up.", Approvals: approvals.Interrupted})
				d.must(err)
				d.front().Tell(rows...)
				d.closeCards()
				d.rest()
				got := d.slack.inThread(deskThread)
				if len(got) != posted {
					t.Errorf("%d messages of %d", len(got), posted)
				}
				told := false
				for _, m := range got {
					if strings.Contains(m.blocks, "Working…") {
						t.Errorf("it still says that it works: %s", m.blocks)
					}
					if m.actions {
						t.Errorf("it still has a button: %s", m.text)
					}
					told = told || strings.Contains(m.blocks, "It is given up.")
				}
				if !told {
					t.Error("nobody is told")
				}
			})
		})
	}
}

// In its own process an abandoned turn is shown a last time.
func TestAnAbandonedTurn(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.say("Hello.\n")
		time.Sleep(time.Second)
		d.front().Abandon(d.turn.ID, "Another replica goes on with it.")
		d.rest()
		got := d.slack.inThread(deskThread)
		if len(got) != 1 || got[0].actions || !strings.Contains(got[0].blocks, "Another replica goes on with it.") {
			t.Errorf("the thread reads %+v", got)
		}
	})
}

// Of a turn whose thread another replica has taken nothing more is shown.
func TestATurnThatIsLeft(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.say("Hello.\n")
		time.Sleep(time.Second)
		d.say("world")
		d.say("and more") // within the pace: rendered later
		d.front().Leave(d.turn.ID)
		d.rest()
		got := d.slack.inThread(deskThread)
		if len(got) != 1 || strings.Contains(got[0].blocks, "and more") {
			t.Errorf("the thread reads %+v", got)
		}
		if n := len(d.bot.app.screen.turnScreen.shown); n != 0 {
			t.Errorf("%d turns are kept", n)
		}
	})
}

// TestACardOnScreen goes through what can happen to a card.
func TestACardOnScreen(t *testing.T) {
	t.Parallel()
	const told = "*" // somebody is told something
	for name, c := range map[string]struct {
		terms  approvals.Terms
		answer func(int, slackCall) fault
		run    func(d *desk, a approvals.Approval) (outcomes []string)
		want   []string
		told   []string // beginnings of what is whispered
	}{
		"shown": {},
		"decided here": {
			run: func(d *desk, a approvals.Approval) []string {
				return []string{d.click("UGRACE", view.ActionApprove, a)}
			},
			want: []string{"allowed"},
		},
		"denied here": {
			run:  func(d *desk, a approvals.Approval) []string { return []string{d.click("UADA", view.ActionDeny, a)} },
			want: []string{"denied"},
		},
		"voted on": {
			terms: approvals.Terms{Quorum: 2},
			run: func(d *desk, a approvals.Approval) []string {
				return []string{d.click("UGRACE", view.ActionApprove, a), d.click("UGRACE", view.ActionApprove, a), d.click("UHEIDI", view.ActionApprove, a)}
			},
			want: []string{"pending", "voted already", "allowed"},
			told: []string{"UGRACE: Your approval is noted.", "UGRACE: You have approved this already."},
		},
		"clicked twice": {
			run: func(d *desk, a approvals.Approval) []string {
				return []string{d.click("UGRACE", view.ActionApprove, a), d.click("UHEIDI", view.ActionDeny, a)}
			},
			want: []string{"allowed", "too late"},
			told: []string{"UHEIDI: This was approved already by ugrace."},
		},
		"clicked by somebody who may not": {
			run: func(d *desk, a approvals.Approval) []string {
				return []string{d.click("ULINUS", view.ActionApprove, a), d.click("UMALLORY", view.ActionDeny, a)}
			},
			want: []string{"refused", "refused"},
			told: []string{"ULINUS: Only approvers can decide", "UMALLORY: Only approvers can decide"},
		},
		"decided elsewhere": {
			run: func(d *desk, a approvals.Approval) []string {
				decided, err := d.store.Decide(context.Background(), approvals.Decision{ApprovalID: a.ID, Status: approvals.Allowed, By: "UADA", Via: "button"})
				d.must(err)
				d.front().ShowApproval(decided)
				return []string{d.click("UGRACE", view.ActionDeny, a)}
			},
			want: []string{"too late"},
			told: []string{"UGRACE: This was approved already by uada."},
		},
		"expired": {
			run: func(d *desk, a approvals.Approval) []string {
				time.Sleep(2 * time.Hour)
				late := d.click("UGRACE", view.ActionApprove, a)
				ended, _, err := d.store.ExpireApproval(context.Background(), a.ID)
				d.must(err)
				d.front().ShowApproval(ended)
				return []string{late}
			},
			want: []string{"too late"},
			told: []string{"UGRACE: The time to decide"},
		},
		"joined by a second request": {
			run: func(d *desk, a approvals.Approval) []string {
				b := d.ask(a.ID, approvals.Terms{})
				return []string{d.click("UGRACE", view.ActionApprove, b), d.click("UGRACE", view.ActionDeny, a)}
			},
			want: []string{"allowed", "denied"},
		},
		"joined while it is being posted": {
			answer: always("chat.postMessage", fault{slow: 5 * time.Second}),
			run: func(d *desk, a approvals.Approval) []string {
				d.ask(a.ID, approvals.Terms{})
				d.ask(a.ID, approvals.Terms{})
				return nil
			},
		},
		"clicked while Slack is slow": {
			answer: func(int, slackCall) fault { return fault{slow: 3 * time.Second} },
			run: func(d *desk, a approvals.Approval) []string {
				return []string{d.click("UGRACE", view.ActionApprove, a), d.click("UHEIDI", view.ActionApprove, a)}
			},
			want: []string{"allowed", "too late"}, told: []string{told},
		},
		"clicked while Slack refuses its blocks": {
			answer: func(_ int, c slackCall) fault {
				if strings.HasPrefix(c.method, "chat.post") && c.args.Get("blocks") != "" {
					return fault{err: refusal}
				}
				return fault{}
			},
			run: func(d *desk, a approvals.Approval) []string {
				return []string{d.click("UGRACE", view.ActionApprove, a)}
			},
			want: []string{"allowed"},
		},
		"from another card": {
			run: func(d *desk, a approvals.Approval) []string {
				at, db := d.cardTS(a), d.store.Store
				post := outbox.PostedMessage{Kind: outbox.CardPost, Subject: a.CardID, ChannelID: deskChannel, TS: "1.1"}
				d.must(db.SavePosts(context.Background(), post)) // what the click carries
				defer func() {
					d.must(db.ForgetPost(context.Background(), post, "replica-1"))
					post.TS = at
					d.must(db.SavePosts(context.Background(), post))
				}()
				return []string{d.clickOn("9.9", "UGRACE", view.ActionApprove, a)}
			},
			want: []string{"wrong card"}, told: []string{"UGRACE: This button does not belong"},
		},
	} {
		for _, wait := range []time.Duration{0, time.Second, time.Minute} { // before the first click
			t.Run(fmt.Sprint(name, " after ", wait), func(t *testing.T) {
				t.Parallel()
				atDesk(t, func(d *desk) {
					d.slack.answers(c.answer)
					d.say("I look.\nI ask.")
					a := d.ask("", c.terms)
					time.Sleep(wait)
					if c.run != nil {
						if got := c.run(d, a); !slices.Equal(got, c.want) {
							t.Errorf("the clicks did %q, want %q", got, c.want)
						}
					}
					d.rest()
					for _, p := range d.wrong() {
						t.Errorf("while the turn runs: %s", p)
					}
					d.end(agent.TurnDone, "")
					d.rest()
					for _, p := range d.wrong() {
						t.Error(p)
					}
					for _, m := range d.slack.inThread(deskThread) {
						if m.actions {
							t.Errorf("a button is left: %s", m.text)
						}
					}
					whispers := d.slack.whispers()
					if len(whispers) != len(c.told) {
						t.Errorf("people were told %q", whispers)
					}
					for i, w := range whispers {
						if i < len(c.told) && c.told[i] != told && !strings.HasPrefix(w, c.told[i]) {
							t.Errorf("%q, want %q", w, c.told[i])
						}
					}
				})
			})
		}
	}
}

// A card whose approval changes while the bot stops is shown as it stands.
func TestACardIsShownBeforeTheStop(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.say("I look.\nI ask.")
		a := d.ask("", approvals.Terms{})
		d.rest()
		decided, err := d.store.Decide(context.Background(), approvals.Decision{ApprovalID: a.ID, Status: approvals.Allowed, By: "UADA", Via: "button"})
		d.must(err)
		d.front().ShowApproval(decided)
		d.bot.stop()
		<-d.bot.stopped
		for _, p := range d.wrong() {
			t.Error(p)
		}
	})
}

// TestAnySequence draws what happens at a desk, and what Slack makes of it.
func TestAnySequence(t *testing.T) {
	t.Parallel()
	type step struct {
		what string
		n    int
	}
	kinds := []string{"say", "say", "say", "say much", "think", "use a tool", "wait", "wait", "ask", "ask", "join", "decide", "decide", "answer", "answer", "end", "elsewhere", "expire"}
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{rapid.SampledFrom(kinds).Draw(rt, "what"), rapid.IntRange(0, 30).Draw(rt, "n")}
		}), 1, 40).Draw(rt, "steps")
		faults := rapid.SliceOfN(rapid.SampledFrom([]fault{
			{},
			{},
			{},
			{},
			{},
			{},
			{slow: 2 * time.Second},
			{slow: 20 * time.Second},
			{err: &slack.RateLimitedError{RetryAfter: 3 * time.Second}},
			{err: slack.StatusCodeError{Code: 502, Status: "502"}},
			{err: refusal},
		}), 1, 40).Draw(rt, "faults")
		takes := rapid.SampledFrom([]time.Duration{0, 100 * time.Millisecond, 3 * time.Second})
		saveTakes, readTakes := takes.Draw(rt, "saving takes"), takes.Draw(rt, "reading takes")
		var problems []string
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t)
			d.store.saveTakes, d.store.readTakes = saveTakes, readTakes
			d.slack.answers(func(n int, c slackCall) fault {
				f := append(faults, make([]fault, 4)...)[n%(len(faults)+4)] // a look and an upload go through, now and then
				if blocks := c.args.Get("blocks"); errors.Is(f.err, refusal) && (blocks == "" || blocks == "[]") {
					return fault{}
				}
				return f
			})
			var asked []approvals.Approval
			pick := func(n int) (approvals.Approval, bool) {
				if len(asked) == 0 {
					return approvals.Approval{}, false
				}
				return asked[n%len(asked)], true
			}
			for _, s := range steps {
				a, some := pick(s.n)
				switch s.what {
				case "say":
					d.say(strings.Repeat("word ", s.n+1))
				case "say much":
					d.say(mrkdwntest.Prose(s.n * 300))
				case "think":
					d.add(claude.Item{Kind: claude.ItemThinking, Text: strings.Repeat("hm ", s.n), Final: s.n%2 == 0})
				case "use a tool":
					d.add(claude.Item{Kind: claude.ItemToolUse, Tool: &claude.ToolUse{ID: "toolu", Name: "Read", Input: json.RawMessage(`{"file_path":"a.go"}`), State: claude.ToolDone}})
				case "wait":
					time.Sleep(time.Duration(s.n*s.n) * 20 * time.Millisecond)
				case "ask":
					asked = append(asked, d.ask("", approvals.Terms{Quorum: s.n % 3}))
				case "join":
					if card := d.openCard(); card != "" {
						asked = append(asked, d.ask(card, approvals.Terms{}))
					}
				case "decide":
					if some {
						d.click([]string{"UGRACE", "UHEIDI", "UADA", "ULINUS"}[s.n%4], []string{view.ActionApprove, view.ActionDeny}[s.n%2], a)
					}
				case "answer":
					d.answered()
				case "elsewhere":
					if some {
						if decided, err := d.store.Decide(context.Background(), approvals.Decision{ApprovalID: a.ID, Status: approvals.Denied, By: "UADA", Via: "button"}); err == nil {
							d.front().ShowApproval(decided)
						}
					}
				case "expire":
					if some {
						time.Sleep(2 * time.Hour)
						ended, _, err := d.store.ExpireApproval(context.Background(), a.ID)
						d.must(err)
						d.front().ShowApproval(ended)
					}
				case "end":
					d.end([]agent.TurnState{agent.TurnDone, agent.TurnFailed, agent.TurnInterrupted}[s.n%3], "It is over.")
					asked = nil
					d.begin()
				}
			}
			d.end(agent.TurnDone, "")
			d.rest()
			problems = append(d.wrong(), d.slack.check()...)
			for _, m := range d.slack.inThread(deskThread) {
				if m.actions {
					problems = append(problems, "a button is left: "+m.text)
				}
			}
			d.close()
		})
		for _, p := range problems {
			rt.Error(p)
		}
	})
}
