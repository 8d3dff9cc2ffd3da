package agent

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/store/approvals"
)

// A turn that does nothing but wait for people is parked after a while, and at once when
// another thread needs its slot or the bot stops: its process ends in order, the lease goes
// back, and the turn is a row that sleeps (see [store.Store.ParkTurn]). So is one whose process
// died while it waited. Its cards work on. What ends
// one of its approvals wakes the thread, which goes on as after a crash: the session is
// resumed, the prompt is sent again with a note of what was decided, and a decision is
// bound to its call when that is made again.

// wait is what a turn knows of itself while it only waits for people.
type wait struct {
	approvals int         // how many it waits for
	over      *time.Timer // when it is parked
	wanted    bool        // somebody needs its slot
}

// yieldAgain is after what time a turn whose slot is needed tries again to be parked: a
// call of the model was not booked yet.
const yieldAgain = time.Second

// waitsFor are the approvals that the turn waits for, if nothing of it goes on meanwhile,
// and for how long it may keep its process. That is longer while a subagent asks, whose
// work is lost with the process.
func (w *worker) waitsFor() (ids []string, keep time.Duration) {
	t := w.turn
	if t == nil || w.session == nil || t.stopping() {
		return nil, 0
	}
	rests, agent := t.desk.Rests()
	if !rests {
		return nil, 0
	}
	if keep = w.limits.ParkAfter; agent {
		keep = max(keep, w.limits.IdleTimeout)
	}
	for _, a := range t.desk.Open() {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	return ids, keep
}

// watchWait has a turn that has begun to wait for people be parked in a while, and its
// slot be had by whoever needs one; one that goes on keeps both.
func (w *worker) watchWait() {
	t := w.turn
	if t == nil || len(t.desk.Open()) == 0 && t.wait == nil {
		return
	}
	ids, keep := w.waitsFor()
	switch {
	case len(ids) == 0:
		if t.wait != nil {
			t.endWait()
			w.place.Slots.Works(w)
		}
	case t.wait == nil || t.wait.approvals != len(ids):
		t.endWait()
		t.wait = &wait{approvals: len(ids), over: time.NewTimer(keep)}
		if keep == w.limits.ParkAfter {
			w.place.Slots.Waits(w)
		}
	}
}

func (t *turn) endWait() {
	if t.wait != nil {
		t.wait.over.Stop()
		t.wait = nil
	}
}

// waitOver fires when the turn has waited for people for long enough.
func (t *turn) waitOver() <-chan time.Time {
	if t == nil || t.wait == nil {
		return nil
	}
	return t.wait.over.C
}

// yield parks the turn if it only waits for people: it has done so for long enough,
// or somebody needs its slot. If it cannot be just now it is tried again.
func (w *worker) yield(ctx context.Context, wanted bool) error {
	t := w.turn
	ids, keep := w.waitsFor()
	if len(ids) == 0 || t.wait == nil {
		return nil // watchWait follows
	}
	t.wait.wanted = t.wait.wanted || wanted
	if !w.session.meter.Busy() {
		ok, err := w.park(ctx, ids)
		if ok || err != nil {
			return err
		}
	}
	if t.wait.wanted {
		keep = yieldAgain
	}
	t.wait.over.Reset(keep)
	return nil
}

// park has the worker wind up, since whatever people decide wakes the thread. It
// reports false when they have decided in this moment: the message is on its way.
func (w *worker) park(ctx context.Context, ids []string) (ok bool, err error) {
	var waiting []string
	for _, id := range ids {
		if _, ok := w.waiting.LoadAndDelete(id); ok { // a decision is not for this process any more
			waiting = append(waiting, id)
		}
	}
	if ok, err = w.store.ParkTurn(ctx, w.heldLease(), w.turn.row.ID, ids); ok && err == nil {
		w.log.Info("a turn that waits for people is parked", zap.Int64("turn", w.turn.row.ID), zap.Int("approvals", len(ids)))
		w.turn.parked, w.asleep = true, true
		return true, nil
	}
	for _, id := range waiting {
		w.waiting.Store(id, nil)
	}
	return false, err
}

// parkLeft parks a turn whose process has died while it waited for people, if they have decided nothing yet: its
// cards work on, and nothing has to be started before somebody decides.
func (w *worker) parkLeft(ctx context.Context, turnID int64) error {
	open, err := w.store.Unanswered(ctx, turnID)
	if err != nil {
		return err
	}
	var ids []string
	asked := false
	for _, a := range open {
		if a.Status != approvals.Pending {
			return nil
		}
		ids = append(ids, a.ID)
		asked = asked || a.RequestID != "" // by this very process, not by one before it
	}
	if asked {
		w.asleep, err = w.store.ParkTurn(ctx, w.heldLease(), turnID, ids)
	}
	return err
}

// leaveParked ends what the process of a turn that was parked does, and shows the turn
// as it sleeps.
func (w *worker) leaveParked(ctx context.Context) {
	view := w.view(w.turn)
	view.Parked = true
	w.front.ShowTurn(view)
	if w.session == nil {
		return
	}
	if err := w.addCLITotals(ctx, w.session.interruptInOrder(ctx, w.turn)); err != nil {
		w.log.Error("write what the CLI says that a turn that was parked cost", zap.Error(err))
	}
}
