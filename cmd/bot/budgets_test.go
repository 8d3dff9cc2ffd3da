package main

import (
	"fmt"
	"net/http"
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
    limit: 0.06
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
	w.says(eng, elsewhere, "Ada Admin can raise it")
	other := w.post(grace, eng, "", "@deckhand say: not mine")
	w.done(eng, other, other)
	w.says(eng, other, "not mine")
	if n := w.count(`SELECT count(*) FROM inbox WHERE state = 'accepted' AND ts = '` + third + `'`); n != 1 {
		t.Error("the prompt does not wait")
	}
	w.says(eng, thread, "Ada Admin can raise it") // below the card, too, whoever writes is told what becomes of it
	w.click(grace, eng, card.TS, "budget_leave")
	w.told(grace, eng, thread, "Only admins can do this")
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
		return strings.Contains(m.all(), "so this has started") && !strings.Contains(m.all(), "can raise it")
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

// TestACheaperModel: a call that finds nothing left ends its turn in order; whoever may
// write there goes on by a button, once, when an admin has chosen a cheaper model.
func TestACheaperModel(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, `budgets:
  - {scope: project, only: sample, per: month, limit: 0.03, then: ask, cheaper_model: haiku}
`)
	thread := w.post(linus, eng, "", "@deckhand tool: Read {\"file_path\": \"go.mod\"}\nsay: dear")
	stopped := w.find(eng, thread, "the turn to be stopped", func(m message) bool { return m.has("continue") && strings.Contains(m.all(), "is used up") })
	if strings.Contains(stopped.all(), "API Error") {
		t.Errorf("people are shown the CLI's words: %s", stopped.all())
	}
	if n := w.count(`SELECT count(*) FROM turns WHERE state = 'interrupted' AND over_budget`); n != 1 {
		t.Errorf("%d turns were stopped in order", n)
	}
	card := w.find(eng, thread, "the card", func(m message) bool { return m.has("budget_model") })
	w.click(ada, eng, card.TS, "budget_model")
	w.find(eng, thread, "the card to say so", func(m message) bool {
		return m.TS == card.TS && strings.Contains(m.all(), "Going on with") && strings.Contains(m.all(), "without a limit until the end of this month") && !m.has("budget_model")
	})
	press := func(user string) {
		w.must(http.MethodPost, "/_control/actions", map[string]any{"user": user, "channel": eng, "message_ts": stopped.TS, "action_id": "continue"}, nil)
	}
	press(slack.UserMallory)
	w.told(slack.UserMallory, eng, thread, "don't have access")
	press(linus)
	w.find(eng, thread, "the offer to be gone", func(m message) bool { return m.TS == stopped.TS && !m.has("continue") })
	w.click(linus, eng, stopped.TS, "continue") // in a window that has not been told of it
	w.told(linus, eng, thread, "has gone on already")
	w.eventually("the turn that goes on", func() bool { return w.count(`SELECT count(*) FROM turns WHERE state = 'done'`) == 1 })
	if n := w.count(`SELECT count(*) FROM turns`); n != 2 {
		t.Errorf("two clicks made %d turns", n-1)
	}
	if n := w.count(`SELECT count(*) FROM ledger WHERE model LIKE '%haiku%' AND turn_id = (SELECT max(id) FROM turns)`); n == 0 {
		t.Error("the turn did not run on the cheaper model")
	}
	w.assertLedgerEqualsBill()
}

