package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"deckhand/internal/gateway/gitway"
	"deckhand/internal/scratch"
	"deckhand/internal/workspace/gitdata"
)

const (
	gitTimeout = 5 * time.Minute
	// PublishTime is how long a thread's work may take to be published, and to be saved,
	// where its [Thread] does not say otherwise.
	PublishTime = time.Minute
)

// Kind says where a project's threads work.
type Kind string

// The kinds of workspaces.
const (
	// Shared: every thread works in the project's own folder.
	Shared Kind = "shared"
	// Worktree: every thread gets its own working tree, git folder and branch, which is published into the
	// project's repository.
	Worktree Kind = "worktree"
	// Scratch: every thread gets an empty folder.
	Scratch Kind = "scratch"
)

// Project describes the source of workspaces.
type Project struct {
	Name string
	// Further is the short name of this repository, where it is one that the project has beside its own: a thread's
	// working tree of it lies in the folder of the thread's own (see [Within]). Empty for the project's own.
	Further string
	Kind    Kind
	// Dir is the project's folder; Repo, instead, a git URL that is cloned into the data folder at the first use. A
	// scratch project has neither.
	Dir, Repo string
	// Base is the branch, tag or commit of Repo from which new threads' working trees start; empty means HEAD.
	Base string
	// Subdir is the folder of Repo or Dir that new threads' working trees have alone, with the files of the folders
	// above; empty for everything.
	Subdir string
	// Access is the bot's access to Repo's forge.
	Access gitway.Access
	// Environ is the environment of git for reaching Repo and for writing files.
	Environ []string
	Setup   Setup
}

// Thread is the owner of a workspace.
type Thread struct {
	ID int64
	// Branch is the branch that it works on, if it has a working tree of its own.
	Branch string
	// Dir is its existing folder; empty before there was one.
	Dir string
	// Elsewhere says that Dir is, or was, in another data folder.
	Elsewhere bool
	// Forked is the branch of the thread that it was forked from, while it has no folder: its shelf has that one's work.
	Forked string
	// Shelf stores its work off this machine; may be nil.
	Shelf Shelf
	// Within is how long its work may take to be published, and to be saved; 0 means
	// [PublishTime].
	Within time.Duration
	// End says of what its folder is the state when it is saved; nil for nothing that is to be kept.
	End *End
}

// bounded bounds what git does for the thread's work.
func (t Thread) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	within := cmp.Or(t.Within, PublishTime)
	return context.WithTimeoutCause(ctx, within, fmt.Errorf("git: no end in %s", within))
}

// Keeper manages the workspaces of a data folder. Its methods are safe for concurrent use.
type Keeper struct {
	DataDir string
	// KeepBytes bounds a thread's work stored off this machine; 0 means [DefaultKeepBytes].
	KeepBytes int64
	// turnstiles are for the bot's repositories, by project.
	turnstiles sync.Map
	// published is, by what is kept of a thread's files, when the folder was read for its last publication.
	published sync.Map
	// sessions counts the sessions in each folder.
	sessionsMu sync.Mutex
	sessions   map[string]int
}

// Open returns the thread's folder, which it makes if it is missing, and what people should know of that, in
// sentences. The thread must have no process; stale locks of git are removed. Its errors are sentences for people.
func (k *Keeper) Open(ctx context.Context, t Thread, p Project) (dir string, told []string, err error) {
	if err := p.plain(k.ownFolder(t, p)); err != nil {
		return "", nil, err
	}
	if dir, told, err = k.open(ctx, t, p); err == nil && p.Kind != Scratch {
		told = append(told, k.unlock(dir, dir == k.ownFolder(t, p))...)
	}
	return dir, told, err
}

func (k *Keeper) open(ctx context.Context, t Thread, p Project) (dir string, told []string, err error) {
	settled, err := k.settle(ctx, t, p)
	if err != nil {
		return "", nil, err
	}
	if settled != "" {
		told = append(told, settled)
	}
	if t.Dir != "" && isDir(t.Dir) && !t.Elsewhere {
		k.wasPutAway(t, p) // the process that was putting it away was killed
		return t.Dir, nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, fmt.Errorf("git: no end in %s", gitTimeout))
	defer cancel()
	if p.Kind == Scratch {
		own := k.ownFolder(t, p)
		switch {
		case t.Forked != "":
			told = append(told, "The folder of the thread that this one was forked from is in no repository, so what was in it has not come along.")
		case t.Elsewhere:
			told = append(told, "This thread goes on on another machine. Its folder is in no repository, so what was in it has not come along.")
		}
		if isDir(own) {
			return own, told, nil
		}
		return own, told, errors.Join(os.MkdirAll(own, 0o700), k.made(t, p, true))
	}
	source := k.source(p)
	if p.Repo != "" && !isDir(source) {
		if err := k.kept(p).once(ctx, func(ctx context.Context) error {
			err := clone(ctx, p.Remote(), source)
			if err == nil && p.Kind == Shared {
				told = p.unfetched(ctx, source) // said by the first thread
			}
			return err
		}); err != nil {
			return "", nil, fmt.Errorf("%s could not be cloned: %w", p.repository(), err)
		}
		if p.Kind == Shared {
			if err := k.made(t, p, true); err != nil {
				return "", nil, err
			}
		}
	}
	if !isDir(source) {
		return "", nil, fmt.Errorf("the folder of %s does not exist: %s", p.repository(), source)
	}
	if p.Kind == Shared {
		if p.Repo != "" {
			if s := k.behind(ctx, p); s != "" {
				told = append(told, s)
			}
		}
		return source, told, context.Cause(ctx)
	}
	dir, said, err := k.workingTree(ctx, t, p)
	if err != nil {
		return "", nil, fmt.Errorf("no working tree could be made of %s: %w", p.repository(), err)
	}
	return dir, append(told, said...), nil
}

