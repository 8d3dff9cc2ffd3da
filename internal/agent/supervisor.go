package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/pulls"
	"deckhand/internal/agent/spend"
	"deckhand/internal/agent/threadtools"
	"deckhand/internal/agent/tools"
	"deckhand/internal/attachment"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/price"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/workspace"
)

// Config is what a supervisor needs. Store, Frontend, Authoriser, Reminder, Projects,
// Replica, DataDir and Command are required.
type Config struct {
	Store      Store
	Frontend   Frontend
	Authoriser Authoriser
	Reminder   Reminder
	Projects   map[string]place.Project
	Policy     *policy.Policy
	Budgets    []spend.Budget
	Replica    string // from [place.OpenReplica]
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
	// Pulls remember pull requests, People are those whom they name and where they talk, and
	// PullEvery is how often the forge is asked how they stand; with a nil Pulls, sessions get no
	// tools of the bot's own.
	Pulls pulls.Store
	// Trust remembers what admins trust of repositories; nil for nothing.
	Trust  TrustStore
	People interface {
		pulls.People
		threadtools.Chat
	}
	// Accounts are those at forges and MCP servers that people have connected.
	Accounts  Accounts
	PullEvery time.Duration
	// Work keeps what threads have made off this machine; nil for nowhere.
	Work Works
	// Workspaces bounds the threads' folders, and what is kept of their work.
	Workspaces workspace.Limits
	// Prices are what tokens cost by contract, where the project has no price.
	Prices price.Contract
	// Files are what people attach, and Attachments bounds them.
	Files       Files
	Attachments attachment.Limits
	Limits      Limits
	Log         *zap.Logger
}

// Supervisor owns the workers of this replica. Its methods are safe for
// concurrent use; those that act on a thread reach its worker on whichever
// replica holds it.
type Supervisor struct {
	*dependencies
	*bounds
	*counters
	reminder Reminder

	mu      sync.Mutex
	workers map[int64]*worker
	// wanted are messages to threads that need a worker and have none; called has a token
	// when there may be some. A goroutine of Run starts the workers.
	wanted map[int64][]message
	called chan struct{}
	life   *registration       // nil while this replica does not live
	peers  map[string]sighting // the other replicas
	unused []threads.Lease     // ours, and no worker's
	gone   chan struct{}       // has a token when a worker has gone
	look   chan time.Duration  // see findWorkSoon
	// sighted are the threads that nobody had at the last look, with the uptime of the first.
	sighted      map[int64]time.Duration
	heartbeatNow chan struct{}
	// stops are by whom threads without a worker were stopped, while that is not carried
	// out.
	stops map[int64]string
	woken atomic.Bool // what waits for a budget was looked at since the start
}

// dependencies are what the workers of a replica work with. They do not change.
type dependencies struct {
	store      Store
	front      Frontend
	authoriser Authoriser
	place      place.Place
	policy     *policy.Policy
	projects   map[string]place.Project
	accounts   *spend.Accounts
	prices     price.Contract
	pulls      *pulls.Service // nil for none
	works      Works          // nil where work is kept on this machine alone
	files      Files          // nil where none can be had
	replica    string
	cliVersion string
	log        *zap.Logger
	people     Accounts   // nil where nobody connects any
	trusts     TrustStore // nil where nothing of a repository is trusted
	// brings is what a project's repository has of a kind; see [place.Host.Brings].
	brings func(ctx context.Context, p place.Project, kind string, fresh bool) (files map[string]string, left []string, err error)
	// wakeAfter has a worker look at the thread's prompts after a while.
	wakeAfter func(threadID int64, after time.Duration)
}

// bounds are the limits of what they do.
type bounds struct {
	limits      Limits
	workspaces  workspace.Limits
	attachments attachment.Limits
}

// counters are what this replica does now.
type counters struct {
	// stopping says that the bot is to stop: nothing begins any more.
	stopping atomic.Bool
	waiting  sync.Map       // the ids of the approvals that the CLIs of this process wait for
	running  sync.WaitGroup // the workers, and what outlives them for a moment
	sure     atomic.Int64   // the uptime up to which this registration is sure to last, as a [time.Duration]; 0 before the first
	// folders and folderBytes are what the threads' folders were when they were counted last.
	folders, folderBytes atomic.Int64
	copying              chan struct{} // held while transcripts are copied beside turns
	forgetting           chan struct{} // held while old work is looked at
	fetching             chan struct{} // one for each thread whose files are being fetched
}

