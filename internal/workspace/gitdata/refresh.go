package gitdata

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	originPrefix = "refs/remotes/origin/"
	// fetchedHeads and fetchedTags are the refs of a fetch.
	fetchedHeads, fetchedTags = "refs/fetched/heads", "refs/fetched/tags"
	// freshName is a file in the repository whose time is that of the last refresh.
	freshName = "deckhand-fetched"
)

// Refresh updates a repository from its origin, like git fetch but without obeying the repository's settings: git
// fetches into a folder of ours, and the result is moved from there.
type Refresh struct {
	Source  Repository
	Scratch string
	// Fetch makes git fetch origin's branches and tags into a git folder, below the refs heads and tags, in packs;
	// it returns the branch that origin's HEAD names, empty if none.
	Fetch func(ctx context.Context, dir, heads, tags string) (head string, err error)
}

// Do updates the repository: refs/remotes/origin becomes what origin has now, and its tags are added. Branches, and
// other tags, stay. If it fails, with a sentence, nothing has changed.
func (r Refresh) Do(ctx context.Context) error {
	view, err := openView(r.Scratch, r.Source, fetching)
	if err != nil {
		return err
	}
	defer view.Close() //nolint:errcheck // what was fetched has been moved
	head, err := r.Fetch(ctx, view.dir, fetchedHeads, fetchedTags)
	if err != nil {
		return err
	}
	found, err := Repository{Dir: view.dir, Common: view.dir}.Refs()
	if err != nil {
		return err
	}
	refs := map[string]string{}
	branches := 0
	for name, hash := range found {
		if rest, ok := strings.CutPrefix(name, fetchedHeads+"/"); ok && rest != "HEAD" {
			refs[originPrefix+rest] = hash
			branches++
		}
		if rest, ok := strings.CutPrefix(name, fetchedTags+"/"); ok {
			refs["refs/tags/"+rest] = hash
		}
	}
	if branches == 0 {
		return errors.New("it has no branch")
	}
	if err := movePacks(view.dir, r.Source.Common); err != nil {
		return fmt.Errorf("take over what was fetched: %w", err)
	}
	if err := r.Source.setRefs(refs, originPrefix); err != nil {
		return err
	}
	if refs[originPrefix+head] != "" {
		if err := r.Source.replace(originPrefix+"HEAD", as("ref: "+originPrefix+head+"\n")); err != nil {
			return err
		}
	}
	return r.Source.SetFetched()
}

// fetching are the settings for a folder to fetch into: packs stay packs, no gc runs, and alternates are not asked
// for their refs, which the folder has.
const fetching = "\tbare = true\n\talternateRefsCommand = true\n\tbigFileThreshold = 16m\n\tdeltaBaseCacheLimit = 64m\n" +
	"[pack]\n\tthreads = 1\n[fetch]\n\tunpackLimit = 1\n\twriteCommitGraph = false\n[transfer]\n\tunpackLimit = 1\n\tbundleURI = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"

// SetFetched records a refresh.
func (r Repository) SetFetched() error {
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	return root.WriteFile(freshName, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o666)
}

// Fetched is the time of the last refresh; zero if unknown.
func (r Repository) Fetched() time.Time {
	info, err := os.Lstat(filepath.Join(r.Common, freshName))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// movePacks moves the packs of one git folder into another, each before its index, which makes it visible.
func movePacks(from, to string) error {
	from = filepath.Join(from, "objects/pack")
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	if err := root.MkdirAll("objects/pack", 0o777); err != nil {
		return err
	}
	into, err := root.Open("objects/pack") // never outside it, whatever the name becomes
	if err != nil {
		return err
	}
	defer into.Close() //nolint:errcheck // it only names a folder
	for _, suffix := range []string{".pack", ".rev", ".idx"} {
		names, err := filepath.Glob(filepath.Join(EscapeGlob(from), "pack-*"+suffix))
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := unix.Renameat(unix.AT_FDCWD, name, int(into.Fd()), filepath.Base(name)); err != nil {
				return err
			}
		}
	}
	return nil
}
