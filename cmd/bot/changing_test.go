package main

import (
	"encoding/json"
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
	w.says(eng, thread, "changed and approved by")
	if w.count(`SELECT count(*) FROM audit WHERE kind = 'edited' AND details LIKE '%as-changed%'`) == 0 {
		t.Error("the audit does not have the change")
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

// editsBelowAFolder: one click for further edits below a file's folder, and for nothing beside
// it, no program and no secret.
func editsBelowAFolder(t *testing.T, w *world) {
	holds := func(what, name, want string) {
		t.Helper()
		if b, err := os.ReadFile(filepath.Join(w.Workspace, name)); err != nil || string(b) != want {
			t.Errorf("%s: %s holds %q (%v), want %q", what, name, b, err, want)
		}
	}
	if err := os.MkdirAll(filepath.Join(w.Workspace, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.Workspace, "notes", "run"), nil, 0o700); err != nil { //nolint:gosec // it is to be a program
		t.Fatal(err)
	}
	thread := w.writes("", "notes/often.txt", "one")
	v, text := w.opens(ada, eng, w.card(eng, thread).TS, "edits_below")
	rule := regexp.MustCompile(`(?m)^1:[0-9a-f]{16}$`).FindString(text)
	if !strings.Contains(text, "Edit(notes/**)") || rule == "" {
		t.Fatalf("the form:\n%s", text)
	}
	w.submit(ada, v, nil) // as it is opened
	w.done(eng, thread, thread)
	holds("approved", "notes/often.txt", "one")
	for _, name := range []string{"often.txt", "new.txt"} {
		again := w.writes(thread, "notes/"+name, "two")
		w.done(eng, thread, again)
		holds("by the grant", "notes/"+name, "two")
	}
	if n := w.count(`SELECT count(*) FROM approvals a JOIN grants g ON g.id = a.grant_id WHERE g.pattern = 'Edit(notes/**)' AND g.scope = 'thread' AND g.expires_at < now() + interval '61 minutes' AND a.status = 'allowed'`); n != 2 {
		t.Errorf("%d writes were allowed by the grant", n)
	}
	for _, name := range []string{"seldom.txt", "notes/run", "notes/.env", "notes/Makefile"} {
		other := w.writes(thread, name, "x")
		w.click(ada, eng, w.card(eng, thread).TS, "deny")
		w.done(eng, thread, other)
	}
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'granted' AND actor = 'U0ADA' AND details LIKE '%Edit(notes/**)%'`); n != 1 {
		t.Errorf("the audit tells of %d grants", n)
	}
}
