package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/agent/place"
)

// Both CLAUDE.md count in a folder of a larger repository, the one of the top first.
func TestInstructionsOfASubfolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"CLAUDE.md": "Of all.", "services/web/CLAUDE.md": "Of the folder."} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for subdir, want := range map[string][]string{"": {"Of all."}, "services/web": {"Of all.", "The CLAUDE.md of services/web:\n\nOf the folder.", "You work in services/web"}, "gone": {"Of all."}} {
		got, err := systemPrompt(place.Project{Subdir: subdir}, dir)
		at := 0
		for _, text := range want {
			next := strings.Index(got, text)
			if next < at {
				t.Errorf("%q: %q is not in its place in\n%s", subdir, text, got)
			}
			at = next
		}
		if err != nil || subdir != "services/web" && strings.Contains(got, "You work in") {
			t.Errorf("%q: %v\n%s", subdir, err, got)
		}
	}
}

// The model is told where the project's further repositories are, and their CLAUDE.md.
func TestInstructionsOfSeveralRepositories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lib := filepath.Join(dir, ".deckhand/repos/lib")
	if err := errors.Join(os.MkdirAll(lib, 0o700), os.WriteFile(filepath.Join(lib, "CLAUDE.md"), []byte("Of the lib."), 0o600)); err != nil {
		t.Fatal(err)
	}
	got, err := systemPrompt(place.Project{Name: "web", Further: []place.Repository{{Name: "lib", Repo: "https://h/t/l"}}}, dir)
	if err != nil || !strings.Contains(got, "The project's repository lib is in "+lib) || !strings.Contains(got, "The CLAUDE.md of lib:\n\nOf the lib.") {
		t.Errorf("%v\n%s", err, got)
	}
}

// All of them together leave room for the rest of the prompt, which is one argument.
func TestInstructionsAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := place.Project{Name: "web"}
	for _, name := range []string{"a", "b", "c", "d"} {
		p.Further = append(p.Further, place.Repository{Name: name, Repo: "https://h/t/" + name})
	}
	for _, at := range []string{"", ".deckhand/repos/a", ".deckhand/repos/b", ".deckhand/repos/c", ".deckhand/repos/d"} {
		at = filepath.Join(dir, at)
		if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, "CLAUDE.md"), []byte(strings.Repeat("a\xff\x00", maxInstructions)), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := systemPrompt(p, dir)
	if err != nil || len(got) > 100<<10 || strings.Contains(got, "\x00") || strings.Count(got, "was cut here") != 5 {
		t.Errorf("%v: %d bytes, %d of them cut", err, len(got), strings.Count(got, "was cut here"))
	}
}
