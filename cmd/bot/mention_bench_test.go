package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
)

// BenchmarkFirstMention compares, thread by thread in one run, how long people wait for the
// first text of a new thread; of the next message of that thread; and of the CLI alone, in a
// process that is spawned for the message. ratio is (new − one call of Slack's API) ÷ cli.
func BenchmarkFirstMention(b *testing.B) {
	w := unstartedWorld(b)
	w.ownTrees()
	w.start()
	d := newDirect(b, w)
	d.stop()
	before := w.post(linus, eng, "", "@deckhand say: before")
	w.done(eng, before, before)

	var begun, follow, cli, call []time.Duration
	for i := range rounds {
		rest()
		began := time.Now()
		thread := w.post(linus, eng, "", fmt.Sprintf("@deckhand "+twoLines, "mention", i))
		begun = append(begun, w.postedAt(fmt.Sprintf("mention %d", i), thread).Sub(began))
		w.done(eng, thread, thread)

		rest()
		began = time.Now()
		ts := w.post(linus, eng, thread, fmt.Sprintf(twoLines, "answer", i))
		follow = append(follow, w.postedAt(fmt.Sprintf("answer %d", i), ts).Sub(began))
		w.done(eng, thread, ts)

		began = time.Now()
		w.must(http.MethodPost, "/api/auth.test?token="+w.BotToken, nil, nil)
		call = append(call, time.Since(began))

		d.options.SessionID = uuid.NewString()
		began = time.Now()
		d.start()
		first, _ := d.turn(fmt.Sprintf(twoLines, "cold", i))
		cli = append(cli, first.Sub(began))
		d.stop()
	}
	b.ReportMetric(median(begun), "new-ms")
	b.ReportMetric(median(follow), "followup-ms")
	b.ReportMetric(median(cli), "cli-ms")
	b.ReportMetric((median(begun)-median(call))/median(cli), "ratio")
	b.ReportMetric(0, "ns/op") // means nothing here
}
