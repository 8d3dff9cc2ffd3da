package place

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWhatAPreviewHasLeftIsSwept: whatever ran in it, and although the bot was killed.
func TestWhatAPreviewHasLeftIsSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shut := filepath.Join(dir, "scratch/preview-1/home/shut")
	must(t, os.MkdirAll(shut, 0o700))
	must(t, os.WriteFile(filepath.Join(shut, ".env"), []byte("SECRET=1"), 0o600))
	must(t, os.Chmod(shut, 0))
	r, err := OpenReplica(dir)
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	if _, err := os.Lstat(filepath.Join(dir, "scratch")); err == nil {
		_ = os.Chmod(shut, 0o700)
		t.Error("it is there")
	}
}
