package slackui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/agent"
	"deckhand/internal/agent/policy"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
)

// rewrite sends the form that changes an approval's command.
func (d *desk) rewrite(user string, a approvals.Approval, command string) string {
	return d.bot.app.Act(context.Background(), d.rewritten(user, a, command))
}

func (d *desk) rewritten(user string, a approvals.Approval, command string) *chat.Incoming {
	in, err := d.bot.app.screen.decode(envelope{ID: uuid.NewString(), Type: "interactive", Payload: mustJSON(object{
		"type": "view_submission", "team": object{"id": deskTeam}, "user": object{"id": user, "team_id": deskTeam},
		"view": object{
			"callback_id": view.CallbackEdit, "private_metadata": view.Ref(a),
			"state": object{"values": object{view.EditInput: object{view.EditInput: object{"type": "plain_text_input", "value": command}}}},
		},
	})})
	d.must(err)
	return in
}

// TestAChangedInputIsDecidedAnew: whoever approves approves what they saw; what was said of
// the input before it was changed counts for nothing, and nobody decides alone about what
// they have written where the requester may not.
func TestAChangedInputIsDecidedAnew(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		curl, _ := policy.ParsePattern("Bash(curl *)")
		push, _ := policy.ParsePattern("Bash(git push *)")
		rules := &policy.Policy{Rules: []policy.Rule{
			{Verdict: policy.Deny, Patterns: []policy.Pattern{curl}},
			{Verdict: policy.Ask, Patterns: []policy.Pattern{push}, Quorum: 2},
		}, Default: policy.Terms{RequesterMayApprove: true}}
		d.bot.app.Begin(agent.New(agent.Config{Store: d.store, Frontend: d.bot.app.Frontend(), Authoriser: d.bot.app, Reminder: d.bot.app, Policy: rules, Replica: "replica-1"}))
		now := func(a approvals.Approval) approvals.Approval {
			a, err := d.store.ApprovalByID(context.Background(), a.ID)
			d.must(err)
			return a
		}
		step := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		runs := func(what string, a approvals.Approval, status approvals.Status, command string) {
			t.Helper()
			if a = now(a); a.Status != status || !strings.Contains(string(a.ToRun()), `"`+command+`"`) {
				t.Errorf("%s: it is %s, and would run %s", what, a.Status, a.ToRun())
			}
		}

		alone := d.ask("", approvals.Terms{RequesterMay: true})
		d.rest()
		step("a form for somebody who may not", d.click("ULINUS", view.ActionEdit, alone), "refused")
		step("a form", d.click("UGRACE", view.ActionEdit, alone), "asked for more")
		if view := d.opened(); !strings.Contains(view, "make 1") {
			t.Errorf("the form is without the command: %s", view)
		}
		step("by somebody who may not", d.rewrite("ULINUS", alone, "make x"), "refused")
		step("what the policy denies", d.rewrite("UGRACE", alone, "curl example.com"), "change refused")
		step("hidden behind another", d.rewrite("UGRACE", alone, "make x; curl example.com"), "change refused")
		step("what takes two people", d.rewrite("UGRACE", alone, "git push origin main"), "change refused")
		step("nothing changed", d.rewrite("UGRACE", alone, "make 1"), "incomplete answer")
		step("nothing left", d.rewrite("UGRACE", alone, "  "), "incomplete answer")
		for _, text := range []string{" ", "make \u202e1"} {
			if wrong := wrongIn(d.bot.app, d.rewritten("UGRACE", alone, text)); wrong[view.EditInput] == "" {
				t.Errorf("the form closes over %q, and what was written is lost", text)
			}
		}
		if wrong := wrongIn(d.bot.app, d.rewritten("UGRACE", alone, "make one")); wrong != nil {
			t.Errorf("a change: %v", wrong)
		}
		step("what nobody sees", d.rewrite("UGRACE", alone, "make \u202e1"), "incomplete answer")
		runs("refused", alone, approvals.Pending, "make 1")
		step("a change", d.rewrite("UGRACE", alone, "make one"), "allowed")
		step("the same again", d.rewrite("UGRACE", alone, "make one"), "too late")
		step("of another", d.rewrite("UHEIDI", alone, "make two"), "too late")
		d.rest()
		for user, wrote := range map[string]string{"UHEIDI": "make two", "ULINUS": "make x"} {
			if !slices.ContainsFunc(d.slack.calls, func(c slackCall) bool {
				return c.args.Get("user") == user && strings.Contains(c.args.Get("text"), "You wrote:\n"+wrote)
			}) {
				t.Errorf("%s, who is too late or refused, loses what they have written", user)
			}
		}
		runs("changed", alone, approvals.Allowed, "make one")
		if a := now(alone); a.Edited.By != "UGRACE" || a.DecidedVia != "edited" || string(a.Input) != `{"command":"make 1"}` {
			t.Errorf("it was changed by %s, decided via %s, and asked for as %s", a.Edited.By, a.DecidedVia, a.Input)
		}

		// Four eyes: whoever has written it does not approve it.
		eyes := d.ask("", approvals.Terms{})
		d.rest()
		step("a proposal", d.rewrite("UGRACE", eyes, "make two"), "pending")
		step("one's own", d.click("UGRACE", view.ActionApprove, now(eyes)), "refused")
		step("of what it was", d.click("UHEIDI", view.ActionApprove, eyes), "changed meanwhile")
		step("a form of before", d.rewrite("UHEIDI", eyes, "make three"), "changed meanwhile")
		runs("proposed", eyes, approvals.Pending, "make two")
		step("of what it is", d.click("UHEIDI", view.ActionApprove, now(eyes)), "allowed")
		runs("approved", eyes, approvals.Allowed, "make two")

		// A quorum: who approved what it was has not approved what it is.
		two := d.ask("", approvals.Terms{RequesterMay: true, Quorum: 2})
		d.rest()
		step("the first of two", d.click("UHEIDI", view.ActionApprove, two), "pending")
		step("a change", d.rewrite("UGRACE", two, "make four"), "pending")
		if a := now(two); len(a.Votes) != 1 || a.Votes[0].UserID != "UGRACE" {
			t.Errorf("there are votes %v for what was changed", a.Votes)
		}
		step("the first again, of what it was", d.click("UHEIDI", view.ActionApprove, two), "changed meanwhile")
		step("changed again", d.rewrite("UHEIDI", now(two), "make five"), "pending")
		step("who changed it before", d.click("UGRACE", view.ActionApprove, now(two)), "allowed")
		runs("of two", two, approvals.Allowed, "make five")

		// A denial is for the request, whatever it has become; nothing is changed after the end.
		gone := d.ask("", approvals.Terms{})
		d.rest()
		step("a proposal", d.rewrite("UGRACE", gone, "make six"), "pending")
		step("a denial of what it was", d.click("UHEIDI", view.ActionDeny, gone), "denied")
		late := d.ask("", approvals.Terms{RequesterMay: true})
		fixed := d.ask(late.CardID, approvals.Terms{RequesterMay: true, Fixed: true})
		dangerous := d.ask(late.CardID, approvals.Terms{RequesterMay: true, Dangerous: true})
		d.rest()
		for what, a := range map[string]approvals.Approval{"not to be changed": fixed, "dangerous": dangerous} {
			step("a form of one that is "+what, d.click("UGRACE", view.ActionEdit, a), "not editable")
			d.rewrite("UGRACE", a, "make it")
			if a = now(a); a.Edited.Times > 0 || a.Status != approvals.Pending {
				t.Errorf("one that is %s was changed", what)
			}
		}
		d.rest()
		for _, p := range d.wrong() {
			t.Error(p)
		}
		time.Sleep(2 * time.Hour)
		step("too late", d.rewrite("UGRACE", late, "make seven"), "too late")
	})
}
