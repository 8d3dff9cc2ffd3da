package slackui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
)

// decideTogether clicks a button about the requests of a card, some of which are ticked.
func (d *desk) decideTogether(user, action string, card approvals.Approval, shown, ticked []string) string {
	synctest.Wait()
	options := []any{}
	for _, ref := range ticked {
		options = append(options, object{"value": ref})
	}
	in, err := d.bot.app.screen.decode(envelope{ID: uuid.NewString(), Type: "interactive", Payload: mustJSON(object{
		"type": "block_actions", "team": object{"id": deskTeam}, "user": object{"id": user, "team_id": deskTeam}, "channel": object{"id": deskChannel},
		"container": object{"type": "message", "message_ts": d.cardTS(card), "thread_ts": deskThread, "channel_id": deskChannel}, "trigger_id": "t",
		"actions": []any{object{"type": "button", "action_id": action, "value": strings.Join(shown, " "), "block_id": "b"}},
		"state":   object{"values": object{"b": object{view.ActionTick: object{"type": "checkboxes", "selected_options": options}}}},
	})})
	d.must(err)
	return d.bot.app.Act(context.Background(), in)
}

// opened is the modal that was opened last, as JSON; empty if none was.
func (d *desk) opened() string {
	d.slack.mu.Lock()
	defer d.slack.mu.Unlock()
	var call struct{ View json.RawMessage }
	for _, c := range d.slack.calls {
		if c.method == "views.open" {
			d.must(json.Unmarshal([]byte(c.body), &call))
		}
	}
	return string(call.View)
}

// Several requests are decided together by who may decide about each: what is ticked is
// approved and the rest denied, and nothing that takes a step of its own is among them.
func TestDecidingTogether(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		a := d.ask("", approvals.Terms{})
		b := d.ask(a.CardID, approvals.Terms{})
		c := d.ask(a.CardID, approvals.Terms{})
		dangerous := d.ask(a.CardID, approvals.Terms{Dangerous: true})
		elsewhere := d.ask(a.CardID, approvals.Terms{Approvers: []string{"UADA"}})
		d.rest()
		shown := []string{a.ID, b.ID, c.ID, elsewhere.ID}
		card := slices.IndexFunc(d.slack.inThread(deskThread), func(m shownMessage) bool { return strings.Contains(m.blocks, strings.Join(shown, " ")) })
		if card < 0 {
			t.Error("no card has buttons about", shown)
		}
		approve := func(user string, shown, ticked []string) string {
			return d.decideTogether(user, view.ActionApproveTicked, a, shown, ticked)
		}
		if got := approve("ULINUS", shown, shown); got != "0 allowed, 0 denied" {
			t.Errorf("by somebody who may not: %s", got)
		}
		for what, forged := range map[string]string{"a dangerous one": dangerous.ID, "one that is not there": "X"} {
			if got := approve("UGRACE", []string{a.ID, forged}[1:], []string{forged}); strings.Contains(got, "allowed") {
				t.Errorf("%s was approved: %s", what, got)
			}
		}
		if got := approve("UGRACE", shown, nil); got != "nothing ticked" {
			t.Errorf("without a tick: %s", got)
		}
		if got := approve("UGRACE", shown, []string{a.ID, c.ID, dangerous.ID, "X"}); got != "2 allowed, 1 denied" {
			t.Errorf("two of three: %s", got)
		}
		if got := approve("UHEIDI", shown, shown); got != "0 allowed, 0 denied" {
			t.Errorf("again: %s", got)
		}
		if got := d.decideTogether("UADA", view.ActionDenyAll, a, []string{elsewhere.ID}, nil); got != "0 allowed, 1 denied" {
			t.Errorf("all denied: %s", got)
		}
		for id, want := range map[string]approvals.Status{
			a.ID: approvals.Allowed, b.ID: approvals.Denied, c.ID: approvals.Allowed, dangerous.ID: approvals.Pending, elsewhere.ID: approvals.Denied,
		} {
			now, err := d.store.ApprovalByID(context.Background(), id)
			d.must(err)
			if now.Status != want || id == a.ID && now.DecidedBy != "UGRACE" {
				t.Errorf("%s is %s by %s, want %s", id, now.Status, now.DecidedBy, want)
			}
		}
		d.rest()
		if said := strings.Join(d.slack.whispers(), "\n"); !strings.Contains(said, "UHEIDI: 0 requests approved, 0 requests denied. 3 requests decided or changed already") {
			t.Errorf("people were told:\n%s", said)
		}
		for _, p := range d.wrong() {
			t.Error(p)
		}
	})
}
