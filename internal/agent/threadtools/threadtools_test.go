package threadtools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/agent/tools"
	"deckhand/internal/attachment"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/threads"
)

// chat keeps what is posted.
type chat struct{ posted []string }

func (c *chat) PostFiles(_ context.Context, _ threads.ThreadKey, files ...File) error {
	for _, f := range files {
		c.posted = append(c.posted, f.Name+"|"+f.Title+"|"+string(f.Content))
	}
	return nil
}

func (c *chat) ReadThread(context.Context, threads.ThreadKey, string) (string, error) { return "", nil }

// TestOnlyFilesOfTheWorkspaceArePosted: no link, pipe, folder, file outside, file of the bot's or
// file beyond the limit is posted, however its path is written, and none holds the bot up.
func TestOnlyFilesOfTheWorkspaceArePosted(t *testing.T) {
	t.Parallel()
	data := t.TempDir() // the bot's, which holds the workspace and is hidden
	dir := filepath.Join(data, "workspace")
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "out", "own"), 0o700))
	for name, content := range map[string]string{"../secret": "s", "out/own/key": "k", "out/chart.csv": "a,b", "large": ""} {
		must(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	must(os.Truncate(filepath.Join(dir, "large"), attachment.DefaultBytes+1))
	must(os.Symlink("../secret", filepath.Join(dir, "link")))
	must(os.Symlink("out", filepath.Join(dir, "folder")))
	must(unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))

	c := &chat{}
	post := Tools(threads.Thread{Workspace: dir}, c, []string{data, filepath.Join(dir, "out", "own")})[0]
	for path, want := range map[string]string{
		"out/chart.csv": "", filepath.Join(dir, "out/chart.csv"): "", "./out/../out/chart.csv": "",
		"../secret": "not in the workspace", filepath.Join(data, "secret"): "not in the workspace", "link": "what links lead to", "folder/chart.csv": "what links lead to",
		"pipe": "is no file", "out": "is no file", ".": "is no file", "": "is no file", "nothing": "is not there", "out/own/key": "the bot's own", "large": "up to 20 MiB are posted",
	} {
		in, err := json.Marshal(map[string]string{"path": path, "title": "T"})
		must(err)
		if _, err := post.Run(t.Context(), tools.Call{Input: in}); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if len(c.posted) != 3 || c.posted[0] != "chart.csv|T|a,b" {
		t.Errorf("posted were %q", c.posted)
	}
	other := filepath.Join(t.TempDir(), "by a link")
	must(os.Symlink(dir, other))
	for _, path := range []string{filepath.Join(other, "out/chart.csv"), filepath.Join(dir, "out/chart.csv")} {
		if content, err := within(other, path, []string{data}); err != nil || string(content) != "a,b" {
			t.Errorf("%s by a workspace that is a link: %q, %v", path, content, err)
		}
	}
	// A path begins where it was decided to.
	c.posted = nil
	if _, err := post.Run(t.Context(), tools.Call{Input: json.RawMessage(`{"path":"chart.csv"}`), Approval: approvals.Approval{Request: approvals.Request{Dir: filepath.Join(dir, "out")}}}); err != nil || len(c.posted) != 1 {
		t.Errorf("from the folder that it works in: %q, %v", c.posted, err)
	}
	c.posted = make([]string, 4)
	for range filesMost {
		_, _ = post.Run(t.Context(), tools.Call{Input: json.RawMessage(`{"path":"out/chart.csv"}`)})
	}
	if len(c.posted) != filesMost {
		t.Errorf("one turn has posted %d files", len(c.posted))
	}
	if _, err := post.Run(t.Context(), tools.Call{Input: json.RawMessage(`{"path":"out/chart.csv"}`), Approval: approvals.Approval{Origin: approvals.Origin{TurnID: 2}}}); err != nil {
		t.Errorf("the next turn: %v", err)
	}
}
