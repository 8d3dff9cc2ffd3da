package gitdata

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// conePatterns are the patterns of git's sparse checkout (in cone mode) for a folder: all that is in it, and the
// files of each folder above.
func conePatterns(subdir string) string {
	var b strings.Builder
	b.WriteString("/*\n!/*/\n")
	names := strings.Split(EscapeGlob(subdir), "/")
	for i := range names {
		at := "/" + path.Join(names[:i+1]...)
		b.WriteString(at + "/\n")
		if i < len(names)-1 {
			b.WriteString("!" + at + "/*/\n")
		}
	}
	return b.String()
}

// inCone reports whether the sparse checkout of a folder has a file.
func inCone(subdir, name string) bool {
	dir := path.Dir(name)
	return dir == "." || strings.HasPrefix(dir+"/", subdir+"/") || strings.HasPrefix(subdir, dir+"/")
}

// coneSuffix is of the file beside an index that has the folder of the clone's sparse checkout. What the clone itself
// says of that is its session's.
const coneSuffix = ".subdir"

// keepCone writes it.
func keepCone(index, subdir string) error {
	if subdir != "" {
		return os.WriteFile(index+coneSuffix, []byte(subdir), 0o600)
	}
	if err := os.Remove(index + coneSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// narrow has the view's index leave out files that a sparse checkout does not have, and that are not there. They would
// be deleted ones otherwise: a merge brings new ones.
func (w workingTree) narrow(ctx context.Context, subdir string) error {
	if subdir == "" {
		return nil
	}
	missing, err := w.see(ctx, nil, "ls-files", "-z", "--deleted")
	if err != nil {
		return err
	}
	var out strings.Builder
	for name := range strings.SplitSeq(missing, "\x00") {
		if name != "" && !inCone(subdir, name) {
			out.WriteString(name + "\x00")
		}
	}
	if out.Len() == 0 {
		return nil
	}
	_, err = w.see(ctx, strings.NewReader(out.String()), "update-index", "-z", "--skip-worktree", "--stdin")
	return err
}

// CheckSubdir says, in a sentence, why threads that start from a commit could not work in a folder of it.
func (v *View) CheckSubdir(ctx context.Context, commit, subdir string) error {
	if subdir == "" {
		return nil
	}
	out, err := v.git(ctx, nil, nil, "--literal-pathspecs", "ls-tree", commit, "--", subdir)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(out, "040000 "):
		return nil
	case out == "":
		return fmt.Errorf("what it starts from has no folder %s; correct subdir", subdir)
	case strings.HasPrefix(out, "120000 "):
		return fmt.Errorf("%s is a link in what it starts from; name the folder itself as subdir", subdir)
	}
	return fmt.Errorf("%s is no folder in what it starts from; correct subdir", subdir)
}

// NotFetchedError is a sentence about content of a repository that is not fetched into the folders of threads.
type NotFetchedError string

func (e NotFetchedError) Error() string { return string(e) }

// CheckFetched gives a [NotFetchedError] if some of a commit's content is not.
func (v *View) CheckFetched(ctx context.Context, commit string) error {
	var left []string
	if out, err := v.git(ctx, nil, nil, "ls-tree", commit, "--", ".gitmodules"); err == nil && out != "" {
		left = append(left, "its submodules are not fetched: list their repositories under git: also, and ask for git submodule update --init in a thread that needs them")
	}
	if out, err := v.git(ctx, nil, nil, "grep", "--files-with-matches", "--fixed-strings", "filter=lfs", commit, "--", ":(glob)**/.gitattributes"); err == nil && out != "" {
		left = append(left, "its files in Git LFS are not fetched, and are pointers in threads: people attach those that a task needs")
	}
	if len(left) == 0 {
		return nil
	}
	return NotFetchedError(strings.Join(left, "; and "))
}