// New returns a supervisor that does nothing until [Supervisor.Run].
func New(c Config) *Supervisor {
	c.Limits = c.Limits.withDefaults()
	c.Log = cmp.Or(c.Log, zap.NewNop())
	host := &place.Host{
		DataDir: c.DataDir, Replica: c.Replica, Hidden: append([]string{c.DataDir}, c.Hidden...), Command: c.Command, Version: c.CLIVersion,
		Gateway: c.Gateway, Web: c.Web, Policy: c.Policy, Git: c.Git, Keeper: &workspace.Keeper{DataDir: c.DataDir, KeepBytes: c.Workspaces.KeepBytes}, Works: c.Work,
		Silence: c.Limits.Silence, Answer: c.Limits.AnswerTimeout, Instructions: systemPrompt, Hooks: ask.AfterChanges(),
	}
	d := &dependencies{
		store: c.Store, front: c.Frontend, authoriser: c.Authoriser, policy: c.Policy, projects: c.Projects,
		place: place.Place{Machine: host, Slots: place.NewSlots(c.Limits.MaxLive), Starts: &place.Starts{AtOnce: c.Limits.Starts}},
		works: c.Work, files: c.Files,
		accounts: spend.New(spend.Config{Store: c.Store, Budgets: c.Budgets, Prices: c.Prices, Front: c.Frontend, Log: c.Log}),
		prices:   c.Prices, replica: c.Replica, cliVersion: c.CLIVersion, log: c.Log,
		trusts: c.Trust, brings: host.Brings, people: c.Accounts,
	}
	sup := newSupervisor(c.Reminder, d, &bounds{c.Limits, c.Workspaces, c.Attachments})
	if c.Pulls != nil {
		d.pulls = pulls.New(pulls.Config{
			Store: c.Pulls, People: c.People, Pusher: host, Accounts: c.Accounts, Projects: c.Projects, Every: c.PullEvery, Wake: sup.Wake, Log: c.Log.Named("pulls"),
			Show: func(id string) { c.Frontend.Show(outbox.PullPost, id) },
		})
		host.People = c.People
		host.Servers = func(t threads.Thread, p place.Project) map[string]*mcp.Server {
			list := threadtools.Tools(t, c.People, host.Hidden)
			if p.Preview.Run != "" {
				list = append(list, preview(t, p, host, c.People))
			}
			if len(p.Skills) > 0 {
				list = append(list, skillTool(p.Skills))
			}
			if p.OpensPulls() {
				list = append(list, d.pulls.Tools()...)
			}
			return map[string]*mcp.Server{tools.Server: tools.New(t.ID, list, c.Pulls, d.pulls.Log)}
		}
	}
	return sup
}

func newSupervisor(r Reminder, d *dependencies, b *bounds) *Supervisor {
	sup := &Supervisor{
		dependencies: d, bounds: b, reminder: r,
		counters: &counters{copying: make(chan struct{}, 1), forgetting: make(chan struct{}, forgetAtOnce), fetching: make(chan struct{}, fetchAtOnce)},
		workers:  map[int64]*worker{}, wanted: map[int64][]message{}, stops: map[int64]string{}, called: make(chan struct{}, 1),
		gone: make(chan struct{}, 1), look: make(chan time.Duration, 1), heartbeatNow: make(chan struct{}, 1),
	}
	d.wakeAfter = func(threadID int64, after time.Duration) { time.AfterFunc(after, func() { sup.Wake(threadID) }) }
	return sup
}

// Run takes up what an earlier run left, keeps this replica alive, and listens for others
// until ctx ends. Then no turn begins. Running turns may finish within the drain time, except
// those that wait for people. The rest are interrupted, and continued by the thread's next
// holder; then processes stop, and the leases are handed back.
func (s *Supervisor) Run(ctx context.Context) error {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	bot, stopWorkers := context.WithCancelCause(context.WithoutCancel(ctx))
	var loops sync.WaitGroup
	loops.Go(func() {
		s.store.Listen(serving, func() { s.findWorkSoon(0) }, s.notice)
	})
	loops.Go(func() { s.keepAlive(serving, bot) })
	loops.Go(func() { s.pollForWork(serving) })
	loops.Go(func() { s.keepTidy(serving) })
	loops.Go(func() { s.keepForgetting(serving) })
	loops.Go(func() {
		for serving.Err() == nil {
			select {
			case <-s.called:
				s.startWanted(bot)
			case <-serving.Done():
			}
		}
	})
	<-ctx.Done()
	s.drain()
	stopWorkers(errShutdown)
	s.untilGone(nil)
	stopServing()
	loops.Wait()
	s.running.Wait()
	return nil
}

