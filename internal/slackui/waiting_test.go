package slackui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/agent/memstore"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/outbox"
)

// keep has the desk's bot keep its inbox, until the function that it returns is called.
func (d *desk) keep() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	kept := make(chan struct{})
	go func() { defer close(kept); d.bot.app.Chat.Run(ctx) }()
	return func() { cancel(); <-kept; d.bot.app.Wait() }
}

// posted is what Slack delivers of a person's message in the desk's thread.
func (d *desk) posted(user, ts, text string) *chat.Incoming {
	in, err := d.bot.app.screen.decode(envelope{Type: "events_api", Payload: mustJSON(object{"team_id": deskTeam, "event_id": uuid.NewString(), "event": object{
		"type": "app_mention", "user": user, "channel": deskChannel, "ts": ts, "thread_ts": deskThread, "text": "<@UBOT> " + text,
	}})})
	d.must(err)
	return in
}

// post has a person's message arrive.
func (d *desk) post(user, ts, text string) {
	d.deliver(d.posted(user, ts, text))
}

// deliver has something arrive. It is not acknowledged while the database is away.
func (d *desk) deliver(in *chat.Incoming) {
	d.bot.app.Take(context.Background(), in, func(context.Context, map[string]string) {})
}

// became is what became of the message with this ts.
func (d *desk) became(ts string) memstore.Prompt {
	prompts := d.store.Prompts()
	i := slices.IndexFunc(prompts, func(p memstore.Prompt) bool { return p.TS == ts })
	return prompts[i]
}

// reactions are the bot's on a message, as they stand.
func (d *desk) reactions(ts string) string {
	d.slack.mu.Lock()
	defer d.slack.mu.Unlock()
	var out []string
	for _, c := range d.slack.calls {
		name := c.args.Get("name")
		switch {
		case c.args.Get("timestamp") != ts || !c.ok:
		case c.method == "reactions.add" && slices.Contains(out, name):
		case c.method == "reactions.add":
			out = append(out, name)
		case c.method == "reactions.remove":
			out = slices.DeleteFunc(out, func(s string) bool { return s == name })
		}
	}
	return strings.Join(out, " ")
}

// TestAMessageWaits: nobody is refused for what Slack or the database does not say at the
// moment. The message waits, its author sees that, and it goes on; or they are told.
func TestAMessageWaits(t *testing.T) {
	t.Parallel()
	limited, away := &slack.RateLimitedError{RetryAfter: 30 * time.Second}, slack.StatusCodeError{Code: 503}
	for name, c := range map[string]struct {
		fails  func(call slackCall, n int) error // n counts look-ups of people
		within time.Duration
		seen   string // the reaction while it waits
		state  string
		end    string // the reaction at the end
		says   string // what is said at the end
	}{
		"one 429": {func(_ slackCall, n int) error {
			if n == 1 {
				return limited
			}
			return nil
		}, time.Minute, waitEmoji, "accepted", "eyes", ""},
		"one 429 that is short": {func(_ slackCall, n int) error {
			if n == 1 {
				return &slack.RateLimitedError{RetryAfter: time.Second}
			}
			return nil
		}, 10 * time.Second, "", "accepted", "eyes", ""},
		"no service for minutes": {func(call slackCall, _ int) error {
			if call.at.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) < 10*time.Minute {
				return away
			}
			return nil
		}, 12 * time.Minute, waitEmoji, "accepted", "eyes", ""},
		"no service for ever":      {func(slackCall, int) error { return away }, 2 * time.Hour, waitEmoji, "done", "warning", "was not worked on"},
		"no answer":                {func(slackCall, int) error { return errors.New("connection refused") }, 2 * time.Hour, waitEmoji, "done", "warning", "was not worked on"},
		"Slack does not know them": {func(slackCall, int) error { return &slack.SlackErrorResponse{Err: "user_not_found"} }, time.Minute, "", "done", "", "could not say who you are"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				n := 0
				d.slack.answers(func(_ int, call slackCall) fault {
					if call.method != "users.info" {
						return fault{}
					}
					n++
					return fault{err: c.fails(call, n)}
				})
				defer d.keep()()
				d.post("ULINUS", "2.0", "go on")
				time.Sleep(8 * time.Second)
				d.rest()
				if got := d.reactions("2.0"); c.seen != "" && got != c.seen {
					t.Errorf("while it waits its author sees %q, want %q", got, c.seen)
				}
				time.Sleep(c.within)
				d.rest()
				p := d.became("2.0")
				if p.State != c.state || c.state == "accepted" && !strings.HasSuffix(p.Text, "go on") {
					t.Errorf("it is %s (%s): %q, want %s", p.State, p.Outcome, p.Text, c.state)
				}
				if got := d.reactions("2.0"); got != c.end {
					t.Errorf("at the end its author sees %q, want %q", got, c.end)
				}
				told, said := d.threadReads(), strings.Join(d.slack.whispers(), " ")
				if c.end == "warning" { // it concerns all who read there
					told, said = said, told
				}
				if told != "" || !strings.Contains(said, c.says) || c.says == "" && said != "" {
					t.Errorf("the thread reads %q; they were told %q", d.threadReads(), d.slack.whispers())
				}
				d.end(agent.TurnDone, "")
			})
		})
	}
}

