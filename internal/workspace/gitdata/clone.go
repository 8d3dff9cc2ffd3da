package gitdata

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	maxConfig  = 4 << 20  // bytes
	maxShallow = 16 << 20 // bytes
	// keptPrefix are the refs that keep the objects of the source that clones borrow from
	// its gc: one for each commit that a branch or tag named when a clone was made, and for
	// each that a branch named before it moved otherwise than forward.
	keptPrefix = "refs/deckhand/kept/"
	// maxLooseKept is how many of them get a file each at once; more are packed.
	maxLooseKept = 8
)

// Clone describes a working tree with a git folder of its own.
type Clone struct {
	// Source is the repository whose objects it borrows.
	Source Repository
	// Dir is the clone's folder, which must not exist.
	Dir string
	// Branch is its branch, such as deckhand/7. If the source has it, it is checked out as it is.
	Branch string
	// Was is what its branch was called when it was saved, if that was another name.
	Was string
	// Base is the branch or commit that a new branch starts from; empty means HEAD.
	Base string
	// OfOrigin bases branches and HEAD on origin's, as of the source's last refresh (see [Refresh]), instead of the
	// source's own.
	OfOrigin bool
	// Saved is the source's ref with what [Saving] saved of an earlier clone; empty for none.
	Saved string
	// State is what the source's branch and Saved are taken to be instead of what they are now; nil for that.
	State *State
	// Subdir is a folder, below Dir, that it has alone, with the files of the folders above, by git's sparse checkout.
	// A new branch's base must have it. Empty for everything.
	Subdir string
	// Index is a file that gets a copy of the index, for [Saving]; empty for none.
	Index string
	// Scratch is a folder for temporary files.
	Scratch string
	// Environ is the environment of the git that writes the files: the owner's own configuration may name filters.
	Environ []string
}

// Made describes a new clone.
type Made struct {
	// Branch reports that the source had the branch.
	Branch bool
	// Saved was saved from an earlier clone and restored.
	Saved *Saved
	// Aside was saved and not restored, since the source's branch no longer has the commit that it was based on.
	Aside *Saved
}

// Make makes the clone, completely or not at all. It has the branches and tags of the source as they are now, and
// from its configuration only the committer's name and address and origin: the source's own origin, or else the
// source.
func (c Clone) Make(ctx context.Context) (made Made, err error) {
	theirs, head, err := c.known()
	if err != nil {
		return made, err
	}
	if c.State != nil {
		theirs["refs/heads/"+c.Branch] = c.State.Branch
		if delete(theirs, c.Saved); c.State.Saved != "" {
			theirs[c.Saved] = c.State.Saved
		}
	}
	view, err := openViewAs(c.Scratch, c.Source, theirs, head, "\tbare = true\n")
	if err != nil {
		return made, err
	}
	defer view.Close() //nolint:errcheck // only read
	from, made, err := c.start(ctx, view, theirs)
	if err != nil {
		return made, err
	}
	if !made.Branch && made.Saved == nil {
		if err := view.CheckSubdir(ctx, from.commit, c.Subdir); err != nil {
			return made, err
		}
	}
	l, err := c.layout(ctx, view, theirs, head, from)
	if err != nil {
		return made, err
	}
	if err := c.Source.keep(l.refs); err != nil {
		return made, fmt.Errorf("keep the commits that are borrowed: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(c.Dir), 0o700); err != nil {
		return made, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(c.Dir), Unfinished)
	if err != nil {
		return made, err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // gone after the rename
	if err := l.write(filepath.Join(tmp, ".git")); err != nil {
		return made, err
	}
	if err := c.inside(ctx, tmp, nil, nil, "reset", "--quiet", "--hard"); err != nil {
		return made, err
	}
	if made.Saved != nil {
		if err := c.bringBack(ctx, view, tmp, made.Saved); err != nil {
			return made, err
		}
	}
	if c.Index != "" {
		if err := copyIndex(filepath.Join(tmp, ".git/index"), c.Index); err != nil {
			return made, err
		}
		if err := keepCone(c.Index, c.Subdir); err != nil {
			return made, err
		}
	}
	return made, os.Rename(tmp, c.Dir)
}

// Unfinished is the prefix of incomplete clones' folders.
const Unfinished = ".clone-"

// Sweep removes incomplete clones of dead processes from a folder, as far as possible.
func Sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(EscapeGlob(dir), Unfinished+"*")) // the pattern is valid
	for _, at := range left {
		_ = os.RemoveAll(at)
	}
}

// inside runs git in a clone that nobody else has used yet.
func (c Clone) inside(ctx context.Context, dir string, in io.Reader, out *bytes.Buffer, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, in
	if out != nil {
		cmd.Stdout = out
	}
	cmd.Env = append(append([]string(nil), c.Environ...), "GIT_DIR="+filepath.Join(dir, ".git"), "GIT_WORK_TREE="+dir, "GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0")
	return run(ctx, cmd, nil)
}

// lfsPointer is how the pointer to a file in Git LFS begins.
const lfsPointer = "version https://git-lfs.github.com/spec/"

