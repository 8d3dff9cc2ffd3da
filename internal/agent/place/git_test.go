package place

import (
	"os"
	"path/filepath"
	"testing"
)

// Repositories in the thread's folder alone are looked at, whatever folder the session names.
func TestRepositoryOf(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	ws := filepath.Join(top, "7")
	for _, dir := range []string{"7/.git", "7/src/deep", "7/nested/.git", "7/nested/src", "8/.git"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": filepath.Join(top, "8"), "inner": "src"} {
		if err := os.Symlink(to, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	nested := filepath.Join(ws, "nested")
	for dir, want := range map[string]string{
		"": ws, ws: ws, filepath.Join(ws, "src/deep"): ws,
		nested: nested, filepath.Join(nested, "src"): nested, filepath.Join(ws, "link"): "", filepath.Join(ws, "inner"): "",
		filepath.Join(top, "8"): "", top: "", filepath.Join(ws, "../8"): "", "src": "", filepath.Join(ws, "nowhere"): "",
	} {
		if got := repositoryOf(ws, dir); got != want {
			t.Errorf("%q: %q", dir, got)
		}
	}
}
