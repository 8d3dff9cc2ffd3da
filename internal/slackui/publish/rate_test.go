package publish

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestNoWindowHasMoreThanItsMost takes as often as is allowed, gives back, and has its share
// changed.
func TestNoWindowHasMoreThanItsMost(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	start := time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)
	now := start
	b := newBucket(rateOf(StartStream), now)
	var at []time.Time
	for range 5000 {
		now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
		if b.when(now, 1).After(now) {
			continue
		}
		b.take(now)
		if r.IntN(10) == 0 {
			b.giveBack()
			continue
		}
		at = append(at, now)
	}
	for i := rateOf(StartStream).most; i < len(at); i++ {
		if d := at[i].Sub(at[i-rateOf(StartStream).most]); d < window {
			t.Fatalf("%d calls within %v", rateOf(StartStream).most+1, d)
		}
	}
	if perMinute := float64(len(at)) / now.Sub(start).Minutes(); perMinute < 18 {
		t.Errorf("%.1f calls a minute, want nearly 20", perMinute)
	}
	// A replica that gets the shares of others waits until their calls do not count any more.
	third := rateOf(StartStream).part(Share{Anywhere: 1.0 / 3, Turns: 1.0 / 3})
	now = now.Add(time.Hour)
	b.become(third, now)
	now = now.Add(time.Hour)
	for b.when(now, 1).Sub(now) < time.Millisecond {
		b.take(now)
	}
	b.become(rateOf(StartStream), now)
	if wait := b.when(now.Add(time.Minute/2), float64(third.most)).Sub(now); wait < window {
		t.Errorf("more than a third may begin again after %v", wait)
	}
}
