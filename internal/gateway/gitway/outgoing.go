package gitway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrMoved is a branch of the forge that is not where it was looked at.
var ErrMoved = errors.New("the branch has moved at the forge meanwhile")

// PushCommit puts a branch of the forge to a commit, forward only, as the bot. Objects are the
// folders in which the commit lies, whole and checked. Old is what the branch was when it was
// looked at, zeros for none; empty for whatever it is. A branch that moved since gives
// [ErrMoved], and one that is there already is none. The other errors are sentences.
func (r Remote) PushCommit(ctx context.Context, scratch string, objects []string, branch, old, commit string) error {
	ref := "refs/heads/" + branch
	if !strings.HasPrefix(ref, branches) || !isPlain(ref) {
		return fmt.Errorf("%s is no branch that Deckhand pushes to", branch)
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(scratch, "push-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left is swept
	if err := makeRepository(dir, len(commit), objects...); err != nil {
		return err
	}
	args := []string{"push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"}
	if old != "" {
		if strings.Trim(old, "0") == "" {
			old = ""
		} else if _, err := localGit(ctx, dir, "merge-base", "--is-ancestor", old, commit); err != nil {
			return ErrMoved // it would not be moved forward, or nobody knows
		}
		args = append(args, "--force-with-lease="+ref+":"+old)
	}
	out, said, err := r.execute(ctx, dir, append(args, "--", r.address(), commit+":"+ref)...)
	why, told := pushResults(out)[ref]
	switch {
	case told && why == "":
		return nil
	case strings.Contains(why, "stale info"), strings.Contains(why, "non-fast-forward"), strings.Contains(why, "fetch first"):
		return ErrMoved
	case told:
		return errors.New(why)
	case err != nil:
		return errors.New((&push{}).pushFailure(err, said))
	}
	return errors.New("the forge said nothing of the push")
}
