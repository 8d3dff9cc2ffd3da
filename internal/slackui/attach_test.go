package slackui

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/slackui/render/mrkdwn/mrkdwntest"
)

// TestALongAnswer is one message and one file, whatever happens while they come; where Slack
// takes no file it is the messages that hold most of it.
func TestALongAnswer(t *testing.T) {
	t.Parallel()
	const conclusion = "In the end all of it is green."
	answer := mrkdwntest.Prose(60_000) + "\n\n" + conclusion
	grow := func(d *desk) {
		for len(d.turn.Content.Items) == 0 || len(d.turn.Content.Items[0].Text) < len(answer) {
			said := 0
			if len(d.turn.Content.Items) > 0 {
				said = len(d.turn.Content.Items[0].Text)
			}
			d.say(answer[said:min(len(answer), said+2000)])
			time.Sleep(400 * time.Millisecond)
		}
	}
	// left ends the turn; the process that shows it is killed once Slack has had that call.
	left := func(d *desk, method string) {
		d.slack.answers(func(_ int, c slackCall) fault {
			if c.method == method && !d.bot.dead.Load() {
				d.bot.dead.Store(true)
				return fault{deaf: true}
			}
			return fault{}
		})
		rows := d.commit()
		d.turn.OutboxID = rows[0].ID
		d.show()
		for !d.bot.dead.Load() {
			time.Sleep(100 * time.Millisecond)
		}
		d.slack.answers(nil)
		d.kill()
		for i := range rows {
			rows[i].Again = true
		}
		d.front().Tell(rows...)
	}
	refuse := func(code string) func(int, slackCall) fault {
		return func(_ int, c slackCall) fault {
			if c.method == "files.getUploadURLExternal" {
				return fault{err: &slack.SlackErrorResponse{Err: code}}
			}
			return fault{}
		}
	}
	for name, c := range map[string]struct {
		end      func(d *desk)
		messages int
		tries    int // of attaching, 0 for once
		again    int // tries once another one is there that takes as many messages
	}{
		"as a whole":                    {messages: 1},
		"stopped in the middle":         {messages: 1, end: func(d *desk) { d.end(agent.TurnInterrupted, "") }},
		"killed before the file":        {messages: 1, tries: 2, end: func(d *desk) { left(d, "files.getUploadURLExternal") }},
		"killed when the file is there": {messages: 1, end: func(d *desk) { left(d, "files.completeUploadExternal") }},
		"the answer about it is lost": {messages: 1, end: func(d *desk) {
			n := 0
			d.slack.answers(func(_ int, c slackCall) fault {
				if c.method == "files.completeUploadExternal" {
					n++
				}
				return fault{deaf: n == 1 && c.method == "files.completeUploadExternal"}
			})
			d.end(agent.TurnDone, "")
		}},
		"without the right to files": {messages: 4, end: func(d *desk) {
			d.slack.answers(refuse("missing_scope"))
			d.end(agent.TurnDone, "")
		}, again: 1},
		"where a thread is locked": {messages: 4, end: func(d *desk) {
			d.slack.answers(refuse("restricted_action_thread_locked"))
			d.end(agent.TurnDone, "")
		}, again: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				grow(d)
				synctest.Wait()
				if n := len(d.slack.inThread(deskThread)); n != 1 {
					t.Errorf("%d messages while it grows", n)
				}
				d.settle()
				d.turn.State, d.turn.EndedAt = agent.TurnDone, time.Now()
				if c.end == nil {
					d.end(agent.TurnDone, "")
				} else {
					c.end(d)
				}
				d.over()
				all, files := d.slack.inThread(deskThread), d.slack.filesIn(deskThread)
				want := []string{"answer-1.md"}
				if c.messages > 1 {
					want = nil
				}
				if len(all) != c.messages || !slices.Equal(files, want) {
					t.Errorf("%d messages and the files %q, want %d and %q", len(all), files, c.messages, want)
				}
				last := all[len(all)-1]
				if !strings.Contains(last.blocks, conclusion) || last.actions || strings.Contains(last.blocks, "comes as a file") || strings.Contains(last.blocks, "answer-1.md") != (want != nil) {
					t.Errorf("the last message is %s", last.blocks)
				}
				if n := d.slack.count("files.getUploadURLExternal"); n != max(1, c.tries) {
					t.Errorf("attached %d times", n)
				}
				if c.messages > 1 { // it is known now
					d.begin()
					grow(d)
					d.end(agent.TurnDone, "")
					d.over()
					if n := len(d.slack.inThread(deskThread)); n != 2*c.messages || d.slack.count("files.getUploadURLExternal") != c.again {
						t.Errorf("%d messages after another one, and attached %d times", n, d.slack.count("files.getUploadURLExternal"))
					}
				}
			})
		})
	}
}

// TestALimitIsWaitedOut: Slack limits every call for two hours. The answer and its file come
// when it does not any more, each once, and nothing waits beyond that.
func TestALimitIsWaitedOut(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		until := time.Now().Add(2 * time.Hour)
		d.slack.answers(func(int, slackCall) fault {
			if time.Now().Before(until) {
				return fault{err: &slack.RateLimitedError{RetryAfter: 3 * time.Second}}
			}
			return fault{}
		})
		d.say(mrkdwntest.Prose(12_000))
		d.end(agent.TurnDone, "")
		d.rest()
		if late := time.Since(until); late > time.Minute || d.slack.count("files.completeUploadExternal") != 1 || len(d.slack.inThread(deskThread)) != 1 {
			t.Errorf("it rests %s later, with %d files: %+v", late, d.slack.count("files.completeUploadExternal"), d.slack.inThread(deskThread))
		}
	})
}
