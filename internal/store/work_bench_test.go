package store_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/work"
)

// BenchmarkClicksWhileWorkIsKept says what a click waits for the database while eight
// threads have as much kept as they may, again and again, beside what it does when nothing
// is kept. How fast it is kept comes with it.
func BenchmarkClicksWhileWorkIsKept(b *testing.B) {
	s := storetest.Open(b, storetest.URL(b), store.Options{})
	pack := make([]byte, 64<<20)
	for i, r := 0, rand.New(rand.NewPCG(1, 1)); i < len(pack); i++ {
		pack[i] = byte(r.Uint32())
	}
	var threads []*life
	for n := range 8 {
		l, err := newLife(b.Context(), s, n)
		if err != nil {
			b.Fatal(err)
		}
		threads = append(threads, l)
	}
	clicks := func(b *testing.B) {
		b.Helper()
		l := &latencies{}
		for b.Loop() {
			began := time.Now()
			if _, _, err := s.RunningTurn(b.Context(), threads[0].thread); err != nil {
				b.Fatal(err)
			}
			l.add(time.Since(began))
			time.Sleep(time.Millisecond)
		}
		l.report(b)
	}
	b.Run("nothing", clicks)
	b.Run("eight", func(b *testing.B) {
		ctx, stop := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		var kept atomic.Int64
		began := time.Now()
		for _, l := range threads {
			wg.Go(func() {
				for ctx.Err() == nil {
					w := work.Work{Branch: strings.Repeat("a", 40), Packs: []uuid.UUID{uuid.New()}, Bytes: int64(len(pack)), SavedAt: time.Now()}
					_ = s.KeepWork(ctx, l.lease, w, counted{bytes.NewReader(pack), &kept}) // the last ones are cut
				}
			})
		}
		clicks(b)
		stop()
		wg.Wait()
		b.ReportMetric(float64(kept.Load()>>20)/time.Since(began).Seconds(), "kept-MiB/s")
	})
}

// counted counts what is read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}
