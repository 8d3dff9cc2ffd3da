package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/waittest"
)

// TestLocksOfADeadSession: git works again in a thread whose process was killed in the
// middle of a command of git's, whatever that had locked. What a link leads to is not
// touched.
func TestLocksOfADeadSession(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	source, outside := filepath.Join(dir, "source"), filepath.Join(dir, "outside")
	repositoryOf(t, source)
	for _, kind := range []Kind{Worktree, Shared} {
		t.Run(string(kind), func(t *testing.T) {
			k, p := &Keeper{DataDir: filepath.Join(dir, string(kind))}, Project{Name: "web", Dir: source, Kind: kind}
			thread := Thread{ID: 1, Branch: "deckhand/1"}
			var err error
			if thread.Dir, _, err = k.Open(ctx, thread, p); err != nil {
				t.Fatal(err)
			}
			git := filepath.Join(thread.Dir, ".git")
			locks := []string{
				"index.lock", "HEAD.lock", "config.lock", "shallow.lock", "packed-refs.lock", "ORIG_HEAD.lock", "refs/heads/main.lock", "refs/remotes/origin/a/b.lock",
				"objects/info/commit-graph.lock", "objects/pack/multi-pack-index.lock", "worktrees/w/index.lock", "modules/m/config.lock", "modules/m/objects/maintenance.lock",
			}
			for _, name := range locks {
				put(t, filepath.Join(git, name), "")
			}
			put(t, filepath.Join(outside, "theirs.lock"), "")
			for link, to := range map[string]string{"hooks/x": outside, "linked.lock": filepath.Join(outside, "theirs.lock")} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(git, link)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(to, filepath.Join(git, link)); err != nil {
					t.Fatal(err)
				}
			}
			if dir, told, err := k.Open(ctx, thread, p); err != nil || dir != thread.Dir || len(told) > 0 {
				t.Errorf("%s, %q, %v", dir, told, err)
			}
			for _, name := range locks {
				if _, err := os.Lstat(filepath.Join(git, name)); err == nil {
					t.Errorf("%s is there", name)
				}
			}
			if _, err := os.Lstat(filepath.Join(outside, "theirs.lock")); err != nil {
				t.Errorf("what is behind a link: %v", err)
			}
			put(t, filepath.Join(thread.Dir, "after"), "after\n")
			runGit(t, thread.Dir, "add", "--all")
			runGit(t, thread.Dir, "commit", "--quiet", "--message", "after")
		})
	}
}

// TestLocksOfTheLiving: in a folder that is people's, a lock whose owner may live stays, and
// people are told which it is.
func TestLocksOfTheLiving(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	source := filepath.Join(dir, "source")
	repositoryOf(t, source)
	lock := filepath.Join(source, ".git", "index.lock")
	k, thread, p := &Keeper{DataDir: filepath.Join(dir, "data")}, Thread{ID: 1, Dir: source}, Project{Name: "web", Dir: source, Kind: Shared}
	stays := func(what string) {
		t.Helper()
		_, told, err := k.Open(ctx, thread, p)
		if _, gone := os.Lstat(lock); err != nil || gone != nil || len(told) != 1 || !strings.Contains(told[0], lock) {
			t.Errorf("%s: %q, %v; the lock: %v", what, told, err, gone)
		}
	}
	goes := func(what string) {
		t.Helper()
		_, told, err := k.Open(ctx, thread, p)
		if _, there := os.Lstat(lock); err != nil || there == nil || len(told) != 0 {
			t.Errorf("%s: %q, %v; the lock is there: %t", what, told, err, there == nil)
		}
	}

	put(t, lock, "")
	left := k.Works(filepath.Join(source, "sub"))
	stays("another thread works there")
	left()
	goes("nobody works there")

	put(t, lock, "")
	open, err := os.Open(lock)
	if err != nil {
		t.Fatal(err)
	}
	stays("somebody has it open")
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	goes("nobody has it open")

	// A person's commit, whose editor is open.
	put(t, filepath.Join(source, "README.md"), "two\n")
	commit := exec.CommandContext(ctx, "git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--all")
	commit.Dir, commit.Env, commit.SysProcAttr = source, append(os.Environ(), "GIT_EDITOR=sleep 3600 #"), &syscall.SysProcAttr{Setpgid: true}
	if err := commit.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { _ = syscall.Kill(-commit.Process.Pid, syscall.SIGKILL) }
	defer kill()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(lock); err == nil {
			break
		}
		if time.Since(began) > waittest.Limit {
			t.Fatal("git locks nothing")
		}
	}
	stays("somebody's git runs there")
	kill()
	_ = commit.Wait()
	goes("it was killed")
}
