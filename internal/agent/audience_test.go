package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// audience notes what people see.
type audience struct {
	stage *stage
	share atomic.Pointer[Share] // that was told last

	mu    sync.Mutex
	turns map[int64]string // as they stand in front of people; "over" when nothing moves any more
	cards map[string]approvals.Status
	// unfinished are the turns of which people are to hear what they did cost.
	unfinished map[int64]bool
	prompts    map[int64]PromptMark
	spoken     map[threads.ThreadKey]bool // threads in which a sentence was said
	places     map[threads.ThreadKey]bool // threads that are said to wait for a session
	quiet      *Quiet                     // of the turn that was shown last
}

// silent is since when people are shown that nothing is heard of a turn.
func (a *audience) silent() *Quiet {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.quiet
}

// parked is a turn that sleeps, whose message stands as it is.
const parked = "parked"

// allowed reports a breach if the thread is another replica's by now.
func (a *audience) allowed(key threads.ThreadKey, what string) {
	for _, t := range a.stage.store.Threads() {
		if t.Key() == key && a.stage.isElsewhere(t.ID) && a.stage.machine.knowsLoss(t.ID) {
			a.stage.breach("%s after the lease was lost", what)
		}
	}
}

func (a *audience) ShowTurn(t TurnView) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed(t.Thread, "a turn was shown")
	a.quiet = t.Quiet
	if a.turns[t.ID] == "over" {
		if !a.unfinished[t.ID] {
			a.stage.breach("turn %d was shown after its end", t.ID)
		}
		a.unfinished[t.ID] = t.Unfinished
		a.stage.say("people", "turn %d costs %d", t.ID, t.CostMicroUSD)
		return
	}
	now := string(t.State)
	if t.Waiting > 0 {
		now += fmt.Sprintf(", waits for %d", t.Waiting)
	}
	if t.StoppedBy != "" {
		now += ", stopped by " + t.StoppedBy
	}
	for _, id := range slices.Sorted(maps.Keys(t.Granted)) {
		now += fmt.Sprintf(", %s under a permission of %s", id, t.Granted[id].By)
	}
	if t.Parked {
		now += ", parked"
	}
	if a.turns[t.ID] == now {
		return
	}
	a.turns[t.ID] = now
	if t.Parked {
		a.turns[t.ID] = parked
	}
	if t.State.Ended() {
		a.turns[t.ID], a.unfinished[t.ID] = "over", t.Unfinished
		if t.State == TurnFailed && t.Problem == "" {
			a.stage.breach("turn %d failed without a sentence", t.ID)
		}
		if t.Problem != "" {
			now += ": " + t.Problem
		}
		if t.Continue {
			now += " [Continue]"
		}
	}
	a.stage.say("people", "turn %d %s", t.ID, now)
}

func (a *audience) ShowApproval(ap approvals.Approval) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if was := a.cards[ap.ID]; was != "" && was != approvals.Pending && was != ap.Status {
		a.stage.breach("the card of %s ended as %s and then as %s", a.stage.name("a", ap.ID), was, ap.Status)
	}
	if a.cards[ap.ID] == ap.Status {
		return
	}
	a.cards[ap.ID] = ap.Status
	a.stage.say("cards", "%s %s", a.stage.name("a", ap.ID), ap.Status)
}

// Show reads what there is to be shown, as the frontend does.
func (a *audience) Show(kind outbox.PostKind, id string) {
	switch kind {
	case outbox.CardPost:
		a.stage.say("cards", "%s closed", a.stage.name("a", id))
	case outbox.BudgetPost:
		a.stage.say("budgets", "%d %%", a.stage.store.Notice(id).Share)
	case outbox.WaitPost:
		for _, p := range a.stage.store.Prompts() {
			if strconv.FormatInt(p.InboxID, 10) == id {
				a.mu.Lock()
				a.spoken[p.ThreadKey] = true
				a.mu.Unlock()
				a.stage.say("budgets", "prompt %d: %s", p.InboxID, cmp.Or(p.Outcome, p.State))
			}
		}
	case outbox.TurnPost, outbox.PlacePost, outbox.QueuePost:
		a.stage.breach("a %s was to be shown by its id", kind)
	}
}

func (a *audience) ShowQueue(threadID int64, start *StartWait) {
	if start != nil && start.Attempts == 1 {
		a.stage.say("people", "the start is tried again, after %d", start.Attempts)
	}
}

func (a *audience) ShowPlace(t threads.Thread, before int) {
	k := t.Key()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed(k, "a place was shown")
	if before == Served && !a.places[k] {
		return
	}
	a.places[k] = before != Served
	a.stage.say("people", "place %d", before)
}

func (a *audience) SetShare(s Share) { a.share.Store(&s) }

func (a *audience) Changed(string) {}

func (a *audience) CloseOffer(turnID int64) {
	a.stage.say("budgets", "turn %d offers nothing any more", turnID)
}

func (a *audience) MarkPrompt(p inbox.Prompt, m PromptMark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed(p.ThreadKey, "a prompt was marked")
	if was := a.prompts[p.InboxID]; was != "" && was != PromptQueued && was != PromptWaits && was != PromptRunning {
		a.stage.breach("prompt %d was marked %s after %s", p.InboxID, m, was)
	}
	if m == PromptWaits && a.prompts[p.InboxID] == m {
		return
	}
	a.prompts[p.InboxID] = m
	a.stage.say("people", "prompt %d %s", p.InboxID, m)
}

// Tell shows what was committed to be shown, and has it ended as shown.
func (a *audience) Tell(rows ...outbox.Row) {
	for _, w := range rows {
		switch w.Kind {
		case outbox.Mark:
			a.MarkPrompt(a.stage.store.Prompts()[w.InboxID-1].Prompt, PromptMark(w.Body))
		case outbox.Said:
			a.Say(w.ThreadKey, w.Body)
		case outbox.Left, outbox.GivenUp:
			a.Abandon(w.TurnID, w.Body)
		default:
			a.stage.breach("a %s was told as a word", w.Kind)
		}
	}
}

func (a *audience) Say(k threads.ThreadKey, sentence string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed(k, "something was said")
	a.spoken[k] = true
	a.stage.say("people", "“%s”", sentence)
}

func (a *audience) Hides(string) bool { return false }

func (a *audience) Name(_ context.Context, user string) string { return user }

func (a *audience) OfferConnection(threads.ThreadKey, string, string, string) {}
func (a *audience) Attach(threads.ThreadKey, string, string)                  {}

func (a *audience) Abandon(turnID int64, sentence string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns[turnID] = "over"
	a.stage.say("people", "turn %d left: %s", turnID, sentence)
}

func (a *audience) Leave(turnID int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns[turnID] = "over"
}

// authority answers who may decide, at once or when it is let go.
type authority struct {
	mu     sync.Mutex
	may    map[string]bool
	gate   chan struct{} // nil: it answers at once
	lookup map[string]int
}

func (w *authority) hold(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gate != nil {
		close(w.gate)
		w.gate = nil
	}
	if on {
		w.gate = make(chan struct{})
	}
}

// MayDecide implements [Authoriser].
func (w *authority) MayDecide(ctx context.Context, user string, _ approvals.Approval) bool {
	w.mu.Lock()
	gate := w.gate
	w.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lookup == nil {
		w.lookup = map[string]int{}
	}
	w.lookup[user]++
	return w.may[user]
}
