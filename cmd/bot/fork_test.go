package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFork: a thread is forked into a new one in the channel, which begins with its conversation
// and its files, also those that are not committed; from then on each goes its own way. A bot
// that starts again in between doubles nothing.
func TestFork(t *testing.T) {
	t.Parallel()
	w := unstartedWorld(t)
	w.configure("    workspace: worktree\n"+demoSandbox(t.Context()), "posture: contained\n")
	w.start()
	run := func(thread, command string) {
		t.Helper()
		ts := w.runs(linus, eng, thread, command)
		w.done(eng, thread, ts)
	}
	thread := w.runs(linus, eng, "", "echo committed > a && git add a && git -c user.name=x -c user.email=x@x commit -qm a && echo loose > b && ls")
	w.done(eng, thread, thread)

	w.post(mallory, eng, thread, "@deckhand fork")
	w.told(mallory, eng, thread, "You don't have access")
	w.post(grace, eng, thread, "fork")
	w.says(eng, thread, "forked this thread")
	forked := w.text(`SELECT thread_ts FROM threads WHERE forked_from IS NOT NULL`)
	root := w.says(eng, forked, "This thread begins with its conversation and its files")
	if root.TS != forked || !strings.Contains(root.all(), strings.ReplaceAll(thread, ".", "")) {
		t.Errorf("the first message of the new thread: %s", root.all())
	}

	// Handled again, as after a crash, it does nothing more.
	w.stop()
	if n := w.count(`WITH again AS (UPDATE inbox SET state = 'received', done_at = NULL, next_try = now(), outcome = '' WHERE payload::text LIKE '%"fork"%' AND user_id = '` + grace + `' RETURNING 1) SELECT count(*) FROM again`); n != 1 {
		t.Fatalf("%d messages are handled again", n)
	}
	w.start()
	w.doneWithAll()
	if n := w.count(`SELECT count(*) FROM threads`); n != 2 {
		t.Errorf("there are %d threads", n)
	}
	for _, place := range []string{forked, thread} {
		n := 0
		for _, m := range w.messages(eng, place) {
			if m.User == w.BotUser && strings.Contains(m.Text, "forked") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d messages tell of the fork in %s", n, place)
		}
	}

	// The old thread goes on; the new one does not know.
	run(thread, "echo later > c && echo changed > b")
	run(forked, "cat a b > both; ls >> both; git branch --show-current >> both; cat both")
	b, err := os.ReadFile(filepath.Join(w.text(`SELECT workspace FROM threads WHERE forked_from IS NOT NULL`), "both"))
	branch := w.text(`SELECT 'deckhand/' || id || '-' || slug FROM threads WHERE forked_from IS NOT NULL`)
	if err != nil || !strings.HasPrefix(string(b), "committed\nloose\n") || strings.Contains(string(b), "\nc\n") || !strings.HasSuffix(string(b), "\n"+branch+"\n") {
		t.Errorf("what the fork has, on %s: %q, %v", branch, b, err)
	}
	w.says(eng, forked, "This thread begins with the files of the one that it was forked from")
	if n := w.count(`SELECT count(*) FROM sessions s JOIN threads t ON t.session_id = s.id WHERE t.forked_from IS NOT NULL AND s.parent_id = (SELECT session_id FROM threads WHERE forked_from IS NULL)`); n != 1 {
		t.Error("the new thread's session is not the copy")
	}
	w.stop()
	if out, ok := w.bot("report", "verify"); !ok {
		t.Error(out)
	}
	w.start()
	w.auditIsWhole()
}
