package slackui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
)

// submit sends a form that was opened for an approval.
func (d *desk) submit(user, callback string, a approvals.Approval, values object) string {
	in, err := d.bot.app.screen.decode(envelope{ID: uuid.NewString(), Type: "interactive", Payload: mustJSON(object{
		"type": "view_submission", "team": object{"id": deskTeam}, "user": object{"id": user, "team_id": deskTeam},
		"view": object{"callback_id": callback, "private_metadata": a.ID, "state": object{"values": values}},
	})})
	d.must(err)
	return d.bot.app.Act(context.Background(), in)
}

// TestForms: a form is opened for those who may decide while there is something to
// decide, and they are looked at again when it is sent.
func TestForms(t *testing.T) {
	t.Parallel()
	reason := object{view.ReasonBlock: object{view.ReasonAction: object{"value": "not today"}}}
	ticked := object{view.ConfirmBox: object{view.ConfirmBox: object{"selected_options": []any{object{"value": "yes"}}}}}
	dangerous := approvals.Terms{Dangerous: true}
	for name, c := range map[string]struct {
		terms  approvals.Terms
		action string
		send   string
		values object
		opened string
		sent   string
		status approvals.Status
	}{
		"a reason":                       {approvals.Terms{}, view.ActionDenyReason, view.CallbackDenyReason, reason, "asked for more", "denied", approvals.Denied},
		"what is dangerous":              {dangerous, view.ActionApprove, view.CallbackConfirm, ticked, "asked for more", "allowed", approvals.Allowed},
		"dangerous and not confirmed":    {dangerous, view.ActionApprove, view.CallbackConfirm, object{}, "asked for more", "not confirmed", approvals.Pending},
		"dangerous, by another form":     {dangerous, view.ActionApprove, view.CallbackGrant, object{}, "asked for more", "incomplete answer", approvals.Pending},
		"the whole input":                {approvals.Terms{}, view.ActionViewInput, "", nil, "viewed", "", approvals.Pending},
		"a permission, and no rule":      {approvals.Terms{Grantable: true}, view.ActionAlways, view.CallbackGrant, object{}, "asked for more", "incomplete answer", approvals.Pending},
		"a permission where none may be": {approvals.Terms{}, view.ActionAlways, "", nil, "not grantable", "", approvals.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atDesk(t, func(d *desk) {
				d.say("I ask.")
				a := d.ask("", c.terms)
				d.rest()
				if c.action != view.ActionViewInput {
					if got := d.click("ULINUS", c.action, a); got != "refused" && got != "not grantable" {
						t.Errorf("opened for somebody who may not: %q", got)
					}
				}
				if got := d.click("UGRACE", c.action, a); got != c.opened {
					t.Errorf("the click did %q", got)
				}
				if n := d.slack.count("views.open"); (n == 1) != (c.opened == "asked for more" || c.opened == "viewed") {
					t.Errorf("%d forms were opened", n)
				}
				if c.send != "" {
					if got := d.submit("ULINUS", c.send, a, c.values); got == "allowed" || got == "denied" {
						t.Errorf("sent by somebody who may not: %q", got)
					}
					if got := d.submit("UGRACE", c.send, a, c.values); got != c.sent {
						t.Errorf("the form did %q", got)
					}
				}
				now, err := d.store.ApprovalByID(context.Background(), a.ID)
				d.must(err)
				if now.Status != c.status || c.send == view.CallbackDenyReason && now.Reason != "not today" {
					t.Errorf("the approval is %s, %q", now.Status, now.Reason)
				}
				d.rest()
				for _, p := range d.wrong() {
					t.Error(p)
				}
				if c.status != approvals.Pending {
					if got := d.click("UHEIDI", c.action, a); got != "too late" {
						t.Errorf("opened again: %q", got)
					}
				}
				d.end(agent.TurnDone, "")
				d.rest()
			})
		})
	}
}

