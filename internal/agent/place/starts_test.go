package place

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestStartsAreInLine: as many start at once as may, the others in the order in which they
// came, told how many are before them; one who leaves the line holds nobody up.
func TestStartsAreInLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Starts{AtOnce: 2}
		var began []int
		told := make([][]int, 6)
		stop := make([]context.CancelCauseFunc, 6)
		ends := make([]chan struct{}, 6)
		left := errors.New("stopped")
		for i := range 6 {
			ctx, cancel := context.WithCancelCause(t.Context())
			stop[i], ends[i] = cancel, make(chan struct{})
			go func() {
				if err := s.Acquire(ctx, func(before int) { told[i] = append(told[i], before) }); err != nil {
					if !errors.Is(err, left) {
						t.Errorf("start %d: %v", i, err)
					}
					return
				}
				began = append(began, i)
				<-ends[i]
				s.Release()
			}()
			synctest.Wait()
		}
		if !slices.Equal(began, []int{0, 1}) || !slices.Equal(told[5], []int{5}) {
			t.Errorf("%v have begun; the last was told %v", began, told[5])
		}
		stop[3](left)
		close(ends[0])
		synctest.Wait()
		time.Sleep(startTold)
		synctest.Wait()
		if !slices.Equal(began, []int{0, 1, 2}) || !slices.Equal(told[5], []int{5, 3}) {
			t.Errorf("%v have begun; the last was told %v", began, told[5])
		}
		for _, i := range []int{1, 2, 4, 5} {
			close(ends[i])
			synctest.Wait()
		}
		if !slices.Equal(began, []int{0, 1, 2, 4, 5}) || s.busy != 0 || len(s.line) != 0 {
			t.Errorf("%v have begun; %d are busy, %d wait", began, s.busy, len(s.line))
		}
		for _, cancel := range stop {
			cancel(nil)
		}
	})
}