// Unfetched reports what is not fetched into a clone that nobody else has used yet: submodules, and the content of
// files in Git LFS.
func Unfetched(ctx context.Context, dir string, environ []string) (submodules, lfs bool) {
	info, err := os.Lstat(filepath.Join(dir, ".gitmodules"))
	submodules = err == nil && info.Mode().IsRegular()
	var names bytes.Buffer
	if err := (Clone{Environ: environ}).inside(ctx, dir, nil, &names, "ls-files", "-z", "--", ":(attr:filter=lfs)"); err != nil {
		return submodules, false
	}
	for name := range strings.SplitSeq(names.String(), "\x00") {
		text, err := readSmall(filepath.Join(dir, name))
		if err == nil && strings.HasPrefix(text, lfsPointer) {
			return submodules, true
		}
	}
	return submodules, false
}

// known are the source's refs for the clone, and HEAD in the format of its file.
func (c Clone) known() (refs map[string]string, head string, err error) {
	refs, err = c.Source.Refs()
	if err != nil {
		return nil, "", err
	}
	if head, err = c.Source.headFile(); err != nil {
		return nil, "", err
	}
	if !c.OfOrigin {
		return refs, head, nil
	}
	for name := range refs {
		if rest, ok := strings.CutPrefix(name, "refs/heads/"); ok && !isOurs(rest) {
			delete(refs, name)
		}
	}
	for name, hash := range maps.Clone(refs) {
		if rest, ok := strings.CutPrefix(name, originPrefix); ok && !isOurs(rest) {
			refs["refs/heads/"+rest] = hash
		}
	}
	if to, ok := strings.CutPrefix(c.Source.Follow(originPrefix+"HEAD"), originPrefix); ok {
		head = "ref: refs/heads/" + to
	}
	return refs, head, nil
}

// View opens a view of the source with the refs and the HEAD that the clone starts from.
func (c Clone) View() (*View, error) {
	theirs, head, err := c.known()
	if err != nil {
		return nil, err
	}
	return openViewAs(c.Scratch, c.Source, theirs, head, "\tbare = true\n")
}

// isOurs reports whether a branch is a thread's.
func isOurs(branch string) bool { return strings.HasPrefix(branch, "deckhand/") }

// Left is the commit at which a commit of the source's has left the base, and changed are the files that differ
// since, 200 at most.
func (c Clone) Left(ctx context.Context, tip string) (left string, changed []string, err error) {
	view, err := c.View()
	if err != nil {
		return "", nil, err
	}
	defer view.Close() //nolint:errcheck // only read
	base, err := view.Commit(ctx, cmp.Or(c.Base, "HEAD"))
	if err != nil {
		return "", nil, err
	}
	out, err := view.git(ctx, nil, nil, "merge-base", base, tip)
	if err != nil {
		return "", nil, err
	}
	left = strings.TrimSpace(out)
	names := start{left: maxDiff}
	cmd := view.command(ctx, nil, append(diffing, "-z", "--name-only", left, tip)...)
	cmd.Stdout = &names
	if err = run(ctx, cmd, nil); names.left < 0 {
		err = context.Cause(ctx) // git was stopped early
	}
	changed = strings.Split(names.String(), "\x00")
	return left, changed[:min(len(changed)-1, maxToldFiles)], err // behind the last NUL is nothing, or half a name
}

// beginning is a clone's initial state.
type beginning struct {
	base   string            // the commit of Base; empty if the branch exists already
	refs   map[string]string // its own branches
	head   string            // in the format of the file HEAD
	commit string            // of HEAD
}

// start determines the clone's beginning: the source's branch, what was saved of it, or the base.
func (c Clone) start(ctx context.Context, view *View, theirs map[string]string) (b beginning, made Made, err error) {
	own := "refs/heads/" + c.Branch
	if !isRef(own) {
		return b, made, fmt.Errorf("%q is no name of a branch", c.Branch)
	}
	b = beginning{head: "ref: " + own, refs: map[string]string{}}
	saved, err := c.saved(ctx, view, theirs)
	if err != nil {
		return b, made, err
	}
	if saved != nil {
		if err := c.resume(ctx, view, saved, theirs[own], &b, &made); err != nil {
			return b, made, err
		}
	}
	b.commit = cmp.Or(b.commit, theirs[own])
	made.Branch = theirs[own] != ""
	if b.commit == "" {
		base := cmp.Or(c.Base, "HEAD")
		if b.base, err = view.Commit(ctx, base); err != nil {
			return b, made, cmp.Or(context.Cause(ctx), fmt.Errorf("it has no %s that could be started from", base))
		}
		b.commit = b.base
	} else if commit, err := view.Commit(ctx, cmp.Or(c.Base, "HEAD")); err == nil {
		b.base = commit
	}
	b.refs[own] = cmp.Or(b.refs[own], theirs[own], b.commit)
	return b, made, context.Cause(ctx)
}