// drain lets turns that run come to their end, for some time.
func (s *Supervisor) drain() {
	s.stopping.Store(true)
	s.heartbeatSoon() // others take what comes
	s.mu.Lock()
	n := len(s.workers)
	for _, w := range s.workers {
		w.box.put(message{kind: messageWake})
	}
	s.mu.Unlock()
	if n == 0 || s.limits.Drain <= 0 {
		return
	}
	s.log.Info("stopping: no turn begins any more, and those that run may end", zap.Int("threads", n), zap.Duration("within", s.limits.Drain))
	limit := time.NewTimer(s.limits.Drain)
	defer limit.Stop()
	s.untilGone(limit.C)
}

// untilGone returns when no worker is left, or enough.
func (s *Supervisor) untilGone(enough <-chan time.Time) {
	for {
		s.mu.Lock()
		n := len(s.workers)
		s.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-s.gone:
		case <-enough:
			return
		}
	}
}

// Stopping reports whether the bot has been told to stop, and takes nothing more on.
func (s *Supervisor) Stopping() bool { return s.stopping.Load() }

// Alive reports whether this replica may run threads: the others know that it lives.
func (s *Supervisor) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life != nil && !s.MayBeDead()
}

// MayBeDead reports whether others may have taken this replica for dead, and its threads
// over, in its last registration. In a process that was frozen for too long it is true from its
// first instruction on, before anything in it has noticed.
func (s *Supervisor) MayBeDead() bool {
	sure := time.Duration(s.sure.Load())
	return sure > 0 && s.place.Uptime() >= sure
}

// errShutdown is the cause of the workers' end when the bot stops: their running
// turns are left in the database, to be continued by the next process.
var errShutdown = errors.New("the bot is stopping")

// Wake makes sure that a worker looks at the thread's prompts, on this replica
// if the thread is free. When nothing runs, the next [Supervisor.Run] finds the work
// in the database.
func (s *Supervisor) Wake(threadID int64) {
	s.post(threadID, message{kind: messageWake})
}

// post gives a message to the thread's worker, which is started if there is none.
func (s *Supervisor) post(threadID int64, m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w, ok := s.workers[threadID]; ok {
		w.box.put(m)
		return
	}
	s.wanted[threadID] = append(s.wanted[threadID], m)
	s.startSoon()
}

func (s *Supervisor) startSoon() {
	select {
	case s.called <- struct{}{}:
	default:
	}
}

// startWanted gives every thread that a message waits for its worker, while this replica
// lives. It works until the registration is over or there is nothing to do.
func (s *Supervisor) startWanted(bot context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == nil {
		return // who registers comes back to it
	}
	life := s.life
	for id, messages := range s.wanted {
		delete(s.wanted, id)
		if s.stopping.Load() {
			// Prompts are for others, or for later; a stop is for now.
			messages = slices.DeleteFunc(messages, func(m message) bool { return m.kind != messageStop })
		}
		w, ok := s.workers[id]
		if !ok && len(messages) > 0 {
			w = newWorker(s, id)
			w.life, w.ended, w.stopBy = life.Registration, spend.NewEnded(bot, &s.running), s.stops[id]
			delete(s.stops, id)
			w.eager = w.stopBy != "" || slices.ContainsFunc(messages, func(m message) bool { return m.eager || m.kind == messageStop })
			if s.workers[id] = w; len(s.workers) == 1 {
				s.heartbeatSoon() // the last one was long ago
			}
		}
		for _, m := range messages {
			w.box.put(m)
		}
		if ok || w == nil {
			continue
		}
		life.workers.Go(func() {
			for {
				w.run(life.ctx)
				if s.retire(life.ctx, w) {
					return
				}
			}
		})
	}
}