// Missing reports whether a folder that was made is gone.
func Missing(dir string) bool { return dir != "" && !isDir(dir) }

func (k *Keeper) ownFolder(t Thread, p Project) string {
	return Within(filepath.Join(k.DataDir, "workspaces", p.Name, strconv.FormatInt(t.ID, 10)), p.Further)
}

// scratch is a folder for git's temporary files.
func (k *Keeper) scratch() string { return filepath.Join(k.DataDir, "scratch") }

// Borrowed are the folders, besides the workspace, from which its git reads objects: the session may read them.
func (k *Keeper) Borrowed(p Project) ([]string, error) {
	if p.Kind != Worktree {
		return nil, nil
	}
	r, err := gitdata.Open(k.source(p))
	if err != nil {
		return nil, err
	}
	return r.Objects()
}

// Publish brings the commits on the thread's branch into the project's repository. Its errors are sentences for
// people.
func (k *Keeper) Publish(ctx context.Context, t Thread, p Project) error {
	if p.Kind != Worktree || !isDir(t.Dir) {
		return nil
	}
	if err := p.plain(t.Dir); err != nil {
		return err
	}
	ctx, cancel := t.bounded(ctx)
	defer cancel()
	source, err := gitdata.Open(k.source(p))
	at := time.Now()
	if err == nil {
		_, err = gitdata.Publication{Clone: t.Dir, Source: source, Branch: t.Branch, Scratch: k.scratch()}.Publish(ctx)
	}
	if err != nil {
		return fmt.Errorf("publish %s in %s: %w", t.Branch, p.repository(), err)
	}
	k.published.Store(k.savedIndex(t, p), at)
	return nil
}

// Leaving describes pushes of a workspace; the caller sets its mirror.
func (k *Keeper) Leaving(dir string, p Project, first func(path string) bool) (gitdata.Leaving, error) {
	l := gitdata.Leaving{Clone: dir, Scratch: k.scratch(), First: first}
	if err := p.plain(dir); err != nil {
		return l, err
	}
	if p.Kind == Worktree {
		source, err := gitdata.Open(k.source(p))
		if err != nil {
			return l, err
		}
		l.Source = &source
	}
	return l, nil
}

// Head is the commit of a folder's working tree, empty if unknown. It is read without git, since the folder is the
// agent's.
func Head(dir string) string {
	r, err := gitdata.Open(dir)
	if err != nil {
		return ""
	}
	_, commit, err := r.Head()
	if err != nil {
		return ""
	}
	return commit
}

// Sweep removes temporary folders and incomplete clones of a killed run. What cannot be removed is harmless.
func Sweep(dataDir string) {
	_ = os.RemoveAll(filepath.Join(dataDir, "scratch"))
	gitdata.Sweep(filepath.Join(dataDir, "repos"))
	repos, _ := os.ReadDir(filepath.Join(dataDir, "repos"))
	for _, r := range repos {
		gitdata.Sweep(filepath.Join(dataDir, "repos", r.Name(), ".git"))
	}
	projects, _ := os.ReadDir(filepath.Join(dataDir, "workspaces"))
	for _, p := range projects {
		at := filepath.Join(dataDir, "workspaces", p.Name())
		gitdata.Sweep(at)
		next, _ := filepath.Glob(filepath.Join(gitdata.EscapeGlob(at), "*"+nextSuffix)) // of rewinds; the pattern is valid
		for _, dir := range next {
			_ = os.RemoveAll(dir)
		}
	}
}

// Remote is the project's repository for the bot's git.
func (p Project) Remote() gitway.Remote {
	return gitway.Remote{Upstream: gitway.Upstream{URL: p.Repo, Access: p.Access}, Environ: p.Environ}
}