// TestReminders: each stage tells those whom the configuration names; direct messages
// go to those who may decide.
func TestReminders(t *testing.T) {
	t.Parallel()
	for stage, want := range [][]string{{deskChannel}, {"C0OPS", deskChannel, "UADA", "UGRACE", "UHEIDI"}, nil} {
		atDesk(t, func(d *desk) {
			a := d.ask("", approvals.Terms{})
			d.rest()
			before := d.slack.count("chat.postMessage")
			d.must(d.bot.app.Remind(context.Background(), a, stage))
			d.rest()
			var got []string
			for _, c := range d.slack.calls {
				if c.method == "chat.postMessage" {
					got = append(got, c.args.Get("channel"))
				}
			}
			got = got[before:]
			slices.Sort(got)
			if diff := cmp.Diff(want, got, cmp.Transformer("set", func(s []string) string { return strings.Join(s, " ") })); diff != "" {
				t.Errorf("stage %d: %s", stage, diff)
			}
			for user, may := range map[string]bool{"UGRACE": true, "UADA": true, "ULINUS": false, "UMALLORY": false} {
				if d.bot.app.MayDecide(context.Background(), user, a) != may {
					t.Errorf("%s may decide: %v", user, !may)
				}
			}
			d.end(agent.TurnDone, "")
			d.rest()
		})
	}
}

// TestMarks: the end of a prompt is marked on the person's message, each end as what it
// is, also where Slack has the mark already.
func TestMarks(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		d.slack.answers(func(n int, c slackCall) fault {
			if c.method == "reactions.add" && c.args.Get("name") == "warning" {
				return fault{err: errAlready}
			}
			return fault{}
		})
		for _, m := range []agent.PromptMark{
			agent.PromptQueued, agent.PromptRunning, agent.PromptDone, agent.PromptFailed,
			agent.PromptStopped, agent.PromptPaused, agent.PromptOverBudget,
		} {
			w, err := d.store.Say(context.Background(), d.lease, string(m), "")
			d.must(err)
			w.Kind, w.TS = outbox.Mark, "1.0"
			d.front().Tell(w)
		}
		d.front().Say(d.turn.Thread, "A word <!channel>.")
		time.Sleep(time.Minute)
		d.rest()
		if n := d.slack.count("reactions.add"); n != 5 {
			t.Errorf("%d marks", n)
		}
		ends := map[string]agent.PromptMark{}
		for mark, emoji := range marks {
			if other, twice := ends[emoji]; twice {
				t.Errorf("%s and %s are marked alike", mark, other)
			}
			ends[emoji] = mark
		}
		if got := d.slack.inThread(deskThread); len(got) != 1 || got[0].text != "A word &lt;!channel&gt;." {
			t.Errorf("the thread reads %+v", got)
		}
		d.end(agent.TurnDone, "")
	})
}

// TestASentenceIsSaidOnce: what was the last thing that was said in a thread is not said
// again right below, and is when it may be forgotten, or another prompt has come to it.
func TestASentenceIsSaidOnce(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		elsewhere := d.turn.Thread
		elsewhere.ThreadTS = "2.0"
		said := func(want int) {
			t.Helper()
			time.Sleep(time.Minute)
			d.rest()
			if n := d.slack.count("chat.postMessage"); n != want {
				t.Errorf("%d sentences, not %d", n, want)
			}
		}
		for range 4 {
			d.front().Say(d.turn.Thread, "It cannot be resumed.")
		}
		said(1)
		d.front().Say(elsewhere, "It cannot be resumed.")
		said(2)
		d.front().Say(d.turn.Thread, "All are busy.")
		d.front().Say(d.turn.Thread, "It cannot be resumed.")
		said(4)
		time.Sleep(time.Hour)
		d.front().Say(d.turn.Thread, "It cannot be resumed.")
		said(5)
		for i := range 2 {
			d.front().MarkPrompt(inbox.Prompt{ThreadKey: d.turn.Thread, TS: "9.0"}, agent.PromptFailed)
			d.front().Say(d.turn.Thread, "It cannot be resumed.")
			said(6 + i)
		}
		d.end(agent.TurnDone, "")
	})
}
