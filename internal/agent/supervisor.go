package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/price"
	"deckhand/internal/store"
	"deckhand/internal/workspace"
)

// Config is what a supervisor needs. Store, Frontend, Authoriser, Reminder, Projects,
// Replica, DataDir and Command are required.
type Config struct {
	Store      Books
	Frontend   Frontend
	Authoriser Authoriser
	Reminder   Reminder
	Projects   map[string]Project
	Policy     *policy.Policy
	Budgets    []Budget
	Replica    string // from [OpenReplica]
	DataDir    string
	// Hidden are the bot's own files beside the data folder, such as its configuration:
	// no session sees them, not even one whose workspace they lie in.
	Hidden []string
	// Command is the launcher prefix and the CLI's path.
	Command    []string
	CLIVersion string
	// Gateway is the way to the models. Nothing starts without one.
	Gateway *gateway.Gateway
	// Web leads to the domains and the MCP servers of projects that have some.
	Web *egress.Proxy
	// Git is the sessions' way to their project's forge; nil for none.
	Git *gitway.Gate
	// Work keeps what threads have made off this machine; nil for nowhere.
	Work Works
	// Prices are what tokens cost by contract, where the project has no price.
	Prices price.Contract
	Limits Limits
	Log    *zap.Logger
}

// Supervisor owns the workers of this replica. Its methods are safe for
// concurrent use; those that act on a thread reach its worker on whichever
// replica holds it.
type Supervisor struct {
	*shared
	reminder Reminder

	mu      sync.Mutex
	workers map[int64]*worker
	// wanted are letters to threads that need a worker and have none; called has a token
	// when there may be some. The goroutine in Run starts the workers.
	wanted map[int64][]letter
	called chan struct{}
	woken  atomic.Bool // what waits for a budget was looked at since the start
}

// shared is what the workers of a replica have in common.
type shared struct {
	books      Books
	front      Frontend
	authoriser Authoriser
	machine    machine
	policy     *policy.Policy
	projects   map[string]Project
	prices     price.Contract
	budgets    *budgets
	limits     Limits
	replica    string
	cliVersion string
	log        *zap.Logger

	slots   *slots
	waiting idSet          // the approvals that the CLIs of this process wait for
	running sync.WaitGroup // the workers, and what outlives them for a moment
	// unpriced are the models of which the log says that they have no contract price, and
	// unlisted those that the price list does not know.
	unpriced, unlisted sync.Map
	unbookedCalls      atomic.Int64
	outputs            outputs
}

// New returns a supervisor that does nothing until [Supervisor.Run].
func New(c Config) *Supervisor {
	c.Limits = c.Limits.withDefaults()
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return newSupervisor(c.Reminder, &shared{
		books: c.Store, front: c.Frontend, authoriser: c.Authoriser, policy: c.Policy, projects: c.Projects, prices: c.Prices,
		machine: &host{
			dataDir: c.DataDir, replica: c.Replica, hidden: append([]string{c.DataDir}, c.Hidden...), command: c.Command, version: c.CLIVersion, gateway: c.Gateway, web: c.Web, policy: c.Policy, git: c.Git, work: &workspace.Keeper{DataDir: c.DataDir}, kept: c.Work, silence: c.Limits.Silence, answer: c.Limits.AnswerTimeout,
		},
		budgets: &budgets{list: c.Budgets, books: c.Store, front: c.Frontend, log: c.Log},
		limits:  c.Limits, replica: c.Replica, cliVersion: c.CLIVersion, log: c.Log, slots: newSlots(c.Limits.MaxLive),
	})
}

func newSupervisor(r Reminder, s *shared) *Supervisor {
	return &Supervisor{shared: s, reminder: r, workers: map[int64]*worker{}, wanted: map[int64][]letter{}, called: make(chan struct{}, 1)}
}

