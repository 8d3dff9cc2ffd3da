package gitdata_test

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/workspace/gitdata"
)

// bench is a repository of people and a thread's clone of it.
type bench struct {
	*testing.T
	dir, source, clone, traces string
	subdir                     string // of the clone's sparse checkout
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir()}
	b.source, b.clone, b.traces = filepath.Join(b.dir, "source"), filepath.Join(b.dir, "workspaces/7"), filepath.Join(b.dir, "traces")
	for _, dir := range []string{b.source, b.traces} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.git(b.source, "init", "--quiet", "--initial-branch=main")
	b.git(b.source, "config", "user.name", "Grace")
	b.git(b.source, "config", "user.email", "grace@example.com")
	b.commit(b.source, "README.md", "one\n")
	return b
}

// git runs git as a person does, or as an agent's command does.
func (b *bench) git(dir string, args ...string) string {
	b.Helper()
	out, err := b.tryGit(dir, args...)
	if err != nil {
		b.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

func (b *bench) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(b.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+b.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (b *bench) commit(dir, file, text string) string {
	b.Helper()
	b.write(filepath.Join(dir, file), text)
	b.git(dir, "add", "--all")
	b.git(dir, "commit", "--quiet", "--message", "change "+file)
	return b.git(dir, "rev-parse", "HEAD")
}

func (b *bench) write(path, text string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) open() gitdata.Repository {
	b.Helper()
	r, err := gitdata.Open(b.source)
	b.must(err)
	return r
}

func (b *bench) makeClone(base string) {
	b.Helper()
	b.must(b.tryClone(base))
}

func (b *bench) tryClone(base string) error {
	_, err := b.cloning(base).Make(b.Context())
	return err
}

func (b *bench) cloning(base string) gitdata.Clone {
	return gitdata.Clone{
		Source: b.open(), Dir: b.clone, Branch: "deckhand/7", Base: base, Subdir: b.subdir, Scratch: filepath.Join(b.dir, "scratch"),
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "GIT_CONFIG_NOSYSTEM=1"},
	}
}

func (b *bench) publish() (string, error) {
	b.Helper()
	return gitdata.Publication{Clone: b.clone, Source: b.open(), Branch: "deckhand/7", Scratch: filepath.Join(b.dir, "scratch"), MaxBytes: 8 << 20}.Publish(b.Context())
}

// published is what the source's branch names, empty if it has none.
func (b *bench) published() string {
	b.Helper()
	hash, err := b.open().Ref("refs/heads/deckhand/7")
	b.must(err)
	return hash
}

// whole fails unless git finds nothing wrong with a repository.
func (b *bench) whole(dir string) {
	b.Helper()
	if out, err := b.tryGit(dir, "fsck", "--strict", "--connectivity-only"); err != nil {
		b.Errorf("%s: %s", dir, out)
	}
}

// trace is a command that leaves a trace.
func (b *bench) trace(name string) string { return "touch " + filepath.Join(b.traces, name) }

func (b *bench) untouched() {
	b.Helper()
	found, err := os.ReadDir(b.traces)
	b.must(err)
	for _, e := range found {
		b.Errorf("%s ran", e.Name())
	}
}

// poison gives a git folder every order that git takes from one.
func (b *bench) poison(gitDir string) {
	b.Helper()
	for key, value := range map[string]string{
		"core.fsmonitor": b.trace("fsmonitor"), "core.sshCommand": b.trace("ssh"), "core.alternateRefsCommand": b.trace("alternate-refs"),
		"core.pager": b.trace("pager"), "core.hooksPath": filepath.Join(b.dir, "hooks"), "core.worktree": b.dir, "core.askPass": b.trace("askpass"),
		"core.attributesFile": filepath.Join(b.dir, "attributes"), "core.gitProxy": b.trace("proxy"), "core.bare": "true",
		"filter.evil.clean": b.trace("clean") + "; cat", "filter.evil.smudge": b.trace("smudge") + "; cat", "filter.evil.process": b.trace("process"),
		"diff.external": b.trace("diff"), "merge.evil.driver": b.trace("merge"), "gpg.program": b.trace("gpg"), "credential.helper": "!" + b.trace("credential"),
		"uploadpack.packObjectsHook": b.trace("pack-objects"), "remote.origin.uploadpack": b.trace("upload-pack") + "; git-upload-pack",
		"remote.origin.promisor": "true", "remote.origin.partialclonefilter": "blob:none", "extensions.partialClone": "origin", "extensions.worktreeConfig": "true",
		"remote.origin.vcs": "evil", "protocol.ext.allow": "always", "url.ext::" + b.trace("instead") + " .insteadOf": "/", "alias.rev-list": "!" + b.trace("alias"),
		"gc.recentObjectsHook": b.trace("recent-objects"), "include.path": filepath.Join(b.dir, "included"), "trace2.eventTarget": filepath.Join(b.traces, "trace2"),
		"user.name": "Grace", "user.email": "grace@example.com", "core.repositoryformatversion": "1",
	} {
		b.git(b.dir, "config", "--file", filepath.Join(gitDir, "config"), key, value)
	}
	b.write(filepath.Join(b.dir, "included"), "[core]\n\tfsmonitor = "+b.trace("included")+"\n")
	b.write(filepath.Join(b.dir, "attributes"), "* filter=evil\n")
	b.write(filepath.Join(gitDir, "info/attributes"), "* filter=evil\n")
	b.write(filepath.Join(gitDir, "config.worktree"), "[core]\n\tfsmonitor = "+b.trace("config-worktree")+"\n")
	for _, hook := range []string{"reference-transaction", "post-checkout", "post-index-change", "pre-auto-gc", "post-update", "update", "pre-receive", "post-receive", "proc-receive", "fsmonitor-watchman"} {
		for _, dir := range []string{filepath.Join(gitDir, "hooks"), filepath.Join(b.dir, "hooks")} {
			b.write(filepath.Join(dir, hook), "#!/bin/sh\n"+b.trace(hook)+"\n")
		}
	}
}

func TestAClone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.git(b.source, "branch", "feature")
	b.git(b.source, "tag", "--annotate", "--message", "v1", "v1")
	base := b.git(b.source, "rev-parse", "HEAD")
	b.makeClone("")
	if got := b.git(b.clone, "rev-parse", "HEAD"); got != base {
		t.Errorf("HEAD is %s, want %s", got, base)
	}
	for args, want := range map[string]string{
		"rev-parse --abbrev-ref HEAD": "deckhand/7", "status --porcelain": "", "config user.name": "Grace", "config user.email": "grace@example.com",
		"rev-parse main": base, "rev-parse origin/feature": base, "rev-parse v1^{commit}": base, "symbolic-ref refs/remotes/origin/HEAD": "refs/remotes/origin/main",
		"config remote.origin.url": filepath.Join(b.source, ".git"), "rev-parse --git-common-dir": ".git",
	} {
		if got := b.git(b.clone, strings.Fields(args)...); got != want {
			t.Errorf("git %s: %q, want %q", args, got, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(b.clone, "README.md")); err != nil || string(text) != "one\n" {
		t.Errorf("%q, %v", text, err)
	}
	b.whole(b.clone)
	// Its own matters stay its own.
	b.git(b.clone, "branch", "--force", "main", "HEAD")
	b.git(b.clone, "config", "core.fsmonitor", "evil")
	b.commit(b.clone, "own.txt", "own\n")
	if out := b.git(b.source, "for-each-ref", "refs/heads"); strings.Contains(out, "deckhand") || b.git(b.source, "config", "--list") != b.git(b.source, "config", "--list", "--local") {
		t.Errorf("the source has heard of it: %s", out)
	}
	if left, _ := os.ReadDir(filepath.Join(b.dir, "scratch")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The origin of a clone is where its source comes from, and what the source knows of it.
func TestACloneKnowsTheSourcesOrigin(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	upstream := filepath.Join(b.dir, "upstream.git")
	b.git(b.dir, "clone", "--quiet", "--bare", b.source, upstream)
	b.git(b.source, "remote", "add", "origin", "../upstream.git")
	b.git(b.source, "fetch", "--quiet")
	pushed := b.git(b.source, "rev-parse", "HEAD")
	ahead := b.commit(b.source, "README.md", "two\n")
	b.makeClone("main")
	if got := b.git(b.clone, "config", "remote.origin.url"); got != upstream {
		t.Errorf("origin is %s, want %s", got, upstream)
	}
	if got := b.git(b.clone, "rev-parse", "HEAD", "main", "origin/main"); got != strings.Join([]string{ahead, ahead, pushed}, "\n") {
		t.Errorf("HEAD, main and origin/main are\n%s", got)
	}
	b.git(b.clone, "fetch", "--quiet", "origin")
	b.git(b.clone, "push", "--quiet", "origin", "HEAD:refs/heads/from-the-thread")
}

func TestAWayToStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(*bench)
		base    string
		err     string // part of it, if none can be made
	}{
		"a tag":              {func(b *bench) { b.git(b.source, "tag", "v1") }, "v1", ""},
		"packed refs":        {func(b *bench) { b.git(b.source, "tag", "v1"); b.git(b.source, "pack-refs", "--all") }, "v1", ""},
		"a revision":         {func(b *bench) { b.commit(b.source, "b", "b") }, "main~1", ""},
		"a detached HEAD":    {func(b *bench) { b.git(b.source, "checkout", "--quiet", "--detach") }, "", ""},
		"a packed source":    {func(b *bench) { b.git(b.source, "gc", "--quiet") }, "", ""},
		"a shallow source":   {shallowSource, "", ""},
		"a linked tree":      {linkedSource, "", ""},
		"a bare source":      {bareSource, "", ""},
		"a folder within":    {func(b *bench) { b.commit(b.source, "sub/x", "x"); b.source += "/sub" }, "", ""},
		"a borrowing source": {borrowingSource, "", ""},
		"SHA-256":            {sha256Source, "", ""},
		"no such base":       {func(*bench) {}, "nowhere", "has no nowhere"},
		"no commit":          {func(b *bench) { b.must(os.RemoveAll(b.source)); b.git(b.dir, "init", "--quiet", b.source) }, "", "has no HEAD"},
		"an option as base":  {func(*bench) {}, "--all", "has no --all"},
		"a partial source": {func(b *bench) {
			b.git(b.source, "gc", "--quiet")
			packs, _ := filepath.Glob(filepath.Join(b.source, ".git/objects/pack/*.pack"))
			b.write(strings.TrimSuffix(packs[0], ".pack")+".promisor", "")
		}, "", "partial clone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			tt.prepare(b)
			err := b.tryClone(tt.base)
			switch {
			case tt.err == "" && err == nil:
				b.commit(b.clone, "new.txt", "new\n")
				if _, err := b.publish(); err != nil {
					t.Errorf("it cannot be published: %v", err)
				}
				b.whole(b.source)
			case tt.err == "" || err == nil || !strings.Contains(err.Error(), tt.err):
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if left, _ := filepath.Glob(filepath.Join(b.dir, "workspaces/.*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func shallowSource(b *bench) {
	b.commit(b.source, "a", "a")
	deep := b.source
	b.source = filepath.Join(b.dir, "shallow")
	b.git(b.dir, "clone", "--quiet", "--depth=1", "file://"+deep, b.source)
	b.git(b.source, "config", "user.name", "Grace")
	b.git(b.source, "config", "user.email", "grace@example.com")
}

func linkedSource(b *bench) {
	b.git(b.source, "worktree", "add", "--quiet", filepath.Join(b.dir, "linked"))
	b.source = filepath.Join(b.dir, "linked")
}

func bareSource(b *bench) {
	b.git(b.dir, "clone", "--quiet", "--bare", b.source, "bare.git")
	b.source = filepath.Join(b.dir, "bare.git")
	b.git(b.source, "config", "user.name", "Grace")
	b.git(b.source, "config", "user.email", "grace@example.com")
}

func borrowingSource(b *bench) {
	lender := b.source
	b.source = filepath.Join(b.dir, "borrower")
	b.git(b.dir, "clone", "--quiet", "--shared", lender, b.source)
	b.git(b.source, "config", "user.name", "Grace")
	b.git(b.source, "config", "user.email", "grace@example.com")
}

func sha256Source(b *bench) {
	b.must(os.RemoveAll(b.source))
	b.git(b.dir, "init", "--quiet", "--object-format=sha256", b.source)
	b.git(b.source, "config", "user.name", "Grace")
	b.git(b.source, "config", "user.email", "grace@example.com")
	b.commit(b.source, "a", "a")
}

func TestPublish(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.makeClone("")
	if got, err := b.publish(); err != nil || got != b.git(b.clone, "rev-parse", "HEAD") || b.published() != got {
		t.Errorf("at the start: %q, %v", got, err)
	}
	var tips []string
	for i, text := range []string{"two\n", "three\n", "four\n"} {
		tips = append(tips, b.commit(b.clone, "README.md", text))
		if i == 1 {
			b.git(b.clone, "gc", "--quiet") // the next comes out of a pack
		}
		if got, err := b.publish(); err != nil || got != tips[i] || b.published() != tips[i] {
			t.Errorf("published %q, %v, want %s", got, err, tips[i])
		}
	}
	b.whole(b.source)
	if text := b.git(b.source, "show", "deckhand/7:README.md"); text != "four" {
		t.Errorf("people see %q", text)
	}
	// What was taken back is taken back, and can be found.
	b.git(b.clone, "reset", "--quiet", "--hard", "HEAD~2")
	if got, err := b.publish(); err != nil || got != tips[0] || b.published() != tips[0] {
		t.Errorf("taken back: %q, %v", got, err)
	}
	if before := b.git(b.source, "rev-parse", "deckhand/7@{1}"); before != tips[2] {
		t.Errorf("the reflog says %s, want %s", before, tips[2])
	}
	// A branch that is not there any more stays where people have it.
	b.git(b.clone, "checkout", "--quiet", "--detach")
	b.git(b.clone, "branch", "--quiet", "-D", "deckhand/7")
	if got, err := b.publish(); err != nil || got != "" || b.published() != tips[0] {
		t.Errorf("without a branch: %q, %v", got, err)
	}
	if left, _ := os.ReadDir(filepath.Join(b.dir, "scratch")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPublishDoesNotMoveWhatSomebodyStandsOn(t *testing.T) {
	t.Parallel()
	for _, linked := range []bool{false, true} {
		b := newBench(t)
		b.makeClone("")
		_, err := b.publish()
		b.must(err)
		if linked {
			b.git(b.source, "worktree", "add", "--quiet", filepath.Join(b.dir, "linked"), "deckhand/7")
		} else {
			b.git(b.source, "checkout", "--quiet", "deckhand/7")
		}
		before := b.published()
		b.commit(b.clone, "a", "a")
		if _, err := b.publish(); err == nil || !strings.Contains(err.Error(), "checked out") || b.published() != before {
			t.Errorf("linked %v: %v", linked, err)
		}
	}
}

// What a clone borrows outlives the source's gc, whatever people do with their branches.
func TestGCOfTheSourceLosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.git(b.source, "checkout", "--quiet", "-b", "feature")
	feature := b.commit(b.source, "feature.txt", "feature\n")
	b.makeClone("feature")
	b.git(b.source, "checkout", "--quiet", "main")
	b.git(b.source, "branch", "--quiet", "-D", "feature")
	b.git(b.source, "reflog", "expire", "--expire=now", "--all")
	b.git(b.source, "gc", "--quiet", "--prune=now")
	b.whole(b.clone)
	if got := b.git(b.clone, "rev-parse", "HEAD", "origin/feature"); got != feature+"\n"+feature {
		t.Errorf("got %s", got)
	}
	b.commit(b.clone, "more.txt", "more\n")
	if _, err := b.publish(); err != nil {
		t.Error(err)
	}
	b.whole(b.source)
}

// TestNothingIsObeyed: neither of the two repositories can have anything run or looked up.
func TestNothingIsObeyed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(filepath.Join(b.source, ".gitattributes"), "* filter=evil diff=evil merge=evil\n")
	b.commit(b.source, "a", "a")
	b.poison(filepath.Join(b.source, ".git"))
	b.makeClone("main")
	b.untouched()
	if set := b.git(b.clone, "config", "--local", "--name-only", "--list"); !slices.Equal(strings.Fields(set), []string{
		"core.repositoryformatversion", "core.bare", "core.logallrefupdates", "remote.origin.url", "remote.origin.fetch", "user.name", "user.email",
	}) {
		t.Errorf("the clone has the settings\n%s", set)
	}
	tip := b.commit(b.clone, "b", "b")
	b.poison(filepath.Join(b.clone, ".git"))
	got, err := b.publish()
	if err != nil || got != tip || b.published() != tip {
		t.Errorf("%q, %v, want %s", got, err, tip)
	}
	view, err := gitdata.OpenView(b.dir, b.open())
	b.must(err)
	if got, err := view.Commit(b.Context(), "deckhand/7"); err != nil || got != tip {
		t.Errorf("%q, %v", got, err)
	}
	b.must(view.Close())
	b.untouched()
}

// A hostile clone tries to have objects of somebody else's repository published, to have
// the bot wait, or to have it write elsewhere.
func TestHostileClones(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]func(b *bench, foreign, secret string){
		"alternates": func(b *bench, foreign, secret string) {
			b.write(filepath.Join(b.clone, ".git/objects/info/alternates"), foreign+"/.git/objects\n")
			b.write(filepath.Join(b.clone, ".git/refs/heads/deckhand/7"), secret+"\n")
		},
		"a commit over a foreign tree": func(b *bench, foreign, secret string) {
			b.write(filepath.Join(b.clone, ".git/objects/info/alternates"), foreign+"/.git/objects\n"+b.source+"/.git/objects\n")
			b.git(b.clone, "update-ref", "refs/heads/deckhand/7", b.git(b.clone, "commit-tree", "-m", "mine", secret+"^{tree}"))
		},
		"linked objects": func(b *bench, foreign, secret string) {
			b.must(os.RemoveAll(filepath.Join(b.clone, ".git/objects")))
			b.must(os.Symlink(foreign+"/.git/objects", filepath.Join(b.clone, ".git/objects")))
			b.write(filepath.Join(b.clone, ".git/refs/heads/deckhand/7"), secret+"\n")
		},
		"linked folders of objects": func(b *bench, foreign, secret string) {
			for _, dir := range []string{secret[:2], "pack"} {
				b.must(os.RemoveAll(filepath.Join(b.clone, ".git/objects", dir)))
				b.must(os.Symlink(filepath.Join(foreign, ".git/objects", dir), filepath.Join(b.clone, ".git/objects", dir)))
			}
			b.write(filepath.Join(b.clone, ".git/refs/heads/deckhand/7"), secret+"\n")
		},
		"linked packs": func(b *bench, foreign, secret string) {
			b.git(foreign, "gc", "--quiet")
			packs, _ := filepath.Glob(filepath.Join(foreign, ".git/objects/pack/*"))
			for _, p := range packs {
				b.must(os.Symlink(p, filepath.Join(b.clone, ".git/objects/pack", filepath.Base(p))))
			}
			b.write(filepath.Join(b.clone, ".git/refs/heads/deckhand/7"), secret+"\n")
		},
		"a linked git folder": func(b *bench, foreign, secret string) {
			b.git(foreign, "update-ref", "refs/heads/deckhand/7", secret)
			b.must(os.RemoveAll(filepath.Join(b.clone, ".git")))
			b.must(os.Symlink(filepath.Join(foreign, ".git"), filepath.Join(b.clone, ".git")))
		},
		"a git file": func(b *bench, foreign, secret string) {
			b.git(foreign, "update-ref", "refs/heads/deckhand/7", secret)
			b.must(os.RemoveAll(filepath.Join(b.clone, ".git")))
			b.write(filepath.Join(b.clone, ".git"), "gitdir: "+foreign+"/.git\n")
		},
		"a commondir": func(b *bench, foreign, secret string) {
			b.write(filepath.Join(b.clone, ".git/commondir"), foreign+"/.git\n")
			b.write(filepath.Join(b.clone, ".git/refs/heads/deckhand/7"), secret+"\n")
		},
		"a linked working tree": func(b *bench, foreign, secret string) {
			b.git(foreign, "update-ref", "refs/heads/deckhand/7", secret)
			b.must(os.RemoveAll(b.clone))
			b.must(os.Symlink(foreign, b.clone))
		},
		"a ref that names another": func(b *bench, _, _ string) {
			b.write(filepath.Join(b.clone, ".git/refs/heads/deckhand/7"), "ref: refs/heads/../../../../source/.git/HEAD\n")
		},
		"a pipe for a ref": func(b *bench, _, _ string) {
			ref := filepath.Join(b.clone, ".git/refs/heads/deckhand/7")
			b.must(os.MkdirAll(filepath.Dir(ref), 0o755))
			_ = os.Remove(ref)
			b.must(syscall.Mkfifo(ref, 0o644))
		},
		"a pipe for an object": func(b *bench, _, secret string) {
			b.must(os.MkdirAll(filepath.Join(b.clone, ".git/objects", secret[:2]), 0o755))
			b.must(syscall.Mkfifo(filepath.Join(b.clone, ".git/objects", secret[:2], secret[2:]), 0o644))
			b.write(filepath.Join(b.clone, ".git/refs/heads/deckhand/7"), secret+"\n")
		},
		"an object that is another": func(b *bench, _, secret string) {
			tip := b.commit(b.clone, "a", "a")
			blob, err := os.ReadFile(filepath.Join(b.clone, ".git/objects", tip[:2], tip[2:]))
			b.must(err)
			b.write(filepath.Join(b.clone, ".git/objects", secret[:2], secret[2:]), string(blob))
			b.write(filepath.Join(b.clone, ".git/refs/heads/deckhand/7"), secret+"\n")
		},
		"a replaced object": func(b *bench, _, secret string) {
			tip := b.commit(b.clone, "a", "a")
			b.write(filepath.Join(b.clone, ".git/refs/replace", secret), tip+"\n")
			b.write(filepath.Join(b.clone, ".git/refs/heads/deckhand/7"), secret+"\n")
		},
		"grafts": func(b *bench, _, secret string) {
			tip := b.commit(b.clone, "a", "a")
			b.write(filepath.Join(b.clone, ".git/info/grafts"), tip+" "+secret+"\n")
			b.write(filepath.Join(b.clone, ".git/refs/heads/deckhand/7"), secret+"\n")
		},
		"too much": func(b *bench, _, _ string) {
			noise := make([]byte, 9<<20)
			_, err := rand.Read(noise)
			b.must(err)
			b.commit(b.clone, "noise", string(noise))
		},
		"a tree that leads out": func(b *bench, _, _ string) {
			blob := b.git(b.clone, "hash-object", "-w", "README.md")
			tree := filepath.Join(b.dir, "tree")
			b.write(tree, "100644 .git\x00"+unhex(blob))
			hash := b.git(b.clone, "hash-object", "-w", "-t", "tree", "--literally", tree)
			b.git(b.clone, "update-ref", "refs/heads/deckhand/7", b.git(b.clone, "commit-tree", "-m", "evil", hash))
		},
		"half a commit": func(b *bench, _, _ string) {
			b.commit(b.clone, "a", "a")
			tree := b.git(b.clone, "rev-parse", "HEAD^{tree}")
			b.must(os.Remove(filepath.Join(b.clone, ".git/objects", tree[:2], tree[2:])))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.makeClone("")
			foreign := filepath.Join(b.dir, "foreign")
			b.git(b.dir, "init", "--quiet", foreign)
			b.git(foreign, "config", "user.name", "x")
			b.git(foreign, "config", "user.email", "x@example.com")
			secret := b.commit(foreign, "secret.txt", "secret\n")
			blob := b.git(foreign, "rev-parse", "HEAD:secret.txt")
			attack(b, foreign, secret)
			if got, err := b.publish(); err == nil {
				t.Errorf("%s was published", got)
			} else if strings.Contains(err.Error(), "no end") || b.Context().Err() != nil {
				t.Errorf("it was held: %v", err)
			}
			if got := b.published(); got != "" {
				t.Errorf("the branch is at %s", got)
			}
			for _, hash := range []string{secret, blob} {
				if out, err := b.tryGit(b.source, "cat-file", "-t", hash); err == nil {
					t.Errorf("%s of somebody else's is there: %s", hash, out)
				}
			}
			b.whole(b.source)
			if left, _ := os.ReadDir(filepath.Join(b.dir, "scratch")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func unhex(s string) string {
	out := make([]byte, len(s)/2)
	for i := range out {
		hi, lo := strings.IndexByte("0123456789abcdef", s[2*i]), strings.IndexByte("0123456789abcdef", s[2*i+1])
		out[i] = byte(hi<<4 | lo)
	}
	return string(out)
}

// What is read of a repository is what git says.
func TestWhatIsReadIsWhatGitSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"a", "b/c", "b/d", "ümläut", "feature+x", "v1.2-rc", "#7", "a@b"} {
		b.git(b.source, "branch", name)
	}
	b.git(b.source, "pack-refs", "--all")
	b.commit(b.source, "x", "x")
	b.git(b.source, "branch", "--force", "a")
	b.git(b.source, "tag", "--annotate", "--message", "t", "t")
	refs, err := b.open().Refs()
	b.must(err)
	said := map[string]string{}
	for line := range strings.Lines(b.git(b.source, "for-each-ref", "--format=%(refname) %(objectname)")) {
		name, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
		said[name] = hash
		if got, err := b.open().Ref(name); err != nil || got != hash {
			t.Errorf("%s is %s, %v, want %s", name, got, err, hash)
		}
	}
	if len(refs) != len(said) {
		t.Errorf("%d refs, git says %d", len(refs), len(said))
	}
	ref, commit, err := b.open().Head()
	if err != nil || ref != "refs/heads/main" || commit != b.git(b.source, "rev-parse", "HEAD") {
		t.Errorf("HEAD is %s, %s, %v", ref, commit, err)
	}
	if _, err := gitdata.Open("/proc/self"); err == nil {
		t.Error("a repository was found where none is")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.clone = filepath.Join(b.dir, "other")
	if _, err := (gitdata.Clone{Source: b.open(), Dir: b.clone, Branch: "deckhand/8", Scratch: b.dir}).Make(ctx); err == nil {
		t.Error("it was made although nobody waited")
	}
}
