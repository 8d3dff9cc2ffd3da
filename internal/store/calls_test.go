package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store"
)

// call begins a call of the thread's latest turn.
func (b *bench) call(t *testing.T) store.OpenCall {
	t.Helper()
	c := store.OpenCall{
		ID: uuid.New(), Lease: b.lease, SessionID: b.session, Epoch: b.epoch, Model: "opus", StartedAt: time.Now(), ReservedMicroUSD: 900, BoundMicroUSD: 900,
	}
	if err := b.BeginCall(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// ended is the call's end with what it has cost.
func ended(c store.OpenCall, microUSD int64) store.EndedCall {
	return store.EndedCall{
		OpenCall: c, Status: 200, Complete: true, EndedAt: time.Now(),
		Usage: store.CallUsage{Model: "opus", RequestID: "req", FirstByteAt: time.Now(), Input: 10, Output: microUSD, MicroUSD: microUSD},
	}
}

func (b *bench) end(t *testing.T, calls ...store.EndedCall) {
	t.Helper()
	if err := b.EndCalls(t.Context(), calls); err != nil {
		t.Fatal(err)
	}
}

func TestACallIsBookedOnceHoweverOftenItEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt(t, "U1", "go")
	turn, _ := b.begin(t)
	c, other := b.call(t), b.call(t)
	seen := store.CallUsage{RequestID: "req", Input: 10, Output: 1, MicroUSD: 11, BoundMicroUSD: 200}
	if err := b.SeenCall(t.Context(), c.ID, seen); err != nil {
		t.Fatal(err)
	}
	b.end(t, ended(c, 70))
	b.end(t, ended(c, 70), ended(other, 30))
	if _, err := b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{
		ID: turn.ID, State: "done", Witnesses: []store.Witness{{SessionID: b.session, Epoch: b.epoch, Before: 0, After: 100, Model: "opus"}},
	}); err != nil {
		t.Fatal(err)
	}
	if got := b.report(t, store.ByModel); got.Total.MicroUSD != 100 || got.Total.Turns != 1 || got.Total.Entries != 3 || len(got.Lines) != 1 {
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
	if err := b.SeenCall(t.Context(), c.ID, store.CallUsage{Input: 10, Output: 1, MicroUSD: 11, BoundMicroUSD: 200}); err != nil {
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
	if got := b.report(t, store.ByNothing).Total; got.MicroUSD != 11 || got.Entries != 2 {
		t.Errorf("lost calls are booked as %+v", got)
	}
	// Its replica was only slow.
	for range 2 {
		b.end(t, ended(c, 70), ended(silent, 9))
	}
	if got := b.report(t, store.ByNothing).Total; got.MicroUSD != 79 || got.Entries != 4 {
		t.Errorf("corrected to %+v", got)
	}
	if err := b.BeginCall(t.Context(), c); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a replica that lost its lease makes a call: %v", err)
	}
	b.verify(t)
}
