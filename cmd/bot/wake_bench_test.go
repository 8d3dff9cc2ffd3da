package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// BenchmarkWake compares, message by message in one run, how long a thread that sleeps
// waits for the first text, and a session that is resumed without a bot: a process spawned
// with --resume for the message. ratio is (bot − one call of Slack's API) ÷ resumed; at
// most 1.15 is wanted.
func BenchmarkWake(b *testing.B) {
	w := unstartedWorld(b)
	w.env = append(w.env, "DECKHAND_IDLE_TIMEOUT=1s")
	w.start()
	d := newDirect(b, w)
	d.turn("say: warm")
	d.stop()
	d.options.Resume = true
	thread := w.post(linus, eng, "", "@deckhand say: warm")
	w.done(eng, thread, thread)

	var resumed, woken, call []time.Duration
	for i := range rounds {
		w.eventually("the thread to sleep", func() bool {
			return w.count(`SELECT count(*) FROM threads WHERE lease_owner IS NOT NULL`) == 0
		})
		began := time.Now()
		d.start()
		first, _ := d.turn(fmt.Sprintf(twoLines, "resumed", i))
		resumed = append(resumed, first.Sub(began))
		d.stop()

		began = time.Now()
		ts := w.post(linus, eng, thread, fmt.Sprintf(twoLines, "woken", i))
		woken = append(woken, w.postedAt(fmt.Sprintf("woken %d", i), ts).Sub(began))
		w.done(eng, thread, ts)

		began = time.Now()
		w.must(http.MethodPost, "/api/auth.test?token="+w.BotToken, nil, nil)
		call = append(call, time.Since(began))
	}
	b.ReportMetric(median(resumed), "resumed-ms")
	b.ReportMetric(median(woken), "woken-ms")
	b.ReportMetric((median(woken)-median(call))/median(resumed), "ratio")
	b.ReportMetric(0, "ns/op") // means nothing here
}