// threadReads is what the desk's thread says.
func (d *desk) threadReads() string {
	var out string
	for _, m := range d.slack.inThread(deskThread) {
		out += m.text
	}
	return out
}

// TestAMessageThatTheDatabaseRefuses: no error of the database loses it. What may pass is
// waited for; what is not known to pass is tried a few times; and then the thread is told.
func TestAMessageThatTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		times int // how often; 0 is for ever
		end   string
	}{
		"the bot was frozen in a transaction": {&pgconn.PgError{Code: "25P03"}, 10, "eyes"},
		"the connection is gone":              {io.ErrUnexpectedEOF, 10, "eyes"},
		"a race, lost once":                   {&pgconn.PgError{Code: "23505"}, 1, "eyes"},
		"an error that nobody knows":          {errors.New("no such luck"), 2, "eyes"},
		"a rule of the database's":            {&pgconn.PgError{Code: "23514"}, 0, "warning"},
		"an unknown error for ever":           {errors.New("no such luck"), 0, "warning"},
		"no room for ever":                    {&pgconn.PgError{Code: "53100"}, 0, "warning"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				tries := 0
				refuse := func() error {
					if tries++; c.times == 0 || tries <= c.times {
						return c.err
					}
					return nil
				}
				d.bot.refuse.Store(&refuse)
				defer d.keep()()
				d.post("ULINUS", "2.0", "go on")
				time.Sleep(2 * time.Hour)
				d.rest()
				if got := d.reactions("2.0"); got != c.end {
					t.Errorf("after %d tries its author sees %q, want %q; it is %+v", tries, got, c.end, d.became("2.0"))
				}
				want := 0
				if c.end == "warning" {
					want = 1
				}
				if told := d.threadReads(); strings.Count(told, "The message marked ⚠️ was not worked on") != want || len(d.slack.whispers()) > 0 {
					t.Errorf("the thread reads %q, and one person %q", told, d.slack.whispers())
				}
				d.end(agent.TurnDone, "")
			})
		})
	}
}

// TestMessagesThatWaitKeepTheirOrder: what is said in a thread while an earlier message of
// it waits is not worked on before that one.
func TestMessagesThatWaitKeepTheirOrder(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		began := time.Now()
		d.slack.answers(func(_ int, call slackCall) fault {
			if call.method == "users.info" && call.args.Get("user") == "ULINUS" && time.Since(began) < time.Minute {
				return fault{err: slack.StatusCodeError{Code: 500}}
			}
			return fault{}
		})
		defer d.keep()()
		d.post("ULINUS", "2.0", "first")
		time.Sleep(10 * time.Second)
		d.post("UADA", "3.0", "second")
		time.Sleep(20 * time.Second)
		d.rest()
		if p := d.became("3.0"); p.State != "received" || d.reactions("3.0") != "eyes "+waitEmoji {
			t.Errorf("the second is %s, with %q", p.State, d.reactions("3.0"))
		}
		time.Sleep(3 * time.Minute)
		d.rest()
		for _, ts := range []string{"2.0", "3.0"} {
			if p := d.became(ts); p.State != "accepted" || d.reactions(ts) != "eyes" {
				t.Errorf("%s is %s, with %q", ts, p.State, d.reactions(ts))
			}
		}
		d.end(agent.TurnDone, "")
	})
}

