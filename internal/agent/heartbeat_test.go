package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/memstore"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/threads"
)

// wire is a replica's way to the database. While it is cut nothing answers.
type wire struct {
	*memstore.Store
	is atomic.Bool
}

func (w *wire) wait(ctx context.Context) error {
	if !w.is.Load() {
		return nil
	}
	<-ctx.Done() // a network that swallows what is sent
	return context.Cause(ctx)
}

func (w *wire) Heartbeat(ctx context.Context, l threads.Registration, load threads.Load) ([]threads.Lease, []threads.Peer, error) {
	if err := w.wait(ctx); err != nil {
		return nil, nil, err
	}
	return w.Store.Heartbeat(ctx, l, load)
}

func (w *wire) Register(ctx context.Context, r threads.Replica) (threads.Registration, error) {
	if err := w.wait(ctx); err != nil {
		return threads.Registration{}, err
	}
	return w.Store.Register(ctx, r)
}

func (w *wire) ApprovalByID(ctx context.Context, id string) (approvals.Approval, error) {
	if err := w.wait(ctx); err != nil {
		return approvals.Approval{}, err
	}
	return w.Store.ApprovalByID(ctx, id)
}

// another is a replica beside the stage's, which lives until the test ends.
func another(t *testing.T, db *memstore.Store, id string) (beatOn *atomic.Bool, life func() threads.Registration) {
	t.Helper()
	var on atomic.Bool
	on.Store(true)
	var now atomic.Pointer[threads.Registration]
	l, err := db.Register(t.Context(), threads.Replica{ID: id, Kernel: "other", Slots: 2, Lease: staged.LeaseTTL})
	if err != nil {
		t.Fatal(err)
	}
	now.Store(&l)
	go func() {
		for t.Context().Err() == nil {
			if on.Load() {
				_, _, err := db.Heartbeat(t.Context(), *now.Load(), threads.Load{Slots: 2})
				if err != nil && !errors.Is(err, threads.ErrFenced) {
					return
				}
			}
			select {
			case <-time.After(staged.LeaseTTL / heartbeats):
			case <-t.Context().Done():
			}
		}
	}()
	return &on, func() threads.Registration { return *now.Load() }
}

// What Slack allows is divided by the replicas that live, and by their turns, from the
// first heartbeat on and within two heartbeats of a change.
func TestReplicasShareWhatTheChatAllows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		has := func(anywhere, turns float64, when string) {
			t.Helper()
			synctest.Wait()
			if got := s.people.share.Load(); got == nil || *got != (Share{Anywhere: anywhere, Turns: turns}) {
				t.Errorf("%s it has %+v, want %v and %v", when, got, anywhere, turns)
			}
		}
		twoBeats := func() { time.Sleep(2 * staged.LeaseTTL / heartbeats) }
		has(1, 1, "at once")
		_, life := another(t, s.store, "another")
		twoBeats()
		has(0.5, 0.5, "with another")
		s.prompt(here)
		s.process(here)
		twoBeats()
		has(0.5, 0.5/4+0.75, "with the only turn")
		if err := s.store.Unregister(t.Context(), life()); err != nil {
			t.Error(err)
		}
		twoBeats()
		has(1, 1, "alone")
		for _, b := range s.close() {
			t.Error(b)
		}
	})
}

// A replica that cannot reach the database, and does not even hear that, has no process
// any more when the lease's time is over, though its worker waits for the database; when
// it can it registers anew, and goes on.
func TestACutReplicaEndsItsProcessesInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		s.shut()
		if err := <-s.ran; err != nil {
			t.Fatal(err)
		}
		way := &wire{Store: s.store}
		s.way = way
		s.begin()
		s.prompt(here)
		p := s.process(here)
		began := time.Now()
		way.is.Store(true)
		s.sup.Wake(s.threads[here].ID) // its worker asks the database, and waits
		s.machine.loss(s.threads[here].ID, false)
		for !p.over() {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if time.Since(began) > staged.LeaseTTL {
				t.Fatal("a process lives when another replica may have the thread")
			}
		}
		if lived := time.Since(began); lived < staged.LeaseTTL/2 {
			t.Errorf("the process was ended after %s without the database, in %s it is back", lived, staged.LeaseTTL/2)
		}
		if s.sup.Alive() {
			t.Error("it says that it lives")
		}
		way.is.Store(false)
		time.Sleep(staged.LeaseTTL/heartbeatPatience + 2*staged.LeaseTTL/heartbeats) // what waits gives up
		synctest.Wait()
		if !s.sup.Alive() || s.process(here) == nil {
			t.Errorf("the database is back, and nothing goes on: alive %t", s.sup.Alive())
		}
		for _, b := range s.close() {
			t.Error(b)
		}
	})
}

