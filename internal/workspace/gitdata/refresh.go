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
	// fetchedHeads and fetchedTags are where a fetch puts what it finds.
	fetchedHeads, fetchedTags = "refs/fetched/heads", "refs/fetched/tags"
	// freshName is the file of the repository whose time is when it was last brought up to
	// date.
	freshName = "deckhand-fetched"
)

// Refresh brings what a repository knows of its origin up to date. It does what git fetch
// does, and hears nothing of the repository's settings: git fetches into a folder of ours,
// and what it has found is moved from there.
type Refresh struct {
	Source  Repository
	Scratch string
	// Fetch has git bring origin's branches and tags into a git folder, below the refs that
	// heads and tags name, in packs; it returns the branch that origin's HEAD names, empty
	// if that is none.
	Fetch func(ctx context.Context, dir, heads, tags string) (head string, err error)
}

// Do brings the repository up to date: refs/remotes/origin is what origin has now, and its
// tags are there. Branches, and tags that origin does not have, stay as they are. Where it
// fails, which its error tells in a sentence, nothing has changed.
func (r Refresh) Do(ctx context.Context) error {
	view, err := look(r.Scratch, r.Source, fetching)
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

// fetching are the settings of a folder that git fetches into: what comes stays in packs,
// nothing tidies up, and nothing is asked of the repositories that objects are borrowed
// from, whose refs the folder has.
const fetching = "\tbare = true\n\talternateRefsCommand = true\n\tbigFileThreshold = 16m\n\tdeltaBaseCacheLimit = 64m\n" +
	"[pack]\n\tthreads = 1\n[fetch]\n\tunpackLimit = 1\n\twriteCommitGraph = false\n[transfer]\n\tunpackLimit = 1\n\tbundleURI = false\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"

// SetFetched notes that the repository is what its origin has now.
func (r Repository) SetFetched() error {
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	return root.WriteFile(freshName, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o666)
}

// Fetched is when the repository was last brought up to date; zero if that is not known.
func (r Repository) Fetched() time.Time {
	info, err := os.Lstat(filepath.Join(r.Common, freshName))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// movePacks moves the packs of one git folder into another one, each before its index,
// which makes it known.
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
	into, err := root.Open("objects/pack") // and nowhere outside, whatever is made of its name
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
