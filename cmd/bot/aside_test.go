package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWaitingCostsARow: with room for one session, a turn that waits for people gives it
// to whoever comes, its card outlives the bot and waits for a week, and the decision wakes
// it: the tool runs once. Those who wait for a session are told where they stand, and a
// stop ends what sleeps.
func TestWaitingCostsARow(t *testing.T) {
	t.Parallel()
	w := unstartedWorld(t)
	w.env = append(w.env, "DECKHAND_MAX_LIVE_SESSIONS=1")
	w.configure(demoSandbox(t.Context()), "policy:\n  approval_timeout: 336h\n")
	w.start()
	thread := w.post(linus, eng, "", "@deckhand remember the word heron\nsay: I remember.")
	w.done(eng, thread, thread)
	prompt := w.post(linus, eng, thread, "go on\ntool: Bash {\"command\":\"echo x >> ran\"}\nsay: finished it")
	card := w.card(eng, thread)

	// Another thread needs the session, and a third one waits for it.
	busy := w.post(ada, eng, "", "@deckhand slow: 40\nsay: "+strings.Repeat("This takes its time. ", 400))
	w.eventually("the turn to be parked", func() bool { return w.count(`SELECT count(*) FROM turn_rests WHERE asleep`) == 1 })
	live := w.find(eng, busy, "the other thread to work", func(m message) bool { return m.has("stop") })
	third := w.post(grace, eng, "", "@deckhand say: the third one")
	place := w.find(eng, third, "the third thread to be told its place", func(m message) bool { return strings.Contains(m.all(), "it is the next") })
	w.click(ada, eng, live.TS, "stop")
	w.done(eng, third, third)
	w.eventually("its place to be taken away", func() bool {
		return !slices.ContainsFunc(w.messages(eng, third), func(m message) bool { return m.TS == place.TS })
	})

	// The bot dies, and a week goes by.
	old := w.PIDs["bot"]
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.renewed("bot", old)
	w.goBy(7 * 24 * time.Hour)
	old = w.PIDs["bot"] // whatever is due by now finds a bot that begins
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.renewed("bot", old)
	if n := w.count(`SELECT count(*) FROM approvals WHERE status = 'pending' AND created_at < now() - interval '7 days' AND expires_at BETWEEN now() + interval '6 days' AND now() + interval '8 days'`); n != 1 {
		t.Fatalf("%d cards have waited for a week, and may for another", n)
	}
	if n := w.count(`SELECT count(*) FROM threads WHERE lease_owner IS NOT NULL AND thread_ts = '` + thread + `'`); n != 0 {
		t.Errorf("the thread has a lease while it waits")
	}
	w.eventually("a click to be heard", func() bool { // Slack does not deliver one again
		w.click(grace, eng, card.TS, "approve")
		return w.count(`SELECT count(*) FROM approvals WHERE status = 'allowed'`) == 1
	})
	w.says(eng, thread, "finished it")
	w.done(eng, thread, prompt)
	if b, err := os.ReadFile(filepath.Join(w.Workspace, "ran")); err != nil || string(b) != "x\n" {
		t.Errorf("the command ran as %q, %v", b, err)
	}
	if n := w.count(`SELECT count(*) FROM approvals WHERE tool_name = 'Bash' AND status = 'allowed' AND delivered_at IS NOT NULL`); n != 1 {
		t.Errorf("%d delivered decisions for one command", n)
	}
	if n := w.count(`SELECT count(*) FROM turns WHERE rests = 1 AND attempt = 2 AND state = 'done'`); n != 1 {
		t.Errorf("%d turns went on after a rest", n)
	}

	// What sleeps can be stopped.
	last := w.post(linus, eng, thread, "tool: Bash {\"command\":\"echo y >> ran\"}\nsay: never said")
	card = w.card(eng, thread)
	other := w.post(ada, eng, "", "@deckhand say: needs the session")
	w.done(eng, other, other)
	w.post(linus, eng, thread, "@deckhand stop")
	w.find(eng, thread, "the card to end with the turn", func(m message) bool { return m.TS == card.TS && !m.has("approve") })
	w.find(eng, thread, "the prompt to be marked as stopped", func(m message) bool { return m.TS == last && m.reacted("black_square_for_stop") })
	w.goBy(-7 * 24 * time.Hour) // the audit knows when it really was
	w.auditIsWhole()
}
