package place

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/transcript"
	"deckhand/internal/waittest"
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
	// A process that another test starts at this moment has the file, too, until it runs its program.
	soon := func(what string, try func() error) {
		t.Helper()
		err := try()
		for late := time.Now().Add(waittest.Limit); err != nil && time.Now().Before(late); err = try() {
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	soon("there is space again", func() error { return h.Takes(t.Context()) })
	soon("make it read-only", func() error { return unix.Mount("none", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "") })
	if err := h.Takes(t.Context()); !errors.Is(err, unix.EROFS) || !strings.Contains(Sentence(err), "read-only") {
		t.Errorf("a read-only disk: %v", err)
	}
}
