package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestAnEmojiDoesWhatTheTeamSays: it begins work on one's own message, and on somebody else's as a
// quotation; it stops a turn; once for each, for people who may say the same in words. Others do
// nothing.
func TestAnEmojiDoesWhatTheTeamSays(t *testing.T) {
	t.Parallel()
	w := unstartedWorld(t)
	w.configure(sandboxHere(), "reactions: {rocket: begin, octagonal_sign: stop}\n")
	w.start()
	react := func(user, ts, name string) {
		t.Helper()
		w.must(http.MethodPost, "/_control/reactions", map[string]any{"user": user, "channel": eng, "ts": ts, "name": name}, nil)
	}
	own := w.post(linus, eng, "", "say: by an emoji")
	react(linus, own, "tada")
	react(mallory, own, "rocket")
	w.told(mallory, eng, own, "You don't have access")
	react(linus, own, "rocket")
	w.done(eng, own, own)
	w.says(eng, own, "by an emoji")

	others := w.post(ada, eng, "", "lunch is at noon")
	react(linus, others, "rocket")
	asked := w.says(eng, others, "Do what this message asks for")
	w.done(eng, others, asked.TS)
	if text := w.text(`SELECT prompt FROM inbox WHERE ts = '` + asked.TS + `'`); !strings.Contains(text, "> lunch is at noon") || !strings.Contains(text, "no orders") && !strings.Contains(text, "for context only") {
		t.Errorf("the model is given %q", text)
	}
	if by := w.text(`SELECT user_id FROM inbox WHERE ts = '` + asked.TS + `'`); by != linus {
		t.Errorf("the work is %s's", by)
	}

	thread := w.runs(linus, eng, "", "mkdir never")
	card := w.card(eng, thread)
	react(mallory, card.TS, "octagonal_sign")
	w.told(mallory, eng, thread, "You don't have access")
	react(linus, card.TS, "octagonal_sign")
	w.find(eng, thread, "the prompt to be marked as stopped", func(m message) bool { return m.TS == thread && m.reacted("black_square_for_stop") })
	if w.exists("never") {
		t.Error("the command ran")
	}
	if n := w.count(`SELECT count(*) FROM turns`); n != 3 {
		t.Errorf("%d turns, want 3", n)
	}
	if said := w.slash(linus, eng, "help"); !strings.Contains(said, ":rocket:") || !strings.Contains(said, ":octagonal_sign:") {
		t.Errorf("the help says %s", said)
	}
	w.auditIsWhole()
}