// Run takes up what an earlier run left, keeps the leases, and listens for other
// replicas until ctx ends. Then it stops every worker with its process, hands
// the leases back, and returns.
func (s *Supervisor) Run(ctx context.Context) error {
	workers, stopWorkers := context.WithCancelCause(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	loops.Go(func() {
		s.books.Listen(ctx, func() { s.lookForWork(ctx) }, s.notice)
	})
	loops.Go(func() { s.keepLeases(ctx) })
	for ctx.Err() == nil {
		select {
		case <-s.called:
			s.startWanted(workers)
		case <-ctx.Done():
		}
	}
	loops.Wait()
	stopWorkers(errShutdown)
	s.running.Wait()
	return nil
}

// errShutdown is the cause of the workers' end when the bot stops: their running
// turns are left in the database, to be continued by the next process.
var errShutdown = errors.New("the bot is stopping")

// Wake makes sure that a worker looks at the thread's prompts, on this replica
// if the thread is free. When nothing runs, the next [Supervisor.Run] finds the work
// in the database.
func (s *Supervisor) Wake(threadID int64) { s.post(threadID, letter{kind: letterWake}) }

// post gives a letter to the thread's worker, which is started if there is none.
func (s *Supervisor) post(threadID int64, l letter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.workers[threadID]; ok {
		w.box.put(l)
		return
	}
	s.wanted[threadID] = append(s.wanted[threadID], l)
	select {
	case s.called <- struct{}{}:
	default:
	}
}

// startWanted gives every thread that a letter waits for its worker, which works until
// ctx ends or there is nothing to do.
func (s *Supervisor) startWanted(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, letters := range s.wanted {
		delete(s.wanted, id)
		w, ok := s.workers[id]
		if !ok {
			w = newWorker(s.shared, id)
			s.workers[id] = w
		}
		for _, l := range letters {
			w.box.put(l)
		}
		if ok {
			continue
		}
		s.running.Go(func() {
			for {
				w.run(ctx)
				if s.retire(ctx, w) {
					return
				}
			}
		})
	}
}

// retire removes a worker that has nothing more to do. It reports false when a
// letter arrived after the worker had decided to go.
func (s *Supervisor) retire(ctx context.Context, w *worker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil && w.box.hasWork() && !w.elsewhere {
		return false
	}
	delete(s.workers, w.threadID)
	return true
}

func (s *Supervisor) send(threadID int64, l letter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.workers[threadID]
	if ok {
		w.box.put(l)
	}
	return ok
}

// Decide commits a person's decision and has it delivered to the CLI. The caller
// has authorised the person. When the approval has ended already it is returned
// as it stands, with [store.ErrEnded]; one that needs more people is returned as
// pending.
func (s *Supervisor) Decide(ctx context.Context, d store.Decision) (store.Approval, error) {
	// One commit instead of two where the request waits in this process.
	if s.waiting.has(d.ApprovalID) {
		d.DeliverOn = s.replica
	}
	a, err := s.books.Decide(ctx, d)
	if err != nil || a.Status == store.ApprovalPending {
		return a, err
	}
	s.send(a.ThreadID, letter{kind: letterDecided, id: a.ID, decided: &a})
	return a, nil
}

// Stop interrupts the thread's running turn and drops its queued prompts, on
// whichever replica it runs. by is the Slack user who asked. running is false
// when there is nothing to stop.
func (s *Supervisor) Stop(ctx context.Context, t store.Thread, by string) (running bool, err error) {
	_, _, err = s.books.RunningTurn(ctx, t.ID)
	if errors.Is(err, store.ErrNotFound) {
		// A prompt may wait: for a slot, for its process, for a budget.
		_, err = s.books.NextPrompt(ctx, t.ID)
	}
	if errors.Is(err, store.ErrNotFound) {
		return s.readsOn(t.ID) && s.send(t.ID, letter{kind: letterStop, id: by}), nil
	}
	if err != nil {
		return false, err
	}
	l := letter{kind: letterStop, id: by}
	if s.send(t.ID, l) {
		return true, nil
	}
	if t.LeaseOwner != "" && t.LeaseOwner != s.replica && time.Now().Before(t.LeaseUntil) {
		return true, s.books.Notify(ctx, store.Notice{Kind: store.NoticeStop, ThreadID: t.ID, By: by})
	}
	s.post(t.ID, l)
	return true, nil
}

// readsOn reports whether all that a thread does here is to read calls of a process that
// has gone to their end.
func (s *Supervisor) readsOn(threadID int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.workers[threadID]
	return ok && w.readingOn.Load()
}

// Unbooked is the number of calls of the model that have ended here and are not in the
// ledger yet.
func (s *Supervisor) Unbooked() int { return int(s.unbookedCalls.Load()) }

// Live is the number of CLI processes that this replica runs.
func (s *Supervisor) Live() int { return s.slots.used() }

func (s *Supervisor) notice(n store.Notice) {
	switch n.Kind {
	case store.NoticePrompt:
		s.Wake(n.ThreadID)
	case store.NoticeApproval:
		s.send(n.ThreadID, letter{kind: letterDecided, id: n.ID})
	case store.NoticeStop:
		s.send(n.ThreadID, letter{kind: letterStop, id: n.By})
	}
}

// lookForWork wakes the threads that have work and no live replica.
func (s *Supervisor) lookForWork(ctx context.Context) {
	if !s.woken.Load() {
		// What waits for a budget was looked at under another configuration, perhaps.
		if err := s.books.WakeWaits(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("look for what waits for budgets", zap.Error(err))
		} else {
			s.woken.Store(true)
		}
	}
	s.mu.Lock()
	held := make([]int64, 0, len(s.workers))
	for id, w := range s.workers {
		held = append(held, id)
		w.box.put(letter{kind: letterWake}) // whatever a lost notice was about
	}
	s.mu.Unlock()
	s.bookLost(ctx)
	ids, err := s.books.Unattended(ctx, s.replica, held)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Error("look for unattended threads", zap.Error(err))
		}
		return
	}
	for _, id := range ids {
		s.Wake(id)
	}
}

