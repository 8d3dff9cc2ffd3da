package main

import (
	"strings"
	"testing"
)

// TestAPlan: the model enters plan mode, and nobody is asked about that. Its plan is one card,
// and the work begins when it is approved.
func TestAPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	thread := w.post(linus, eng, "", "@deckhand plan the fix of the failing test")
	plan := w.card(eng, thread)
	if !strings.Contains(plan.all(), "Deckhand has a plan") || !strings.Contains(plan.all(), "Give a full week its discount") {
		t.Fatalf("the first card is not the plan: %s", plan.all())
	}
	w.click(grace, eng, plan.TS, "approve")
	w.done(eng, thread, thread)
	w.says(eng, thread, "the plan stands")
	if n := w.count(`SELECT count(*) FROM approvals WHERE kind = 'plan'`); n != 1 {
		t.Errorf("%d approvals of plans, want 1", n)
	}
}
