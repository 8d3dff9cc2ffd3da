package workspace

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/workspace/gitdata"
)

// Limits bound the workspaces. Zero is no limit.
type Limits struct {
	// MaxAge is how long an unused thread's folder stays.
	MaxAge time.Duration
	// MaxBytes bounds all folders of a data folder. The least recently used go first.
	MaxBytes int64
	// KeepBytes bounds a thread's work stored off its machine; 0 is [DefaultKeepBytes].
	KeepBytes int64
}

// Folder is a thread's own folder.
type Folder struct {
	Thread int64
	Bytes  int64 // of its readable files
}

// Folders lists the folders of the data folder, with their sizes.
func Folders(ctx context.Context, dataDir string) ([]Folder, error) {
	top := filepath.Join(dataDir, "workspaces")
	found, err := filepath.Glob(filepath.Join(gitdata.EscapeGlob(top), "*", "*"))
	if err != nil {
		return nil, err
	}
	var out []Folder
	for _, dir := range found {
		id, err := strconv.ParseInt(filepath.Base(dir), 10, 64)
		if err != nil || id <= 0 || !isDir(dir) {
			continue
		}
		f := Folder{Thread: id}
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return fs.SkipAll
			}
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					f.Bytes += info.Size()
				}
			}
			return nil
		})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out = append(out, f)
	}
	return out, nil
}

// Resting is the folder of an idle thread.
type Resting struct {
	Folder
	Since time.Time
}

// Surplus are the folders to put away now: those that were idle for too long, and then the longest idle ones until
// the total is within the limit. all are the existing folders.
func (l Limits) Surplus(all []Folder, resting []Resting, now time.Time) []Resting {
	total := int64(0)
	for _, f := range all {
		total += f.Bytes
	}
	resting = slices.Clone(resting)
	slices.SortFunc(resting, func(a, b Resting) int { return a.Since.Compare(b.Since) })
	var out []Resting
	for _, r := range resting {
		if l.MaxAge > 0 && now.Sub(r.Since) > l.MaxAge || l.MaxBytes > 0 && total > l.MaxBytes {
			out = append(out, r)
			total -= r.Bytes
		}
	}
	return out
}

// PutAway removes the thread's folder if all its content is elsewhere: its branch in the project's repository, the
// rest saved there, and both on the shelf if there is one. Ignored files are lost. The folder is made again when
// the thread continues. stays says why it was not removed, for the log. Nothing may run in it.
func (k *Keeper) PutAway(ctx context.Context, t Thread, p Project) (stays string, told []string, err error) {
	own := k.ownFolder(t, p)
	if p.Kind == Scratch {
		return "what is in it is nowhere else", nil, nil
	}
	settled, err := k.settle(ctx, t, p) // what a rewind has left would come back in its place
	if err != nil {
		return "", nil, err
	}
	if settled != "" {
		told = append(told, settled)
	}
	if p.Kind != Worktree || !isDir(own) {
		return "", told, nil
	}
	if err := p.plain(own); err != nil {
		return "", told, err
	}
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return "", told, err
	}
	if t.Elsewhere {
		said, err := k.putAside(ctx, t, p, source)
		return "", append(told, said...), err
	}
	if t.Dir != own {
		return "its thread works in " + t.Dir, told, nil
	}
	if err := k.Publish(ctx, t, p); err != nil {
		return "", told, err
	}
	left, err := k.Save(ctx, t, p)
	if err != nil || left != "" {
		return left, told, err
	}
	if alone := cmp.Or(holding(own), aloneIn(own, source)); alone != "" {
		return alone, told, nil
	}
	if err := writeWhole(k.savedIndex(t, p)+awaySuffix, time.Now().UTC().Format(time.RFC3339)+"\n"); err != nil {
		return "", told, err
	}
	return "", told, k.discard(own, p)
}

// holding says which further repository a thread's own folder has; empty if none. Those of the project's are put away
// first.
func holding(dir string) string {
	within, _ := os.ReadDir(filepath.Join(dir, Repositories))
	for _, d := range within {
		return "the repository " + filepath.Join(Repositories, d.Name()) + " is in it"
	}
	return ""
}

// aloneIn is what a folder's git folder has that is neither published nor saved, such as a stash; empty if nothing.
func aloneIn(dir string, source gitdata.Repository) string {
	gitDir := filepath.Join(dir, ".git")
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"} {
		if _, err := os.Lstat(filepath.Join(gitDir, name)); err == nil {
			return "a merge or the like is under way in it (" + name + ")"
		}
	}
	theirs, err := source.Refs()
	if err != nil {
		return err.Error()
	}
	own, err := gitdata.Repository{Dir: gitDir, Common: gitDir}.Refs()
	if err != nil {
		return err.Error()
	}
	there := map[string]bool{}
	for _, hash := range theirs {
		there[hash] = true
	}
	for name, hash := range own {
		// Branches are saved, or reported as unsaved.
		if !strings.HasPrefix(name, "refs/heads/") && !strings.HasPrefix(name, "refs/remotes/") && !there[hash] {
			return name + " is nowhere else"
		}
	}
	return ""
}

const awaySuffix = ".away"

// wasPutAway reports whether the folder is missing because it was put away, and forgets that.
func (k *Keeper) wasPutAway(t Thread, p Project) bool {
	return os.Remove(k.savedIndex(t, p)+awaySuffix) == nil
}

// behind says how far a project's own folder is behind its forge; empty if it is not.
func (k *Keeper) behind(ctx context.Context, p Project) string {
	source, err := gitdata.Open(k.source(p))
	if err != nil {
		return ""
	}
	if err := k.refresh(ctx, source, p); err != nil {
		return fmt.Sprintf("The repository of project %s could not be brought up to date (%v); what it knows of its forge was fetched %s.", p.Name, err, ago(source.Fetched()))
	}
	branch, n := source.Behind(ctx, k.scratch())
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("The folder that the threads of project %s share lacks a commit of origin/%s, which is fetched. Ask for git merge --ff-only origin/%s, if it is wanted.", p.Name, branch, branch)
	}
	return fmt.Sprintf("The folder that the threads of project %s share lacks %d commits of origin/%s, which are fetched. Ask for git merge --ff-only origin/%s, if they are wanted.", p.Name, n, branch, branch)
}