// layout is the clone's git folder.
func (c Clone) layout(ctx context.Context, view *View, theirs map[string]string, sourceHead string, b beginning) (layout, error) {
	set, err := c.settings(ctx, view)
	if err != nil {
		return layout{}, err
	}
	shallow, err := readShallow(c.Source)
	if err != nil {
		return layout{}, err
	}
	refs, links := map[string]string{}, map[string]string{}
	origin := set["remote.origin.url"]
	tracked := originPrefix
	if origin == "" {
		tracked = "refs/heads/"
	}
	for name, hash := range theirs {
		if rest, ok := strings.CutPrefix(name, tracked); ok && !isOurs(rest) {
			refs[originPrefix+rest] = hash
		}
		if strings.HasPrefix(name, "refs/tags/") {
			refs[name] = hash
		}
	}
	// The branch that it starts from also exists under its own name.
	from := strings.TrimPrefix(sourceHead, "ref: ")
	if c.Base != "" {
		from = "refs/heads/" + c.Base
	}
	if hash := theirs[from]; hash != "" && hash == b.base {
		refs[from] = hash
	}
	maps.Copy(refs, b.refs)
	if to := defaultBranch(c.Source, from, refs); to != "" {
		links[originPrefix+"HEAD"] = to
	}
	return layout{
		head: b.head, refs: refs, links: links, objects: view.objects, shallow: shallow, subdir: c.Subdir,
		config: "\tbare = false\n\tlogallrefupdates = true\n" +
			section(`remote "origin"`, "url", cmp.Or(origin, c.Source.Common), "fetch", "+refs/heads/*:refs/remotes/origin/*") +
			section("user", "name", set["user.name"], "email", set["user.email"]),
	}, nil
}

// defaultBranch is the branch of origin that its HEAD names, as the source knows it.
func defaultBranch(source Repository, from string, refs map[string]string) string {
	for _, to := range []string{source.Follow(originPrefix + "HEAD"), originPrefix + strings.TrimPrefix(from, "refs/heads/")} {
		if strings.HasPrefix(to, originPrefix) && refs[to] != "" {
			return to
		}
	}
	return ""
}

// settings are the few that a clone inherits, by name.
func (c Clone) settings(ctx context.Context, view *View) (map[string]string, error) {
	set := map[string]string{}
	const names = `^(user\.(name|email)|remote\.origin\.url)$`
	f, err := openPlain(filepath.Join(c.Source.Common, "config"), maxConfig)
	if err == nil {
		defer f.Close() //nolint:errcheck // it is only read
		out, err := view.git(ctx, f, nil, "config", "--file", "-", "--no-includes", "--null", "--get-regexp", names)
		if err == nil { // it fails when there is none
			parse(out, set)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if at := set["remote.origin.url"]; isPath(at) {
		set["remote.origin.url"] = within(filepath.Dir(c.Source.Common), at)
	}
	// The user's global committer applies to every git of this user.
	if set["user.name"] == "" && set["user.email"] == "" {
		cmd := exec.CommandContext(ctx, "git", "config", "--global", "--null", "--get-regexp", `^user\.(name|email)$`)
		cmd.Dir, cmd.Env = view.dir, c.Environ
		if out, err := cmd.Output(); err == nil {
			parse(string(out), set)
		}
	}
	return set, context.Cause(ctx)
}

// parse parses the output of git config --null. The last value of a name wins.
func parse(out string, into map[string]string) {
	for entry := range strings.SplitSeq(out, "\x00") {
		if name, value, ok := strings.Cut(entry, "\n"); ok {
			into[name] = value
		}
	}
}

// isPath reports whether git takes an address for a path of this machine.
func isPath(address string) bool {
	if address == "" || strings.Contains(address, "://") {
		return false
	}
	colon, slash := strings.IndexByte(address, ':'), strings.IndexByte(address, '/')
	return colon < 0 || slash >= 0 && slash < colon
}

// section formats a section of a configuration file; pairs without a value are left out.
func section(name string, pairs ...string) string {
	var b strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\x00", "")
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(&b, "\t%s = \"%s\"\n", pairs[i], quote.Replace(pairs[i+1]))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "[" + name + "]\n" + b.String()
}

// keep makes refs for objects that gc must not remove.
func (r Repository) keep(refs map[string]string) error {
	known, err := r.Refs()
	if err != nil {
		return err
	}
	missing := map[string]string{}
	for _, hash := range refs {
		if name := keptPrefix + hash; known[name] == "" {
			missing[name] = hash
		}
	}
	if len(missing) > maxLooseKept {
		return r.setRefs(missing, "")
	}
	for name, hash := range missing {
		if err := r.SetRef(name, hash); err != nil {
			return err
		}
	}
	return nil
}

// readShallow is the list of commits without parents in a shallow repository.
func readShallow(r Repository) (string, error) {
	f, err := openPlain(filepath.Join(r.Common, "shallow"), maxShallow)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it is only read
	b, err := io.ReadAll(io.LimitReader(f, maxShallow))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if !hashFormat.MatchString(strings.TrimSpace(line)) {
			return "", fmt.Errorf("%s/shallow: no list of commits", r.Common)
		}
	}
	return string(b), nil
}
