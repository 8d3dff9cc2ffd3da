package upkeep

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// kept is a part whose every run is a line of a script.
type kept struct {
	*Part
	logged *observer.ObservedLogs
	began  time.Time
	tries  []time.Duration // when it was started, since the beginning
	stop   context.CancelFunc
	done   chan struct{}
}

func keep(t *testing.T, run func(ctx context.Context, tell func(error), try int) error) *kept {
	t.Helper()
	core, logged := observer.New(zapcore.DebugLevel)
	k := &kept{logged: logged, began: time.Now(), done: make(chan struct{})}
	k.Part = New("the wheel", func(err error) string { return "oil it: " + err.Error() }, zap.New(core))
	ctx, stop := context.WithCancel(t.Context())
	k.stop = stop
	go func() {
		defer close(k.done)
		k.Keep(ctx, func(ctx context.Context, tell func(error)) error {
			k.tries = append(k.tries, time.Since(k.began))
			return run(ctx, tell, len(k.tries))
		})
	}()
	return k
}

func (k *kept) end() {
	k.stop()
	<-k.done
}

func (k *kept) lines() []string {
	out := []string{}
	for _, e := range k.logged.All() {
		out = append(out, e.Message)
	}
	return out
}

const (
	trouble = "the wheel does not work; it is tried again and again"
	again   = "the wheel works again"
)

func TestPausesGrowAndTheLogIsQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("stuck")
		begin := make(chan struct{})
		k := keep(t, func(context.Context, func(error), int) error {
			<-begin
			return broken
		})
		if s := k.State(); s != (State{}) {
			t.Errorf("before the first try has ended: %+v", s)
		}
		close(begin)
		time.Sleep(quiet + time.Minute)
		k.end()
		previous := k.tries[0]
		for i, at := range k.tries[1:] {
			longest := min(firstPause<<min(i, 10), maxPause)
			if pause := at - previous; pause < longest/2 || pause > longest {
				t.Errorf("pause %d is %s, want between %s and %s", i+1, pause, longest/2, longest)
			}
			previous = at
		}
		if diff := cmp.Diff([]string{trouble, trouble}, k.lines()); diff != "" {
			t.Errorf("log over 11 minutes (-want +got):\n%s", diff)
		}
		if s := k.State(); s.Up || !s.Down() || !errors.Is(s.Err, broken) || s.Cure != "oil it: stuck" || !s.Since.Equal(k.began) {
			t.Errorf("state %+v", s)
		}
		if cure := k.logged.All()[0].ContextMap()["cure"]; cure != "oil it: stuck" {
			t.Errorf("the log's cure is %q", cure)
		}
	})
}

func TestItComesUpAndTheNextTroubleIsToldAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fail := make(chan error)
		k := keep(t, func(ctx context.Context, tell func(error), try int) error {
			if try <= 4 {
				return errors.New("stuck")
			}
			tell(nil)
			select {
			case err := <-fail:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		time.Sleep(time.Minute)
		if s := k.State(); !s.Up || s.Down() || s.Err != nil || s.Cure != "" {
			t.Errorf("once it works: %+v", s)
		}
		fail <- errors.New("stuck")
		synctest.Wait()
		down := time.Now()
		if s := k.State(); s.Up || !s.Since.Equal(down) {
			t.Errorf("when it fails again: %+v", s)
		}
		time.Sleep(firstPause)
		if s := k.State(); !s.Up {
			t.Errorf("after a first pause, as it had worked for long: %+v", s)
		}
		k.end()
		if diff := cmp.Diff([]string{trouble, again, trouble, again}, k.lines()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// TestTroubleIsToldBeforeTheEnd of what takes its time to end.
func TestTroubleIsToldBeforeTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		k := keep(t, func(ctx context.Context, tell func(error), _ int) error {
			tell(nil)
			time.Sleep(time.Minute)
			tell(gone)
			time.Sleep(time.Minute)
			return gone
		})
		time.Sleep(90 * time.Second)
		if s := k.State(); !errors.Is(s.Err, gone) || !s.Since.Equal(k.began.Add(time.Minute)) {
			t.Errorf("while it ends: %+v", s)
		}
		time.Sleep(30*time.Second + firstPause)
		synctest.Wait()
		if len(k.tries) != 2 {
			t.Errorf("%d tries a first pause after the end", len(k.tries))
		}
		if diff := cmp.Diff([]string{trouble, again}, k.lines()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		k.end()
	})
}

func TestWhatComesAndGoesFillsNoLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, func(_ context.Context, tell func(error), _ int) error {
			tell(nil)
			return nil
		})
		time.Sleep(quiet - time.Minute)
		k.end()
		if diff := cmp.Diff([]string{trouble, again}, k.lines()); diff != "" {
			t.Errorf("log over 9 minutes (-want +got):\n%s", diff)
		}
		if n := len(k.tries); n > 40 {
			t.Errorf("%d tries: a part that fails as soon as it works is tried too often", n)
		}
	})
}

func TestOtherTroubleIsToldAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, func(_ context.Context, _ func(error), try int) error {
			if try < 3 {
				return errors.New("stuck")
			}
			return errors.New("gone")
		})
		time.Sleep(time.Minute)
		k.end()
		if diff := cmp.Diff([]string{trouble, trouble}, k.lines()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
		if s := k.State(); !s.Since.Equal(k.began) {
			t.Errorf("it is down since %s, want since the first failure", s.Since.Sub(k.began))
		}
	})
}
