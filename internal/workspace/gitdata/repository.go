package gitdata

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// Bounds of what is read from a repository.
const (
	maxSmallFile  = 64 << 10  // HEAD, a ref, a pointer to a folder
	maxPackedRefs = 256 << 20 // bytes
	maxRefs       = 1_000_000
	maxAlternates = 20
)

// Repository is a git repository on this machine. Its configuration is not read.
type Repository struct {
	// Dir is the git folder of the working tree (.git, or a linked working tree's), and Common the one with the
	// objects and branches; usually they are the same.
	Dir, Common string
}

// Open finds the repository that contains a folder. Its error is a sentence.
func Open(dir string) (Repository, error) {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		r, ok, err := openAt(at)
		if ok || err != nil {
			return r, err
		}
		if at == filepath.Dir(at) {
			return Repository{}, fmt.Errorf("%s is in no git repository", dir)
		}
	}
}

func openAt(dir string) (r Repository, ok bool, err error) {
	gitDir := filepath.Join(dir, ".git")
	info, err := os.Stat(gitDir)
	switch {
	case err != nil:
		gitDir = dir // perhaps a bare repository
	case info.Mode().IsRegular():
		text, err := readSmall(gitDir)
		if err != nil {
			return r, false, err
		}
		to, ok := strings.CutPrefix(text, "gitdir: ")
		if !ok {
			return r, false, fmt.Errorf("%s names no git folder", gitDir)
		}
		gitDir = within(dir, to)
	}
	if !isRepository(gitDir) {
		return r, false, nil
	}
	r = Repository{Dir: gitDir, Common: gitDir}
	if to, err := readSmall(filepath.Join(gitDir, "commondir")); err == nil {
		r.Common = within(gitDir, to)
	}
	if _, err := os.Lstat(filepath.Join(r.Common, "reftable")); err == nil {
		return r, false, fmt.Errorf("%s keeps its refs in the reftable format, which Deckhand does not read; git refs migrate --ref-format=files makes them files", r.Common)
	}
	return r, true, nil
}

// isRepository recognises a git folder by HEAD and by objects or a commondir.
func isRepository(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "objects"))
	_, linked := os.Stat(filepath.Join(dir, "commondir"))
	return err == nil || linked == nil
}

// within resolves a path in a file of a folder.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// Objects are the folders of the repository's objects: its own first, then alternates.
func (r Repository) Objects() ([]string, error) {
	out := []string{filepath.Join(r.Common, "objects")}
	for i := 0; i < len(out); i++ {
		text, err := readSmall(filepath.Join(out[i], "info/alternates"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if strings.HasPrefix(line, `"`) {
				return nil, fmt.Errorf("%s: a quoted path", filepath.Join(out[i], "info/alternates"))
			}
			if to := within(out[i], line); !slices.Contains(out, to) {
				out = append(out, to)
			}
			if len(out) > maxAlternates {
				return nil, fmt.Errorf("%s borrows objects from more than %d repositories", r.Common, maxAlternates)
			}
		}
	}
	return out, nil
}

var (
	hashFormat = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	// refFormat is stricter than git's: it admits only what is known to be harmless.
	refFormat = regexp.MustCompile(`^refs(/[\pL\pN_@#%+,=!()&{}-][\pL\pN_.@#%+,=!()&{}-]*)+$`)
)

func isRef(name string) bool {
	return len(name) <= 1000 && refFormat.MatchString(name) && !strings.Contains(name, "..") && !strings.Contains(name, "@{") &&
		!strings.HasSuffix(name, ".lock") && !strings.Contains(name, ".lock/") && !strings.HasSuffix(name, ".") && !strings.Contains(name, "./")
}

// Head is the current branch, or none, and its commit, empty if there is none.
func (r Repository) Head() (ref, commit string, err error) {
	text, err := readSmall(filepath.Join(r.Dir, "HEAD"))
	if err != nil {
		return "", "", err
	}
	if hashFormat.MatchString(text) {
		return "", text, nil
	}
	ref, ok := strings.CutPrefix(text, "ref: ")
	ref = strings.TrimSpace(ref)
	if !ok || !isRef(ref) {
		return "", "", fmt.Errorf("HEAD of %s names no ref", r.Dir)
	}
	commit, err = r.Ref(ref)
	return ref, commit, err
}

// headFile is what [Repository.Head] says, in the format of the file.
func (r Repository) headFile() (string, error) {
	ref, commit, err := r.Head()
	if ref != "" {
		return "ref: " + ref, err
	}
	return commit, err
}

// Ref is the object of a ref, empty if there is none. Symbolic refs are not followed.
func (r Repository) Ref(name string) (string, error) {
	if !isRef(name) {
		return "", fmt.Errorf("%q is no ref", name)
	}
	text, err := readSmall(filepath.Join(r.Common, filepath.FromSlash(name)))
	switch {
	case err == nil && hashFormat.MatchString(text):
		return text, nil
	case err == nil:
		return "", fmt.Errorf("%s of %s names no object", name, r.Common)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.EISDIR):
		return "", err
	}
	found := ""
	err = r.packed(func(packed, hash string) bool {
		if packed == name {
			found = hash
		}
		return found == ""
	})
	return found, err
}

