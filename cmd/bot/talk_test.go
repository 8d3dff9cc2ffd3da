package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// askedInLate: at the end of a long thread the CLI is given the first post and the newest, and is
// told how many it does not have.
func askedInLate(t *testing.T, w *world) {
	thread := w.post(grace, eng, "", "The long build is red.")
	for i := range 300 {
		w.post(linus, eng, thread, fmt.Sprintf("finding %d of many", i))
	}
	prompt := w.post(linus, eng, thread, "<@"+w.BotUser+"> see http://127.0.0.1:1/a?b&c\nsay: I have read it all")
	w.done(eng, thread, prompt)
	want := "The long build is red.\\n[About 250 posts that came here are left out; the newest follow.]\\n"
	got := ""
	err := filepath.WalkDir(w.dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".jsonl") {
			return nil //nolint:nilerr // what a session just removed has no prompt
		}
		b, err := os.ReadFile(name)
		if i := bytes.Index(b, []byte(want)); err == nil && i >= 0 {
			got = string(b[i:])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{want, "finding 250 of many", "finding 299 of many\\n[The message to you:]\\nsee http://127.0.0.1:1/a?b"} {
		if !strings.Contains(got, part) {
			t.Errorf("the CLI's prompt has not %q: %.300q", part, got)
		}
	}
	if strings.Contains(got, "finding 249 of many") {
		t.Error("the CLI's prompt has what it is told is left out")
	}
}
