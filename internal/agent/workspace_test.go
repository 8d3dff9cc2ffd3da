package agent

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/store"
)

// runGit runs git as a person does, and returns what it prints.
func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// repositoryOf makes a repository with a commit.
func repositoryOf(t *testing.T, dir string) {
	t.Helper()
	put(t, filepath.Join(dir, "README.md"), "one\n")
	runGit(t, dir, "init", "--quiet", "--initial-branch=main")
	runGit(t, dir, "add", ".")
	runGit(t, dir, "commit", "--quiet", "--message", "first")
}

// Two threads of a project have a git folder each: what one does to branches and settings
// is not the other's, and people find both branches in the project's repository.
func TestEveryThreadHasAGitFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	source := filepath.Join(dir, "source")
	repositoryOf(t, source)
	for _, p := range []Project{
		{Name: "by-folder", Dir: source, Workspace: WorkspaceWorktree},
		{Name: "by-address", Repo: source, Workspace: WorkspaceWorktree, Base: "main"},
	} {
		if err := p.Check(ctx); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		h := &host{dataDir: filepath.Join(dir, "data")}
		one, two := store.Thread{ID: 1}, store.Thread{ID: 2}
		for _, thread := range []*store.Thread{&one, &two} {
			var err error
			if thread.Workspace, _, err = h.workspace(ctx, *thread, p); err != nil {
				t.Fatal(err)
			}
			if again, _, err := h.workspace(ctx, *thread, p); err != nil || again != thread.Workspace {
				t.Errorf("at the second use: %s, %v", again, err)
			}
		}
		put(t, filepath.Join(one.Workspace, "new"), "new\n")
		runGit(t, one.Workspace, "add", ".")
		runGit(t, one.Workspace, "commit", "--quiet", "--message", "new")
		runGit(t, one.Workspace, "branch", "--force", "deckhand/2", "HEAD")
		runGit(t, one.Workspace, "config", "core.fsmonitor", "evil")
		for _, thread := range []store.Thread{one, two} {
			if err := h.publish(ctx, thread, p); err != nil {
				t.Error(err)
			}
		}
		base := runGit(t, source, "rev-parse", "main")
		if got := runGit(t, h.source(p), "rev-parse", "deckhand/1", "deckhand/2"); got != h.head(ctx, one.Workspace)+"\n"+base {
			t.Errorf("%s: the branches are\n%s", p.Name, got)
		}
		if set, err := exec.CommandContext(ctx, "git", "-C", h.source(p), "config", "core.fsmonitor").Output(); err == nil {
			t.Errorf("%s: the project's repository has heard of %s", p.Name, set)
		}
		borrowed, err := h.borrowed(p)
		if err != nil || !slices.Equal(borrowed, []string{filepath.Join(h.source(p), ".git/objects")}) {
			t.Errorf("%s: it borrows from %v, %v", p.Name, borrowed, err)
		}
	}
}

func TestWhereNoThreadCanWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := &host{dataDir: filepath.Join(dir, "data")}
	for name, p := range map[string]Project{
		"no folder":     {Name: "x", Dir: filepath.Join(dir, "nothing"), Workspace: WorkspaceWorktree},
		"no repository": {Name: "x", Dir: dir, Workspace: WorkspaceWorktree},
		"no address":    {Name: "y", Repo: filepath.Join(dir, "nothing"), Workspace: WorkspaceWorktree},
	} {
		if got, _, err := h.workspace(t.Context(), store.Thread{ID: 1}, p); err == nil {
			t.Errorf("%s: it works in %s", name, got)
		}
		if err := p.Check(t.Context()); err == nil {
			t.Errorf("%s: nothing is said about it", name)
		}
	}
	scratch, _, err := h.workspace(t.Context(), store.Thread{ID: 1}, Project{Name: "z", Workspace: WorkspaceScratch})
	if err != nil || !isDir(scratch) {
		t.Errorf("%s, %v", scratch, err)
	}
}

// The filters that a repository's settings name are switched off by their names; settings
// that cannot be read keep the process from starting.
func TestDeaf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repositoryOf(t, dir)
	put(t, filepath.Join(dir, "more"), "[filter \"included\"]\n\tsmudge = evil\n")
	for key, value := range map[string]string{"filter.evil.clean": "evil", "filter.evil.required": "true", "include.path": filepath.Join(dir, "more")} {
		runGit(t, dir, "config", key, value)
	}
	said, err := deaf(t.Context(), dir)
	slices.SortFunc(said, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	want := [][2]string{{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}, {"filter.evil.clean", ""}, {"filter.evil.required", "false"}, {"filter.included.smudge", ""}}
	if err != nil || !slices.Equal(said, want) {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := deaf(t.Context(), t.TempDir()); err != nil || len(said) != 2 {
		t.Errorf("without a repository: %q, %v", said, err)
	}
	var many strings.Builder
	for i := range maxFilters + 1 {
		many.WriteString("[filter \"" + strings.Repeat("f", i+1) + "\"]\n\tclean = evil\n")
	}
	put(t, filepath.Join(dir, "more"), many.String())
	if _, err := deaf(t.Context(), dir); err == nil {
		t.Error("nothing is said about too many filters")
	}
	if err := os.Remove(filepath.Join(dir, "more")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "more"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // it would last for ever
	defer cancel()
	if env, err := deaf(ctx, dir); err == nil {
		t.Errorf("settings that have no end: %v", env)
	}
}
