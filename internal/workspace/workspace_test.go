package workspace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/waittest"
)

// put writes a file.
func put(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// runGit runs git as a person does, and returns what it prints.
func runGit(t testing.TB, dir string, args ...string) string {
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
func repositoryOf(t testing.TB, dir string) {
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
	forge := filepath.Join(dir, "forge.git")
	runGit(t, dir, "clone", "--quiet", "--bare", source, forge)
	for _, p := range []Project{
		{Name: "by-folder", Dir: source, Kind: Worktree},
		{Name: "by-address", Repo: forge, Kind: Worktree, Base: "main"},
	} {
		k := &Keeper{DataDir: filepath.Join(dir, "data")}
		if err := p.Check(ctx, k.DataDir); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		one, two := Thread{Within: waittest.Limit, ID: 1, Branch: "deckhand/1"}, Thread{Within: waittest.Limit, ID: 2, Branch: "deckhand/2"}
		for _, thread := range []*Thread{&one, &two} {
			var err error
			if thread.Dir, _, err = k.Open(ctx, *thread, p); err != nil {
				t.Fatal(err)
			}
			if again, _, err := k.Open(ctx, *thread, p); err != nil || again != thread.Dir {
				t.Errorf("at the second use: %s, %v", again, err)
			}
		}
		put(t, filepath.Join(one.Dir, "new"), "new\n")
		runGit(t, one.Dir, "add", ".")
		runGit(t, one.Dir, "commit", "--quiet", "--message", "new")
		runGit(t, one.Dir, "branch", "--force", "deckhand/2", "HEAD")
		runGit(t, one.Dir, "config", "core.fsmonitor", "evil")
		for _, thread := range []Thread{one, two} {
			if err := k.Publish(ctx, thread, p); err != nil {
				t.Error(err)
			}
		}
		base := runGit(t, source, "rev-parse", "main")
		if got := runGit(t, k.source(p), "rev-parse", "deckhand/1", "deckhand/2"); got != Head(one.Dir)+"\n"+base {
			t.Errorf("%s: the branches are\n%s", p.Name, got)
		}
		if set, err := exec.CommandContext(ctx, "git", "-C", k.source(p), "config", "core.fsmonitor").Output(); err == nil {
			t.Errorf("%s: the project's repository has heard of %s", p.Name, set)
		}
		borrowed, err := k.Borrowed(p)
		if err != nil || !slices.Equal(borrowed, []string{filepath.Join(k.source(p), ".git/objects")}) {
			t.Errorf("%s: it borrows from %v, %v", p.Name, borrowed, err)
		}
	}
}

// What threads will lack is said before there is one, or, of a repository elsewhere, after its first fetch.
func TestTheDoctorSeesWhatIsNotFetched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	put(t, filepath.Join(source, ".gitmodules"), "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib\n")
	put(t, filepath.Join(source, "pictures/.gitattributes"), "*.png filter=lfs diff=lfs merge=lfs -text\n")
	repositoryOf(t, source)
	forge := filepath.Join(dir, "forge.git")
	runGit(t, dir, "clone", "--quiet", "--bare", source, forge)
	k := &Keeper{DataDir: filepath.Join(dir, "data")}
	said := func(p Project) {
		t.Helper()
		err := p.Check(t.Context(), k.DataDir)
		if err == nil || !strings.Contains(err.Error(), "submodules are not fetched") || !strings.Contains(err.Error(), "Git LFS are not fetched") {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	said(Project{Name: "by-folder", Dir: source, Kind: Worktree})
	elsewhere := Project{Name: "by-address", Repo: forge, Kind: Worktree}
	if err := elsewhere.Check(t.Context(), k.DataDir); err != nil {
		t.Error(err)
	}
	if _, _, err := k.Open(t.Context(), Thread{ID: 1, Branch: "deckhand/1"}, elsewhere); err != nil {
		t.Fatal(err)
	}
	said(elsewhere)
}

func TestWhereNoThreadCanWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := &Keeper{DataDir: filepath.Join(dir, "data")}
	for name, p := range map[string]Project{
		"no folder":     {Name: "x", Dir: filepath.Join(dir, "nothing"), Kind: Worktree},
		"no repository": {Name: "x", Dir: dir, Kind: Worktree},
		"no address":    {Name: "y", Repo: filepath.Join(dir, "nothing"), Kind: Worktree},
	} {
		if got, _, err := k.Open(t.Context(), Thread{ID: 1, Branch: "deckhand/1"}, p); err == nil {
			t.Errorf("%s: it works in %s", name, got)
		}
		if err := p.Check(t.Context(), k.DataDir); err == nil {
			t.Errorf("%s: nothing is said about it", name)
		}
	}
	scratch, _, err := k.Open(t.Context(), Thread{ID: 1}, Project{Name: "z", Kind: Scratch})
	if err != nil || !isDir(scratch) {
		t.Errorf("%s, %v", scratch, err)
	}
}
