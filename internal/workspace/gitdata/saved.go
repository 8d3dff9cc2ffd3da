package gitdata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Saved is what [Saving] has saved of a clone: a commit whose tree is the working tree, and whose parents are
// HEAD's commit and the clone's other branches.
type Saved struct {
	Commit string
	At     time.Time
	// Changed reports uncommitted changes in the working tree.
	Changed bool

	head     string            // HEAD's commit; empty for none
	ref      string            // HEAD's ref; empty for none
	branches map[string]string // the clone's other branches, by ref
}

const (
	savedTitle = "Not committed in a thread of Deckhand"
	maxMessage = 1 << 20 // bytes
	none       = "-"
)

// message is the commit's message, for parseSaved.
func (s Saved) message() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nhead %s %s\n", savedTitle, cmp.Or(s.head, none), cmp.Or(s.ref, none))
	for ref, hash := range s.branches {
		fmt.Fprintf(&b, "branch %s %s\n", hash, ref)
	}
	return b.String()
}

// parseSaved parses a commit made by Saving; false for another one.
func parseSaved(commit, text string) (s Saved, tree string, ok bool) {
	header, message, _ := strings.Cut(text, "\n\n")
	message, ours := strings.CutPrefix(message, savedTitle+"\n\n")
	s = Saved{Commit: commit, branches: map[string]string{}}
	parents := map[string]bool{"": true}
	for line := range strings.Lines(header) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "tree":
			tree = value
		case "parent":
			parents[value] = true
		case "committer":
			if _, after, ok := strings.Cut(value, "> "); ok {
				seconds, _ := strconv.ParseInt(strings.Fields(after + " ")[0], 10, 64)
				s.At = time.Unix(seconds, 0).UTC()
			}
		}
	}
	for line := range strings.Lines(message) {
		words := strings.Fields(line)
		if len(words) != 3 {
			return s, "", false
		}
		hash, ref := strings.TrimPrefix(words[1], none), strings.TrimPrefix(words[2], none)
		switch {
		case !parents[hash] || ref != "" && (!isRef(ref) || !strings.HasPrefix(ref, "refs/heads/")):
			return s, "", false
		case words[0] == "head":
			s.head, s.ref = hash, ref
		case words[0] == "branch" && hash != "" && ref != "":
			s.branches[ref] = hash
		}
	}
	return s, tree, ours
}

// saved is what was saved of an earlier clone, or nil.
func (c Clone) saved(ctx context.Context, view *View, theirs map[string]string) (*Saved, error) {
	commit := theirs[c.Saved]
	if c.Saved == "" || commit == "" {
		return nil, nil
	}
	text, err := view.git(ctx, nil, nil, "cat-file", "commit", commit)
	if err != nil {
		return nil, context.Cause(ctx) // Saving did not make it
	}
	s, err := view.parse(ctx, commit, text)
	if s != nil && c.Was != "" && s.ref == "refs/heads/"+c.Was {
		s.ref = "refs/heads/" + c.Branch
	}
	return s, err
}

// parse reads a commit made by Saving, and whether it has uncommitted changes; nil for another one.
func (v *View) parse(ctx context.Context, commit, text string) (*Saved, error) {
	if len(text) > maxMessage {
		return nil, nil
	}
	s, tree, ok := parseSaved(commit, text)
	if !ok {
		return nil, nil
	}
	if s.head != "" {
		base, err := v.git(ctx, nil, nil, "rev-parse", "--verify", "--quiet", s.head+"^{tree}")
		if err != nil {
			return nil, context.Cause(ctx)
		}
		s.Changed = strings.TrimSpace(base) != tree
	}
	return &s, nil
}

// resume makes a clone begin where an earlier one was saved, unless the source's branch, published, has moved on
// without it.
func (c Clone) resume(ctx context.Context, view *View, s *Saved, published string, b *beginning, made *Made) error {
	own := "refs/heads/" + c.Branch
	for ref, hash := range s.branches {
		if ref != own {
			b.refs[ref] = hash
		}
	}
	fits := s.head != ""
	if fits && s.ref == own && published != "" && published != s.head {
		_, err := view.git(ctx, nil, nil, "merge-base", "--is-ancestor", published, s.head)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		fits = err == nil
	}
	if !fits {
		if s.Changed || s.head == "" {
			made.Aside = s
			b.refs[asideRef] = s.Commit
		}
		return nil
	}
	made.Saved, b.commit = s, s.head
	switch s.ref {
	case "":
		b.head = s.head
	default:
		b.head, b.refs[s.ref] = "ref: "+s.ref, s.head
	}
	return nil
}

// asideRef is the clone's ref for saved work that was not restored.
const asideRef = "refs/deckhand/saved"

// bringBack restores the saved files byte by byte, and leaves the index at HEAD.
func (c Clone) bringBack(ctx context.Context, view *View, dir string, s *Saved) error {
	if !s.Changed {
		return nil
	}
	attributes := filepath.Join(dir, ".git/info/attributes")
	if err := os.MkdirAll(filepath.Dir(attributes), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(attributes, []byte(asTheyAre), 0o600); err != nil {
		return err
	}
	changed, err := view.git(ctx, nil, nil, "diff-tree", "-r", "-z", "--name-status", "--no-renames", s.head, s.Commit)
	if err != nil {
		return err
	}
	var there strings.Builder
	fields := strings.Split(changed, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] != "D" {
			there.WriteString(fields[i+1] + "\x00")
		} else if err := removeFile(dir, fields[i+1]); err != nil {
			return err
		}
	}
	if there.Len() > 0 {
		if err := c.inside(ctx, dir, strings.NewReader(there.String()), nil, "--literal-pathspecs", "restore", "--quiet", "--ignore-skip-worktree-bits", "--source="+s.Commit, "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
			return fmt.Errorf("bring back what was not committed: %w", err)
		}
	}
	return os.Remove(attributes)
}

// removeFile removes a file below a folder, and the folders that become empty.
func removeFile(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if root.Remove(at) != nil {
			break // it is not empty
		}
	}
	return nil
}

// asTheyAre are attributes that disable all conversions and filters, whatever a repository's own say.
const asTheyAre = "* -text !crlf !eol !ident !filter !working-tree-encoding\n"

// copyIndex copies an index with its time, by which git detects changes.
func copyIndex(from, to string) (err error) {
	src, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it is only read
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close(), os.Chtimes(to, time.Time{}, info.ModTime()))
}
