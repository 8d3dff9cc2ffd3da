package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
)

// BenchmarkFirstMention compares, thread by thread in one run, how long people wait for the
// first text of a new thread with a warm spare; of the next message of that thread; and of
// the CLI alone, in a process that was spawned and initialised before (warm) and in one that
// is spawned for the message (cold). The bot's have one call of Slack's API less.
// ratio is with a spare ÷ warm; at most 1.3 is wanted. to-cold is with a spare ÷ cold.
func BenchmarkFirstMention(b *testing.B) {
	w := unstartedWorld(b)
	w.ownTrees()
	w.env = append(w.env, "DECKHAND_WARM_SPARES=1")
	w.start()
	d := newDirect(b, w)
	d.stop()
	warm := w.post(linus, eng, "", "@deckhand say: warm")
	w.done(eng, warm, warm)

	var spare, follow, ready, cold, call []time.Duration
	for i := range rounds {
		w.spareReady(i + 1)
		time.Sleep(1500 * time.Millisecond) // Slack's one post a second must not be measured
		began := time.Now()
		thread := w.post(linus, eng, "", fmt.Sprintf("@deckhand say: mention %d", i))
		spare = append(spare, w.postedAt(fmt.Sprintf("mention %d", i), thread).Sub(began))
		w.done(eng, thread, thread)

		time.Sleep(1500 * time.Millisecond)
		began = time.Now()
		ts := w.post(linus, eng, thread, fmt.Sprintf("say: answer %d", i))
		follow = append(follow, w.postedAt(fmt.Sprintf("answer %d", i), ts).Sub(began))
		w.done(eng, thread, ts)

		began = time.Now()
		w.must(http.MethodPost, "/api/auth.test?token="+w.BotToken, nil, nil)
		call = append(call, time.Since(began))

		d.options.SessionID = uuid.NewString()
		began = time.Now()
		d.start()
		first, _ := d.turn(fmt.Sprintf("say: cold %d", i))
		cold = append(cold, first.Sub(began))
		d.stop()

		d.options.SessionID = uuid.NewString()
		d.start()
		time.Sleep(2 * time.Second)
		began = time.Now()
		first, _ = d.turn(fmt.Sprintf("say: ready %d", i))
		ready = append(ready, first.Sub(began))
		d.stop()
	}
	if n := w.count(`SELECT count(*) FROM sessions`); n != rounds+1 {
		b.Fatalf("%d sessions", n)
	}
	net := median(spare) - median(call)
	b.ReportMetric(median(spare), "spare-ms")
	b.ReportMetric(median(follow), "followup-ms")
	b.ReportMetric(median(ready), "warm-ms")
	b.ReportMetric(median(cold), "cold-ms")
	b.ReportMetric(net/median(ready), "ratio")
	b.ReportMetric(net/median(cold), "to-cold")
	b.ReportMetric(0, "ns/op") // means nothing here
}
