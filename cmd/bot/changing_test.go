package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// aChangedCommand: what an approver has written runs, and not what was asked for.
func aChangedCommand(t *testing.T, w *world) {
	thread := w.runs(linus, eng, "", "git tag as-asked")
	card := w.card(eng, thread)
	v, text := w.opens(grace, eng, card.TS, "edit_input")
	if !strings.Contains(text, "git tag as-asked") {
		t.Errorf("the form:\n%s", text)
	}
	w.submit(grace, v, map[string]any{"input": map[string]any{"input": "git tag as-changed"}})
	w.done(eng, thread, thread)
	if !w.exists(".git/refs/tags/as-changed") || w.exists(".git/refs/tags/as-asked") {
		t.Error("what was changed did not run, or what was asked for did")
	}
	said := w.says(eng, thread, "with a change by").all()
	if !strings.Contains(said, `- git tag as-asked\n+ git tag as-changed`) || !strings.Contains(said, "SHA-256") {
		t.Errorf("the card does not show the change:\n%s", said)
	}
	w.eventually("the session to know what ran", func() bool {
		told := false
		err := filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, _ error) error {
			if filepath.Ext(path) == ".jsonl" {
				b, _ := os.ReadFile(path)
				told = told || strings.Contains(string(b), "did not run as you wrote it")
			}
			return nil
		})
		return err == nil && told
	})
	w.find(eng, thread, "the turn to show what ran", func(m message) bool {
		return !strings.Contains(m.all(), "as-asked") && strings.Contains(m.all(), "git tag as-changed")
	})
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'edited' AND actor = 'U0GRACE' AND details LIKE '%as-changed%'`); n != 1 {
		t.Errorf("the audit tells of %d changes", n)
	}
}

// writes posts a prompt that makes the model write a file.
func (w *world) writes(thread, file, content string) string {
	w.t.Helper()
	b, err := json.Marshal(map[string]string{"file_path": filepath.Join(w.Workspace, file), "content": content})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.post(linus, eng, thread, "@deckhand tool: Write "+string(b))
}

// editsOfAFile: one click for the file's further edits, and not for those of another one.
func editsOfAFile(t *testing.T, w *world) {
	holds := func(what, name, want string) {
		t.Helper()
		if b, err := os.ReadFile(filepath.Join(w.Workspace, name)); err != nil || string(b) != want {
			t.Errorf("%s: %s holds %q (%v), want %q", what, name, b, err, want)
		}
	}
	thread := w.writes("", "often.txt", "one")
	v, text := w.opens(ada, eng, w.card(eng, thread).TS, "approve_files")
	value := regexp.MustCompile(`(?m)^0:[0-9a-f]{32}$`).FindString(text)
	if !strings.Contains(text, "often.txt") || value == "" {
		t.Fatalf("the form:\n%s", text)
	}
	w.submit(ada, v, map[string]any{"files": map[string]any{"files": []string{value}}, "until": map[string]any{"until": "1h"}})
	w.done(eng, thread, thread)
	holds("approved", "often.txt", "one")
	again := w.writes(thread, "often.txt", "two")
	w.done(eng, thread, again)
	holds("by the grant", "often.txt", "two")
	if n := w.count(`SELECT count(*) FROM approvals a JOIN grants g ON g.id = a.grant_id WHERE g.pattern = 'Edit(often.txt)' AND g.scope = 'thread' AND a.status = 'allowed'`); n != 1 {
		t.Errorf("%d writes were allowed by the grant", n)
	}
	other := w.writes(thread, "seldom.txt", "x")
	w.click(ada, eng, w.card(eng, thread).TS, "deny")
	w.done(eng, thread, other)
	if w.exists("seldom.txt") {
		t.Error("the grant was wider than its file")
	}

	// Six files of one answer, which the CLI asks about one by one, take one card and one form.
	var calls []map[string]any
	for i := range 6 {
		calls = append(calls, map[string]any{"name": "Write", "input": map[string]string{"file_path": filepath.Join(w.Workspace, fmt.Sprintf("six-%d.txt", i)), "content": "one of six"}})
	}
	b, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	six := w.post(linus, eng, thread, "@deckhand tools: "+string(b))
	card := w.find(eng, thread, "the card of the six", func(m message) bool { return m.TS > six && m.has("approve_files") })
	w.eventually("the form to offer what the answer goes on to write", func() bool {
		v, text = w.opens(ada, eng, card.TS, "approve_files")
		return strings.Contains(text, "goes on to write 5 more files")
	})
	value = regexp.MustCompile(`(?m)^0:[0-9a-f]{32}$`).FindString(text)
	w.submit(ada, v, map[string]any{"files": map[string]any{"files": []string{value}}, "further0": map[string]any{"further0": []string{"all"}}, "until": map[string]any{"until": "1h"}})
	w.done(eng, thread, six)
	for i := range 6 {
		holds("one of six", fmt.Sprintf("six-%d.txt", i), "one of six")
	}
	if n := w.count(`SELECT 100 * count(*) FILTER (WHERE decided_via = 'files') + count(*) FILTER (WHERE decided_via = 'grant') FROM approvals WHERE input LIKE '%/six-%' AND decided_by = 'U0ADA'`); n != 105 {
		t.Errorf("the six were asked about and allowed without by %d", n)
	}
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'granted' AND actor = 'U0ADA' AND details LIKE '%Edit(six-_.txt)%'`); n != 6 {
		t.Errorf("the audit tells of %d files", n)
	}
}
