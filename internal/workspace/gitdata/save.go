package gitdata

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Saving saves what a clone has beyond its branch: the files as they are, and other branches, as a commit in the
// source under a ref of its own. Ignored files are left out.
type Saving struct {
	// Clone is the folder of the working tree, whose files and git folder are untrusted and may change.
	Clone  string
	Source Repository
	// Branch is the clone's own branch, which [Publication] publishes.
	Branch string
	// Ref is the source's ref for what was saved.
	Ref string
	// Index is our file, named by Clone.Index, by which git knows what has not changed. It may be missing.
	Index string
	// Scratch is a folder for temporary files, on the file system of Index.
	Scratch string
	// MaxFile and MaxBytes bound a file and the total, in bytes, and MaxFiles the number; 0 means 16 MiB, 256 MiB
	// and 20,000.
	MaxFile, MaxBytes int64
	MaxFiles          int
	// Ignored makes Save also name ignored files, up to a limit.
	Ignored bool
}

// Left is something that was not saved, and why: a phrase after its name.
type Left struct{ Name, Why string }

// Ignored is the reason for files that .gitignore leaves out.
const Ignored = "ignored"

const (
	// maxIgnored bounds the named ignored files.
	maxIgnored = 50
	// maxListed bounds git's list of changed files, in bytes.
	maxListed = 64 << 20
	// maxBranches bounds the saved branches.
	maxBranches = 100
)

// Save saves, and returns what was left out. Its error is a sentence; then the source is unchanged.
func (s Saving) Save(ctx context.Context) (left []Left, err error) {
	s.MaxFile, s.MaxBytes, s.MaxFiles = cmp.Or(s.MaxFile, 16<<20), cmp.Or(s.MaxBytes, 256<<20), cmp.Or(s.MaxFiles, 20_000)
	root, err := openClone(s.Clone)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	files, err := os.OpenRoot(s.Clone)
	if err != nil {
		return nil, err
	}
	defer files.Close() //nolint:errcheck // it only names a folder
	now := Saved{At: time.Now()}
	gitDir := filepath.Join(s.Clone, ".git")
	if now.ref, now.head, err = (Repository{Dir: gitDir, Common: gitDir}).Head(); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(now.ref, "refs/heads/") {
		now.ref = ""
	}
	known, err := s.Source.Refs()
	if err != nil {
		return nil, err
	}
	now.branches, left = s.branches(ctx, gitDir, known, now.ref)
	if err := s.bring(ctx, root, now.tips()); err != nil {
		if len(now.branches) == 0 {
			return nil, err
		}
		for ref := range now.branches {
			left = append(left, Left{strings.TrimPrefix(ref, "refs/heads/"), "a branch that is not whole, or too large"})
		}
		now.branches = nil
		if err := s.bring(ctx, root, now.tips()); err != nil {
			return nil, err
		}
	}
	more, err := s.files(ctx, files, &now, known)
	return append(left, more...), err
}

// tips are the commits to save besides the files.
func (s Saved) tips() []string {
	var out []string
	if s.head != "" {
		out = append(out, s.head)
	}
	for _, hash := range s.branches {
		if !slices.Contains(out, hash) {
			out = append(out, hash)
		}
	}
	slices.Sort(out[min(1, len(out)):])
	return out
}

func (s Saving) bring(ctx context.Context, root *os.Root, tips []string) error {
	return Publication{Clone: s.Clone, Source: s.Source, Branch: s.Branch, Scratch: s.Scratch, MaxBytes: maxPublished, MaxFiles: maxTaken}.bring(ctx, root, tips...)
}

// branches are the clone's branches, by ref, that the source lacks, except its own branch and the current one.
func (s Saving) branches(ctx context.Context, gitDir string, known map[string]string, head string) (found map[string]string, left []Left) {
	there := map[string]bool{}
	for _, hash := range known {
		there[hash] = true
	}
	clone, found := Repository{Dir: gitDir, Common: gitDir}, map[string]string{}
	add := func(name, hash string) {
		if strings.HasPrefix(name, "refs/heads/") && name != "refs/heads/"+s.Branch && name != head && isRef(name) {
			found[name] = hash
		}
	}
	_ = clone.packed(func(name, hash string) bool {
		add(name, hash)
		return len(found) < maxTaken
	})
	seen := 0
	_ = filepath.WalkDir(filepath.Join(gitDir, "refs/heads"), func(path string, d fs.DirEntry, err error) error {
		if seen++; err != nil || seen > maxTaken || ctx.Err() != nil {
			return fs.SkipAll
		}
		if rel, err := filepath.Rel(gitDir, path); err == nil && d.Type().IsRegular() {
			if text, err := readSmall(path); err == nil && hashFormat.MatchString(text) {
				add(filepath.ToSlash(rel), text)
			}
		}
		return nil
	})
	kept := 0
	for name, hash := range found {
		switch {
		case there[hash]:
			delete(found, name)
		case kept == maxBranches:
			delete(found, name)
			left = append(left, Left{strings.TrimPrefix(name, "refs/heads/"), "a branch too many"})
		default:
			kept++
		}
	}
	return found, left
}

