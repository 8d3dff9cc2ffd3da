package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestAnEditIsNotLost: a mention that an edit adds is taken as a mention, once. Whoever edits or
// deletes what is worked on already is told that the work goes on with the old text.
func TestAnEditIsNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	edit := func(ts, text string) {
		w.must(http.MethodPost, "/_control/messages/edit", map[string]any{"user": linus, "channel": eng, "ts": ts, "text": text}, nil)
	}
	idle := w.post(linus, eng, "", "say: one")
	edit(idle, "say: two, without a mention")
	edit(idle, "@deckhand say: three")
	w.says(eng, idle, "three")
	w.done(eng, idle, idle)

	long := "slow: 40\nsay: " + strings.Repeat("This takes its time. ", 400)
	thread := w.post(linus, eng, "", "@deckhand "+long)
	live := w.find(eng, thread, "a Stop button", func(m message) bool { return m.has("stop") })
	edit(thread, "@deckhand say: four")
	w.told(linus, eng, thread, "as it read before your edit")
	w.click(linus, eng, live.TS, "stop")
	w.find(eng, thread, "the turn to be stopped", func(m message) bool { return strings.Contains(m.all(), "Stopped by") })

	gone := w.post(linus, eng, thread, long)
	live = w.find(eng, thread, "another Stop button", func(m message) bool { return m.has("stop") && m.TS != live.TS })
	w.must(http.MethodPost, "/_control/messages/delete", map[string]any{"user": linus, "channel": eng, "ts": gone}, nil)
	w.told(linus, eng, thread, "the message that you deleted")
	w.click(linus, eng, live.TS, "stop")
	w.eventually("both turns to be stopped", func() bool { return w.count(`SELECT count(*) FROM turns WHERE state = 'interrupted'`) == 2 })
	if n := w.count(`SELECT count(*) FROM inbox WHERE kind = 'message'`); n != 3 {
		t.Errorf("%d messages were taken, want 3", n)
	}
}
