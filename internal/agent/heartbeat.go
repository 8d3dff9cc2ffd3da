package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// A replica holds its threads for as long as its heartbeat counts up in the database. A peer
// that sees the same count for the lease's time marks the replica dead, and its threads are
// free. By then the replica has ended its processes: it ends them when no heartbeat was taken
// for four fifths of the lease, counted from when it last asked for one that was taken; if the
// replica is stopped, its reapers end them. Both sides count by their machine's time since its
// start, suspended or not, and the peer begins to count later, so no clock that people set has
// a part in it. A lost connection proves nothing: a replica that cannot reach the database may
// still run.
const (
	// heartbeats is how many there are in the time of a lease, so that some may be lost.
	heartbeats = 15
	// quietHeartbeats is how many there are of a replica that runs no thread: it has no
	// sessions to lose. It looks after the others as often as ever.
	quietHeartbeats = 3
	// heartbeatPatience is the share of a lease's time that one may take.
	heartbeatPatience = 3
	// handOnAfter is for how long a replica must have had room until a thread that waits
	// for a slot elsewhere is handed to it. The next one follows as much later, when what
	// came of the first is known.
	handOnAfter = 3 * time.Second
)

// registration is this replica from its registration until others mark it dead, with the
// workers that run meanwhile.
type registration struct {
	threads.Registration
	ctx     context.Context //nolint:containedctx // ends with it, by [threads.ErrFenced] or the bot's end
	workers sync.WaitGroup
	lost    chan struct{} // has a token when others have marked it dead
	until   chan time.Duration
}

// keepAlive keeps the replica registered until ctx ends: when a registration is over it
// registers again. Workers run below bot.
func (s *Supervisor) keepAlive(ctx, bot context.Context) {
	for ctx.Err() == nil {
		life, until, ok := s.register(ctx)
		if !ok {
			return
		}
		s.live(ctx, bot, life, until)
	}
}

// register registers the replica, and tries for as long as it takes. until is the uptime up
// to which the registration is sure to last.
func (s *Supervisor) register(ctx context.Context) (life threads.Registration, until time.Duration, ok bool) {
	pause := time.NewTicker(s.limits.LeaseTTL / heartbeats)
	defer pause.Stop()
	for told := ""; ; {
		asked := s.place.Uptime()
		trying, cancel := context.WithTimeout(ctx, s.limits.LeaseTTL/heartbeatPatience)
		life, err := s.store.Register(trying, threads.Replica{ID: s.replica, Kernel: s.place.Kernel(), Slots: s.limits.MaxLive, Lease: s.limits.LeaseTTL})
		if errors.Is(err, threads.ErrLives) {
			var peers []threads.Peer
			if peers, err = s.store.Living(trying); err == nil {
				s.watch(peers)
				err = threads.ErrLives
			}
		}
		cancel()
		if err == nil {
			until = asked + s.limits.LeaseTTL*4/5
			s.place.LiveFor(until - s.place.Uptime())
			return life, until, true
		}
		if ctx.Err() == nil && err.Error() != told {
			told = err.Error()
			s.log.Warn("cannot register this replica in the database, so it takes no threads; trying again", zap.Error(err), zap.String("cure", pg.Cure(err)))
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return threads.Registration{}, 0, false
		}
	}
}

// live runs workers until the registration is over, or ctx ends.
func (s *Supervisor) live(ctx, bot context.Context, life threads.Registration, until time.Duration) {
	l := &registration{Registration: life, lost: make(chan struct{}, 1), until: make(chan time.Duration, 1)}
	var end context.CancelCauseFunc
	l.ctx, end = context.WithCancelCause(bot)
	s.sure.Store(int64(until))
	s.mu.Lock()
	s.life = l
	s.mu.Unlock()
	s.startSoon()
	s.findWorkSoon(0)

	s.heartbeatSoon() // the others are not known yet
	beating, stop := context.WithCancel(ctx)
	var beat sync.WaitGroup
	beat.Go(func() { s.heartbeat(beating, l) })
	over := s.outlast(ctx, l, until)
	if over != "" {
		s.sure.Store(int64(s.place.Uptime()))
		s.log.Error("this replica's sessions are ended, and go on here or elsewhere: "+over, zap.Duration("lease", s.limits.LeaseTTL))
	}
	s.mu.Lock()
	s.life = nil
	end(threads.ErrFenced)
	for _, w := range s.workers {
		w.kill()
	}
	s.mu.Unlock()
	stop()
	beat.Wait()
	l.workers.Wait()
	if ctx.Err() != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.LeaseTTL/heartbeatPatience)
		defer cancel()
		if err := s.store.Unregister(ending, life); err != nil {
			s.log.Error("hand the leases back", zap.Error(err))
		}
	}
}

