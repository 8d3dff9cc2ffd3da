package gitdata

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// View is a git folder of our own over a repository's objects and refs: git's answers in it are true of the
// repository, whose configuration is ignored. Its methods are for one goroutine.
type View struct {
	dir     string
	objects []string // the repository's own first
	refs    map[string]string
}

// OpenView makes a view of the repository's current state, in a folder below scratch.
func OpenView(scratch string, r Repository) (*View, error) {
	return openView(scratch, r, "\tbare = true\n")
}

// openView is OpenView with settings for the view.
func openView(scratch string, r Repository, config string) (*View, error) {
	refs, err := r.Refs()
	if err != nil {
		return nil, err
	}
	head, err := r.headFile()
	if err != nil {
		return nil, err
	}
	return openViewAs(scratch, r, refs, head, config)
}

// openViewAs is openView with other refs and another HEAD.
func openViewAs(scratch string, r Repository, refs map[string]string, head, config string) (*View, error) {
	objects, err := r.Objects()
	if err != nil {
		return nil, err
	}
	for _, dir := range objects {
		if some, _ := filepath.Glob(filepath.Join(EscapeGlob(dir), "pack/*.promisor")); len(some) > 0 { // the pattern is valid
			return nil, fmt.Errorf("%s is a partial clone, whose objects would have to be fetched; clone it whole", r.Common)
		}
	}
	shallow, err := readShallow(r)
	if err != nil {
		return nil, err
	}
	return newView(scratch, layout{head: head, refs: refs, objects: objects, shallow: shallow, config: config})
}

func newView(scratch string, l layout) (*View, error) {
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(scratch, "view-")
	if err != nil {
		return nil, err
	}
	v := &View{dir: dir, objects: l.objects, refs: l.refs}
	if err := l.write(dir); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// Close removes the view.
func (v *View) Close() error { return os.RemoveAll(v.dir) }

// Commit resolves a revision. Its error is git's.
func (v *View) Commit(ctx context.Context, revision string) (string, error) {
	out, err := v.git(ctx, nil, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	return strings.TrimSpace(out), err
}

// has are those of the hashes that are commits in the repository, in their order.
func (v *View) has(ctx context.Context, hashes []string) (commits []string, err error) {
	there := map[string]bool{}
	for ref, hash := range v.refs {
		if !strings.HasPrefix(ref, "refs/tags/") { // which may name a tag
			there[hash] = true
		}
	}
	var ask strings.Builder
	for _, hash := range hashes {
		if !there[hash] && hashFormat.MatchString(hash) {
			ask.WriteString(hash + "\n")
		}
	}
	if ask.Len() > 0 {
		out, err := v.git(ctx, strings.NewReader(ask.String()), nil, "cat-file", "--batch-check=%(objectname) %(objecttype)")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			hash, ok := strings.CutSuffix(line, " commit\n")
			there[hash] = ok
		}
	}
	return slices.DeleteFunc(slices.Clone(hashes), func(hash string) bool { return !there[hash] }), nil
}

// git runs git in the view, with further variables, and returns its output.
func (v *View) git(ctx context.Context, in io.Reader, env []string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := v.command(ctx, env, args...)
	cmd.Stdin, cmd.Stdout = in, &out
	err := run(ctx, cmd, &out)
	return out.String(), err
}

func (v *View) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append(bounds(), args...)...)
	cmd.Dir = v.dir
	cmd.Env = append(environ(), "GIT_DIR="+v.dir)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// bounds limit git's memory: objects may be made to unpack large.
func bounds() []string {
	return []string{"-c", "core.bigFileThreshold=16m", "-c", "pack.threads=1", "-c", "pack.windowMemory=128m", "-c", "core.deltaBaseCacheLimit=64m"}
}

// environ is git's whole environment: no configuration but the view's, no transports, no other objects.
func environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
	}
}

// run waits for git. Its error is git's last line.
func run(ctx context.Context, cmd *exec.Cmd, out *bytes.Buffer) error {
	var said bytes.Buffer
	cmd.Stderr = &said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("git is not installed")
	}
	text := strings.TrimSpace(said.String())
	if text == "" && out != nil {
		text = strings.TrimSpace(out.String())
	}
	text = cmp.Or(text, err.Error())
	return fmt.Errorf("git: %s", text[strings.LastIndexByte(text, '\n')+1:])
}

// layout is the content of a new git folder.
type layout struct {
	head    string // the content of HEAD
	refs    map[string]string
	links   map[string]string // symbolic refs
	objects []string          // alternates
	shallow string
	subdir  string // all that git's sparse checkout has, beside the files above it; empty for everything
	config  string // the rest of [core], and further sections
}

func (l layout) write(dir string) error {
	sha256 := ""
	for _, hash := range l.refs {
		if len(hash) == 64 {
			sha256 = "[extensions]\n\tobjectFormat = sha256\n"
		}
		break
	}
	version := "0"
	if sha256 != "" {
		version = "1"
	}
	sparse := ""
	if l.subdir != "" {
		sparse = "\tsparseCheckout = true\n\tsparseCheckoutCone = true\n"
	}
	var packed strings.Builder
	packed.WriteString("# pack-refs with: sorted \n")
	for _, name := range slices.Sorted(maps.Keys(l.refs)) {
		fmt.Fprintf(&packed, "%s %s\n", l.refs[name], name)
	}
	for _, path := range l.objects {
		if strings.ContainsAny(path, "\n") || strings.HasPrefix(path, `"`) || strings.HasPrefix(path, "#") {
			return fmt.Errorf("git cannot borrow objects from a folder of this name: %q", path)
		}
	}
	files := map[string]string{
		"HEAD":                    l.head + "\n",
		"config":                  sha256 + "[core]\n\trepositoryformatversion = " + version + "\n" + sparse + l.config,
		"packed-refs":             packed.String(),
		"objects/info/alternates": strings.Join(l.objects, "\n") + "\n",
	}
	for ref, to := range l.links {
		files[ref] = "ref: " + to + "\n"
	}
	if l.shallow != "" {
		files["shallow"] = l.shallow
	}
	if l.subdir != "" {
		files["info/sparse-checkout"] = conePatterns(l.subdir)
	}
	for _, folder := range []string{"refs/heads", "refs/tags", "objects/pack", "objects/info"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o777); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil { //nolint:gosec // as git does
			return err
		}
	}
	return nil
}
