package gateway

import (
	"context"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/price"
)

// Meter is told of every call of the model before it leaves, and of what came of it.
// Each session has its own. Calls that only count tokens cost nothing, and are not told.
type Meter interface {
	// Begin returns when the call may leave, which it waits for. A [*Refusal] is what the
	// caller is answered with instead; any other error is logged, and answered so that
	// the caller tries again. ctx ends when the caller leaves or the session ends: such a
	// call does not leave.
	Begin(ctx context.Context, c Call) (Booking, error)
}

// Call is a call of the model that is about to leave.
type Call struct {
	ID        uuid.UUID // made here; ids sort by time
	Model     string    // as it was asked for, in the body or in the path
	MaxTokens int64     // of the answer; 0: the call does not say
	Bytes     int       // of the body
	Stream    bool
	Named     bool     // the provider's configuration names the model
	Fallbacks []string // the models that may answer in its place
	Search    bool     // the provider may search the web for it
	At        time.Time
	// Cut has the call end with its caller: at once if that has left. It may be called at
	// any time and more than once, but not with a lock that [Booking] takes. Without it a
	// call whose caller leaves is read to its end.
	Cut func()
}

// Booking is told what became of one call. Its methods must return at once.
type Booking interface {
	// Seen tells what is known so far, when the provider has said what the prompt costs
	// and whenever it says more.
	Seen(Answer)
	// Alone tells that the caller has left, and that the answer is read to its end all the
	// same. It may be called beside the others, once.
	Alone()
	// End is called exactly once: when the answer is whole, cut by the provider, cut
	// from outside, refused by the provider, or never came. It is called before the caller
	// sees the end of a whole answer.
	End(Answer)
}

// Answer is what a call was answered with, as far as it is known.
type Answer struct {
	// MessageID is the provider's of what it has answered; empty if it did not say.
	MessageID string
	// Model is what the provider says that has answered; empty if it did not say.
	Model string
	// RequestID is the provider's; empty if it did not say.
	RequestID string
	// Status is that of HTTP; 0: no answer came.
	Status int
	// Usage is what the provider has said last, in sum. Zero if it has said nothing.
	Usage price.Usage
	// Runs are what Usage is made of where the model was run several times for the call,
	// and what else was billed with it, such as the advice of another model. Mostly there
	// are none: Usage is all.
	Runs []Run
	// Complete says that Usage is what the call has cost. If it is false the provider
	// may bill more: what it made and did not report.
	Complete bool
	// Left says that something of the call may have reached the provider.
	Left bool
	// FirstByte is when the answer began; zero if it did not. Ended is zero in
	// [Booking.Seen].
	FirstByte, Ended time.Time
}

// Run is what one run of a model used.
type Run struct {
	Model string // empty: the call's
	Usage price.Usage
	// Apart says that it is no part of the call's Usage.
	Apart bool
}

// Refusal is an answer of ours, in the form of Anthropic's API. [Meter.Begin] returns
// one to refuse a call. With 402 the CLI ends its turn at once and in order, and shows the
// sentence; with 503 it tries again for a while.
type Refusal struct {
	Status   int    // of HTTP
	Sentence string // for people
}

func (n *Refusal) Error() string { return n.Sentence }
