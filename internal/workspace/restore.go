package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"deckhand/internal/workspace/gitdata"
)

// restore brings a thread's stored work from another machine into the project's repository, and puts away the
// folder that it has left here, if any. It can be repeated after an interruption. what is what was brought; nil if
// nothing is stored.
func (k *Keeper) restore(ctx context.Context, t Thread, p Project, source gitdata.Repository) (what *Kept, told []string, err error) {
	if t.Shelf == nil {
		return nil, nil, nil
	}
	kept, err := t.Shelf.Kept(ctx)
	if err != nil {
		return nil, nil, err
	}
	if kept.Branch == "" && kept.Saved == "" {
		return nil, nil, nil
	}
	if isDir(k.ownFolder(t, p)) {
		if told, err = k.putAside(ctx, t, p, source); err != nil {
			return nil, nil, err
		}
	}
	u := gitdata.Unpacking{Source: source, Scratch: k.scratch(), Refs: map[string]string{}}
	if kept.Branch != "" {
		u.Refs["refs/heads/"+t.Branch] = kept.Branch
	}
	if kept.Saved != "" {
		u.Refs[savedRef(t.ID)] = kept.Saved
	}
	if kept.Held != "" {
		u.Refs[heldRef(t.ID)] = kept.Held
	}
	for _, id := range kept.Packs {
		u.Packs = append(u.Packs, func(ctx context.Context, to io.Writer) error { return t.Shelf.Read(ctx, id, to) })
	}
	if p.Repo != "" {
		// The packs may be based on newer commits.
		if err := k.refresh(ctx, source, p); err != nil && ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
	}
	if err := u.Unpack(ctx); err != nil {
		return nil, nil, fmt.Errorf("the work of this thread, as it was kept at %s, cannot be brought to this machine: %w", clock(kept.At), err)
	}
	return &kept, told, k.note(ctx, t, p, source, kept)
}

// putAside removes a folder that the thread left behind when it moved to another machine. Work that was never
// stored elsewhere stays in the project's repository under a ref of its own, and people are told; if it cannot be
// read, the folder is renamed.
func (k *Keeper) putAside(ctx context.Context, t Thread, p Project, source gitdata.Repository) (told []string, err error) {
	t.Dir, t.Shelf = k.ownFolder(t, p), nil
	err = k.Publish(ctx, t, p)
	var left string
	if err == nil {
		left, err = k.Save(ctx, t, p)
	}
	if err == nil {
		if left = cmp.Or(left, holding(t.Dir), aloneIn(t.Dir, source)); left != "" {
			err = errors.New(left)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		// Not beside it: what lies in the folder of another repository goes with that.
		away := filepath.Join(k.DataDir, "workspaces", p.key(), fmt.Sprintf("%d.before-%d", t.ID, time.Now().UnixNano()))
		if e := errors.Join(os.MkdirAll(filepath.Dir(away), 0o700), os.Rename(t.Dir, away)); e != nil {
			return nil, e
		}
		return []string{fmt.Sprintf("This thread had a folder here from before it went to another machine. It has what is nowhere else (%v), so it was kept: %s.", err, away)}, nil
	}
	refs, err := source.Refs()
	if err != nil {
		return nil, err
	}
	tip, saved := refs["refs/heads/"+t.Branch], refs[savedRef(t.ID)]
	known, err := k.noted(ctx, t, p, source, tip, saved)
	if err != nil {
		return nil, err
	}
	if !known {
		for name, hash := range map[string]string{"branch": tip, "saved": saved} {
			if hash == "" {
				continue
			}
			ref := leftRef(t.ID) + hash[:12]
			if err := source.SetRef(ref, hash); err != nil {
				return nil, err
			}
			told = append(told, fmt.Sprintf("On this machine was work of this thread that had been saved nowhere else (its %s, %s). It goes on without; ask for it to be merged.", name, ref))
		}
	}
	return told, k.discard(t.Dir, p)
}

// leftRef is the prefix of refs in the project's repository for work that a thread left behind.
func leftRef(threadID int64) string {
	return "refs/deckhand/left/" + strconv.FormatInt(threadID, 10) + "/"
}

// discard removes a thread's folder. If that is interrupted, the next start removes the rest.
func (k *Keeper) discard(dir string, p Project) error {
	gone, err := os.MkdirTemp(filepath.Join(k.DataDir, "workspaces", p.Name), gitdata.Unfinished)
	if err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(gone, "it")); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}
