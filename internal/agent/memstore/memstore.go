// Package memstore keeps the agent's store in memory, for tests of what the agent does
// with them: under a synthetic clock, in microseconds, with a look at all of it. It is
// held to [*store.Store] by a test that makes the same calls on both. It is for tests
// alone and forgets: the audit that the store writes by itself, roll-ups, River.
package memstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
	"deckhand/internal/upkeep"
)

// Store is an empty store when zero. Methods that [*store.Store] has too do what they do
// there, by the clock of the process. Safe for concurrent use.
type Store struct {
	mu        sync.Mutex
	threads   []*threads.Thread // id is the index + 1, as everywhere here
	replicas  replicas
	inbox     []*envelope
	posts     []outbox.PostedMessage
	sessions  map[string]*session
	turns     []*Turn
	approvals []*approvals.Approval
	grants    []*grant
	ledger    []Entry
	calls     []*call
	notices   []*ledger.BudgetNotice
	waits     map[int64]*wait // by the prompt
	audit     []audit.Entry
	outbox    []*outboxRow
	listeners map[chan pg.Notice]bool
	broken    error
}

// Turn is a turn as the database has it.
type Turn struct {
	turns.Turn
	LeaseEpoch   int64
	CostMicroUSD int64
	AgentTurns   int
	Ended        bool
	OverBudget   bool
	RestSince    time.Time
	Answer       string
	continues    int64 // a turn's id; or 0
}

// Entry is a ledger entry with the turn that it was booked on. One of a call has the
// call; a correction has it too, with the differences as figures.
type Entry struct {
	Kind      string // call, end or correction
	SessionID string
	Epoch     int // of the session
	Model     string

	Input, Output, CacheRead, CacheWrite5m, CacheWrite1h int64 // tokens
	WebSearches                                          int64

	MicroUSD                int64
	ContractMicroUSD        *int64
	TotalBefore, TotalAfter int64 // of the CLI, at an end

	Call   ledger.EndedCall
	Turns  int // 1 if it counts its turn
	TurnID int64
	User   string
	At     time.Time
}

// The kinds of entries.
const (
	kindCall       = "call"
	kindEnd        = "end"
	kindCorrection = "correction"
)

// Prompt is a prompt and what became of it.
type Prompt struct {
	inbox.Prompt
	State   string // received, accepted, running or done
	Outcome string
	TurnID  int64
}

type envelope struct {
	Prompt
	event string
	kind  inbox.Kind
	sent  inbox.Envelope
	until time.Time // before which it is not tried again, or nobody else takes it

	seenToWait bool
}

type session struct {
	thread    int64
	parent    string
	started   bool
	recalls   bool
	baselines []int64 // of its epochs
}

type grant struct {
	approvals.LiveGrant
	team, project, channel string
	thread                 int64
	session                string
	scope                  approvals.GrantScope
	tool                   string
	sum                    [sha256.Size]byte
	expires                time.Time
	revoked                bool
}

// Break has every method fail with err from now on, as when the database is away; nil
// mends it.
func (b *Store) Break(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = err
}

// lock takes the database for one transaction; ctx must not have ended.
func (b *Store) lock(ctx context.Context) error {
	b.mu.Lock()
	err := cmp.Or(context.Cause(ctx), b.broken)
	if err != nil {
		b.mu.Unlock()
	}
	return err
}

func (b *Store) thread(id int64) (*threads.Thread, error) {
	if id < 1 || id > int64(len(b.threads)) {
		return nil, pg.ErrNotFound
	}
	return b.threads[id-1], nil
}

func (b *Store) holds(l threads.Lease) (*threads.Thread, error) {
	t, err := b.thread(l.ThreadID)
	if err != nil || t.LeaseOwner != l.Owner || t.LeaseEpoch != l.Epoch {
		return nil, threads.ErrFenced
	}
	return t, nil
}

// under runs fn while the lease holds.
func (b *Store) under(ctx context.Context, l threads.Lease, fn func(t *threads.Thread) error) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	t, err := b.holds(l)
	if err != nil {
		return err
	}
	return fn(t)
}

// Receive is [store.Store.Receive].
func (b *Store) Receive(ctx context.Context, e inbox.Envelope) (id int64, fresh bool, err error) {
	if err := b.lock(ctx); err != nil {
		return 0, false, err
	}
	defer b.mu.Unlock()
	for _, old := range b.inbox {
		if old.event == e.EventID {
			return 0, false, nil
		}
	}
	b.inbox = append(b.inbox, &envelope{event: e.EventID, kind: e.Kind, sent: e, seenToWait: e.Marked, until: time.Now().Add(inbox.HoldFor), Prompt: Prompt{State: "received", Prompt: inbox.Prompt{
		InboxID: int64(len(b.inbox) + 1), ThreadKey: e.Key(), UserID: e.UserID, TS: e.TS,
	}}})
	return int64(len(b.inbox)), true, nil
}

