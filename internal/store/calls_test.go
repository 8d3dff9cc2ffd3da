package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"deckhand/internal/store"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/threads"
)

// call begins a call of the thread's latest turn.
func (b *bench) call(t *testing.T) ledger.OpenCall {
	t.Helper()
	c := ledger.OpenCall{
		ID: uuid.New(), Lease: b.lease, SessionID: b.session, Epoch: b.epoch, Model: "opus", StartedAt: time.Now(), ReservedMicroUSD: 900, BoundMicroUSD: 900,
	}
	if err := b.BeginCall(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// ended is the call's end with what it has cost.
func ended(c ledger.OpenCall, microUSD int64) ledger.EndedCall {
	return ledger.EndedCall{
		OpenCall: c, Status: 200, Complete: true, EndedAt: time.Now(),
		Usage: ledger.CallUsage{Model: "opus", RequestID: "req", FirstByteAt: time.Now(), Input: 10, Output: microUSD, MicroUSD: microUSD},
	}
}

func (b *bench) end(t *testing.T, calls ...ledger.EndedCall) {
	t.Helper()
	if err := b.EndCalls(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
}

// What was sent while the network stood still arrives when the call was given up, and
// holds nothing of a budget for long.
func TestACallThatBeginsAfterItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt(t, "U1", "go")
	b.begin(t)
	c := b.call(t)
	b.end(t, ended(c, 70))
	if err := b.BeginCall(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	going := b.call(t)
	if n, err := b.EndLostCalls(t.Context()); err != nil || n != 1 {
		t.Errorf("%d calls went, %v; want the one that is booked", n, err)
	}
	b.end(t, ended(going, 30))
	if got := b.report(t, ledger.ByModel); got.Total.MicroUSD != 100 || got.Total.Entries != 2 {
		t.Errorf("the ledger has %+v", got)
	}
}

func TestACallIsBookedOnceHoweverOftenItEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt(t, "U1", "go")
	turn, _ := b.begin(t)
	c, other := b.call(t), b.call(t)
	seen := ledger.CallUsage{RequestID: "req", Input: 10, Output: 1, MicroUSD: 11, BoundMicroUSD: 200}
	if err := b.SeenCall(t.Context(), c.ID, seen); err != nil {
		t.Fatal(err)
	}
	b.end(t, ended(c, 70))
	b.end(t, ended(c, 70), ended(other, 30))
	if _, _, err := b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{
		ID: turn.ID, State: "done", CLITotals: []ledger.CLITotal{{SessionID: b.session, Epoch: b.epoch, Before: 0, After: 100, Model: "opus"}},
	}); err != nil {
		t.Fatal(err)
	}
	if got := b.report(t, ledger.ByModel); got.Total.MicroUSD != 100 || got.Total.Turns != 1 || got.Total.Entries != 3 || len(got.Lines) != 1 {
		t.Errorf("the ledger has %+v", got)
	}
	b.end(t, ended(b.call(t), 5)) // between turns: the audit has told the turn's cost
	b.verify(t)
}

func TestACallThatNobodyMakesAnyMoreIsBookedAsCut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt(t, "U1", "go")
	_, _ = b.begin(t)
	c, silent := b.call(t), b.call(t)
	if err := b.SeenCall(t.Context(), c.ID, ledger.CallUsage{Input: 10, Output: 1, MicroUSD: 11, BoundMicroUSD: 200}); err != nil {
		t.Fatal(err)
	}
	if n, err := b.EndLostCalls(t.Context()); err != nil || n != 0 {
		t.Fatalf("%d calls of a lease that holds are lost: %v", n, err)
	}
	if err := b.ReleaseLease(t.Context(), b.lease, false); err != nil {
		t.Fatal(err)
	}
	if n, err := b.EndLostCalls(t.Context()); err != nil || n != 2 {
		t.Fatalf("%d calls are lost: %v", n, err)
	}
	if got := b.report(t, ledger.ByNothing).Total; got.MicroUSD != 11 || got.Entries != 2 {
		t.Errorf("lost calls are booked as %+v", got)
	}
	// Its replica was only slow.
	for range 2 {
		b.end(t, ended(c, 70), ended(silent, 9))
	}
	if got := b.report(t, ledger.ByNothing).Total; got.MicroUSD != 79 || got.Entries != 4 {
		t.Errorf("corrected to %+v", got)
	}
	if err := b.BeginCall(t.Context(), c); !errors.Is(err, threads.ErrFenced) {
		t.Errorf("a replica that lost its lease makes a call: %v", err)
	}
	b.verify(t)
}

// witness is a turn with these calls, of which the CLI says that they cost so much.
func (b *bench) witness(t *testing.T, says int64, calls ...func(ledger.OpenCall) ledger.EndedCall) {
	t.Helper()
	b.prompt(t, "U1", "go")
	turn, _ := b.begin(t)
	for _, end := range calls {
		b.end(t, end(b.call(t)))
	}
	w := ledger.CLITotal{SessionID: b.session, Epoch: b.epoch, Before: b.told, After: b.told + says, Model: "opus"}
	if _, _, err := b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{ID: turn.ID, State: "done", CLITotals: []ledger.CLITotal{w}}); err != nil {
		t.Fatal(err)
	}
	b.told += says
}

