package place

import (
	"os"
	"path/filepath"
	"testing"

	"deckhand/internal/store/threads"
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

// TestPicturesAreOfTheirThread: of no other one that has its number, in another database.
func TestPicturesAreOfTheirThread(t *testing.T) {
	t.Parallel()
	h := &Host{DataDir: t.TempDir()}
	one := threads.Thread{ID: 7, TeamID: "T1", ChannelID: "C1", ThreadTS: "1.1"}
	must(t, h.KeepPictures(one, Pictures{Base: "b", After: []byte("a")}))
	if p, ok := h.Pictures(one); !ok || string(p.After) != "a" {
		t.Errorf("%+v", p)
	}
	if p, ok := h.Pictures(threads.Thread{ID: 7, TeamID: "T1", ChannelID: "C2", ThreadTS: "2.1"}); ok {
		t.Errorf("another thread has %+v", p)
	}
}