// AcceptPrompt is [store.Store.AcceptPrompt].
func (b *Store) AcceptPrompt(ctx context.Context, p inbox.NewPrompt) (threads.Thread, bool, error) {
	if err := b.lock(ctx); err != nil {
		return threads.Thread{}, false, err
	}
	defer b.mu.Unlock()
	if p.InboxID > 0 && p.InboxID <= int64(len(b.inbox)) && b.behind(b.inbox[p.InboxID-1]) {
		return threads.Thread{}, false, pg.ErrNotYet
	}
	t := b.openThread(p)
	if p.InboxID < 1 || p.InboxID > int64(len(b.inbox)) || b.inbox[p.InboxID-1].State != "received" {
		return *t, false, nil
	}
	e := b.inbox[p.InboxID-1]
	if e.sent.Edits != p.Edits {
		return threads.Thread{}, false, pg.ErrNotYet
	}
	e.State, e.ThreadID, e.UUID, e.Text, e.Files, e.until = "accepted", t.ID, p.UUID, p.Text, p.Files, time.Now()
	b.notify(pg.Notice{Kind: pg.NoticePrompt, ThreadID: t.ID})
	return *t, true, nil
}

// openThread returns the prompt's thread, which is opened if there is none.
func (b *Store) openThread(p inbox.NewPrompt) *threads.Thread {
	if i := slices.IndexFunc(b.threads, func(t *threads.Thread) bool { return t.Key() == p.Thread }); i >= 0 {
		return b.threads[i]
	}
	t := &threads.Thread{
		ID: int64(len(b.threads)) + 1, TeamID: p.Thread.TeamID, ChannelID: p.Thread.ChannelID, ThreadTS: p.Thread.ThreadTS,
		Project: p.Project, OwnerID: p.UserID, Title: p.Title, Base: p.Base,
	}
	if t.Branch = fmt.Sprintf("deckhand/%d", t.ID); p.Slug != "" {
		t.Branch += "-" + p.Slug
	}
	b.threads = append(b.threads, t)
	return t
}

// behind reports whether a message has to wait for an earlier one of its thread.
func (b *Store) behind(e *envelope) bool {
	return e.kind == inbox.Message && e.State == "received" && slices.ContainsFunc(b.inbox, func(o *envelope) bool {
		return o.ThreadKey == e.ThreadKey && o.State == "received" && o.kind == inbox.Message && (o.TS < e.TS || o.TS == e.TS && o.InboxID < e.InboxID)
	})
}

// ThreadByKey is [store.Store.ThreadByKey].
func (b *Store) ThreadByKey(ctx context.Context, k threads.ThreadKey) (threads.Thread, error) {
	if err := b.lock(ctx); err != nil {
		return threads.Thread{}, err
	}
	defer b.mu.Unlock()
	for _, t := range b.threads {
		if t.Key() == k {
			return *t, nil
		}
	}
	return threads.Thread{}, pg.ErrNotFound
}

// ReleaseLease is [store.Store.ReleaseLease].
func (b *Store) ReleaseLease(ctx context.Context, l threads.Lease, wake bool) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	t, err := b.holds(l)
	if err != nil {
		return nil //nolint:nilerr // it is handed back if it is still held
	}
	t.LeaseOwner = ""
	if wake && b.open(t.ID) && !b.asleep(t.ID) && !b.parked(t.ID) {
		b.notify(pg.Notice{Kind: pg.NoticePrompt, ThreadID: t.ID})
	}
	return nil
}

func (b *Store) open(threadID int64) bool {
	return slices.ContainsFunc(b.inbox, func(e *envelope) bool {
		return e.ThreadID == threadID && (e.State == "accepted" || e.State == "running")
	})
}

// Unattended is [store.Store.Unattended].
func (b *Store) Unattended(ctx context.Context, owner string, held []int64) ([]int64, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	var out []int64
	for _, t := range b.byWait() {
		if (t.LeaseOwner == "" || t.LeaseOwner == owner) && !slices.Contains(held, t.ID) && !b.parked(t.ID) && (b.open(t.ID) && !b.asleep(t.ID) || b.runningTurn(t.ID) != nil && !b.putOff(t.ID)) {
			out = append(out, t.ID)
		}
	}
	return out, nil
}

// byWait are the threads, whoever has waited longest first.
func (b *Store) byWait() []*threads.Thread {
	first := func(t *threads.Thread) int64 {
		for _, e := range b.inbox {
			if e.ThreadID == t.ID && (e.State == "accepted" || e.State == "running") {
				return e.InboxID
			}
		}
		return math.MaxInt64
	}
	return slices.SortedStableFunc(slices.Values(b.threads), func(x, y *threads.Thread) int { return cmp.Compare(first(x), first(y)) })
}

// SetWorkspace is [store.Store.SetWorkspace].
func (b *Store) SetWorkspace(ctx context.Context, l threads.Lease, dir string) error {
	return b.under(ctx, l, func(t *threads.Thread) error { t.Workspace, t.WorkspaceReplica = dir, l.Owner; return nil })
}

// SetBranch is [store.Store.SetBranch].
func (b *Store) SetBranch(ctx context.Context, l threads.Lease, branch string) error {
	return b.under(ctx, l, func(t *threads.Thread) error { t.Branch = branch; return nil })
}

