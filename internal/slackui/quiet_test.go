package slackui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
	"deckhand/internal/store/approvals"
)

// posts are the texts of what was posted in the thread, as notifications show them: of each
// message its first.
func (s *scripted) posts() (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.method == "chat.postMessage" {
			text, _, _ := strings.Cut(c.args.Get("text"), "\n")
			texts = append(texts, text)
		}
	}
	return texts
}

// TestNothingIsPostedWithoutUse: what is posted calls people. A turn that begins with steps
// posts what it says or what came of it, and says of its steps alone only after a while, or
// where nothing else says that work goes on.
func TestNothingIsPostedWithoutUse(t *testing.T) {
	t.Parallel()
	approved := func(d *desk, wait time.Duration) {
		d.add(reading("auth.go"))
		time.Sleep(time.Second)
		a := d.ask("", approvals.Terms{})
		time.Sleep(wait)
		d.click("UGRACE", view.ActionApprove, a)
		d.answered()
	}
	const asks = "Run `make"
	for name, c := range map[string]struct {
		lacks string // a method that the workspace has not
		run   func(d *desk)
		want  []string // how what was posted begins
	}{
		"a short turn": {run: func(d *desk) {
			d.add(reading("auth.go"))
			time.Sleep(5 * time.Second)
			d.say("It is fine.")
		}, want: []string{"It is fine."}},
		"words before steps": {run: func(d *desk) {
			d.say("I look.")
			d.add(reading("auth.go"))
			time.Sleep(5 * time.Second)
			d.say("It is fine.\n")
		}, want: []string{"It is fine."}},
		"words between two cards, and after them": {run: func(d *desk) {
			d.say("I look.\n")
			approved(d, time.Second)
			d.say("One fails.\n")
			time.Sleep(5 * time.Second)
			approved(d, time.Second)
			d.say("Now the rest.\n")
			d.add(reading("b.go"))
			time.Sleep(5 * time.Second)
			d.say("It is fine.\n")
		}, want: []string{"I look.", asks, asks}},
		"words before steps, and a long silence": {run: func(d *desk) {
			d.say("I look.")
			d.add(reading("auth.go"))
			time.Sleep(2 * quietFor)
			d.say("It is fine.\n")
		}, want: []string{"I look."}},
		"a turn that says nothing": {run: func(d *desk) {
			d.add(reading("auth.go"))
			time.Sleep(5 * time.Second)
		}, want: []string{"✅ Done"}},
		"a long silence": {run: func(d *desk) {
			d.add(reading("auth.go"))
			time.Sleep(2 * quietFor)
			d.say("It is fine.")
		}, want: []string{"Deckhand is reading auth.go: 1 step so far."}},
		"an approval that takes long": {run: func(d *desk) {
			approved(d, 2*quietFor)
			time.Sleep(5 * time.Second)
			d.add(reading("b.go"))
			d.say("It is fine.\n")
			time.Sleep(5 * time.Second)
			d.say("Really.")
		}, want: []string{asks}},
		"two approvals": {run: func(d *desk) {
			approved(d, time.Second)
			approved(d, time.Second)
			d.say("It is fine.")
		}, want: []string{asks, asks}},
		"steps after a card": {run: func(d *desk) {
			d.say("I look.\n")
			approved(d, time.Second)
			d.add(reading("b.go"))
			time.Sleep(2 * quietFor)
		}, want: []string{"I look.", asks}},
		"without a status line": {lacks: "assistant.threads.setStatus", run: func(d *desk) {
			d.add(reading("auth.go"))
			time.Sleep(5 * time.Second)
			d.say("It is fine.")
		}, want: []string{"Deckhand is reading auth.go: 1 step so far."}},
		"without a Stop button of Slack's": {lacks: "agents.sessions.setStatus", run: func(d *desk) {
			d.add(reading("auth.go"))
			time.Sleep(5 * time.Second)
			if n := len(d.slack.posts()); n > 0 {
				d.t.Errorf("%d posts after 5 s", n)
			}
			time.Sleep(quietWithoutStop)
			if n := len(d.slack.posts()); n != 1 {
				d.t.Errorf("%d posts after 15 s", n)
			}
		}, want: []string{"Deckhand is reading auth.go: 1 step so far."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				d.slack.answers(func(_ int, call slackCall) fault {
					if call.method == c.lacks {
						return fault{err: &slack.SlackErrorResponse{Err: "unknown_method"}}
					}
					return fault{}
				})
				c.run(d)
				items := slices.Clone(d.turn.Content.Items) // what was shown may be rendered still
				for i, it := range items {
					if it.Tool != nil {
						done := *it.Tool
						done.State = claude.ToolDone
						items[i].Tool = &done
					}
				}
				d.turn.Content.Items = items
				d.end(agent.TurnDone, "")
				d.rest()
				got := d.slack.posts()
				if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
					t.Errorf("posted were %q, want %q", got, c.want)
				}
				for _, p := range d.wrong() {
					t.Error(p)
				}
			})
		})
	}
}

// TestWhereMessagesBeginOutlivesAKill: a turn whose answer stands in one row of messages with
// the steps before its card is shown so by another process, too.
func TestWhereMessagesBeginOutlivesAKill(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.add(reading("auth.go"))
		time.Sleep(time.Second)
		a := d.ask("", approvals.Terms{})
		time.Sleep(time.Second)
		d.click("UGRACE", view.ActionApprove, a)
		d.answered()
		const first = "It is fine."
		d.say(first + "\n\n")
		for line := range strings.Lines(mrkdwntest.Prose(9_000)) {
			d.say(line)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		before := len(d.slack.inThread(deskThread))
		d.settle()
		items := slices.Clone(d.turn.Content.Items)
		done := *items[0].Tool
		done.State = claude.ToolDone
		items[0].Tool = &done
		d.turn.Content.Items, d.turn.State, d.turn.EndedAt = items, agent.TurnDone, time.Now()
		rows := d.commit()
		d.kill()
		d.front().Tell(rows...)
		d.over()
		said := 0
		all := d.slack.inThread(deskThread)
		for _, m := range all {
			said += strings.Count(m.blocks, first)
		}
		if said != 1 || len(all) != before {
			t.Errorf("%d messages after the kill, %d before; the answer is said %d times", len(all), before, said)
		}
		for _, p := range d.slack.check() {
			t.Error(p)
		}
	})
}