// Check says why threads of the project could not work: its folder, repository or base is missing, or cannot be
// reached before ctx ends; and what they will lack. It changes nothing. What a repository elsewhere holds is seen once
// it has been fetched, into the bot's data folder.
func (p Project) Check(ctx context.Context, dataDir string) error {
	base := cmp.Or(p.Base, "HEAD")
	switch {
	case p.Repo != "":
		if err := p.checkRepo(ctx, base); err != nil {
			return err
		}
		return p.checkContent(ctx, (&Keeper{DataDir: dataDir}).source(p), base)
	case p.Dir == "":
		return nil
	}
	info, err := os.Stat(p.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s; make it, or correct dir", p.Dir)
	case err != nil:
		return fmt.Errorf("%w; let this user read it", err)
	case !info.IsDir():
		return fmt.Errorf("%s is no folder; correct dir", p.Dir)
	case p.Kind != Worktree:
		return nil
	}
	return p.checkContent(ctx, p.Dir, base)
}

// checkContent looks into the commit that threads start from.
func (p Project) checkContent(ctx context.Context, dir, base string) error {
	r, err := gitdata.Open(dir)
	switch {
	case err != nil && p.Repo != "":
		return nil // it is fetched for the first thread
	case err != nil:
		return fmt.Errorf("%w; working trees are made from one: correct dir, or workspace", err)
	}
	folder, err := scratch.Make(scratch.Look)
	if err != nil {
		return err
	}
	defer folder.Remove() //nolint:errcheck // a later sweep removes the rest
	view, err := gitdata.Clone{Source: r, OfOrigin: p.Repo != "", Scratch: folder.Path}.View()
	if err != nil {
		return err
	}
	defer view.Close() //nolint:errcheck // only read
	commit, err := view.Commit(ctx, base)
	switch {
	case err != nil && p.Repo != "":
		return nil // base may be a commit, or newer than what was fetched
	case err != nil:
		return fmt.Errorf("%s has no %s that working trees could start from; is it a git repository with a commit, and base right?", dir, base)
	}
	if err := view.CheckSubdir(ctx, commit, p.Subdir); err != nil {
		return err
	}
	return view.CheckFetched(ctx, commit)
}

var commitHash = regexp.MustCompile(`^[0-9a-f]{7,64}$`)

func (p Project) checkRepo(ctx context.Context, base string) error {
	refs, err := p.Remote().Refs(ctx, base)
	switch {
	case err != nil && strings.Contains(err.Error(), "resolve host"):
		return fmt.Errorf("%s cannot be read (%w); check the host's name in repo, and this machine's network", p.Repo, err)
	case err != nil:
		return fmt.Errorf("%s cannot be read (%w); correct repo, or give the bot the right to it (git: token_env, key_file or github_app; at another host than the project's own repository, by a key or helper of the bot's user)", p.Repo, err)
	case strings.TrimSpace(refs) == "" && !commitHash.MatchString(base):
		return fmt.Errorf("%s has no %s; correct base", p.Repo, base)
	}
	return nil
}

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}

// Before finds the commit at which the thread's branch has left its base, and the files that it changes since, 200 at
// most. checkOut makes a working tree of that commit, in a folder that is not there yet. Its errors are sentences for
// people.
func (k *Keeper) Before(ctx context.Context, t Thread, p Project) (commit string, changed []string, checkOut func(ctx context.Context, dir string) error, err error) {
	if p.Kind != Worktree {
		return "", nil, nil, errors.New("this project's threads have no branches of their own")
	}
	tip, _, err := k.Committed(ctx, t, p)
	if err != nil {
		return "", nil, nil, err
	}
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return "", nil, nil, err
	}
	if p.Repo != "" {
		_ = k.refresh(ctx, source, p) // else as it was known last
	}
	c := gitdata.Clone{Source: source, Branch: "deckhand/preview", Base: p.Base, Subdir: p.Subdir, OfOrigin: p.Repo != "", Scratch: k.scratch(), Environ: p.Environ}
	if commit, changed, err = c.Left(ctx, tip); err != nil {
		return "", nil, nil, fmt.Errorf("%s and its base have no commit in common: %w", t.Branch, err)
	}
	return commit, changed, func(ctx context.Context, dir string) error {
		ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, fmt.Errorf("git: no end in %s", gitTimeout))
		defer cancel()
		c.Dir, c.Base = dir, commit
		_, err := c.Make(ctx)
		return err
	}, nil
}

// Committed publishes what the thread has committed on its own branch, and returns the
// branch's commit and the folders in which its objects lie. Its errors are sentences for people.
func (k *Keeper) Committed(ctx context.Context, t Thread, p Project) (commit string, objects []string, err error) {
	if err := k.Publish(ctx, t, p); err != nil {
		return "", nil, err
	}
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return "", nil, err
	}
	if commit, err = source.Ref("refs/heads/" + t.Branch); err == nil && commit == "" {
		err = fmt.Errorf("there is no branch %s: nothing was committed in this thread", t.Branch)
	}
	if err != nil {
		return "", nil, err
	}
	objects, err = source.Objects()
	return commit, objects, err
}
