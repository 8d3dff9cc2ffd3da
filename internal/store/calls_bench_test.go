package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/ledger"
)

// BenchmarkCalls begins and books calls of sixty threads that share rows of the
// roll-ups, as fast as they can: each in a transaction of its own, and by one booker
// that takes all that have ended while it was booking the ones before, as the agent
// does. Times are those of the booking.
func BenchmarkCalls(b *testing.B) {
	s, pool := openLarge(b)
	threads := make([]*benchThread, 60)
	for n := range threads {
		threads[n] = newBenchThread(b, pool, n)
	}
	begin := func(b *testing.B, t *benchThread) ledger.EndedCall {
		c := ledger.OpenCall{ID: uuid.New(), Lease: t.lease, SessionID: t.session, Epoch: 1, Model: "claude-opus-5-5", StartedAt: time.Now(), ReservedMicroUSD: 9, BoundMicroUSD: 9}
		if err := s.BeginCall(b.Context(), c); err != nil {
			b.Error(err)
		}
		return ledger.EndedCall{OpenCall: c, Status: 200, Complete: true, EndedAt: time.Now(), Usage: ledger.CallUsage{Input: 10, Output: 20, MicroUSD: 7}}
	}
	run := func(b *testing.B, n int, book func(ledger.EndedCall)) {
		l, work := &latencies{}, make(chan struct{})
		var wg sync.WaitGroup
		for _, t := range threads[:n] {
			wg.Go(func() {
				for range work {
					c := begin(b, t)
					began := time.Now()
					book(c)
					l.add(time.Since(began))
				}
			})
		}
		for b.Loop() {
			work <- struct{}{}
		}
		close(work)
		wg.Wait()
		l.report(b)
	}
	alone := func(b *testing.B) func(ledger.EndedCall) {
		return func(c ledger.EndedCall) {
			if err := s.EndCalls(b.Context(), []ledger.EndedCall{c}); err != nil {
				b.Error(err)
			}
		}
	}
	b.Run("begin", func(b *testing.B) {
		l := &latencies{}
		var ended []ledger.EndedCall
		for b.Loop() {
			began := time.Now()
			ended = append(ended, begin(b, threads[0]))
			l.add(time.Since(began))
		}
		l.report(b)
		if err := s.EndCalls(b.Context(), ended); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("one", func(b *testing.B) { run(b, 1, alone(b)) })
	b.Run("sixty", func(b *testing.B) { run(b, 60, alone(b)) })
	b.Run("sixty-one-booker", func(b *testing.B) {
		type waiting struct {
			call   ledger.EndedCall
			booked chan struct{}
		}
		queue := make(chan waiting, 60)
		var wg sync.WaitGroup
		wg.Go(func() {
			for w := range queue {
				batch := []waiting{w}
				for range len(queue) {
					batch = append(batch, <-queue)
				}
				calls := make([]ledger.EndedCall, len(batch))
				for i := range batch {
					calls[i] = batch[i].call
				}
				if err := s.EndCalls(b.Context(), calls); err != nil {
					b.Error(err)
				}
				for _, w := range batch {
					close(w.booked)
				}
			}
		})
		run(b, 60, func(c ledger.EndedCall) {
			w := waiting{c, make(chan struct{})}
			queue <- w
			<-w.booked
		})
		close(queue)
		wg.Wait()
	})
}