// retire removes a worker that has nothing more to do. It reports false when a
// message arrived after the worker had decided to go.
func (s *Supervisor) retire(ctx context.Context, w *worker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil && w.box.hasWork(s.stopping.Load()) && !w.elsewhere {
		return false
	}
	delete(s.workers, w.threadID)
	w.noteStops(w.box.take())
	if w.stopBy != "" {
		s.stops[w.threadID] = w.stopBy
	}
	select {
	case s.gone <- struct{}{}:
	default:
	}
	if w.elsewhere {
		s.findWorkSoon(politeFor) // if nobody has it then, it is ours
	}
	return true
}

func (s *Supervisor) send(threadID int64, m message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.workers[threadID]
	if ok {
		w.box.put(m)
	}
	return ok
}

// Decide commits a person's decision and has it delivered to the CLI. The caller
// has authorised the person. When the approval has ended already it is returned
// as it stands, with [pg.ErrEnded]; one that needs more people is returned as
// pending. The thread's worker gets messageDecided, from here or by a notice from
// another replica (see notice), and has [ask.Desk.Decided] answer the CLI.
func (s *Supervisor) Decide(ctx context.Context, d approvals.Decision) (approvals.Approval, error) {
	// One commit instead of two where the request waits in this process.
	if _, here := s.waiting.Load(d.ApprovalID); here {
		d.DeliverOn = s.replica
	}
	a, err := s.store.Decide(ctx, d)
	if err != nil || a.Status == approvals.Pending {
		return a, err
	}
	s.send(a.ThreadID, message{kind: messageDecided, id: a.ID, decided: &a})
	return a, nil
}

// Change is [ask.Change] by this team's policy.
func (s *Supervisor) Change(a approvals.Approval, input json.RawMessage) (e approvals.Edit, why string) {
	return ask.Change(s.policy, a, input)
}

// Stop interrupts the thread's running turn and drops its queued prompts, on
// whichever replica it runs. by is the Slack user who asked. running is false
// when there is nothing to stop. While the database is away whatever this replica runs is
// stopped all the same, which is written down when it is back; t needs only its ID for
// that.
func (s *Supervisor) Stop(ctx context.Context, t threads.Thread, by string) (running bool, err error) {
	_, _, err = s.store.RunningTurn(ctx, t.ID)
	if errors.Is(err, pg.ErrNotFound) {
		// A prompt may wait: for a slot, for its process, for a budget.
		_, err = s.store.NextPrompt(ctx, t.ID)
	}
	if errors.Is(err, pg.ErrNotFound) {
		return s.readsOn(t.ID) && s.send(t.ID, message{kind: messageStop, id: by}), nil
	}
	m := message{kind: messageStop, id: by}
	if s.send(t.ID, m) {
		return true, nil // even while the database is away
	}
	if err != nil {
		return false, err
	}
	if t.LeaseOwner != "" && t.LeaseOwner != s.replica {
		return true, s.store.Notify(ctx, pg.Notice{Kind: pg.NoticeStop, ThreadID: t.ID, By: by})
	}
	s.post(t.ID, m)
	return true, nil
}

// Webhooks takes the deliveries of forges.
func (s *Supervisor) Webhooks() http.Handler { return s.pulls.Webhooks() }

// Unbooked is the number of calls of the model that have ended here and are not in the
// ledger yet.
func (s *Supervisor) Unbooked() int { return s.accounts.Unbooked() }

// Live is the number of CLI processes that this replica runs.
func (s *Supervisor) Live() int { return s.place.Slots.Used() }

func (s *Supervisor) notice(n pg.Notice) {
	switch n.Kind {
	case pg.NoticePrompt:
		if !s.stopping.Load() {
			s.Wake(n.ThreadID)
		}
	case pg.NoticeApproval:
		s.send(n.ThreadID, message{kind: messageDecided, id: n.ID})
	case pg.NoticeVote:
		s.mu.Lock()
		_, ours := s.workers[n.ThreadID]
		s.mu.Unlock()
		if ours { // no other replica edits the card
			s.front.Show(outbox.CardPost, n.ID)
		}
	case pg.NoticeStop:
		s.send(n.ThreadID, message{kind: messageStop, id: n.By})
	case pg.NoticeServers:
		s.send(n.ThreadID, message{kind: messageServers})
	case pg.NoticeFreed:
		s.heartbeatSoon() // there may be another replica
		s.findWorkSoon(0)
	case pg.NoticeShown:
		s.front.Changed(n.By)
	}
}
