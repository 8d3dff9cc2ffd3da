package gitdata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// State is what a clone was at some time: the commit of its branch, and what [Saving] had saved beside it, empty for
// nothing.
type State struct{ Branch, Saved string }

// Tree is a commit that has the state's files.
func (s State) Tree() string { return cmp.Or(s.Saved, s.Branch) }

// heads are the commits of its branches, as arguments of git.
func (s State) heads() []string {
	if s.Saved == "" {
		return []string{s.Branch}
	}
	return []string{s.Branch, s.Saved + "^@"}
}

// Hold has a ref of the repository name a commit whose parents are those of the commits that the repository has, so that
// gc leaves them. It returns that commit, the same for the same ones, and which they are.
func (r Repository) Hold(ctx context.Context, scratch, ref string, commits []string) (held string, has map[string]bool, err error) {
	view, err := OpenView(scratch, r)
	if err != nil {
		return "", nil, err
	}
	defer view.Close() //nolint:errcheck // only read
	known, err := view.has(ctx, commits)
	if err != nil || len(known) == 0 {
		return "", nil, err
	}
	has = map[string]bool{}
	args := []string{"commit-tree", "-m", "What a thread of Deckhand was at the ends of its turns"}
	for _, hash := range known {
		if !has[hash] {
			has[hash] = true
			args = append(args, "-p", hash)
		}
	}
	env := []string{"GIT_OBJECT_DIRECTORY=" + view.objects[0]}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env, "GIT_"+who+"_NAME=Deckhand", "GIT_"+who+"_EMAIL=deckhand", "GIT_"+who+"_DATE=@0 +0000")
	}
	out, err := view.git(ctx, nil, env, append(args, known[0]+"^{tree}")...)
	if err != nil {
		return "", nil, err
	}
	held = strings.TrimSpace(out)
	return held, has, r.SetRef(ref, held)
}

// ErrGone is a state that the repository does not have.
var ErrGone = errors.New("it is not on this machine")

// Between describes the way from one state to another: the files that would change, without their diff, and the commits
// that its branches would lose. pushed is how many of these the forge's commit has; empty is one that it does not have.
func (r Repository) Between(ctx context.Context, scratch string, now, then State, forge string) (way LeavingRef, pushed int, err error) {
	view, err := OpenView(scratch, r)
	if err != nil {
		return way, 0, err
	}
	defer view.Close() //nolint:errcheck // only read
	for _, commit := range []string{then.Branch, then.Tree()} {
		if err := view.whole(ctx, []string{commit}); err != nil {
			return way, 0, cmp.Or(context.Cause(ctx), ErrGone)
		}
	}
	way.Cut = true // nobody reads the diff
	if err := view.files(ctx, &way, now.Tree(), then.Tree(), func(string) bool { return false }); err != nil {
		return way, 0, err
	}
	lost := slices.Concat(now.heads(), []string{"--not"}, then.heads())
	if way.Lost, err = view.commits(ctx, lost...); err != nil || way.Lost.Count == 0 || forge == "" {
		return way, 0, err
	}
	if forge, err = view.Commit(ctx, forge); err != nil { // it has commits of somebody else's
		return way, 0, context.Cause(ctx)
	}
	left, err := view.commits(ctx, append(lost, forge)...)
	return way, way.Lost.Count - left.Count, err
}

// Has are the names of a commit's files, without submodules.
func (r Repository) Has(ctx context.Context, scratch, commit string) (has map[string]bool, err error) {
	view, err := OpenView(scratch, r)
	if err != nil {
		return nil, err
	}
	defer view.Close() //nolint:errcheck // only read
	files, err := view.git(ctx, nil, nil, "ls-tree", "-r", "-z", commit)
	has = map[string]bool{}
	for entry := range strings.SplitSeq(files, "\x00") {
		if of, name, ok := strings.Cut(entry, "\t"); ok && !strings.HasPrefix(of, "160000 ") {
			has[name] = true
		}
	}
	return has, err
}

// Carry moves what lies in a folder and in no file of the commit, such as what is ignored, to the same place in another
// folder, and the git folders of submodules. It obeys neither folder's git folder, follows no link out of them, and replaces
// nothing: what is in the way of something keeps its place, and that gets the ending .before-rewind.
func (r Repository) Carry(ctx context.Context, scratch, from, to, commit string) error {
	if !hashFormat.MatchString(commit) {
		return fmt.Errorf("%q is no commit", commit)
	}
	old, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer old.Close() //nolint:errcheck // it only names a folder
	fresh, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer fresh.Close() //nolint:errcheck // it only names a folder
	view, err := openView(scratch, r, ownSettings)
	if err != nil {
		return err
	}
	defer view.Close() //nolint:errcheck // only read
	tree := workingTree{View: view, dir: from, files: old}
	if _, err := tree.see(ctx, nil, "read-tree", commit); err != nil {
		return err
	}
	others, err := tree.see(ctx, nil, "ls-files", "-z", "--others", "--directory")
	if err != nil {
		return err
	}
	submodules, err := tree.submodules(ctx)
	if err != nil {
		return err
	}
	names := strings.Split(others, "\x00")
	for _, s := range submodules {
		names = append(names, s.Name)
	}
	// A submodule's folder names its git folder there.
	if git, err := old.Lstat(".git"); err == nil && git.IsDir() {
		if modules, err := old.Lstat(".git/modules"); err == nil && modules.IsDir() {
			names = append(names, ".git/modules")
		}
	}
	var errs []error
	for _, name := range names {
		if name = strings.TrimSuffix(name, "/"); name != "" {
			errs = append(errs, moveBetween(old, fresh, name))
		}
	}
	return errors.Join(errs...)
}

// moveBetween moves a file or folder to the same place below another folder.
func moveBetween(old, fresh *os.Root, name string) error {
	dir, base := path.Dir(name), path.Base(name)
	if err := fresh.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	from, err := old.Open(dir)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // it only names a folder
	into, err := fresh.Open(dir)
	if err != nil {
		return err
	}
	defer into.Close() //nolint:errcheck // it only names a folder
	as := base
	if there, err := fresh.Lstat(name); err == nil {
		if is, err := old.Lstat(name); err == nil && is.IsDir() && there.IsDir() {
			return moveWithin(old, fresh, name)
		}
		as += ".before-rewind"
		for n := 2; ; n++ { // that of an earlier rewind stays, too
			if _, err := fresh.Lstat(path.Join(dir, as)); err != nil {
				break
			}
			as = fmt.Sprintf("%s.before-rewind-%d", base, n)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := unix.Renameat(int(from.Fd()), base, int(into.Fd()), as); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("move %s: %w", filepath.ToSlash(name), err)
	}
	return nil
}

// moveWithin moves what is in a folder that the other one has, too.
func moveWithin(old, fresh *os.Root, name string) error {
	dir, err := old.Open(name)
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	errs := []error{err, dir.Close()}
	for _, n := range names {
		errs = append(errs, moveBetween(old, fresh, path.Join(name, n)))
	}
	return errors.Join(errs...)
}
