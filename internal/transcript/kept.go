package transcript

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"deckhand/internal/agent/claude"
)

// keptProjects is the folder of the transcripts in a home.
const keptProjects = ".claude/projects"

// Names of what is kept, below .claude/projects. The folder between is the working directory, spelt by the CLI.
var (
	slugName       = regexp.MustCompile(`^[A-Za-z0-9-]{1,255}$`)
	sessionName    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	transcriptName = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl$`)
	agentName      = regexp.MustCompile(`^agent-[A-Za-z0-9_-]{1,100}\.jsonl$`)
)

// openHome opens a home, which must be a folder and not a link; nil if there is none.
func openHome(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seen, err := os.Lstat(dir)
	if err == nil {
		var is fs.FileInfo
		if is, err = root.Stat("."); err == nil && !os.SameFile(seen, is) {
			err = fmt.Errorf("%s is not the folder that it was", dir)
		}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// sessionFiles are the transcripts of a session in a home: its own first (the last written if there are several),
// then its subagents'.
func sessionFiles(root *os.Root, sessionID string) ([]keptFile, error) {
	l := lister{root: root, left: maxKeptFiles}
	own, agents := map[string]keptFile{}, map[string]keptFile{}
	newest := func(in map[string]keptFile, name string, f keptFile) {
		if was, ok := in[name]; !ok || was.info.ModTime().Before(f.info.ModTime()) {
			in[name] = f
		}
	}
	for _, slug := range l.folder(keptProjects) {
		if !slug.IsDir() || !slugName.MatchString(slug.Name()) {
			continue
		}
		at := path.Join(slug.Name(), sessionID)
		if info, err := root.Lstat(path.Join(keptProjects, at+".jsonl")); err == nil && keepable(info) {
			newest(own, "", keptFile{path: at + ".jsonl", session: sessionID, info: info})
		}
		for _, a := range l.folder(path.Join(keptProjects, at, "subagents")) {
			if keepable(a) && agentName.MatchString(a.Name()) && len(agents) < maxSubagents {
				f := keptFile{path: path.Join(at, "subagents", a.Name()), session: sessionID, agent: true, info: a}
				newest(agents, f.agentID(), f)
			}
		}
	}
	out := slices.Collect(maps.Values(own))
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		out = append(out, agents[name])
	}
	return out, l.err
}

// keptFile is a transcript of a home.
type keptFile struct {
	path    string // below projects
	session string
	agent   bool // a subagent's
	info    fs.FileInfo
}

// agentID is the name of a subagent's file without its extension; empty for a session's own.
func (f keptFile) agentID() string {
	if !f.agent {
		return ""
	}
	return strings.TrimSuffix(path.Base(f.path), ".jsonl")
}

// kept lists the transcripts below a folder of projects: SLUG/SESSION.jsonl, and
// SLUG/SESSION/subagents/agent-ID.jsonl.
func kept(root *os.Root, projects string) ([]keptFile, error) {
	l := lister{root: root, left: maxSeenNames}
	var out []keptFile
	for _, slug := range l.folder(projects) {
		if !slug.IsDir() || !slugName.MatchString(slug.Name()) {
			continue
		}
		for _, e := range l.folder(path.Join(projects, slug.Name())) {
			at := path.Join(slug.Name(), e.Name())
			switch {
			case keepable(e) && transcriptName.MatchString(e.Name()):
				out = append(out, keptFile{path: at, session: e.Name()[:36], info: e})
			case e.IsDir() && sessionName.MatchString(e.Name()):
				for _, a := range l.folder(path.Join(projects, at, "subagents")) {
					if keepable(a) && agentName.MatchString(a.Name()) {
						out = append(out, keptFile{path: path.Join(at, "subagents", a.Name()), session: e.Name(), agent: true, info: a})
					}
				}
			}
		}
	}
	return out, l.err
}

// lister lists folders up to a limit.
type lister struct {
	root *os.Root
	left int
	err  error
}

// folder lists a folder's entries in no order, links as links. A missing one, one that is not a folder, or one
// reached through a link, is empty.
func (l *lister) folder(name string) []fs.FileInfo {
	if l.err != nil || l.left <= 0 {
		return nil
	}
	var above []string
	for at := name; at != "."; at = path.Dir(at) {
		above = append(above, at)
	}
	for _, at := range slices.Backward(above) {
		if info, err := l.root.Lstat(at); err != nil || !info.IsDir() {
			return nil
		}
		_ = l.root.Chmod(at, 0o700) // opening it fails if this did not help
	}
	dir, err := l.root.Open(name)
	if err != nil {
		l.err = err
		return nil
	}
	defer dir.Close() //nolint:errcheck // it is only read
	out, err := dir.Readdir(l.left)
	if !errors.Is(err, io.EOF) {
		l.err = err
	}
	l.left -= len(out)
	return out
}

// keepable reports whether a file is a plain file: no link, pipe or device, and without a second name.
func keepable(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().IsRegular() && ok && st.Nlink == 1
}

// open opens the file; nil if it has changed since it was listed.
func (f keptFile) open(root *os.Root, projects string) (*os.File, error) {
	// The name may now be a pipe, which must not block.
	src, err := root.OpenFile(path.Join(projects, f.path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info, err := src.Stat(); err != nil || !os.SameFile(info, f.info) || !keepable(info) {
		return nil, errors.Join(err, src.Close())
	}
	return src, nil
}

// copy copies what the next process may continue from: the transcript of its session.
func (f keptFile) copy(root *os.Root, from, to string) (err error) {
	_ = root.Chmod(path.Join(from, f.path), 0o600) // opening it fails if this did not help
	src, err := f.open(root, from)
	if err != nil || src == nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it is only read
	target := path.Join(to, f.path)
	if err := root.MkdirAll(path.Dir(target), 0o700); err != nil {
		return err
	}
	dst, err := root.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	// The old one is removed soon: a power cut must leave one of them.
	return errors.Join(claude.CopyTranscript(dst, io.LimitReader(src, maxKeptBytes)), dst.Sync(), dst.Close())
}

// move links the file into another folder of projects; its old name goes with the old home. Its content is neither
// copied nor written. A file that was replaced since it was listed is dropped.
func (f keptFile) move(root *os.Root, from, to string) error {
	target := path.Join(to, f.path)
	if err := root.MkdirAll(path.Dir(target), 0o700); err != nil {
		return err
	}
	if err := root.Link(path.Join(from, f.path), target); err != nil {
		return err
	}
	info, err := root.Lstat(target)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !os.SameFile(info, f.info) || !info.Mode().IsRegular() || st.Nlink != 2 {
		return root.Remove(target)
	}
	return root.Chmod(target, 0o600)
}