func TestTheCLIIsAWitnessOfItsCalls(t *testing.T) {
	t.Parallel()
	whole := func(micro int64) func(ledger.OpenCall) ledger.EndedCall {
		return func(c ledger.OpenCall) ledger.EndedCall { return ended(c, micro) }
	}
	cut := func(micro, bound int64) func(ledger.OpenCall) ledger.EndedCall {
		return func(c ledger.OpenCall) ledger.EndedCall {
			e := ended(c, micro)
			e.Complete, e.Usage.BoundMicroUSD = false, bound
			return e
		}
	}
	probe := func(c ledger.OpenCall) ledger.EndedCall {
		e := ended(c, 6)
		e.Usage.Output = 1
		return e
	}
	unpriced := func(c ledger.OpenCall) ledger.EndedCall {
		e := ended(c, 80)
		e.Usage.Unpriced = true
		return e
	}
	b := newBench(t)
	b.witness(t, 100, whole(70), whole(30))
	b.witness(t, 101, whole(70), whole(30))
	b.witness(t, 95, whole(70), cut(11, 40))
	b.witness(t, 70, whole(70), probe)
	b.witness(t, 70, whole(70), whole(50))
	b.witness(t, 170, whole(70), whole(50))
	b.witness(t, 170, unpriced)
	got, checked, err := b.CLITotals(t.Context(), "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var why []ledger.Difference
	var calls []int
	for _, d := range got {
		why, calls = append(why, d.Why), append(calls, len(d.Calls))
	}
	want := []ledger.Difference{ledger.DifferenceCut, ledger.DifferenceProbes, ledger.DifferenceBeside, ledger.DifferenceMissing, ledger.DifferenceUnpriced}
	if diff := cmp.Diff(want, why); diff != "" || checked != 7 {
		t.Errorf("of %d turns (-want +got):\n%s", checked, diff)
	}
	if diff := cmp.Diff([]int{1, 1, 2, 2, 1}, calls); diff != "" {
		t.Errorf("calls in question (-want +got):\n%s", diff)
	}
	if none, _, err := b.CLITotals(t.Context(), thread.TeamID, time.Now().Add(time.Hour)); err != nil || len(none) != 0 {
		t.Errorf("in the future: %+v, %v", none, err)
	}
	b.verify(t)
}

func TestACallIsPricedAnewOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt(t, "U1", "go")
	turn, _ := b.begin(t)
	c := ended(b.call(t), 80)
	c.Usage.Unpriced, c.Usage.Rate = true, "fast"
	b.end(t, c, ended(b.call(t), 20))
	b.finish(t, turn)
	for _, want := range []int64{1, 0} {
		calls, err := b.UnpricedCalls(t.Context(), thread.TeamID, time.Time{})
		if err != nil || len(calls) != int(want) {
			t.Fatalf("%+v, %v", calls, err)
		}
		if want > 0 && (calls[0].MicroUSD != 80 || calls[0].Rate != "fast" || calls[0].Project != "web") {
			t.Errorf("%+v", calls[0])
		}
		contract := int64(40)
		if n, err := b.Reprice(t.Context(), []ledger.Repricing{{ID: c.ID, MicroUSD: -30, ContractMicroUSD: &contract}}); err != nil || n != want {
			t.Errorf("%d corrected, %v", n, err)
		}
	}
	if got := b.report(t, ledger.ByNothing).Total; got.MicroUSD != 70 || got.ContractMicroUSD != 40 {
		t.Errorf("%+v", got)
	}
	b.verify(t)
}

func TestReportsNameWhatIsNotBookedForGood(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt(t, "U1", "go")
	turn, _ := b.begin(t)
	cut, lost, unpriced := ended(b.call(t), 10), ended(b.call(t), 20), ended(b.call(t), 80)
	cut.Complete, cut.Usage.BoundMicroUSD, unpriced.Usage.Unpriced = false, 300, true
	b.end(t, cut, unpriced)
	b.finish(t, turn)
	if err := b.ReleaseLease(t.Context(), b.lease, false); err != nil {
		t.Fatal(err)
	}
	if _, err := b.EndLostCalls(t.Context()); err != nil {
		t.Fatal(err)
	}
	notes := func(by ledger.CostGroup, from time.Time) ledger.MeterNotes {
		t.Helper()
		n, err := b.MeterNotes(t.Context(), ledger.CostQuery{TeamID: thread.TeamID, By: by, From: from})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	both := ledger.CutCalls{Calls: 2, BoundMicroUSD: 1200}
	want := ledger.MeterNotes{
		Unpriced: []ledger.UnpricedModel{{Model: "opus", Calls: 1, MicroUSD: 80}}, Cut: both, CutBy: map[string]ledger.CutCalls{"U1": both},
	}
	if diff := cmp.Diff(want, notes(ledger.ByUser, time.Now().Add(-time.Hour))); diff != "" {
		t.Errorf("by user (-want +got):\n%s", diff)
	}
	b.end(t, lost) // it was only slow
	if _, err := b.Reprice(t.Context(), []ledger.Repricing{{ID: unpriced.ID}}); err != nil {
		t.Fatal(err)
	}
	one := ledger.CutCalls{Calls: 1, BoundMicroUSD: 300}
	if diff := cmp.Diff(ledger.MeterNotes{Cut: one, CutBy: map[string]ledger.CutCalls{time.Now().UTC().Format(time.DateOnly): one}}, notes(ledger.ByDay, time.Time{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("by day (-want +got):\n%s", diff)
	}
	if got := notes(ledger.ByNothing, time.Now().Add(time.Hour)); got.Cut.Calls+int64(len(got.Unpriced)) != 0 {
		t.Errorf("in the future: %+v", got)
	}
	b.verify(t)
}
