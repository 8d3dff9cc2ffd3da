package gitdata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	maxConfig  = 4 << 20  // bytes
	maxShallow = 16 << 20 // bytes
	// keptPrefix are the refs that keep the objects of the source that clones borrow from
	// its gc: one for each commit that a branch or tag named when a clone was made.
	keptPrefix = "refs/deckhand/kept/"
)

// Clone describes a working tree with a git folder of its own.
type Clone struct {
	// Source is the repository whose objects it borrows.
	Source Repository
	// Dir is where it is to be; nothing may be there.
	Dir string
	// Branch is the name of the branch that it is on, such as deckhand/7.
	Branch string
	// Base is the branch or commit that it starts from; empty means the source's HEAD.
	Base string
	// Scratch is a folder for what is needed meanwhile.
	Scratch string
	// Environ is the environment of the git that writes the files: the filters that its
	// owner's own configuration names are theirs to choose.
	Environ []string
}

// Make makes the clone, whole or not at all. It knows the branches and tags of the source
// as they are now; of its configuration it gets the name and address of whoever commits,
// and where origin is: the source's own origin, or else the source.
func (c Clone) Make(ctx context.Context) error {
	view, err := Look(c.Scratch, c.Source)
	if err != nil {
		return err
	}
	defer view.Close() //nolint:errcheck // it was only read
	base := c.Base
	if base == "" {
		base = "HEAD"
	}
	commit, err := view.Commit(ctx, base)
	if err != nil {
		return fmt.Errorf("it has no %s that could be started from", base)
	}
	l, err := c.layout(ctx, view, commit)
	if err != nil {
		return err
	}
	if err := c.Source.keep(l.refs); err != nil {
		return fmt.Errorf("keep the commits that are borrowed: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(c.Dir), 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(c.Dir), ".clone-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // gone after the rename
	if err := l.write(filepath.Join(tmp, ".git")); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "git", "-c", "core.hooksPath="+os.DevNull, "-c", "core.fsmonitor=false", "reset", "--quiet", "--hard")
	cmd.Dir = tmp
	cmd.Env = append(append([]string(nil), c.Environ...), "GIT_DIR="+filepath.Join(tmp, ".git"), "GIT_WORK_TREE="+tmp, "GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0")
	if err := run(ctx, cmd, nil); err != nil {
		return err
	}
	return os.Rename(tmp, c.Dir)
}

// layout is the clone's git folder.
func (c Clone) layout(ctx context.Context, view *View, commit string) (layout, error) {
	objects := view.objects
	theirs, err := c.Source.Refs()
	if err != nil {
		return layout{}, err
	}
	set, err := c.settings(ctx, view)
	if err != nil {
		return layout{}, err
	}
	shallow, err := readShallow(c.Source)
	if err != nil {
		return layout{}, err
	}
	own := "refs/heads/" + c.Branch
	if !isRef(own) {
		return layout{}, fmt.Errorf("%q is no name of a branch", c.Branch)
	}
	refs, links := map[string]string{own: commit}, map[string]string{}
	origin := set["remote.origin.url"]
	tracked := "refs/remotes/origin/"
	if origin == "" {
		tracked = "refs/heads/"
	}
	for name, hash := range theirs {
		if rest, ok := strings.CutPrefix(name, tracked); ok && !strings.HasPrefix(rest, "deckhand/") {
			refs["refs/remotes/origin/"+rest] = hash
		}
		if strings.HasPrefix(name, "refs/tags/") {
			refs[name] = hash
		}
	}
	// The branch that it starts from is there by its own name, too.
	from, _, err := c.Source.Head()
	if err != nil {
		return layout{}, err
	}
	if c.Base != "" {
		from = "refs/heads/" + c.Base
	}
	if hash := theirs[from]; hash == commit {
		refs[from] = hash
	}
	if to := defaultBranch(c.Source, from, refs); to != "" {
		links["refs/remotes/origin/HEAD"] = to
	}
	if origin == "" {
		origin = c.Source.Common
	}
	return layout{
		head: "ref: " + own, refs: refs, links: links, objects: objects, shallow: shallow,
		config: "\tbare = false\n\tlogallrefupdates = true\n" +
			section(`remote "origin"`, "url", origin, "fetch", "+refs/heads/*:refs/remotes/origin/*") +
			section("user", "name", set["user.name"], "email", set["user.email"]),
	}, nil
}

// defaultBranch is the branch of origin that its HEAD names, as the source knows it.
func defaultBranch(source Repository, from string, refs map[string]string) string {
	guess := "refs/remotes/origin/" + strings.TrimPrefix(from, "refs/heads/")
	if text, err := readSmall(filepath.Join(source.Common, "refs/remotes/origin/HEAD")); err == nil {
		if to, ok := strings.CutPrefix(text, "ref: "); ok && strings.HasPrefix(to, "refs/remotes/origin/") && refs[to] != "" {
			return to
		}
	}
	if refs[guess] != "" {
		return guess
	}
	return ""
}

// settings are the few that a clone takes over, by their names.
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
	// Who commits is told to everybody who runs git as this user, too.
	if set["user.name"] == "" && set["user.email"] == "" {
		cmd := exec.CommandContext(ctx, "git", "config", "--global", "--null", "--get-regexp", `^user\.(name|email)$`)
		cmd.Dir, cmd.Env = view.dir, c.Environ
		if out, err := cmd.Output(); err == nil {
			parse(string(out), set)
		}
	}
	return set, ctx.Err()
}

// parse reads what git config --null prints. The last of several values holds.
func parse(out string, into map[string]string) {
	for entry := range strings.SplitSeq(out, "\x00") {
		if name, value, ok := strings.Cut(entry, "\n"); ok {
			into[name] = value
		}
	}
}

// isPath reports whether an address is a path of this machine, as git sees it.
func isPath(address string) bool {
	if address == "" || strings.Contains(address, "://") {
		return false
	}
	colon, slash := strings.IndexByte(address, ':'), strings.IndexByte(address, '/')
	return colon < 0 || slash >= 0 && slash < colon
}

// section is one of a configuration file; pairs without a value are left out.
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

// keep makes refs for objects that the repository must not lose.
func (r Repository) keep(refs map[string]string) error {
	known, err := r.Refs()
	if err != nil {
		return err
	}
	for _, hash := range refs {
		if name := keptPrefix + hash; known[name] == "" {
			if err := r.writeRef(name, hash); err != nil {
				return err
			}
			known[name] = hash
		}
	}
	return nil
}

// readShallow is the list of commits whose parents are missing on purpose.
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
