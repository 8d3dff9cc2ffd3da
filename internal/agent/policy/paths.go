package policy

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/text/unicode/norm"
)

// root is a workspace's path, as written and with symbolic links resolved. resolved is empty if that fails; then
// nothing is inside.
type root struct {
	written, resolved string
}

func newRoot(workspace string) root {
	rt := root{written: filepath.Clean(workspace)}
	if !filepath.IsAbs(workspace) {
		return rt
	}
	if r, err := filepath.EvalSymlinks(rt.written); err == nil {
		rt.resolved = r
	}
	return rt
}

// target is a file or folder that a call works on.
type target struct {
	written  string // as in the call
	abs      string // absolute, without . and .., links not resolved
	resolved string // absolute, links resolved; empty when they cannot be
	rel      string // resolved, relative to the workspace; only when inside
	inside   bool
	linked   bool // a symbolic link was followed
	exists   bool
	dir      bool   // it is a folder, or a link to something
	twin     bool   // a file with another name: a hard link
	program  bool   // an executable file
	why      string // why it is not inside, if that is not obvious

	// The lower-case names for denying rules: relative to the workspace, and absolute.
	rels, fulls []string

	folder  bool   // everything below it is meant
	filter  string // Grep and Glob: the names that are meant, or empty
	listed  bool   // only names are shown, or what the program itself searches for
	source  bool   // only files of a kind without secrets are meant
	past    bool   // all that ever lay below it is meant
	tracked bool   // all tracked files below it are meant
	shown   string // the secret-looking content of it that git would show
	doubt   string // why no rule for files covers it
}

// elsewhere is why no rule for files covers it: what is meant may also lie elsewhere.
func (t *target) elsewhere(write bool) string {
	if write && t.twin {
		return t.written + " has another name, too (a hard link), and is written under both"
	}
	if t.doubt != "" {
		return t.written + " " + t.doubt
	}
	return ""
}

func (t *target) whyOutside() string {
	if t.why != "" {
		return t.why
	}
	if t.linked {
		return "which leads out of the workspace by a symbolic link"
	}
	return "outside the workspace"
}

// lexical resolves a path as the CLI's file tools do: first .., then links.
func (rt root) lexical(dir, path string) target {
	t := target{written: path}
	abs := path
	if !filepath.IsAbs(path) {
		abs = filepath.Join(dir, path)
	}
	t.abs = filepath.Clean(abs)
	rt.finish(&t, t.abs)
	t.names(rt)
	return t
}

// names fills in rels and fulls.
func (t *target) names(rt root) {
	add := func(list *[]string, name string) {
		if low := strings.ToLower(name); low != "" && !slices.Contains(*list, low) {
			*list = append(*list, low)
		}
	}
	add(&t.fulls, t.abs)
	add(&t.fulls, t.resolved)
	add(&t.rels, t.rel)
	for _, top := range []string{rt.written, rt.resolved} {
		if rel, ok := below(top, t.abs); ok && top != "" {
			add(&t.rels, rel)
		}
	}
}

// physical resolves a path as the kernel does, component by component. dir is absolute and resolved.
func (rt root) physical(dir, path string) target {
	t := rt.lexical(dir, path)
	if !slices.Contains(strings.Split(path, "/"), "..") {
		return t
	}
	full := path
	if !filepath.IsAbs(path) {
		full = dir + "/" + path
	}
	var kernel target
	if !kernel.follow("/", full) || kernel.resolved != t.resolved {
		t.inside, t.resolved, t.why = false, "", "which means one folder by its name and another by its links"
	}
	return t
}

// finish resolves the links of t.abs, and sets its relation to the workspace.
func (rt root) finish(t *target, abs string) {
	if rt.resolved == "" {
		t.why = "which has no workspace to lie in"
		return
	}
	from, rest := "/", abs
	for _, top := range []string{rt.written, rt.resolved} {
		if rel, in := below(top, abs); in {
			from, rest = rt.resolved, rel
		}
	}
	if !t.follow(from, rest) {
		t.resolved, t.why = "", "whose symbolic links cannot be followed"
		return
	}
	t.rel, t.inside = below(rt.resolved, t.resolved)
	if t.inside {
		t.rel = cmp.Or(t.rel, ".")
	}
}

// maxPath is the longest path that a program can open, in bytes.
const maxPath = 4096

// follow resolves the links of a path from a resolved folder into t.resolved. A missing part is taken as written.
// ok is false for a dangling link or an unreadable folder, because these may lead anywhere, and for what is too long.
func (t *target) follow(from, path string) (ok bool) {
	if len(path) > maxPath {
		return false
	}
	cur := from
	t.exists, t.dir = true, true
	for name := range strings.SplitSeq(path, "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			cur = filepath.Dir(cur)
			continue
		}
		next := cur + "/" + name
		if cur == "/" {
			next = "/" + name
		}
		if !t.exists {
			cur = next
			continue
		}
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			t.exists, t.dir, t.twin, t.program = false, false, false, false
			cur = next
		case err != nil:
			return false
		case info.Mode()&fs.ModeSymlink != 0:
			t.linked = true
			if cur, err = filepath.EvalSymlinks(next); err != nil {
				return false
			}
			if info, err = os.Lstat(cur); err != nil {
				return false
			}
			t.is(info)
			t.dir = true
		default:
			t.is(info)
			cur = next
		}
	}
	t.resolved = cur
	return true
}

// is records what a path leads to.
func (t *target) is(info fs.FileInfo) {
	file := info.Mode().IsRegular()
	stat, ok := info.Sys().(*syscall.Stat_t)
	t.dir, t.twin, t.program = info.IsDir(), file && ok && stat.Nlink > 1, file && info.Mode()&0o111 != 0
}

// below returns the part of a clean path p below a clean folder.
func below(folder, p string) (rest string, ok bool) {
	if p == folder {
		return "", true
	}
	if folder == "/" {
		return strings.TrimPrefix(p, "/"), strings.HasPrefix(p, "/")
	}
	if len(p) > len(folder) && p[len(folder)] == '/' && p[:len(folder)] == folder {
		return p[len(folder)+1:], true
	}
	return "", false
}

// oddPath says why the CLI and this package may disagree about a path, or people may misread it.
func oddPath(p string) string {
	switch {
	case strings.HasPrefix(p, "~"):
		return "~ is a home folder that only the CLI knows"
	case strings.TrimSpace(p) != p:
		return "the path begins or ends with white space, which the CLI removes"
	case strings.ContainsAny(p, "\n\t"):
		return "the path holds a line break or a tab"
	case !norm.NFC.IsNormalString(p):
		return "the path is spelled with characters that the CLI rewrites"
	}
	if why := unreadable(p); why != "" {
		return "the path cannot be read by people: " + why
	}
	return ""
}
