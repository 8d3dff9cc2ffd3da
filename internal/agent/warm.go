package agent

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/agent/place"
	"deckhand/internal/store"
)

// A warm spare is a process that was started for a thread that does not exist yet: the next
// one that begins in a channel where one has begun lately. The thread's number is fetched
// before, and becomes the thread's when its first message is accepted (see
// [store.Prepared]), so that its folder, its branch, its home and its sandbox are the
// thread's own from the start. It has no row, no lease and no turn, and no call of the
// model leaves it before its thread's worker has bound it (see [worker.bind]).
//
// A spare has a slot that nobody waits for and starts while nothing else does. It gives
// both up when a thread needs them. One that has died, has waited for as long as a session
// may be idle, or does not start from what a new thread would start from now, is thrown
// away with all that was made for it; after a kill the next run of the bot does that.

const (
	// spareAfter is how long after a thread's beginning the spare for the next one is
	// made: the thread's first turn comes first.
	spareAfter = 3 * time.Second
	// spareAgain is after how long a spare is tried again that had no slot, no start, or
	// had to give them up.
	spareAgain = 10 * time.Second
	// spareClaim is how long a spare waits for the worker of a thread that has its number.
	spareClaim = time.Minute
	// sparePause is how often a spare that is to start looks whether nothing else does.
	sparePause = 200 * time.Millisecond
	// spareAudit bounds the writing down of what was done for it.
	spareAudit = 10 * time.Second
)

// spareOf says whose next thread a spare is for.
type spareOf struct{ team, channel, project string }

type spareState int

const (
	spareMade    spareState = iota // it is being made
	spareReady                     // for a thread
	spareClaimed                   // a thread is about to have its number
	spareTaken                     // its thread's worker has it
	spareLeaving                   // it is thrown away
)

// warmSpare is one spare. Its state is the [warmSpares]'; the rest is set once.
type warmSpare struct {
	of      spareOf
	project place.Project
	thread  store.Thread // as far as it is known
	calls   *lateMeter
	log     *zap.Logger

	proc     place.Process
	prepared place.Prepared // what its setup has done
	from     string         // what it starts from, see [place.Machine]

	state spareState
	since time.Time          // it is in this state
	moved chan struct{}      // has a token when that has changed
	leave context.CancelFunc // has it be thrown away, unless it is taken
	gone  chan struct{}      // closed when nothing is left of it, or it is taken
}

// MakeRoom implements [place.Holder].
func (sp *warmSpare) MakeRoom() { sp.leave() }

// warmSpares are those of a replica.
type warmSpares struct {
	*shared
	due chan struct{} // has a token when there may be something to do

	mu     sync.Mutex
	all    map[int64]*warmSpare // by their threads' numbers; none that is taken
	wanted map[spareOf]time.Time
	tended sync.WaitGroup
}

func newWarmSpares(s *shared) *warmSpares {
	return &warmSpares{shared: s, due: make(chan struct{}, 1), all: map[int64]*warmSpare{}, wanted: map[spareOf]time.Time{}}
}

// want says that a thread has begun, so that another may.
func (s *warmSpares) want(t store.Thread) {
	if s.limits.Spares <= 0 {
		return
	}
	s.mu.Lock()
	s.wanted[spareOf{t.TeamID, t.ChannelID, t.Project}] = time.Now()
	s.mu.Unlock()
	s.soon()
}