// The threads of a replica that falls silent are taken when its lease's time is over, and
// not before.
func TestASilentReplicaIsBuried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		on, life := another(t, s.store, "B")
		s.sup.place.Slots.Most = 1 // so that the other suits new threads
		s.accept(here)
		if _, ok, err := s.store.AcquireLease(t.Context(), 1, life(), true); err != nil || !ok {
			t.Fatal(ok, err)
		}
		time.Sleep(10 * staged.LeaseTTL)
		synctest.Wait()
		if s.row(here).LeaseOwner != "B" {
			t.Fatal("the thread of a replica that lives was taken")
		}
		on.Store(false)
		silent := time.Now()
		time.Sleep(staged.LeaseTTL - 2*staged.LeaseTTL/heartbeats)
		synctest.Wait()
		if s.row(here).LeaseOwner != "B" {
			t.Errorf("the thread was taken %s after its replica was heard", time.Since(silent))
		}
		for s.row(here).LeaseOwner != "A" {
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			if time.Since(silent) > staged.LeaseTTL+2*time.Second+2*staged.LeaseTTL/heartbeats {
				t.Fatalf("nobody took the thread")
			}
		}
		t.Logf("taken %s after the last beat, of a lease of %s", time.Since(silent), staged.LeaseTTL)
		s.process(here).result(claude.Result{})
		for _, b := range s.close() {
			t.Error(b)
		}
	})
}

// A machine that was suspended for longer than the lease's time ends its processes when it
// wakes, before anything else can come of them.
func TestAMachineThatWasSuspended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		s.prompt(here)
		p := s.process(here)
		s.machine.loss(s.threads[here].ID, false)
		on, _ := another(t, s.store, "B")
		defer on.Store(false)
		// Its clock goes on while it does not, and the others mark it dead.
		peers, err := s.store.Living(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, peer := range peers {
			if peer.Replica == "A" {
				if dead, err := s.store.MarkDead(t.Context(), peer); !dead || err != nil {
					t.Fatal(dead, err)
				}
			}
		}
		time.Sleep(staged.LeaseTTL/heartbeats + 10*time.Millisecond)
		synctest.Wait()
		if !p.over() {
			t.Error("it was taken for dead, and its process lives")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !s.sup.Alive() {
			t.Error("it does not live again")
		}
		for _, b := range s.close() {
			t.Error(b)
		}
	})
}

// A bot that is told to stop lets the turn that runs end, begins none, and leaves the one
// that waits for people to whoever comes next.
func TestDrain(t *testing.T) {
	t.Parallel()
	limits := staged
	limits.Drain = time.Minute
	synctest.Test(t, func(t *testing.T) {
		s := newStage(limits)
		s.prompt(here)
		s.prompt(there)
		asking := s.process(there)
		asking.request("hook", toolWrite)
		asking.request("ask", toolWrite)
		s.prompt(here) // waits behind the first
		working := s.process(here)
		s.shut()
		time.Sleep(interruptLimit + time.Second)
		synctest.Wait()
		if !asking.over() || working.over() || !s.sup.Stopping() {
			t.Errorf("a turn that waits for people goes on: %t, one that works: %t", !asking.over(), !working.over())
		}
		if owner := s.row(there).LeaseOwner; owner != "" {
			t.Errorf("the thread that waits is still %s's", owner)
		}
		working.result(claude.Result{})
		synctest.Wait()
		if !working.over() || s.row(here).LeaseOwner != "" {
			t.Error("its turn has ended, and the thread was not handed back")
		}
		if err := <-s.ran; err != nil {
			t.Error(err)
		}
		if n := len(s.store.Turns()); n != 2 {
			t.Errorf("%d turns: one began while the bot was about to stop", n)
		}
		s.ran <- nil
		s.begin()
		for _, b := range s.close() {
			t.Error(b)
		}
	})
}

// A thread that waits for a slot is handed on when another replica has had room for some
// seconds, and not while there is none.
func TestAThreadThatWaitsForASlotIsHandedOn(t *testing.T) {
	t.Parallel()
	limits := staged
	limits.MaxLive = 1
	synctest.Test(t, func(t *testing.T) {
		s := newStage(limits)
		s.prompt(here)
		s.prompt(there)
		time.Sleep(10 * handOnAfter)
		synctest.Wait()
		if s.row(here).LeaseOwner != "A" || s.row(there).LeaseOwner != "A" {
			t.Fatal("a thread was given up, and nobody has room for it")
		}
		_, life := another(t, s.store, "B")
		began := time.Now()
		for {
			_, ok, err := s.store.AcquireLease(t.Context(), s.threads[there].ID, life(), false)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				break
			}
			if time.Since(began) > 10*handOnAfter {
				t.Fatal("the thread that waits was not handed on")
			}
			time.Sleep(50 * time.Millisecond)
		}
		if took := time.Since(began); took < handOnAfter {
			t.Errorf("it was handed on after %s", took)
		}
		if s.row(here).LeaseOwner != "A" {
			t.Error("the thread that works was given up")
		}
		s.process(here).result(claude.Result{})
		if err := s.store.Unregister(t.Context(), life()); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * politeFor)
		synctest.Wait()
		s.process(there).result(claude.Result{})
		for _, b := range s.close() {
			t.Error(b)
		}
	})
}
