package publish_test

import (
	"math/rand/v2"
	"testing"
	"time"

	playground "deckhand/internal/playground/slack"
	"deckhand/internal/slackui/publish"
)

// TestTheOldestStreamMakesWay has more turns than there can be streams, of which the first is
// looked at.
func TestTheOldestStreamMakesWay(t *testing.T) {
	t.Parallel()
	inTown(t, publish.Options{}, func(w *town) {
		stop := w.busy()
		defer stop()
		r := rand.New(rand.NewPCG(7, 7))
		var all []*actor
		var begun []time.Time
		for i := range 55 {
			channel := []string{playground.ChannelEngineering, playground.ChannelGeneral, playground.ChannelPrivate}[i%3]
			all, begun = append(all, w.actor(channel, w.thread(channel))), append(begun, time.Now())
			if i%10 == 0 {
				w.Watched(all[0].root)
			}
			for k, a := range all {
				if k == i || (i-k)%3 == 0 {
					a.write(sentence(r))
					a.show()
				}
			}
			time.Sleep(3500 * time.Millisecond)
		}
		if _, open, _ := w.Now(); open > 42 || w.streams() < 48 {
			t.Errorf("%d of %d streams are open, want at most 42 of 48 or more", open, w.streams())
		}
		if age := time.Since(begun[0]); age > 220*time.Second {
			t.Fatalf("the streams are %v old: they end by themselves", age)
		}
		isOpen := func(a *actor) bool {
			ts := w.replies(a.turn.Thread.ChannelID, a.root)[0].Timestamp
			w.mu.Lock()
			defer w.mu.Unlock()
			started := false
			for _, x := range w.answers {
				if x.ts == ts && x.err == "" {
					started = started && x.method != publish.StopStream || x.method == publish.StartStream
				}
			}
			return started
		}
		for i, want := range map[int]bool{0: true, 1: false, 2: false, len(all) - 1: true} {
			if got := isOpen(all[i]); got != want {
				t.Errorf("turn %d is a stream: %v, want %v", i, got, want)
			}
		}
		for _, a := range all {
			a.end()
		}
		stop()
		time.Sleep(3 * time.Minute)
		w.rest()
		for _, a := range all {
			w.stopped(a)
			time.Sleep(2 * time.Second) // reading has a rate, too
		}
	})
}
