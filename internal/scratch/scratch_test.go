package scratch_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deckhand/internal/scratch"
)

// TestMain is also a process that makes a folder and is killed.
func TestMain(m *testing.M) {
	if os.Getenv("DECKHAND_TEST_ROLE") == "maker" {
		f, err := scratch.Make(scratch.Check)
		fmt.Println(f.Path, err)
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed; it never ends by itself
		runtime.KeepAlive(f)
	}
	os.Exit(m.Run())
}

func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ours, err := scratch.Make(scratch.Doctor)
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(os.TempDir(), "deckhand-other-1")
	old := filepath.Join(os.TempDir(), "deckhand-check-1") // of a version that locked none
	away := t.TempDir()
	for _, err := range []error{
		os.Mkdir(foreign, 0o700), os.MkdirAll(filepath.Join(old, "workspace"), 0o700),
		os.Symlink(away, filepath.Join(os.TempDir(), "deckhand-check-2")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	maker := exec.CommandContext(t.Context(), os.Args[0])
	maker.Env = append(os.Environ(), "DECKHAND_TEST_ROLE=maker")
	in, err := maker.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // the process is killed
	out, err := maker.StdoutPipe()
	if err == nil {
		err = maker.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	theirs, said, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || said != "<nil>" {
		t.Fatalf("%q, %v", line, err)
	}
	sweep := func(left, gone []string) {
		t.Helper()
		if err := scratch.Sweep(); err != nil {
			t.Error(err)
		}
		for _, path := range left {
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		}
		for _, path := range gone {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", path, err)
			}
		}
	}
	sweep([]string{ours.Path, theirs, foreign, away}, []string{old})
	if err := maker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = maker.Wait() // killed, as we know
	sweep([]string{ours.Path, foreign, away}, []string{theirs})
	if err := ours.Remove(); err != nil {
		t.Error(err)
	}
	sweep(nil, []string{ours.Path})
}
