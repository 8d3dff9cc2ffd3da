package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent/claude"
	"deckhand/internal/jobs"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
	"deckhand/internal/workspace"
)

// playedWorks says which threads rest and which of them have old work, and notes what
// becomes of that.
type playedWorks struct {
	Works
	stage  *stage
	since  map[int64]time.Time
	old    []int64
	told   map[int64]bool
	gone   []int64
	pieces int // of packs that were cut
}

func (p *playedWorks) RestingThreads(_ context.Context, ids []int64) (map[int64]time.Time, error) {
	since := map[int64]time.Time{}
	for _, t := range p.stage.store.Threads() {
		if at, ok := p.since[t.ID]; ok && slices.Contains(ids, t.ID) && t.LeaseOwner == "" {
			since[t.ID] = at
		}
	}
	return since, nil
}

func (p *playedWorks) OldWork(context.Context, time.Time, int) ([]int64, error) { return p.old, nil }

func (p *playedWorks) ForgetWork(_ context.Context, l threads.Lease) error {
	p.gone = append(p.gone, l.ThreadID)
	return nil
}

func (p *playedWorks) LeaveWork(ctx context.Context, l threads.Lease, sentence string) ([]outbox.Row, error) {
	if p.told[l.ThreadID] {
		return nil, nil
	}
	p.told[l.ThreadID] = true
	w, err := p.stage.store.Say(ctx, l, sentence, "")
	return []outbox.Row{w}, err
}

func (p *playedWorks) SweepPacks(context.Context) (int, error) {
	n := min(p.pieces, 100)
	p.pieces -= n
	return n, nil
}

// restStage is a stage on which three threads rest that have had a turn, and one works.
func restStage(t *testing.T) (*stage, *playedWorks) {
	t.Helper()
	s := newStage(staged)
	works := &playedWorks{stage: s, since: map[int64]time.Time{}, told: map[int64]bool{}}
	s.works = works
	s.restart()
	for n := range 3 {
		ts := fmt.Sprintf("10%d.1", n)
		s.prompt(ts)
		s.process(ts).result(claude.Result{NumTurns: 1})
		synctest.Wait()
		time.Sleep(staged.IdleTimeout + time.Minute) // its process is put to sleep
		synctest.Wait()
		works.since[s.threads[ts].ID] = time.Now()
	}
	s.prompt(here)
	s.machine.mu.Lock()
	for _, t := range s.store.Threads() {
		s.machine.made = append(s.machine.made, workspace.Folder{Thread: t.ID, Bytes: 10})
	}
	s.machine.mu.Unlock()
	s.heard()
	return s, works
}

// TestFoldersThatRestArePutAway: those of threads that have nothing to do, one that cannot
// go stays, and what people should know of it is said.
func TestFoldersThatRestArePutAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := restStage(t)
		s.machine.mu.Lock()
		s.machine.stays = map[int64]string{2: "a stash is nowhere else"}
		s.machine.mu.Unlock()
		time.Sleep(tidyPace)
		synctest.Wait()
		if n, bytes := s.sup.Workspaces(); n != 4 || bytes != 40 {
			t.Errorf("%d folders with %d bytes", n, bytes)
		}
		if said := s.heard(); len(said) > 0 {
			t.Errorf("after an hour: %v", said)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		var left []int64
		for _, f := range s.machine.made {
			left = append(left, f.Thread)
		}
		if !slices.Equal(left, []int64{2, 4}) {
			t.Errorf("the folders of threads %v are left", left)
		}
		if said := fmt.Sprint(s.heard()["people"]); strings.Count(said, "some of it stays") != 2 {
			t.Errorf("said: %s", said)
		}
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
}

// TestOldWorkIsForgotten where it is somewhere else; where it is not it stays, and that is
// said once.
func TestOldWorkIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, works := restStage(t)
		works.old, works.pieces = []int64{1, 2, 4}, 150
		s.machine.pushed = map[int64]bool{1: true, 4: true}
		for range 2 {
			if err := s.sup.forget(context.Background(), jobs.Job[forgetDue]{}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if !slices.Equal(works.gone, []int64{1, 1}) || works.pieces != 0 {
			t.Errorf("the work of %v is gone, and %d pieces are left", works.gone, works.pieces)
		}
		if said := s.heard()["people"]; len(said) != 1 || !strings.Contains(said[0], "Nobody has written here for 90 days") {
			t.Errorf("said: %q", said)
		}
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
}
