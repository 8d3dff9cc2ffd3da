package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// What git obeys, and where. A commit writes objects, refs, logs, HEAD, the index and temporary files beside them,
// but none of these. Each is a mount of its own: a mount cannot be written, removed, renamed or replaced in its
// namespace, and hard links do not cross mounts. A mount needs an existing target, so missing ones are created with
// neutral content: empty, and "." for commondir. They stay after the session, since another session in the same
// folder may use them.
var (
	// obeyedFolders: hooks run; info has attributes, excludes and grafts; modules and worktrees are git folders
	// with configurations; branches and remotes are remotes.
	obeyedFolders = []string{"hooks", "info", "modules", "worktrees", "branches", "remotes"}
	// obeyedFiles: the configuration names programs; commondir locates the configuration, gitdir the worktree.
	obeyedFiles = map[string]string{"config": "", "config.worktree": "", "commondir": ".\n"}
	// writtenFolders are where a commit writes. Each is a mount of its own, so that obeyed files in them cannot be
	// moved away with them.
	writtenFolders = []string{"objects", "refs", "logs"}
)

// repository adds the workspace's repository, if it has one: what git obeys is read-only.
func (v *view) repository(workspace string) error {
	dotGit := filepath.Join(workspace, ".git")
	info, err := os.Lstat(dotGit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		v.show(writable, dotGit)
		if err := v.gitFolder(dotGit); err != nil {
			return err
		}
		return v.configured(workspace, filepath.Join(dotGit, "config"), filepath.Join(dotGit, "config.worktree"))
	case info.Mode().IsRegular():
		return v.linkedRepository(workspace, dotGit)
	}
	return fmt.Errorf("%s is neither a folder nor a file: git would follow it out of the workspace; remove it", dotGit)
}

