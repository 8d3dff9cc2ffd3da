package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/judge"
	"deckhand/internal/needtest"
)

// TestAConversationOutlivesItsMachine: it goes on, and is remembered, on another replica
// with a data folder of its own; on one whose folder is gone; when the bot was killed and
// left half a line. When there is nothing left of it, that is said once, and what the
// books know of it is told to the new session.
func TestAConversationOutlivesItsMachine(t *testing.T) {
	t.Parallel()
	c := newChaos(t, chaosPlan{replicas: 1, idle: 30 * time.Minute, slots: 20})
	defer c.stop()
	thread := c.post(linus, shop, "", "@deckhand remember this\nsay: answer-0001")
	c.done(shop, thread, thread)
	n := 1
	goesOn := func(how string, remembers ...string) {
		t.Helper()
		n++
		say := "answer-000" + string(rune('0'+n))
		prompt := c.post(linus, shop, thread, "say: "+say)
		c.done(shop, thread, prompt)
		if seen := c.seen(); !slices.Equal(seen, append(remembers, say)) {
			t.Fatalf("%s: the model was shown %v, want %v and the prompt", how, seen, remembers)
		}
	}
	oneSession := func() {
		t.Helper()
		if n := read[int64](c.world, `SELECT count(*) FROM sessions`); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
	}
	c.DatabaseURL = c.directly

	// Another machine.
	c.launch(c.newReplica(1, needtest.Claude(t)))
	c.away(c.replicas[0], syscall.SIGTERM)
	goesOn("on another machine", "answer-0001")
	oneSession()

	// Back on the first one, whose own copy is older; the other is killed.
	c.away(c.replicas[1], syscall.SIGKILL)
	c.comeBack(c.replicas[0])
	goesOn("on the first machine", "answer-0001", "answer-0002")

	// Killed in the middle of a line, and its file is torn where it was not copied yet.
	r := c.replicas[0]
	c.away(r, syscall.SIGKILL)
	file := transcriptIn(t, r.dir)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	torn := text[:len(text)-20]
	if err := os.WriteFile(file, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	c.comeBack(r)
	goesOn("after a torn line", "answer-0001", "answer-0002", "answer-0003")

	// The data folder is gone.
	c.away(r, syscall.SIGTERM)
	empty(t, filepath.Join(r.dir, "data"))
	c.comeBack(r)
	goesOn("in a new data folder", "answer-0001", "answer-0002", "answer-0003", "answer-0004")
	oneSession()
	if c.says1(thread, "cannot be resumed") != 0 {
		t.Error("it was said that the conversation cannot be resumed, which it was")
	}

	// Nothing is left of it.
	c.away(r, syscall.SIGTERM)
	empty(t, filepath.Join(r.dir, "data"))
	if err := c.tamper(`DELETE FROM transcripts`); err != nil {
		t.Fatal(err)
	}
	c.comeBack(r)
	goesOn("as a record", "answer-0001", "answer-0002", "answer-0003", "answer-0004", "answer-0005")
	goesOn("and after it", "answer-0001", "answer-0002", "answer-0003", "answer-0004", "answer-0005", "answer-0006")
	if n := c.says1(thread, "cannot be resumed"); n != 1 {
		t.Errorf("it was said %d times that the conversation cannot be resumed", n)
	}
}

// away stops a replica until it comes back, and returns when it has gone.
func (c *chaos) away(r *chaosReplica, how syscall.Signal) {
	c.t.Helper()
	r.mu.Lock()
	back := make(chan struct{})
	r.back = back
	pid := r.cmd.Process.Pid
	r.mu.Unlock()
	r.signal(how)
	c.eventually("a replica to be gone", func() bool { return syscall.Kill(pid, 0) != nil })
}

// comeBack starts a replica again, and returns when it is ready.
func (c *chaos) comeBack(r *chaosReplica) {
	c.t.Helper()
	r.mu.Lock()
	close(r.back)
	r.back = nil
	r.mu.Unlock()
	c.eventually("a replica to be ready", func() bool { return ask(c.t.Context(), r.ready) == nil })
}

// seen is what the last call of the model was shown of the conversation, each once.
func (c *chaos) seen() []string {
	c.t.Helper()
	f, err := os.Open(filepath.Join(c.dir, "model.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	var last []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var call judge.ModelCall
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			c.t.Fatal(err)
		}
		if call.Main && len(call.Seen) > 0 {
			last = call.Seen
		}
	}
	slices.Sort(last)
	return slices.Compact(last)
}

// says1 is how many messages of a thread say something.
func (c *chaos) says1(thread, text string) (n int) {
	for _, m := range c.messages(shop, thread) {
		if strings.Contains(m.all(), text) {
			n++
		}
	}
	return n
}

// transcriptIn is the one transcript of a session below a replica's folder.
func transcriptIn(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "data/home/*/.claude/projects/*/*.jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return found[0]
}

// empty removes what is in a folder, which may be a file system of its own.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}
