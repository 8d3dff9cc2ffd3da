package spend

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/price"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// Store is what accounts need of [*store.Store], which tells what each method does.
type Store interface {
	BeginCall(ctx context.Context, c ledger.OpenCall, budgets ...ledger.CallBudget) error
	SeenCall(ctx context.Context, id uuid.UUID, u ledger.CallUsage) error
	EndCalls(ctx context.Context, calls []ledger.EndedCall) error
	RecentOutput(ctx context.Context, teamID, project, model string) (longest int64, err error)
	TimeZone() *time.Location
	BudgetStates(ctx context.Context, windows []ledger.BudgetWindow) ([]ledger.BudgetState, error)
	WaitForBudget(ctx context.Context, l threads.Lease, inboxID int64, n ledger.BudgetNotice, seen int) error
	DropPrompt(ctx context.Context, l threads.Lease, inboxID int64, d inbox.Drop) ([]outbox.Row, error)
	NoticeBudget(ctx context.Context, n ledger.BudgetNotice) (noted ledger.BudgetNotice, fresh bool, err error)
}

// Front is where people see budgets and what waits for them. Show and Tell return at once.
type Front interface {
	Name(ctx context.Context, user string) string
	Show(kind outbox.PostKind, id string)
	Tell(...outbox.Row)
}

// Config is what [New] needs. Store is required.
type Config struct {
	Store   Store
	Budgets []Budget
	Prices  price.Contract // for all projects
	Front   Front
	Log     *zap.Logger
}

// Accounts are what the sessions of a replica spend, and the budgets that bound it. Its
// methods are safe for concurrent use.
type Accounts struct {
	store   Store
	budgets []Budget
	prices  price.Contract
	front   Front
	log     *zap.Logger
	outputs outputs
	// unpriced are the models of which the log says that they have no contract price, and
	// unlisted those that the price list does not know.
	unpriced, unlisted sync.Map
	unbooked           atomic.Int64 // calls that have ended and are not booked

	mu   sync.Mutex
	free chan struct{} // see freed
}

// New returns accounts whose calls are booked in the store.
func New(c Config) *Accounts {
	c.Log = cmp.Or(c.Log, zap.NewNop())
	return &Accounts{store: c.Store, budgets: c.Budgets, prices: c.Prices, front: c.Front, log: c.Log}
}

// HasBudgets reports whether spend is bounded at all.
func (a *Accounts) HasBudgets() bool { return len(a.budgets) > 0 }

// Unbooked is the number of calls of the model that have ended and are not in the ledger yet.
func (a *Accounts) Unbooked() int { return int(a.unbooked.Load()) }

// freed is closed when calls of this replica have been booked, or have not left, since it
// was asked for.
func (a *Accounts) freed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.free == nil {
		a.free = make(chan struct{})
	}
	return a.free
}

// release wakes the calls that wait for others.
func (a *Accounts) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.free != nil {
		close(a.free)
		a.free = nil
	}
}