// outlast returns the reason when the registration is over, and "" when ctx ends.
func (s *Supervisor) outlast(ctx context.Context, l *registration, until time.Duration) string {
	for {
		left := time.NewTimer(until - s.place.Uptime())
		select {
		case until = <-l.until:
		case <-l.lost:
			left.Stop()
			return "others have taken it for dead"
		case <-left.C:
			// A machine that was suspended has been up for longer than it has run.
			if s.place.Uptime() >= until {
				return "the database has not heard of it for too long"
			}
		case <-ctx.Done():
			left.Stop()
			return ""
		}
		left.Stop()
	}
}

// heartbeat counts the heartbeat up until ctx ends, or others have marked the replica dead.
func (s *Supervisor) heartbeat(ctx context.Context, l *registration) {
	tick := time.NewTicker(s.limits.LeaseTTL / heartbeats)
	defer tick.Stop()
	last := time.Duration(0)
	for failing := false; ; {
		select {
		case <-tick.C:
			if !failing && s.quiet() && s.place.Uptime()-last < s.limits.LeaseTTL/quietHeartbeats-s.limits.LeaseTTL/heartbeats/2 {
				s.lookAround(ctx)
				continue
			}
		case <-s.heartbeatNow:
		case <-ctx.Done():
			return
		}
		asked := s.place.Uptime()
		before := s.heldLeases()
		trying, cancel := context.WithTimeoutCause(ctx, s.limits.LeaseTTL/heartbeatPatience, fmt.Errorf("no answer in %s", s.limits.LeaseTTL/heartbeatPatience))
		load := threads.Load{Slots: s.openSlots(), Busy: len(before), Turns: s.place.Slots.Working()}
		held, peers, err := s.store.Heartbeat(trying, l.Registration, load)
		cause := context.Cause(trying)
		cancel()
		switch {
		case errors.Is(err, threads.ErrFenced):
			l.lost <- struct{}{}
			return
		case ctx.Err() != nil:
			return
		case err != nil:
			if !failing {
				s.log.Warn("cannot tell that this replica lives; its sessions are ended if that lasts", zap.Error(err), zap.NamedError("cause", cause), zap.String("cure", pg.Cure(err)))
			}
			failing = true
			continue
		case failing:
			s.log.Info("it can be told again that this replica lives")
			failing = false
		}
		select { // the latest counts
		case <-l.until:
		default:
		}
		last = asked
		until := asked + s.limits.LeaseTTL*4/5
		s.sure.Store(int64(until))
		l.until <- until
		s.place.LiveFor(until - s.place.Uptime())
		s.compare(before, held)
		s.see(load, peers)
	}
}

// quiet reports whether this replica runs no thread.
func (s *Supervisor) quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.workers) == 0
}

// lookAround looks after the other replicas between two heartbeats, if there are some. What it
// cannot see the next one does.
func (s *Supervisor) lookAround(ctx context.Context) {
	s.mu.Lock()
	alone := len(s.peers) == 0
	s.mu.Unlock()
	if alone {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.LeaseTTL/heartbeatPatience)
	defer cancel()
	if all, err := s.store.Living(ctx); err == nil {
		s.see(threads.Load{}, slices.DeleteFunc(all, func(p threads.Peer) bool { return p.Replica == s.replica }))
	}
}

// see acts on how the other replicas are.
func (s *Supervisor) see(load threads.Load, peers []threads.Peer) {
	s.watch(peers)
	s.front.SetShare(share(load, peers))
	s.handOn()
}

// share is this replica's part of what the chat allows all of them. A quarter of what is
// shown of turns is divided evenly, so that one that has no turn yet can begin to show
// one, and the rest by turns. Those that are silent count until they are marked dead: they may
// still talk to the chat.
func share(mine threads.Load, peers []threads.Peer) Share {
	turns := mine.Turns
	for _, p := range peers {
		turns += p.Turns
	}
	even := 1 / float64(1+len(peers))
	if turns == 0 {
		return Share{Anywhere: even, Turns: even}
	}
	return Share{Anywhere: even, Turns: even/4 + float64(mine.Turns)/float64(turns)*3/4}
}

