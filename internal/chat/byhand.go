package chat

import (
	"context"

	"golang.org/x/time/rate"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/threads"
)

// ByHand takes the steps of a [Chat] one at a time, for tests of a whole chat that hold the clock.
type ByHand struct{ *Chat }

// Unbound puts no bounds on the rows of refusals in the audit, and on questions to the record.
func (h ByHand) Unbound() {
	h.refused.unbound = true
	h.cursor.rate.SetLimit(rate.Inf)
}

// Listens has the cursor believe that it is kept.
func (h ByHand) Listens() { h.cursor.on = true }

// KeepInbox acts on what waits until ctx ends, and TakeDue begins to act on what is due now.
func (h ByHand) KeepInbox(ctx context.Context) { keeper(h).keepInbox(ctx) }

// TakeDue is a step of KeepInbox.
func (h ByHand) TakeDue(ctx context.Context) { keeper(h).takeDue(ctx); h.Wait() }

// Receive stores what was delivered and begins to act on it; fresh is false if it was there.
func (h ByHand) Receive(ctx context.Context, in *Incoming) (fresh bool, err error) {
	in.Row.Holder = h.inbox.holder
	if in.Row.ID, fresh, err = h.c.Store.Receive(ctx, in.Row); fresh {
		in.Lasts = true
		keeper(h).begin(ctx, in)
	}
	return fresh, err
}

// Finish ends what is acted on.
func (h ByHand) Finish(ctx context.Context, in *Incoming, outcome string) {
	keeper(h).finish(ctx, in.Row.ID, in, outcome)
}

// KeepUnstored keeps a message that the database did not take.
func (h ByHand) KeepUnstored(in *Incoming) { keeper(h).keepUnstored(in) }

// OnChange acts on a change of a message, and reports whether it was taken.
func (h ByHand) OnChange(ctx context.Context, in *Incoming) bool {
	return keeper(h).onChange(ctx, in)
}

// Relevant reports whether a message is addressed to us.
func (h ByHand) Relevant(ctx context.Context, in *Incoming) bool {
	return keeper(h).relevant(ctx, in)
}

// MoveCursor and ScanNext are the steps of a catch-up scan, and Changes looks at what waits.
func (h ByHand) MoveCursor(ctx context.Context) { listener(h).moveCursor(ctx, false) }

// ScanNext looks through what is next, and reports whether there was something.
func (h ByHand) ScanNext(ctx context.Context) bool { return listener(h).scanNext(ctx) }

// Changes has posts that wait say what their authors made of them meanwhile.
func (h ByHand) Changes(ctx context.Context, l inbox.Scan) error {
	k := listener(h).scanner(l)
	k.settled = 0
	return k.changes(ctx)
}

// Authorise is what somebody is told who may not do something; nil for who may.
func (h ByHand) Authorise(ctx context.Context, team, user, channel string, act access.Act) *access.Refusal {
	return h.authorise(ctx, person{TeamID: team, UserID: user, ChannelID: channel}, act)
}

// Home is what somebody's own page shows.
func (h ByHand) Home(ctx context.Context, user string, choice view.HomeChoice) (view.Home, error) {
	return tab(h).homeView(ctx, person{TeamID: h.self.Team, UserID: user}, choice, h.mayDo)
}

// HomeChoice is what somebody chose to see there.
func (h ByHand) HomeChoice(user string) view.HomeChoice {
	h.Homes.mu.Lock()
	defer h.Homes.mu.Unlock()
	return h.Homes.tabs[user].choice
}

// Waits reports whether a request waits for somebody.
func (h ByHand) Waits(ctx context.Context, user string, a approvals.Approval) bool {
	return tab(h).mineToDecide(ctx, person{TeamID: h.self.Team, UserID: user}, []approvals.Approval{a})[a.ID]
}

// WroteIn notes that somebody has written in a thread, or has done something there.
func (h ByHand) WroteIn(k threads.ThreadKey, user string, wrote bool) {
	h.visitors.heard(k, user, wrote)
}
