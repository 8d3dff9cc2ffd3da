package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"deckhand/internal/needtest"
)

// git runs git in a folder, as nobody in particular.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	needtest.Program(t, "git")
	c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestWhatGitTracksIsReadFromItsIndex(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "3"} {
		dir := t.TempDir()
		want := []string{"a.txt", "deep/folder/with a name/b.txt", "deep/folder/with a name/c.txt", "z"}
		for _, f := range want {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, f), []byte(f), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "untracked"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "init", "-q")
		git(t, dir, "add", "a.txt", "deep", "z")
		if version == "3" { // what is only intended to be added takes it
			git(t, dir, "rm", "-q", "--cached", "z")
			git(t, dir, "add", "-N", "z")
		}
		git(t, dir, "update-index", "--index-version", version)
		if got, ok := tracked(dir); !ok || !slices.Equal(got, want) {
			t.Errorf("version %s: %q, %v", version, got, ok)
		}
		git(t, dir, "commit", "-qm", "x")
		git(t, dir, "update-index", "--split-index")
		if got, ok := tracked(dir); ok {
			t.Errorf("version %s, split: %q", version, got)
		}
	}
	if _, ok := tracked(t.TempDir()); ok {
		t.Error("a folder without a repository has an index")
	}
}

func FuzzReadIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"))
	f.Add(append([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"), make([]byte, 100)...))
	f.Fuzz(func(_ *testing.T, raw []byte) { readIndex(raw) })
}
