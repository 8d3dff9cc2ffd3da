package chat

import (
	"context"
	"encoding/json"

	"golang.org/x/time/rate"

	"deckhand/internal/store/inbox"
)

// ByHand takes the steps of a [Chat] one at a time.
type ByHand struct{ *Chat }

// Listens has the cursor believe that it is kept, and puts no bounds on questions to the record.
func (h ByHand) Listens() {
	h.cursor.on = true
	h.cursor.rate.SetLimit(rate.Inf)
}

// Decode reads what was delivered, and Permalink is a message's address.
func (h ByHand) Decode(row inbox.Envelope) (*Incoming, error) { return h.screen.Decode(row) }

func (h ByHand) Permalink(channel, ts string) string { return h.screen.Permalink(channel, ts) }

// TakeDue acts on what is due in the inbox.
func (h ByHand) TakeDue(ctx context.Context) { keeper(h).takeDue(ctx); h.Wait() }

// MoveCursor and ScanNext are the steps of a catch-up scan; ScanNext reports whether there was something.
func (h ByHand) MoveCursor(ctx context.Context) { listener(h).moveCursor(ctx, false) }

func (h ByHand) ScanNext(ctx context.Context) bool { return listener(h).scanNext(ctx) }

// Queued is what the queue shows of a message that waits.
func (h ByHand) Queued(payload json.RawMessage) string {
	return queuePosts{h.posts}.saidIn(inbox.QueuedPrompt{Kind: inbox.Message, Payload: payload})
}

// Changes has posts that wait say what their authors made of them meanwhile.
func (h ByHand) Changes(ctx context.Context, l inbox.Scan) error {
	k := listener(h).scanner(l)
	k.lag = 0
	return k.changes(ctx)
}