// TestABudgetStops: threads that work at once spend no more than the limit, but for what
// one call costs beyond what is left; then nothing more is begun.
func TestABudgetStops(t *testing.T) {
	t.Parallel()
	const limit = 150_000
	w := newWorldWith(t, `budgets:
  - {scope: workspace, per: week, limit: 0.15, then: stop}
`)
	var wg sync.WaitGroup
	threads := make([]string, 6)
	for i := range threads {
		wg.Go(func() {
			threads[i] = w.post(linus, []string{eng, slack.ChannelGeneral}[i%2], "", fmt.Sprintf("@deckhand tool: Read {\"file_path\": \"go.mod\"}\nsay: number %d", i))
		})
	}
	wg.Wait()
	w.eventually("everything to be answered, stopped or refused", func() bool {
		return w.count(`SELECT count(*) FROM inbox WHERE kind = 'message' AND state <> 'done'`) == 0 && w.count(`SELECT count(*) FROM inbox WHERE prompt_uuid IS NOT NULL`) == int64(len(threads))
	})
	spent, dearest := w.count(`SELECT COALESCE(sum(micro_usd), 0) FROM ledger`), w.count(`SELECT max(micro_usd) FROM ledger`)
	t.Logf("%d threads spent %d of %d µ$ by calls of up to %d", len(threads), spent, limit, dearest)
	// Each call reserves more than it costs, so only the last, which goes alone, may pass
	// the limit; and something was left when it left.
	if spent < limit || spent >= limit+dearest {
		t.Errorf("%d µ$ were spent of %d, by calls of up to %d", spent, limit, dearest)
	}
	if n := w.count(`SELECT count(*) FROM turns WHERE state = 'failed'`); n != 0 {
		t.Errorf("%d turns failed", n)
	}
	again := w.post(grace, eng, threads[0], "@deckhand say: more")
	w.find(eng, threads[0], "Grace to be refused", func(m message) bool { return strings.Contains(m.all(), "So this does not start") })
	w.eventually("her message to be done with", func() bool {
		return w.count(`SELECT count(*) FROM inbox WHERE state = 'done' AND ts = '`+again+`'`) == 1
	})
	for _, thread := range []string{threads[4], threads[2], threads[0]} { // whose turn was stopped, and is refused again, can still be continued
		offers := func(m message) bool { return m.has("continue") }
		at := w.messages(eng, thread)
		i := slices.IndexFunc(at, offers)
		if i < 0 {
			continue
		}
		w.click(linus, eng, at[i].TS, "continue")
		w.find(eng, thread, "Continue to be refused", func(m message) bool { return strings.Contains(m.all(), "So this does not start") })
		w.find(eng, thread, "the offer to stand", offers)
		break
	}
	w.assertLedgerEqualsBill()
}

// TestWhatABudgetStopsBeforeItBeginsWaits: threads that begin at once pass the budget before
// anything is spent. Those whose first call finds nothing left wait like the ones behind them.
func TestWhatABudgetStopsBeforeItBeginsWaits(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, `budgets:
  - {scope: workspace, per: day, limit: 0.03, then: ask}
`)
	var wg sync.WaitGroup
	threads := make([]string, 6)
	for i := range threads {
		wg.Go(func() { threads[i] = w.post(linus, eng, "", fmt.Sprintf("@deckhand say: number %d", i)) })
	}
	wg.Wait()
	w.eventually("everything to be answered or to wait", func() bool {
		return w.count(`SELECT count(*) FROM turns WHERE state = 'running'`) == 0 && w.count(`SELECT count(*) FROM budget_waits WHERE asleep`)+w.count(`SELECT count(*) FROM turns WHERE state = 'done'`) == int64(len(threads))
	})
	t.Logf("%d of %d were stopped before they began", w.count(`SELECT count(*) FROM inbox WHERE event_id LIKE 'again/%'`), len(threads))
	card, at := message{}, ""
	w.eventually("the card", func() bool {
		for _, thread := range threads {
			for _, m := range w.messages(eng, thread) {
				if m.has("continue") {
					t.Fatalf("what has not begun offers to go on: %s", m.all())
				}
				if m.has("budget_raise") {
					card, at = m, thread
				}
			}
		}
		return at != ""
	})
	v, _ := w.opens(ada, eng, card.TS, "budget_raise")
	w.submit(ada, v, map[string]any{"amount": map[string]any{"amount": "5"}})
	for i, thread := range threads {
		w.says(eng, thread, fmt.Sprintf("number %d", i))
	}
	w.assertLedgerEqualsBill()
	w.auditIsWhole()
}