// change is a file that differs from HEAD.
type change struct {
	path string
	gone bool
	info fs.FileInfo
}

// files saves the files, and the rest of now with them.
func (s Saving) files(ctx context.Context, files *os.Root, now *Saved, known map[string]string) (left []Left, err error) {
	source, err := OpenView(s.Scratch, s.Source)
	if err != nil {
		return nil, err
	}
	defer source.Close() //nolint:errcheck // only read
	shallow, err := readShallow(s.Source)
	if err != nil {
		return nil, err
	}
	own, err := newView(s.Scratch, layout{head: "ref: refs/heads/.none", refs: known, objects: source.objects, shallow: shallow, config: ownSettings})
	if err != nil {
		return nil, err
	}
	defer own.Close() //nolint:errcheck // its content has been taken over
	tree := workingTree{View: own, dir: s.Clone, files: files}
	if err := tree.read(ctx, s.Index, now.head); err != nil {
		return nil, err
	}
	changes, left, err := tree.changes(ctx)
	if err != nil {
		return nil, err
	}
	changes, more := s.within(changes)
	left = append(left, more...)
	if s.Ignored {
		left = append(left, tree.ignored(ctx)...)
	}
	sum := now.sum(changes)
	if saved, _ := os.ReadFile(s.Index + sumSuffix); known[s.Ref] != "" && string(saved) == sum+" "+known[s.Ref] {
		return left, nil
	}
	if known[s.Ref] == "" && len(changes) == 0 && len(now.branches) == 0 && now.ref == "refs/heads/"+s.Branch && known[now.ref] == now.head {
		return left, nil // everything is on the branch
	}
	unread, err := tree.commit(ctx, *now, changes)
	if err != nil {
		return nil, err
	}
	left = append(left, unread...)
	// Objects that a ref reaches would not be sent.
	commit, err := readSmall(filepath.Join(own.dir, newRef))
	if err := errors.Join(err, os.Remove(filepath.Join(own.dir, newRef))); err != nil {
		return nil, err
	}
	if err := own.send(ctx, source, []string{commit}, s.MaxBytes+maxListed); err != nil {
		return nil, err
	}
	if there, err := source.has(ctx, []string{commit}); err != nil || len(there) == 0 {
		return nil, cmp.Or(err, errors.New("what was saved is not whole"))
	}
	if err := s.Source.SetRef(s.Ref, commit); err != nil {
		return nil, err
	}
	if len(unread) > 0 {
		return left, nil // to be said each time, until all is read
	}
	return left, os.WriteFile(s.Index+sumSuffix, []byte(sum+" "+commit), 0o600)
}

const (
	sumSuffix = ".saved"
	newRef    = "refs/deckhand/new"
	// ownSettings are for a git that reads a clone's files: they are compared and stored byte by byte, and no
	// program runs.
	ownSettings = "\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n\texcludesFile = /dev/null\n\tattributesFile = /dev/null\n\tcompression = 1\n" +
		"[submodule]\n\trecurse = false\n[status]\n\tsubmoduleSummary = false\n[diff]\n\tignoreSubmodules = all\n"
)

// sum identifies the same state again without reading the files.
func (s Saved) sum(changes []change) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %v\n", s.head, s.ref, s.branches) // maps are printed in order
	for _, c := range changes {
		fmt.Fprintf(h, "%q %v", c.path, c.gone)
		if c.info != nil {
			fmt.Fprintf(h, " %v %d %d", c.info.Mode(), c.info.Size(), c.info.ModTime().UnixNano())
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// within leaves out what exceeds the limits: large files first.
func (s Saving) within(changes []change) (some []change, left []Left) {
	bySize := func(a, b change) int { return cmp.Compare(a.size(), b.size()) }
	slices.SortStableFunc(changes, bySize)
	bytes, count := int64(0), 0
	for _, c := range changes {
		switch {
		case c.gone:
		case c.size() > s.MaxFile:
			left = append(left, Left{c.path, "larger than " + mebibytes(s.MaxFile)})
			continue
		case bytes+c.size() > s.MaxBytes:
			left = append(left, Left{c.path, "beyond " + mebibytes(s.MaxBytes) + " in all"})
			continue
		case count == s.MaxFiles:
			left = append(left, Left{c.path, fmt.Sprintf("beyond %d files", s.MaxFiles)})
			continue
		default:
			bytes += c.size()
			count++
		}
		some = append(some, c)
	}
	slices.SortFunc(some, func(a, b change) int { return strings.Compare(a.path, b.path) })
	return some, left
}

func (c change) size() int64 {
	if c.info == nil {
		return 0
	}
	return c.info.Size()
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
