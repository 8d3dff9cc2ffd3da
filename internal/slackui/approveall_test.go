package slackui

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// approveTogether sends the modal for some requests of a card.
func (d *desk) approveTogether(user string, listed render.Listed) string {
	metadata, err := json.Marshal(listed)
	d.must(err)
	in, err := decode(envelope{ID: uuid.NewString(), Type: "interactive", Payload: mustJSON(object{
		"type": "view_submission", "team": object{"id": deskTeam}, "user": object{"id": user, "team_id": deskTeam},
		"view": object{"callback_id": render.CallbackApproveAll, "private_metadata": string(metadata), "state": object{"values": object{}}},
	})})
	d.must(err)
	return d.bot.app.act(context.Background(), in)
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

// Several requests are approved together by who may decide about each: those that the modal
// showed, whole, and none that takes a step of its own.
func TestApprovingTogether(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		a := d.ask("", store.Terms{})
		b := d.ask(a.CardID, store.Terms{})
		dangerous := d.ask(a.CardID, store.Terms{Dangerous: true})
		elsewhere := d.ask(a.CardID, store.Terms{Approvers: []string{"UADA"}})
		d.rest()
		if got := d.click("ULINUS", render.ActionApproveAll, a); got != "refused" || d.opened() != "" {
			t.Errorf("somebody who may not: %s", got)
		}
		if got := d.click("UGRACE", render.ActionApproveAll, a); got != "asked for more" {
			t.Fatalf("the click: %s", got)
		}
		view := d.opened()
		var v struct {
			Metadata string `json:"private_metadata"`
		}
		d.must(json.Unmarshal([]byte(view), &v))
		listed, ok := render.ParseListed(v.Metadata)
		if !ok || len(listed.IDs) != 2 || listed.IDs[0] != a.ID || listed.IDs[1] != b.ID {
			t.Fatalf("the modal lists %+v", listed)
		}
		for _, want := range []string{"make 1", "make 2", "is dangerous, and takes a step of its own", "is not yours to decide"} {
			if !strings.Contains(view, want) {
				t.Errorf("the modal is without %q: %s", want, view)
			}
		}
		for what, forged := range map[string][]string{"a dangerous one": {dangerous.ID}, "one that is not there": {"X"}} {
			if got := d.approveTogether("UGRACE", render.Listed{CardID: a.CardID, IDs: forged}); strings.Contains(got, "1 allowed") {
				t.Errorf("%s was approved: %s", what, got)
			}
		}
		if got := d.approveTogether("UGRACE", render.Listed{CardID: a.CardID, IDs: []string{elsewhere.ID}}); got != "0 allowed" {
			t.Errorf("one that others decide: %s", got)
		}
		if got := d.approveTogether("ULINUS", listed); got != "0 allowed" {
			t.Errorf("by somebody who may not: %s", got)
		}
		if got := d.approveTogether("UGRACE", listed); got != "2 allowed" {
			t.Errorf("together: %s", got)
		}
		if got := d.approveTogether("UHEIDI", listed); got != "0 allowed" {
			t.Errorf("again: %s", got)
		}
		for id, want := range map[string]store.ApprovalStatus{a.ID: store.ApprovalAllowed, b.ID: store.ApprovalAllowed, dangerous.ID: store.ApprovalPending, elsewhere.ID: store.ApprovalPending} {
			now, err := d.books.ApprovalByID(context.Background(), id)
			d.must(err)
			if now.Status != want || want == store.ApprovalAllowed && now.DecidedBy != "UGRACE" {
				t.Errorf("%s is %s by %s", id, now.Status, now.DecidedBy)
			}
		}
		d.rest()
		if said := strings.Join(d.slack.whispers(), "\n"); !strings.Contains(said, "UHEIDI: 0 requests approved. 2 requests decided or changed already") {
			t.Errorf("people were told:\n%s", said)
		}
		for _, p := range d.wrong() {
			t.Error(p)
		}
	})
}
