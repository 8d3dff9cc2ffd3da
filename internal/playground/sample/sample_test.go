package sample

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/needtest"
)

func run(t *testing.T, dir string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestWriteMakesARepository(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "git")
	dir := filepath.Join(t.TempDir(), "new", "boathouse")
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	log, err := run(t, dir, "git", "log", "--format=%an <%ae> %aI %cI %D %s")
	if err != nil {
		t.Fatal(err, log)
	}
	if want := "Boathouse <crew@boathouse.example> 2026-06-01T09:00:00+00:00 2026-06-01T09:00:00+00:00 HEAD -> main Boathouse: quotes, discounts and receipts\n"; strings.ReplaceAll(log, "Z ", "+00:00 ") != want {
		t.Errorf("log: %s", log)
	}
	if status, err := run(t, dir, "git", "status", "--porcelain", "--ignored"); err != nil || status != "" {
		t.Errorf("status: %q, %v", status, err)
	}
	for _, name := range []string{"CLAUDE.md", "README.md", "package.json", ".gitignore", "src/quote.js", "test/quote.test.js"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	again := filepath.Join(t.TempDir(), "boathouse")
	if err := Write(again); err != nil {
		t.Fatal(err)
	}
	one, err1 := run(t, dir, "git", "rev-parse", "HEAD")
	two, err2 := run(t, again, "git", "rev-parse", "HEAD")
	if err := errors.Join(err1, err2); err != nil || one != two {
		t.Errorf("two copies have the commits %s and %s (%v)", one, two, err)
	}
}

func TestWriteOverwritesNothing(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "git")
	parent := t.TempDir()
	dir := filepath.Join(parent, "boathouse")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir); err != nil {
		t.Fatalf("into an empty folder: %v", err)
	}
	mine := filepath.Join(dir, "src", "quote.js")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir); !errors.Is(err, ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	if got, err := os.ReadFile(mine); err != nil || string(got) != "mine" {
		t.Errorf("the file is %q, %v", got, err)
	}
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(file); err == nil {
		t.Error("a file was overwritten")
	}
	if left, err := filepath.Glob(filepath.Join(parent, ".sample-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWriteLeavesNothingWhenItFails(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("PATH", parent) // no git
	if err := Write(filepath.Join(parent, "boathouse")); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v, want that git is not found", err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestExactlyOneTestFailsAndOneCharacterMendsIt(t *testing.T) {
	t.Parallel()
	needtest.Programs(t, "git", "node", "npm")
	dir := filepath.Join(t.TempDir(), "boathouse")
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, dir, "npm", "test")
	if err == nil || !strings.Contains(out, "fail 1\n") || !strings.Contains(out, "pass 9\n") || !strings.Contains(out, "a full week gets 20 % off") {
		t.Fatalf("before: %v\n%s", err, out)
	}
	file := filepath.Join(dir, "src", "quote.js")
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(code), "days > t.days"); n != 1 {
		t.Fatalf("the bug is there %d times", n)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(code), "days > t.days", "days >= t.days", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(t, dir, "npm", "test"); err != nil || !strings.Contains(out, "fail 0\n") || !strings.Contains(out, "pass 10\n") {
		t.Errorf("after: %v\n%s", err, out)
	}
}

func TestTheProjectHasNoDependencies(t *testing.T) {
	t.Parallel()
	data, err := fs.ReadFile(repo, "repo/package.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "ependencies") {
		t.Error("package.json names dependencies")
	}
}