func (s *warmSpares) soon() {
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// run makes spares until ctx ends, and returns when none is left.
func (s *warmSpares) run(ctx context.Context) {
	if s.limits.Spares <= 0 {
		return
	}
	next := time.NewTimer(spareAgain)
	defer next.Stop()
	for ctx.Err() == nil {
		next.Reset(s.consider(ctx))
		select {
		case <-ctx.Done():
		case <-s.due:
		case <-next.C:
		}
	}
	s.tended.Wait()
}

// consider begins a spare if one is wanted, and returns when to look again.
func (s *warmSpares) consider(ctx context.Context) time.Duration {
	of, wait := s.next(time.Now())
	if of == nil {
		return wait
	}
	id, err := s.store.NextThread(ctx)
	if err != nil {
		s.log.Warn("fetch the number of a warm spare's thread", zap.Error(err))
		return spareAgain
	}
	sp := &warmSpare{
		of: *of, project: s.projects[of.project], calls: &lateMeter{}, log: s.log.With(zap.Int64("thread", id)),
		thread: store.Thread{ID: id, TeamID: of.team, ChannelID: of.channel, Project: of.project, SessionID: uuid.NewString()},
		moved:  make(chan struct{}, 1), gone: make(chan struct{}), since: time.Now(),
	}
	var inner context.Context
	inner, sp.leave = context.WithCancel(ctx)
	if !s.place.Slots.Lend(sp) {
		sp.leave()
		return spareAgain
	}
	s.mu.Lock()
	s.all[id] = sp
	s.mu.Unlock()
	s.tended.Go(func() { s.tend(inner, sp) })
	return spareAgain
}

// next is whom a spare is to be made for now, or nil and when to look again. Where there
// are as many as there may be, the one that was wanted longest ago makes room.
func (s *warmSpares) next(now time.Time) (best *spareOf, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait = s.limits.IdleTimeout
	has := map[spareOf]bool{}
	for _, sp := range s.all {
		has[sp.of] = true
	}
	for of, at := range s.wanted {
		switch _, known := s.projects[of.project]; {
		case !known || now.Sub(at) >= s.limits.IdleTimeout:
			delete(s.wanted, of)
		case has[of]:
		case now.Sub(at) < spareAfter:
			wait = min(wait, spareAfter-now.Sub(at))
		case best == nil || at.After(s.wanted[*best]):
			best = &of
		}
	}
	if best == nil || len(s.all) < s.limits.Spares {
		return best, wait
	}
	var oldest *warmSpare
	for _, sp := range s.all {
		if sp.state == spareReady && (oldest == nil || s.wanted[sp.of].Before(s.wanted[oldest.of])) {
			oldest = sp
		}
	}
	if oldest != nil && s.wanted[oldest.of].Before(s.wanted[*best]) {
		oldest.leave() // who tends it says when it is gone
	}
	return nil, spareAgain
}

// tend makes a spare and keeps it until it is taken, or is to be thrown away.
func (s *warmSpares) tend(ctx context.Context, sp *warmSpare) {
	defer sp.leave()
	defer close(sp.gone)
	defer s.soon()
	err := s.prepareSpare(ctx, sp)
	if err == nil {
		sp.log.Info("a warm spare is ready", zap.String("project", sp.of.project), zap.Int("pid", sp.proc.PID()))
		err = s.keep(ctx, sp)
	}
	s.mu.Lock()
	taken := sp.state == spareTaken
	if !taken {
		sp.state = spareLeaving
	}
	if err != nil && ctx.Err() == nil {
		delete(s.wanted, sp.of) // until the next thread begins there
	}
	s.mu.Unlock()
	if taken {
		return
	}
	if err != nil && ctx.Err() == nil {
		sp.log.Warn("a warm spare is thrown away", zap.Error(err))
	}
	s.throwAway(sp)
	s.place.Slots.TakeBack(sp)
	s.mu.Lock()
	delete(s.all, sp.thread.ID)
	s.mu.Unlock()
}

// keep waits until a spare is taken or its time is over. Its error says that it has died.
func (s *warmSpares) keep(ctx context.Context, sp *warmSpare) error {
	s.move(sp, spareMade, spareReady)
	over := time.NewTimer(0)
	defer over.Stop()
	for {
		s.mu.Lock()
		state, until := sp.state, sp.since.Add(s.limits.IdleTimeout)
		if state == spareClaimed {
			until = sp.since.Add(spareClaim)
		}
		s.mu.Unlock()
		if state == spareTaken {
			return nil
		}
		over.Reset(time.Until(until))
		select {
		case <-sp.moved:
		case <-sp.proc.Done():
			return sp.proc.Exit()
		case <-over.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// prepareSpare makes all that its thread will need, and starts its process.
func (s *warmSpares) prepareSpare(ctx context.Context, sp *warmSpare) error {
	t, p := &sp.thread, sp.project
	if err := s.place.Reserve(*t, p); err != nil {
		return err
	}
	dir, _, err := s.place.Workspace(ctx, *t, p)
	if err != nil {
		return err
	}
	t.Workspace = dir
	sp.prepared, err = s.place.Prepare(ctx, *t, p, func() {})
	s.audit(sp, sp.prepared.Entries...)
	if err != nil {
		return err
	}
	if sp.from, err = s.place.StartsFrom(ctx, *t, p); err != nil {
		return err
	}
	for !s.place.Starts.Lend(sp.leave) {
		select {
		case <-time.After(sparePause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer s.place.Starts.TakeBack()
	sp.proc, err = s.place.Start(ctx, *t, p, false, 1, sp.calls, sp.log)
	return err
}

// throwAway ends a spare's process, and removes what was made for it.
func (s *warmSpares) throwAway(sp *warmSpare) {
	if sp.proc != nil {
		sp.proc.Kill()
		<-sp.proc.Done()
		if visits := sp.proc.Visits(); len(visits) > 0 {
			s.audit(sp, store.AuditEntry{Kind: store.AuditWeb, TeamID: sp.of.team, ThreadID: sp.thread.ID, Details: map[string]any{"visits": visits}})
		}
	}
	if err := s.place.Unreserve(sp.thread, sp.project, false); err != nil {
		sp.log.Error("remove what was made for a warm spare", zap.Error(err))
	}
}

// audit writes down what was done for a spare, whatever becomes of it.
func (s *warmSpares) audit(sp *warmSpare, entries ...store.AuditEntry) {
	if len(entries) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), spareAudit)
	defer cancel()
	if err := s.store.Audit(ctx, entries...); err != nil {
		sp.log.Error("write down what a warm spare has done", zap.Error(err))
	}
}

// move has a spare go over from one state to another; it reports whether it was in the
// first one.
func (s *warmSpares) move(sp *warmSpare, from, to spareState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sp.move(from, to)
}

// move is [warmSpares.move] for who holds the lock.
func (sp *warmSpare) move(from, to spareState) bool {
	if sp.state != from {
		return false
	}
	sp.state, sp.since = to, time.Now()
	select {
	case sp.moved <- struct{}{}:
	default:
	}
	return true
}

// claim is a ready spare's, for one who asks.
func (s *warmSpares) claim(of spareOf) store.Prepared {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, sp := range s.all {
		if sp.of == of && sp.move(spareReady, spareClaimed) {
			return store.Prepared{ThreadID: id, Replica: s.replica}
		}
	}
	return store.Prepared{}
}

func (s *warmSpares) giveBack(threadID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sp, ok := s.all[threadID]; ok {
		sp.move(spareClaimed, spareReady)
	}
}

// has reports whether there is a spare for a thread that has its number.
func (s *warmSpares) has(threadID int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[threadID] != nil
}

// ready is how many wait for a thread.
func (s *warmSpares) ready() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.all {
		if sp.state == spareReady {
			n++
		}
	}
	return n
}

// take gives the thread's worker its spare, with its slot, or nil if there is none: then
// nothing of it is left.
func (s *warmSpares) take(ctx context.Context, w *worker) (*warmSpare, error) {
	s.mu.Lock()
	sp := s.all[w.threadID]
	if sp == nil {
		s.mu.Unlock()
		return nil, nil
	}
	if sp.state == spareClaimed && s.place.Slots.Pass(sp, w) {
		sp.move(spareClaimed, spareTaken)
		delete(s.all, w.threadID)
		s.wanted[sp.of] = time.Now() // its thread's first turn comes before another
		s.mu.Unlock()
		<-sp.gone
		return sp, nil
	}
	s.mu.Unlock()
	sp.leave()
	select {
	case <-sp.gone:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
