package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/playground/slack"
)

// TestABudgetAsks: people are warned, at the limit the work stops and what is asked
// for waits, an admin raises it, and the work goes on.
func TestABudgetAsks(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, `budgets:
  - scope: person
    per: day
    limit: 0.1
    warn_at: [50]
    then: ask
    cheaper_model: haiku
    tell: C0GENERAL
`)
	thread := w.post(linus, eng, "", "@deckhand say: one")
	w.done(eng, thread, thread)
	w.says(eng, thread, "50% is spent")
	w.says(slack.ChannelGeneral, "", "50% is spent")
	limit := func(m message) bool { return m.has("budget_raise") }
	reached := func() bool { return slices.ContainsFunc(w.messages(eng, thread), limit) }
	for i := 0; i < 10 && !reached(); i++ { // what a turn costs is the CLI's affair
		more := w.post(linus, eng, thread, "@deckhand say: "+strings.Repeat("more and more words, ", 100))
		w.eventually("the turn to end or to wait", func() bool {
			return w.count(`SELECT count(*) FROM inbox WHERE state = 'done' AND ts = '`+more+`'`) == 1 || reached()
		})
	}
	card := w.find(eng, thread, "the limit to be reached", limit)

	third := w.post(linus, eng, thread, "@deckhand say: three at last")
	elsewhere := w.post(linus, eng, "", "@deckhand say: here too")
	w.says(eng, elsewhere, "ada can raise it")
	other := w.post(grace, eng, "", "@deckhand say: not mine")
	w.done(eng, other, other)
	w.says(eng, other, "not mine")
	if n := w.count(`SELECT count(*) FROM inbox WHERE state = 'accepted' AND ts = '` + third + `'`); n != 1 {
		t.Error("the prompt does not wait")
	}
	w.click(grace, eng, card.TS, "budget_leave")
	w.told(grace, eng, thread, "not an admin")
	v, text := w.opens(ada, eng, card.TS, "budget_raise")
	if !strings.Contains(text, "By how many US dollars") {
		t.Errorf("the modal asks for something else:\n%s", text)
	}
	for _, wrong := range []string{"lots", "-5", "0", "0.001", "999999999", "1e9", "12,5"} {
		if said := w.submitWrong(ada, v, "amount", wrong); !strings.Contains(said, "dollars") && !strings.Contains(said, "deckhand.yaml") {
			t.Errorf("%s dollars: the modal says %q", wrong, said)
		}
	}
	w.submit(ada, v, map[string]any{"amount": map[string]any{"amount": "$1.50"}})
	w.done(eng, thread, third)
	w.says(eng, thread, "three at last")
	w.done(eng, elsewhere, elsewhere)
	w.find(eng, elsewhere, "the sentence to say that it was begun", func(m message) bool {
		return strings.Contains(m.all(), "so this was begun") && !strings.Contains(m.all(), "can raise it")
	})
	w.find(eng, thread, "the card to say so", func(m message) bool {
		return m.TS == card.TS && strings.Contains(m.all(), "Raised by") && !m.has("budget_raise")
	})
	w.find(slack.ChannelGeneral, "", "the other card to say so", func(m message) bool { return strings.Contains(m.all(), "Raised by") && !m.has("budget_raise") })
	for _, m := range append(w.messages(eng, thread), w.messages(eng, elsewhere)...) {
		if m.TS != card.TS && strings.Contains(m.all(), "budget_raise") || strings.Contains(m.all(), "cannot be resumed") {
			t.Errorf("in a thread stands %s", m.all())
		}
	}
	w.click(ada, eng, card.TS, "budget_leave")
	w.told(ada, eng, thread, "decided already by")
	if n := w.count(`SELECT count(*) FROM budget_decisions WHERE decision = 'raise' AND micro_usd = 1500000 AND by_user = 'U0ADA'`); n != 1 {
		t.Error("the raise is not in the database")
	}
	w.assertLedgerEqualsBill()
	w.auditIsWhole()
}

// TestACheaperModel: an admin has the work go on with it until the period's end.
func TestACheaperModel(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, `budgets:
  - {scope: project, only: sample, per: month, limit: 0.05, then: ask, cheaper_model: haiku}
`)
	thread := w.post(linus, eng, "", "@deckhand say: dear")
	card := w.find(eng, thread, "the limit to be reached", func(m message) bool { return m.has("budget_model") })
	w.click(ada, eng, card.TS, "budget_model")
	w.find(eng, thread, "the card to say so", func(m message) bool {
		return m.TS == card.TS && strings.Contains(m.all(), "Going on with") && !m.has("budget_model")
	})
	next := w.post(linus, eng, thread, "@deckhand say: cheap")
	w.done(eng, thread, next)
	w.says(eng, thread, "cheap")
	if n := w.count(`SELECT count(*) FROM ledger WHERE model LIKE '%haiku%' AND turn_id = (SELECT max(id) FROM turns)`); n == 0 {
		t.Error("the turn did not run on the cheaper model")
	}
	w.assertLedgerEqualsBill()
}

// TestABudgetStops: nothing more is begun, and twenty threads at once overshoot by
// no more than what each had under way.
func TestABudgetStops(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, `budgets:
  - {scope: workspace, per: week, limit: 0.30, then: stop}
`)
	var wg sync.WaitGroup
	threads := make([]string, 20)
	for i := range threads {
		wg.Go(func() {
			threads[i] = w.post(linus, []string{eng, slack.ChannelGeneral}[i%2], "", fmt.Sprintf("@deckhand say: number %d", i))
		})
	}
	wg.Wait()
	w.eventually("everything to be answered or refused", func() bool {
		return w.count(`SELECT count(*) FROM inbox WHERE kind = 'message' AND state <> 'done'`) == 0 && w.count(`SELECT count(*) FROM inbox WHERE prompt_uuid IS NOT NULL`) == 20
	})
	// A turn that began when the ledger had long reached the limit would be one too many.
	// How long there may be between the look at the ledger and the turn is the machine's
	// affair: no longer than a whole turn takes on it.
	late := w.count(`SELECT count(*) FROM turns r WHERE
		(SELECT COALESCE(sum(l.micro_usd), 0) FROM ledger l WHERE l.at < r.started_at - (SELECT max(ended_at - started_at) FROM turns)) >= 300000`)
	if late > 0 {
		t.Errorf("%d turns began after the limit was reached", late)
	}
	// Now nobody begins one, in a thread that is there or in a new one.
	begun := w.count(`SELECT count(*) FROM turns`)
	again := map[string]string{w.post(grace, eng, "", "@deckhand say: more"): eng}
	for i, thread := range threads[:4] {
		channel := []string{eng, slack.ChannelGeneral}[i%2]
		w.post(grace, channel, thread, "@deckhand say: more")
		again[thread] = channel
	}
	for thread, channel := range again {
		w.find(channel, thread, "Grace to be refused", func(m message) bool { return strings.Contains(m.all(), "is used up") })
	}
	w.eventually("Grace's messages to be done with", func() bool {
		return w.count(`SELECT count(DISTINCT ts) FROM inbox WHERE user_id = 'U0GRACE' AND state = 'done'`) == int64(len(again))
	})
	if n := w.count(`SELECT count(*) FROM turns`); n != begun {
		t.Errorf("%d turns began all the same", n-begun)
	}
	// Each of the twenty overshot by its own call at most.
	if n := w.count(`SELECT count(*) FROM turns WHERE cost_micro_usd > 100000`); n != 0 {
		t.Errorf("%d turns cost more than a call", n)
	}
}
