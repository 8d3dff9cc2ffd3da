package slackui

import (
	"testing"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
)

// TestAPlaceThatAnotherReplicaEndsLate: a thread waits for a session, goes on, and waits again.
// Another replica, which saw it go on, too, ends its first message only then: the second one is
// taken away all the same when its time has come.
func TestAPlaceThatAnotherReplicaEndsLate(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		thread := d.store.Threads()[0]
		holder := d.bot
		d.startAs("replica-2")
		other := d.bot
		shows := func(p *process, before int) {
			d.bot = p
			d.front().ShowPlace(thread, before)
		}
		shows(holder, 1)
		d.rest()
		limited := false
		d.slack.answers(func(_ int, c slackCall) (f fault) {
			if !limited && c.method == "chat.update" {
				limited, f.err = true, &slack.RateLimitedError{RetryAfter: 8 * time.Second}
			}
			return f
		})
		shows(other, agent.Served)
		time.Sleep(2 * time.Second)
		shows(holder, agent.Served)
		time.Sleep(2 * time.Second)
		shows(holder, 0)
		d.rest()
		time.Sleep(20 * time.Second)
		shows(holder, agent.Served)
		d.rest()
		all := d.slack.inThread(deskThread)
		if len(all) != 0 {
			t.Errorf("the thread reads %+v", all)
		}
	})
}

// TestAPlaceThatComesBack: a replica has ended its wait while another one waited on with the same
// message. When the thread is handed back, the message is taken away there.
func TestAPlaceThatComesBack(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		thread := d.store.Threads()[0]
		holder := d.bot
		d.startAs("replica-2")
		other := d.bot
		shows := func(p *process, before int) {
			d.bot = p
			d.front().ShowPlace(thread, before)
			d.rest()
		}
		shows(other, 0)
		shows(holder, 1)
		shows(other, agent.Served)
		shows(holder, 0)
		shows(other, agent.Served)
		if all := d.slack.inThread(deskThread); len(all) != 0 {
			t.Errorf("the thread reads %+v", all)
		}
	})
}
