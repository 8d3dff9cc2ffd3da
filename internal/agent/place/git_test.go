package place

import (
	"os"
	"path/filepath"
	"testing"
)

// Only the thread's own repository is looked at, whatever folder the session names.
func TestOwnRepository(t *testing.T) {
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
	for dir, want := range map[string]bool{
		"": true, ws: true, filepath.Join(ws, "src/deep"): true,
		filepath.Join(ws, "nested"): false, filepath.Join(ws, "nested/src"): false, filepath.Join(ws, "link"): false, filepath.Join(ws, "inner"): false,
		filepath.Join(top, "8"): false, top: false, filepath.Join(ws, "../8"): false, "src": false, filepath.Join(ws, "nowhere"): false,
	} {
		if got := ownRepository(ws, dir); got != want {
			t.Errorf("%q: %v", dir, got)
		}
	}
}
