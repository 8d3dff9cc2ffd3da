package gateway

import (
	"context"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/price"
)

// Meter learns of every call of the model before it leaves, and of its outcome. Each session has its own. Calls
// that only count tokens cost nothing and are left out.
type Meter interface {
	// Begin returns when the call may leave. A [*Refusal] becomes the answer to the caller; any other error is
	// logged, and answered so that the caller tries again. ctx ends when the caller leaves or the session ends:
	// then the call does not leave.
	Begin(ctx context.Context, c Call) (Booking, error)
}

// Call is a call of the model that is about to leave.
type Call struct {
	ID        uuid.UUID // made here; ids sort by time
	Model     string    // as asked for, in the body or in the path
	MaxTokens int64     // of the answer; 0: not given
	Bytes     int       // of the body
	Stream    bool
	Named     bool     // the provider's configuration names the model
	Fallbacks []string // the models that may answer in its place
	Search    bool     // the provider may search the web for it
	At        time.Time
	// Cut ends the call together with its caller, at once if that has left. It may be called at any time and more
	// than once, but not with a lock that [Booking] takes. Without it a call whose caller leaves is read to its
	// end.
	Cut func()
}

// Booking learns the outcome of one call. Its methods must return at once.
type Booking interface {
	// Seen receives what is known so far, when the provider reports the cost of the prompt and whenever it reports
	// more.
	Seen(Answer)
	// Alone says that the caller has left while the answer is still read to its end. It may be called concurrently
	// with the others, once.
	Alone()
	// End is called exactly once: when the answer is whole, was cut by the provider or from outside, was refused,
	// or never came. It is called before the caller sees the end of a whole answer.
	End(Answer)
}

// Answer is what is known of a call's answer.
type Answer struct {
	// MessageID is the provider's; empty if it did not say.
	MessageID string
	// Model is the one that answered; empty if the provider did not say.
	Model string
	// RequestID is the provider's; empty if it did not say.
	RequestID string
	// Status is the HTTP status; 0: no answer came.
	Status int
	// Usage is the sum that the provider reported last; zero if none.
	Usage price.Usage
	// Runs are the parts of Usage where the model ran several times for the call, and what else was billed with it,
	// such as the advice of another model. Usually there are none.
	Runs []Run
	// Complete says that Usage is the call's whole cost. If false, the provider may bill more than it reported.
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
	// Apart says that it is not part of the call's Usage.
	Apart bool
}

// Refusal is an answer of ours, in the form of Anthropic's API. [Meter.Begin] returns one to refuse a call. With
// 402 the CLI ends its turn at once and shows the sentence; with 503 it tries again for a while.
type Refusal struct {
	Status   int    // of HTTP
	Sentence string // for people
}

func (n *Refusal) Error() string { return n.Sentence }
