package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"deckhand/internal/agent/claude"
	"deckhand/internal/transcript"
)

// A full disk is told: at the end of the turn that it took the words of, once, and
// whenever a turn would begin; when there is space again the thread goes on.
func TestAFullDiskIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		full := func(err error) {
			s.machine.mu.Lock()
			defer s.machine.mu.Unlock()
			s.machine.full = err
		}
		s.prompt(here)
		full(&diskError{"/data", unix.ENOSPC})
		s.process(here).result(claude.Result{})
		synctest.Wait()
		if said := told(s.heard()); strings.Count(said, "may be unknown") != 1 {
			t.Errorf("at the turn's end:\n%s", said)
		}
		s.prompt(here)
		if said := told(s.heard()); !strings.Contains(said, "disk of the bot's data folder is full") {
			t.Errorf("at the next prompt:\n%s", said)
		}
		full(nil)
		s.prompt(here)
		if got := s.state(here); got != "running" {
			t.Errorf("there is space again, and the thread is %s", got)
		}
		s.process(here).result(claude.Result{})
		synctest.Wait()
		for _, b := range s.close() {
			t.Error(b)
		}
	})
}

// TestAFullDisk fills a real one, and makes it read-only.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=32m"); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	h := &host{dataDir: dir}
	if err := h.takes(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 1<<20))
	}
	err = errors.Join(f.Close(), h.takes(t.Context()))
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(sentence(err), "is full") {
		t.Errorf("a full disk: %v: %s", err, sentence(err))
	}
	var asking sync.WaitGroup
	for range 20 { // who asks meanwhile hears the same
		asking.Go(func() {
			if err := h.takes(t.Context()); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("a full disk takes what others write: %v", err)
			}
		})
	}
	asking.Wait()
	// What comes to the next write instead of the check says the same.
	if err := (transcript.Homes{Dir: filepath.Join(dir, "homes")}).Renew(1, ""); err != nil && !strings.Contains(sentence(err), "is full") {
		t.Errorf("a home on a full disk: %v: %s", err, sentence(err))
	}
	if err := os.Remove(filepath.Join(dir, "fill")); err != nil {
		t.Fatal(err)
	}
	if err := h.takes(t.Context()); err != nil {
		t.Error("there is space again: ", err)
	}
	if err := unix.Mount("none", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := h.takes(t.Context()); !errors.Is(err, unix.EROFS) || !strings.Contains(sentence(err), "read-only") {
		t.Errorf("a read-only disk: %v", err)
	}
}