// NewSession is [store.Store.NewSession].
func (b *Store) NewSession(ctx context.Context, l threads.Lease, id, parentID string) error {
	return b.newSession(ctx, l, id, parentID, false)
}

// StartAnew is [store.Store.StartAnew].
func (b *Store) StartAnew(ctx context.Context, l threads.Lease, id, lost string) error {
	return b.newSession(ctx, l, id, lost, true)
}

func (b *Store) newSession(ctx context.Context, l threads.Lease, id, parentID string, recalls bool) error {
	return b.under(ctx, l, func(t *threads.Thread) error {
		if b.sessions == nil {
			b.sessions = map[string]*session{}
		}
		if b.sessions[id] != nil {
			return fmt.Errorf("session %s exists", id)
		}
		b.sessions[id], t.SessionID = &session{thread: t.ID, parent: parentID, recalls: recalls}, id
		return nil
	})
}

// SessionStarted is [store.Store.SessionStarted].
func (b *Store) SessionStarted(ctx context.Context, id string) (bool, error) {
	if err := b.lock(ctx); err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	s, ok := b.sessions[id]
	if !ok {
		return false, fmt.Errorf("no session %s", id)
	}
	return s.started, nil
}

// SessionSpoke is [store.Store.SessionSpoke].
func (b *Store) SessionSpoke(ctx context.Context, id string) (bool, error) {
	if err := b.lock(ctx); err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.turns, func(t *Turn) bool { return t.SessionID == id && t.AgentTurns > 0 }), nil
}

// MarkStarted is [store.Store.MarkStarted].
func (b *Store) MarkStarted(ctx context.Context, id string) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if s, ok := b.sessions[id]; ok {
		s.started = true
	}
	return nil
}

// BeginEpoch is [store.Store.BeginEpoch].
func (b *Store) BeginEpoch(ctx context.Context, l threads.Lease, sessionID, _ string, baseline int64) (epoch int, err error) {
	err = b.under(ctx, l, func(*threads.Thread) error {
		s, ok := b.sessions[sessionID]
		if !ok {
			return fmt.Errorf("no session %s", sessionID)
		}
		s.baselines = append(s.baselines, baseline)
		epoch = len(s.baselines)
		return nil
	})
	return epoch, err
}

// TimeZone is [store.Store.TimeZone]: UTC.
func (b *Store) TimeZone() *time.Location { return time.UTC }

// Audit is [store.Store.Audit].
func (b *Store) Audit(ctx context.Context, entries ...audit.Entry) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	b.audit = append(b.audit, entries...)
	return nil
}

// Listen is [store.Store.Listen]. Notices wait for as long as fn takes.
func (b *Store) Listen(ctx context.Context, ready func(), fn func(pg.Notice)) {
	got := make(chan pg.Notice, 1024)
	b.mu.Lock()
	if b.listeners == nil {
		b.listeners = map[chan pg.Notice]bool{}
	}
	b.listeners[got] = true
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listeners, got)
	}()
	ready()
	for {
		select {
		case n := <-got:
			fn(n)
		case <-ctx.Done():
			return
		}
	}
}

// Listening is [store.Store.Listening]: every notice is heard.
func (b *Store) Listening() upkeep.State { return upkeep.State{Up: true} }

// Notify is [store.Store.Notify], of other replicas, which nothing here tells.
func (b *Store) Notify(context.Context, pg.Notice) error { return nil }

func (b *Store) notify(n pg.Notice) {
	for l := range b.listeners {
		select {
		case l <- n:
		default: // lost, as a notice may be: polling makes up for it
		}
	}
}

// Threads are all threads as they stand.
func (b *Store) Threads() []threads.Thread {
	return slices.DeleteFunc(values(b, &b.threads), func(t threads.Thread) bool { return t.ID == 0 })
}

// Turns are all turns, in the order of their begin.
func (b *Store) Turns() []Turn { return values(b, &b.turns) }

// Approvals are all approvals, in the order in which they were asked.
func (b *Store) Approvals() []approvals.Approval { return values(b, &b.approvals) }

// Entries are the ledger.
func (b *Store) Entries() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ledger)
}

// Prompts are all prompts and what became of them, in the order of their coming.
func (b *Store) Prompts() []Prompt {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Prompt, len(b.inbox))
	for i, e := range b.inbox {
		out[i] = e.Prompt
	}
	return out
}

// values copies what pointers point to. list is read under the lock.
func values[T any](b *Store, list *[]*T) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]T, len(*list))
	for i, v := range *list {
		out[i] = *v
	}
	return out
}

// Spend books what the thread's last turn cost, by a session that nobody knows.
func (b *Store) Spend(threadID, microUSD int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range slices.Backward(b.turns) {
		if t.ThreadID == threadID {
			b.ledger = append(b.ledger, Entry{MicroUSD: microUSD, TurnID: t.ID, User: t.RequestedBy, At: time.Now()})
			return
		}
	}
}