// Refs are all refs with their objects, except unusual names.
func (r Repository) Refs() (map[string]string, error) {
	out := map[string]string{}
	if err := r.packed(func(name, hash string) bool {
		out[name] = hash
		return len(out) <= maxRefs
	}); err != nil {
		return nil, err
	}
	top := filepath.Join(r.Common, "refs")
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(r.Common, path)
		if err != nil {
			return err
		}
		if name := filepath.ToSlash(rel); isRef(name) {
			if text, err := readSmall(path); err == nil && hashFormat.MatchString(text) {
				out[name] = text
			}
		}
		if len(out) > maxRefs {
			return fmt.Errorf("%s has more than %d refs", r.Common, maxRefs)
		}
		return nil
	})
	return out, err
}

// packed calls f for the refs of packed-refs until it returns false.
func (r Repository) packed(f func(name, hash string) bool) error {
	return r.readPacked(func(name string, line packedLine) bool {
		return !isRef(name) || !hashFormat.MatchString(line.hash) || f(name, line.hash)
	})
}

// checkedOut reports whether one of the repository's working trees is on the branch.
func (r Repository) checkedOut(ref string) bool {
	heads := []string{filepath.Join(r.Common, "HEAD")}
	linked, _ := filepath.Glob(filepath.Join(EscapeGlob(r.Common), "worktrees/*/HEAD")) // the pattern is valid
	return slices.ContainsFunc(append(heads, linked...), func(head string) bool {
		text, err := readSmall(head)
		return err == nil && text == "ref: "+ref
	})
}

var globSpecial = regexp.MustCompile(`[\\*?\[]`)

// EscapeGlob escapes a path for filepath.Glob.
func EscapeGlob(path string) string { return globSpecial.ReplaceAllString(path, `\$0`) }

// errNoFile is something other than a plain file.
var errNoFile = errors.New("no plain file")

// openPlain opens a plain file of bounded size: a pipe must not block the reader, nor a device be endless.
func openPlain(path string, limit int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		err = isPlain(f, limit)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// isPlain says why an opened file is no plain one of bounded size, and closes it then.
func isPlain(f *os.File, limit int64) error {
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "read", Path: f.Name(), Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s: %w", f.Name(), errNoFile)
	case info.Size() > limit:
		err = fmt.Errorf("%s is larger than %d bytes", f.Name(), limit)
	}
	if err != nil {
		_ = f.Close()
	}
	return err
}

// readSmall reads a small file, trimmed.
func readSmall(path string) (string, error) {
	f, err := openPlain(path, maxSmallFile)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it is only read
	b, err := io.ReadAll(io.LimitReader(f, maxSmallFile))
	return string(bytes.TrimSpace(b)), err
}