// TestAMessageWaitsForTheDatabase: it is not acknowledged, and shown within seconds of the
// database's return, once.
func TestAMessageWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		defer d.keep()()
		d.store.Break(fmt.Errorf("no database: %w", context.DeadlineExceeded))
		in := d.posted("ULINUS", "2.0", "go on")
		d.deliver(in)
		talk := d.posted("ULINUS", "2.1", "")
		talk.Message.ToUs, talk.Row.ThreadTS = false, "9.9"
		d.deliver(talk)
		time.Sleep(10 * time.Minute)
		d.rest()
		if got := d.reactions("2.0") + "|" + d.reactions("2.1"); got != waitEmoji+"|" {
			t.Errorf("while the database is away people see %q", got)
		}
		d.store.Break(nil)
		time.Sleep(3 * time.Second)
		d.rest()
		if p := d.became("2.0"); p.State != "accepted" || d.reactions("2.0") != "eyes" {
			t.Errorf("it is %s, with %q", p.State, d.reactions("2.0"))
		}
		if n := len(d.store.Prompts()); n != 2 {
			t.Errorf("%d rows", n)
		}
		again := d.posted("ULINUS", "2.0", "go on")
		again.Row.EventID = in.Row.EventID
		d.deliver(again) // Slack delivers it again
		time.Sleep(3 * time.Second)
		d.rest()
		if n := len(d.store.Prompts()); n != 2 || d.reactions("2.0") != "eyes" {
			t.Errorf("delivered again: %d rows, %q", n, d.reactions("2.0"))
		}
		d.end(agent.TurnDone, "")
	})
}

// change has Slack tell of a change of a message, by these fields of the event.
func (d *desk) change(subtype string, fields object) {
	event := object{"type": "message", "subtype": subtype, "hidden": true, "channel": deskChannel, "ts": "99.0"}
	maps.Copy(event, fields)
	in, err := d.bot.app.screen.decode(envelope{Type: "events_api", Payload: mustJSON(object{"team_id": deskTeam, "event_id": uuid.NewString(), "event": event})})
	d.must(err)
	taken := make(chan struct{})
	d.bot.app.Take(context.Background(), in, func(context.Context, map[string]string) { close(taken) })
	select {
	case <-taken:
	case <-time.After(time.Hour):
		d.t.Error("the change was not taken")
	}
}

// TestWhatWaitsIsShownWithButtons: the thread's message of what waits names each, and its
// buttons do what they say for who may.
func TestWhatWaitsIsShownWithButtons(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		defer d.keep()()
		d.post("ULINUS", "2.0", "first <@UADA>")
		time.Sleep(5 * time.Second)
		d.post("UADA", "3.0", "second")
		time.Sleep(5 * time.Second)
		d.rest()
		thread := d.store.Threads()[0]
		d.front().ShowQueue(thread.ID, nil)
		time.Sleep(5 * time.Second)
		d.rest()
		ts, err := d.bot.app.PostedAs(context.Background(), outbox.QueuePost, chat.FormatID(thread.ID))
		d.must(err)
		shown := d.slack.inThread(deskThread)
		if len(shown) != 1 || ts == "" {
			t.Fatalf("the thread reads %+v; the queue stands at %q", shown, ts)
		}
		for _, label := range []string{"Send 1 now", "Drop 1", "Send 2 now", "Drop 2", "first", "second"} {
			if n := strings.Count(shown[0].blocks, label); n != 1 {
				t.Errorf("%q stands there %d times: %s", label, n, shown[0].blocks)
			}
		}
		if strings.Contains(shown[0].blocks, "<@UADA>") {
			t.Errorf("it calls people: %s", shown[0].blocks)
		}
		click := func(ts, user, action, post string) string {
			return d.clickOn(ts, user, action, approvals.Approval{ID: fmt.Sprint(d.became(post).InboxID)})
		}
		for _, c := range []struct{ ts, user, action, post, want string }{
			{ts, "UMALLORY", view.ActionSendNow, "2.0", "refused"},
			{ts, "UMALLORY", view.ActionDrop, "2.0", "refused"},
			{"9.9", "ULINUS", view.ActionDrop, "2.0", "wrong message"},
			{ts, "ULINUS", view.ActionDrop, "1.0", "too late"}, // it runs
			{ts, "ULINUS", view.ActionSendNow, "3.0", "sent at once"},
			{ts, "UADA", view.ActionDrop, "2.0", "dropped"},
			{ts, "ULINUS", view.ActionDrop, "2.0", "too late"},
		} {
			if got := click(c.ts, c.user, c.action, c.post); got != c.want {
				t.Errorf("%s of %s by %s: %q, want %q", c.action, c.post, c.user, got, c.want)
			}
		}
		time.Sleep(5 * time.Second)
		d.rest()
		if p := d.became("3.0"); p.UrgentBy != "ULINUS" || d.became("2.0").State != "done" {
			t.Errorf("they are %+v, %+v", p, d.became("2.0"))
		}
		_, _, err = d.store.DropWaiting(context.Background(), d.became("3.0").InboxID, "UADA", "", "")
		d.must(err)
		d.front().ShowQueue(thread.ID, nil)
		time.Sleep(5 * time.Second)
		d.rest()
		if left := d.slack.inThread(deskThread); len(left) != 1 || left[0].text != "uada dropped the waiting message of ulinus." {
			t.Errorf("nothing waits, who dropped what is told, and the thread reads %+v", left)
		}
		d.end(agent.TurnDone, "")
	})
}