// bookLost books the calls of the model that nobody makes any more, here or on a replica
// that has died.
func (s *Supervisor) bookLost(ctx context.Context) {
	n, err := s.books.EndLostCalls(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		s.log.Error("book the calls that a dead process has left", zap.Error(err))
	case n > 0:
		s.log.Warn("calls of the model that a dead process has left are booked by what was seen of them", zap.Int("calls", n))
	}
}

// keepLeases renews the leases of the workers well before they run out, tells a
// worker that has lost its own, and looks for work that no notice told of.
func (s *Supervisor) keepLeases(ctx context.Context) {
	renew := time.NewTicker(s.limits.LeaseTTL / 3)
	defer renew.Stop()
	poll := time.NewTicker(s.limits.Poll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			s.lookForWork(ctx)
		case <-renew.C:
			s.renewLeases(ctx)
		}
	}
}

func (s *Supervisor) renewLeases(ctx context.Context) {
	s.mu.Lock()
	var leases []store.Lease
	for _, w := range s.workers {
		if l := w.heldLease(); l.Epoch > 0 {
			leases = append(leases, l)
		}
	}
	s.mu.Unlock()
	if len(leases) == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.LeaseTTL/3, fmt.Errorf("renew leases: no answer in %s", s.limits.LeaseTTL/3))
	defer cancel()
	asked := time.Now()
	kept, err := s.books.RenewLeases(ctx, s.replica, leases, s.limits.LeaseTTL)
	if err != nil {
		s.log.Error("renew leases", zap.Error(err), zap.NamedError("cause", context.Cause(ctx)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		w, ok := s.workers[l.ThreadID]
		switch {
		case !ok:
		case kept[l.ThreadID]:
			w.leaseRenewed(asked)
		case err == nil || w.leaseExpired(s.limits.LeaseTTL):
			// Another replica may run this session from now on: two processes on
			// one session fork its history silently.
			w.box.put(letter{kind: letterLeaseLost, epoch: l.Epoch})
		}
	}
}
