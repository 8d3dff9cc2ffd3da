package workspace

import (
	"context"
	"fmt"
	"strings"

	"deckhand/internal/workspace/gitdata"
)

// KeptElsewhere reports whether all of the thread's work is permanently stored elsewhere: the project's forge has
// its branch's commits, and nothing was uncommitted; or, for a project with a folder, that folder's repository has
// them and what was saved. Its error says why this is unknown.
func (k *Keeper) KeptElsewhere(ctx context.Context, t Thread, p Project) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, fmt.Errorf("git: no end in %s", gitTimeout))
	defer cancel()
	kept, err := t.Shelf.Kept(ctx)
	switch {
	case err != nil:
		return false, err
	case kept.Branch == "" && kept.Saved == "":
		return true, nil
	case p.Kind != Worktree:
		return false, fmt.Errorf("project %s has no working trees any more", p.Name)
	}
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return false, err
	}
	if p.Repo != "" {
		if err := k.refresh(ctx, source, p); err != nil {
			return false, err
		}
	}
	refs, err := source.Refs()
	if err != nil {
		return false, err
	}
	var tips []string
	for name, hash := range refs {
		if p.Repo == "" || strings.HasPrefix(name, "refs/remotes/origin/") {
			tips = append(tips, hash)
		}
	}
	return source.Holds(ctx, k.scratch(), kept.Branch, kept.Saved, tips)
}