// TestTheQueueOfADeadProcess: what it said waits is taken away when nothing does, also if
// it was not noted where that stands.
func TestTheQueueOfADeadProcess(t *testing.T) {
	t.Parallel()
	for name, noted := range map[string]bool{"noted": true, "not noted": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				stop := d.keep()
				d.post("ULINUS", "2.0", "first")
				time.Sleep(5 * time.Second)
				thread := d.store.Threads()[0]
				d.front().ShowQueue(thread.ID, nil)
				time.Sleep(5 * time.Second)
				d.rest()
				if got := d.slack.inThread(deskThread); len(got) != 1 {
					t.Fatalf("the thread reads %+v", got)
				}
				if !noted {
					posts, err := d.store.Posts(context.Background(), outbox.QueuePost, chat.FormatID(thread.ID))
					d.must(err)
					d.must(d.store.ForgetPost(context.Background(), posts[0], "replica-1"))
				}
				stop()
				d.kill()
				_, _, err := d.store.DropWaiting(context.Background(), d.became("2.0").InboxID, "UADA", "", "")
				d.must(err)
				time.Sleep(time.Minute)
				d.rest()
				if got := d.slack.inThread(deskThread); len(got) != 0 || len(d.store.OutboxRows()) != 0 {
					t.Errorf("nothing waits, and the thread reads %+v; to be said: %+v", got, d.store.OutboxRows())
				}
				d.end(agent.TurnDone, "")
			})
		})
	}
}

// TestAMessageThatWaitsIsChanged: what its author makes of it counts, and nothing else.
func TestAMessageThatWaitsIsChanged(t *testing.T) {
	t.Parallel()
	edit := func(user, by, at, text string) object {
		return object{"message": object{"user": user, "ts": "2.0", "thread_ts": deskThread, "text": "<@UBOT> " + text, "edited": object{"user": by, "ts": at}}}
	}
	for name, c := range map[string]struct {
		changes func(d *desk)
		state   string
		text    string
	}{
		"edited": {func(d *desk) { d.change("message_changed", edit("ULINUS", "ULINUS", "3.0", "go back")) }, "accepted", "go back"},
		"edited twice, told in the wrong order": {func(d *desk) {
			d.change("message_changed", edit("ULINUS", "ULINUS", "4.0", "stay"))
			d.change("message_changed", edit("ULINUS", "ULINUS", "3.0", "go back"))
		}, "accepted", "stay"},
		"a link is unfurled": {func(d *desk) {
			d.change("message_changed", object{"message": object{"user": "ULINUS", "ts": "2.0", "thread_ts": deskThread, "text": "<@UBOT> other"}})
		}, "accepted", "go on"},
		"by another":   {func(d *desk) { d.change("message_changed", edit("ULINUS", "UADA", "3.0", "go back")) }, "accepted", "go on"},
		"as another's": {func(d *desk) { d.change("message_changed", edit("UADA", "UADA", "3.0", "go back")) }, "accepted", "go on"},
		"to a command": {func(d *desk) { d.change("message_changed", edit("ULINUS", "ULINUS", "3.0", "help")) }, "done", "go on"},
		"deleted": {func(d *desk) {
			d.change("message_deleted", object{"deleted_ts": "2.0", "previous_message": object{"user": "ULINUS", "ts": "2.0"}})
		}, "done", "go on"},
		"deleted as another": {func(d *desk) {
			d.change("message_deleted", object{"deleted_ts": "2.0", "previous_message": object{"user": "UADA"}})
		}, "accepted", "go on"},
		"deleted with replies": {func(d *desk) {
			d.change("message_changed", object{
				"message":          object{"subtype": "tombstone", "user": "USLACKBOT", "ts": "2.0", "text": "This message was deleted."},
				"previous_message": object{"user": "ULINUS", "ts": "2.0"},
			})
		}, "done", "go on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				defer d.keep()()
				d.post("ULINUS", "2.0", "go on")
				time.Sleep(5 * time.Second)
				d.rest()
				c.changes(d)
				time.Sleep(10 * time.Second)
				d.rest()
				if p := d.became("2.0"); p.State != c.state || !strings.HasSuffix(p.Text, c.text) {
					t.Errorf("it is %s (%s): %q", p.State, p.Outcome, p.Text)
				}
				d.end(agent.TurnDone, "")
			})
		})
	}
}