// heartbeatSoon has the next heartbeat made at once: it tells this replica's load, and reads the
// others'.
func (s *Supervisor) heartbeatSoon() {
	select {
	case s.heartbeatNow <- struct{}{}:
	default:
	}
}

// openSlots is how many sessions may run at once: none more begins while the bot stops.
func (s *Supervisor) openSlots() int {
	if s.stopping.Load() {
		return 0
	}
	return s.limits.MaxLive
}

// heldLeases are those of the workers.
func (s *Supervisor) heldLeases() []threads.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []threads.Lease
	for _, w := range s.workers {
		if l := w.heldLease(); l.Epoch > 0 {
			out = append(out, l)
		}
	}
	return out
}

// compare tells workers which of the leases that they had held before the database was
// asked are not there any more, and notes those that nobody here works under.
func (s *Supervisor) compare(before, held []threads.Lease) {
	there := map[threads.Lease]bool{}
	for _, l := range held {
		there[l] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range before {
		if w := s.workers[l.ThreadID]; w != nil && !there[l] {
			// Another replica may run this session from now on: two processes on
			// one session fork its history silently.
			w.lose(l)
		}
	}
	s.unused = nil
	for _, l := range held {
		if s.workers[l.ThreadID] == nil {
			s.unused = append(s.unused, l)
		}
	}
}

// sighting is when a replica was first seen with this heartbeat, by our machine's uptime.
type sighting struct {
	threads.Peer
	since time.Duration
	roomy time.Duration // since when it has had room; counted anew when a thread was handed on
}

// watch notes which replicas live, and has those marked dead whose heartbeat does not move.
func (s *Supervisor) watch(peers []threads.Peer) {
	now, dead := s.place.Uptime(), false
	seen := map[string]sighting{}
	s.mu.Lock()
	for _, p := range peers {
		v := sighting{p, now, now}
		if old, ok := s.peers[p.Replica]; ok && old.Registration == p.Registration {
			if old.Heartbeats == p.Heartbeats {
				v.since = old.since
			}
			if old.Free() > 0 {
				v.roomy = old.roomy
			}
		}
		seen[p.Replica] = v
		dead = dead || v.silent(now)
	}
	s.peers = seen
	s.mu.Unlock()
	if dead {
		s.findWorkSoon(0)
	}
}

func (v sighting) silent(now time.Duration) bool { return now-v.since >= v.Lease }

// handOn gives up a thread that waits for a slot here if another replica has had room for
// some time: the lease goes back, and whom the thread suits takes it. That is not this
// replica, which has no room by the same count; see [store.Store.AcquireLease].
func (s *Supervisor) handOn() {
	to := s.roomyPeer()
	if to == "" || !s.place.Slots.HandOn() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.peers[to]
	v.roomy = s.place.Uptime()
	s.peers[to] = v
}

// roomyPeer is a replica that has had room for some time and lives, or "".
func (s *Supervisor) roomyPeer() string {
	now := s.place.Uptime()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, v := range s.peers {
		if v.Free() > 0 && now-v.roomy >= handOnAfter && now-v.since <= v.Lease/2 {
			return id
		}
	}
	return ""
}

// markDeadWithin is longer than a frozen process may keep rows locked; see pg.Begin.
const markDeadWithin = 30 * time.Second

// markDead hands back the leases of replicas that have died.
func (s *Supervisor) markDead(ctx context.Context) {
	now := s.place.Uptime()
	var dead []threads.Peer
	s.mu.Lock()
	for _, v := range s.peers {
		if v.silent(now) {
			dead = append(dead, v.Peer)
		}
	}
	s.mu.Unlock()
	for _, p := range dead {
		limited, done := context.WithTimeout(ctx, markDeadWithin)
		gone, err := s.store.MarkDead(limited, p)
		done()
		switch {
		case err != nil && ctx.Err() == nil:
			s.log.Error("take the threads of a dead replica over", zap.Error(err))
		case gone:
			s.log.Warn("a replica was silent for its lease's time and is taken for dead; its threads are free", zap.String("dead", p.Replica), zap.Duration("lease", p.Lease))
		}
	}
}
