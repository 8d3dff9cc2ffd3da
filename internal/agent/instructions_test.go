package agent

import (
	"os"
	"path/filepath"
	"testing"

	"deckhand/internal/agent/place"
	"deckhand/internal/store"
	"deckhand/internal/workspace"
)

// TestWhatASpareStartsFrom: what its process was told of the folder is part of it.
func TestWhatASpareStartsFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := &place.Host{DataDir: t.TempDir(), Keeper: &workspace.Keeper{}, Instructions: systemPrompt}
	p, thread := place.Project{Name: "web", Workspace: workspace.Shared, Dir: dir}, store.Thread{ID: 7, Workspace: dir}
	seen := map[string]string{}
	for _, step := range []struct{ what, file, text string }{
		{"nothing", "main.go", "package main"},
		{"instructions", "CLAUDE.md", "Be kind."},
		{"other instructions", "CLAUDE.md", "Be kind, and quick."},
	} {
		if err := os.WriteFile(filepath.Join(dir, step.file), []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			from, err := h.StartsFrom(t.Context(), thread, p)
			if err != nil {
				t.Fatal(err)
			}
			if other, ok := seen[from]; ok && other != step.what {
				t.Errorf("%s and %s are the same", step.what, other)
			}
			seen[from] = step.what
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d beginnings", len(seen))
	}
}
