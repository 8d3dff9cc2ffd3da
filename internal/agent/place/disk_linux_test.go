package place

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/transcript"
)

// TestAFullDisk fills a real one, and makes it read-only.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=32m"); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	h := &Host{DataDir: dir}
	if err := h.Takes(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 1<<20))
	}
	err = errors.Join(f.Close(), h.Takes(t.Context()))
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(Sentence(err), "is full") {
		t.Errorf("a full disk: %v: %s", err, Sentence(err))
	}
	var asking sync.WaitGroup
	for range 20 { // who asks meanwhile hears the same
		asking.Go(func() {
			if err := h.Takes(t.Context()); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("a full disk takes what others write: %v", err)
			}
		})
	}
	asking.Wait()
	// What comes to the next write instead of the check says the same.
	if err := (transcript.Homes{Dir: filepath.Join(dir, "homes")}).Renew(1, ""); err != nil && !strings.Contains(Sentence(err), "is full") {
		t.Errorf("a home on a full disk: %v: %s", err, Sentence(err))
	}
	if err := os.Remove(filepath.Join(dir, "fill")); err != nil {
		t.Fatal(err)
	}
	if err := h.Takes(t.Context()); err != nil {
		t.Error("there is space again: ", err)
	}
	if err := unix.Mount("none", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.Takes(t.Context()); !errors.Is(err, unix.EROFS) || !strings.Contains(Sentence(err), "read-only") {
		t.Errorf("a read-only disk: %v", err)
	}
}
