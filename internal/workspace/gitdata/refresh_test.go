package gitdata_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/waittest"
	"deckhand/internal/workspace/gitdata"
)

// refresh brings the source up to date with an upstream, by a git that hears of nothing
// but the folder that it is given.
func (b *bench) refresh(upstream string) error {
	return gitdata.Refresh{Source: b.open(), Scratch: filepath.Join(b.dir, "scratch"), Fetch: func(ctx context.Context, dir, heads, tags string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", upstream, "+refs/heads/*:"+heads+"/*", "+refs/tags/*:"+tags+"/*")
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_DIR="+dir)
		out, err := cmd.CombinedOutput()
		return "main", errors.Join(err, errorOf(string(out)))
	}}.Do(b.Context())
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// A repository is brought up to date without hearing its settings, and knows then what git
// fetch would have told it. What is its own stays.
func TestRefresh(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	upstream := filepath.Join(b.dir, "upstream")
	b.git(b.dir, "clone", "--quiet", "--bare", b.source, upstream)
	b.must(os.RemoveAll(b.source))
	b.git(b.dir, "clone", "--quiet", upstream, "person")
	person := filepath.Join(b.dir, "person")
	b.git(person, "config", "user.name", "Ada")
	b.git(person, "config", "user.email", "ada@example.com")
	b.git(person, "push", "--quiet", "origin", "HEAD:old", "HEAD:x")
	b.git(b.dir, "clone", "--quiet", upstream, b.source)
	b.git(b.source, "fetch", "--quiet", "--all") // some refs are packed, some are files
	b.git(b.source, "tag", "own")
	b.git(b.source, "branch", "deckhand/3")
	b.git(b.source, "pack-refs", "--all")
	tip := b.commit(person, "new", "new\n")
	b.git(person, "tag", "--annotate", "--message", "v1", "v1")
	b.git(person, "push", "--quiet", "--follow-tags", "origin", "HEAD:main", ":old", ":x")
	b.git(person, "push", "--quiet", "origin", "HEAD:x/y")
	want := b.git(b.source, "for-each-ref", "refs/heads", "refs/tags")
	b.poison(filepath.Join(b.source, ".git"))
	b.must(b.refresh(upstream))
	b.untouched()
	// git itself is asked beside the poison.
	b.must(os.Rename(filepath.Join(b.source, ".git/config"), filepath.Join(b.dir, "config")))
	b.must(os.RemoveAll(filepath.Join(b.source, ".git/hooks")))
	b.write(filepath.Join(b.source, ".git/config"), "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = "+upstream+"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n")
	if got := b.git(b.source, "for-each-ref", "--format=%(refname) %(objectname)", "refs/remotes"); got != "refs/remotes/origin/HEAD "+tip+"\nrefs/remotes/origin/main "+tip+"\nrefs/remotes/origin/x/y "+tip {
		t.Errorf("it knows\n%s", got)
	}
	if got := b.git(b.source, "for-each-ref", "refs/heads", "refs/tags"); got != want+"\n"+b.git(person, "for-each-ref", "refs/tags/v1") {
		t.Errorf("its own are\n%s\nwant\n%s", got, want)
	}
	if got := b.git(b.source, "rev-parse", "v1^{commit}"); got != tip {
		t.Errorf("the tag is %s", got)
	}
	if got := b.git(b.source, "fetch", "--prune", "--dry-run", "origin"); got != "" {
		t.Errorf("git fetch would bring\n%s", got)
	}
	b.whole(b.source)
	if at := b.open().Fetched(); time.Since(at) > waittest.Limit {
		t.Errorf("it was fetched at %s", at)
	}
	before := b.git(b.source, "for-each-ref")
	for name, from := range map[string]string{"nothing": filepath.Join(b.dir, "nothing"), "a repository without a branch": bareIn(b)} {
		if err := b.refresh(from); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if after := b.git(b.source, "for-each-ref"); after != before {
		t.Errorf("a fetch that failed has left\n%s", after)
	}
	if left, _ := os.ReadDir(filepath.Join(b.dir, "scratch")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func bareIn(b *bench) string {
	dir := filepath.Join(b.dir, "empty.git")
	b.git(b.dir, "init", "--quiet", "--bare", dir)
	return dir
}

// A lock that a dead process has left is in nobody's way for ever.
func TestLocks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lock := filepath.Join(b.source, ".git/refs/heads/deckhand/7.lock")
	b.makeClone("")
	b.write(lock, "")
	if _, err := b.publish(); err == nil || !strings.Contains(err.Error(), "left behind") {
		t.Errorf("a lock: %v", err)
	}
	b.must(os.Chtimes(lock, time.Time{}, time.Now().Add(-time.Hour)))
	if _, err := b.publish(); err != nil {
		t.Errorf("an old lock: %v", err)
	}
	// Ours: of a bot that lives, and of one that was killed a moment ago.
	b.commit(b.clone, "more", "1\n")
	b.write(lock, "")
	b.must(os.Chmod(lock, 0o600|os.ModeSticky))
	held, err := os.Open(lock)
	b.must(err)
	b.must(unix.Flock(int(held.Fd()), unix.LOCK_EX))
	if _, err := b.publish(); err == nil || !strings.Contains(err.Error(), "is held") {
		t.Errorf("a lock that is held: %v", err)
	}
	b.must(held.Close())
	if _, err := b.publish(); err != nil {
		t.Errorf("a lock of one that was killed: %v", err)
	}
	info, err := os.Stat(strings.TrimSuffix(lock, ".lock"))
	if b.must(err); info.Mode()&os.ModeSticky != 0 {
		t.Errorf("the ref has mode %v", info.Mode())
	}
}

func TestReftableIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(os.Mkdir(filepath.Join(b.source, ".git/reftable"), 0o755))
	if _, err := gitdata.Open(b.source); err == nil || !strings.Contains(err.Error(), "git refs migrate") {
		t.Error(err)
	}
}