// gitFolder makes what git obeys in a writable git folder read-only.
func (v *view) gitFolder(dir string) error {
	for _, name := range obeyedFolders {
		if err := v.pinFolder(readOnly, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	for name, content := range obeyedFiles {
		if err := v.pinFile(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	if err := says(filepath.Join(dir, "commondir"), "."); err != nil {
		return err
	}
	return v.gitStore(dir)
}

// configured covers what the repository's configurations name in writable places: included files, and a folder of
// hooks.
func (v *view) configured(workspace string, configs ...string) error {
	for _, config := range configs {
		if !leads(config) {
			continue
		}
		files, err := included(config, 0)
		if err != nil {
			return err
		}
		for _, f := range files {
			if !v.writes(f) {
				continue
			}
			if err := v.pinFile(f, ""); err != nil {
				return err
			}
		}
		if err := v.hooks(workspace, config); err != nil {
			return err
		}
	}
	return nil
}

// leads reports whether a configuration may name other files or a folder of hooks. Most do not, and asking git
// takes longer than everything else here. Section and key names are plain letters in any case, without escapes or
// line breaks, so a file without these words names nothing.
func leads(config string) bool {
	const most = 1 << 20 // git reads a longer one
	f, err := os.Open(config)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil || len(text) == most {
		return true
	}
	text = bytes.ToLower(text)
	return bytes.Contains(text, []byte("include")) || bytes.Contains(text, []byte("hookspath"))
}

// hooks covers a configured folder of hooks.
func (v *view) hooks(workspace, config string) error {
	if !exists(config) {
		return nil
	}
	paths, err := gitConfig("--file", config, "--includes", "--type=path", "--get-all", "core.hooksPath")
	if err != nil {
		return err
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(workspace, path)
		}
		if path = filepath.Clean(path); !v.writes(path) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return unlessDenied(err)
		}
		if err := v.pinFolder(readOnly, path); err != nil {
			return err
		}
	}
	return nil
}

// included are the files that a configuration includes under any condition, existing or not.
func included(config string, depth int) ([]string, error) {
	if depth > 10 || !exists(config) {
		return nil, nil
	}
	paths, err := gitConfig("--file", config, "--no-includes", "--type=path", "--get-regexp", `^include(if\..*)?\.path$`)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, entry := range paths {
		_, path, _ := strings.Cut(entry, "\n")
		if path == "" {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(config), path)
		}
		more, err := included(path, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(append(out, filepath.Clean(path)), more...)
	}
	return out, nil
}

// gitConfig runs git config outside a repository, which runs no other program. No match is not an error.
func gitConfig(args ...string) ([]string, error) {
	cmd := exec.Command("git", append([]string{"config", "--null"}, args...)...) //nolint:noctx // it only reads a file
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the repository's configuration: %w", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

// writes reports whether a session could write the host's path at its own place.
func (v *view) writes(path string) bool {
	for p := path; ; p = filepath.Dir(p) {
		if m, ok := v.at[p]; ok {
			return m.kind == writable
		}
		if p == "/" {
			return false
		}
	}
}

// gitStore makes writable what a commit writes in the folder with the objects.
func (v *view) gitStore(dir string) error {
	for _, name := range writtenFolders {
		if err := v.pinFolder(writable, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	info := filepath.Join(dir, "objects", "info")
	if err := v.pinFolder(writable, info); err != nil {
		return err
	}
	alternates := filepath.Join(info, "alternates")
	if err := v.pinFile(alternates, ""); err != nil {
		return err
	}
	return v.seesAlternates(alternates)
}

// pinFolder mounts a folder, which it creates if missing. Anything else is refused: a link would lead out of the
// repository.
func (v *view) pinFolder(kind mountKind, path string) error {
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return unlessDenied(err)
	}
	if err := isFolder(path); err != nil {
		return err
	}
	v.show(kind, path)
	return nil
}

// pinFile mounts a file read-only, and creates it if missing.
func (v *view) pinFile(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return unlessDenied(err)
	}
	if err := single(path); err != nil {
		return err
	}
	if err := fill(path, content); err != nil {
		return err
	}
	v.show(readOnly, path)
	return nil
}

// fill writes an empty file. Whoever created it may not have come to that yet, or died before; two that do it at once
// write the same.
func fill(path, content string) error {
	info, err := os.Lstat(path)
	if err != nil || content == "" || info.Size() > 0 {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return unlessDenied(err)
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// unlessDenied ignores a lack of permission: the same user may not create it in the sandbox either.
func unlessDenied(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	return err
}

// seesAlternates checks that borrowed objects are visible. It adds nothing itself: a session may have written the
// file.
func (v *view) seesAlternates(file string) error {
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(content)) {
		path := strings.TrimSuffix(line, "\n")
		if path == "" || strings.HasPrefix(path, "#") {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(file), "..", path)
		}
		if !v.shows(path) {
			return fmt.Errorf("%s borrows objects of %s, which the sandbox does not show; name that folder under sandbox.see if that is right, or remove the line", file, path)
		}
	}
	return nil
}

// linkedRepository handles a workspace whose .git is a file: a linked worktree, or a submodule. The git folder that
// it names is trusted only if it points back, since a session could have written the file.
func (v *view) linkedRepository(workspace, dotGit string) error {
	if err := single(dotGit); err != nil {
		return err
	}
	v.show(readOnly, dotGit)
	dir, err := pointer(dotGit, "gitdir: ")
	if err != nil {
		return err
	}
	if err := isFolder(dir); err != nil {
		return fmt.Errorf("%s: %w", dotGit, err)
	}
	common := filepath.Dir(filepath.Dir(dir))
	config := filepath.Join(dir, "config")
	switch {
	case filepath.Base(filepath.Dir(dir)) == "worktrees" && exists(filepath.Join(dir, "commondir")):
		config = filepath.Join(common, "config")
		err = v.linkedWorktree(dotGit, dir, common)
	case within(workspace, dir):
		v.show(writable, dir)
		err = v.gitFolder(dir)
	default:
		err = v.submodule(workspace, dotGit, dir)
	}
	if err != nil {
		return err
	}
	return v.configured(workspace, config, filepath.Join(dir, "config.worktree"))
}

func (v *view) linkedWorktree(dotGit, dir, common string) error {
	back, err := pointer(filepath.Join(dir, "gitdir"), "")
	if err != nil || !same(back, dotGit) {
		return fmt.Errorf("%s says that its repository is %s, which does not know this folder; git worktree repair makes them agree", dotGit, dir)
	}
	if found, err := pointer(filepath.Join(dir, "commondir"), ""); err != nil || !same(found, common) {
		return fmt.Errorf("%s does not lead to %s; git worktree repair makes them agree", filepath.Join(dir, "commondir"), common)
	}
	v.show(writable, common)
	if err := v.gitFolder(common); err != nil {
		return err
	}
	// Other worktrees' checkouts are not this session's.
	for _, name := range []string{"HEAD", "index"} {
		if path := filepath.Join(common, name); exists(path) {
			if err := v.pinFile(path, ""); err != nil {
				return err
			}
		}
	}
	v.show(writable, dir)
	for _, name := range []string{"gitdir", "commondir", "config.worktree"} {
		if err := v.pinFile(filepath.Join(dir, name), ""); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) submodule(workspace, dotGit, dir string) error {
	tree, err := worktreeOf(filepath.Join(dir, "config"))
	if err != nil {
		return err
	}
	if !filepath.IsAbs(tree) {
		tree = filepath.Join(dir, tree)
	}
	if !same(tree, workspace) {
		return fmt.Errorf("%s says that its repository is %s, which does not know this folder (its core.worktree is %q)", dotGit, dir, tree)
	}
	v.show(writable, dir)
	return v.gitFolder(dir)
}

// worktreeOf is core.worktree in a configuration as git writes it.
func worktreeOf(config string) (string, error) {
	f, err := os.Open(config)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), "=")
		if ok && strings.EqualFold(strings.TrimSpace(name), "worktree") {
			return strings.Trim(strings.TrimSpace(value), `"`), nil
		}
	}
	return "", nil
}

// pointer is the path in the only line of one of git's files, after a keyword.
func pointer(file, word string) (string, error) {
	if err := single(file); err != nil {
		return "", err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(strings.TrimSuffix(string(content), "\n"), word)
	if !ok || path == "" || strings.ContainsAny(path, "\n\x00") {
		return "", fmt.Errorf("%s does not say where the repository is", file)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return filepath.Clean(path), nil
}

// isFolder refuses anything but a folder, also a link to one.
func isFolder(path string) error {
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder of its own; the sandbox does not follow links that git obeys: remove it", path)
	}
	return err
}

// single refuses a link, and a file with a second name through which it could be written.
func single(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || (ok && stat.Nlink > 1) {
		return fmt.Errorf("%s is a link, or has another name by a hard link; the sandbox does not follow links that git obeys: put a copy in its place", path)
	}
	return nil
}

// says refuses an existing file with other content.
func says(path, content string) error {
	found, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && strings.TrimSpace(string(found)) != content {
		return fmt.Errorf("%s leads git away from this repository (to %q); remove it if nobody of yours has put it there", path, strings.TrimSpace(string(found)))
	}
	return nil
}

// same reports whether two paths name the same file.
func same(a, b string) bool {
	ai, errA := os.Stat(a)
	bi, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(ai, bi)
}

// within reports whether a path is a folder or inside it.
func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
