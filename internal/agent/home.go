package agent

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"deckhand/internal/agent/claude"
)

// A thread's home folder is made anew for each of its processes: whatever a command
// could write there that a program obeys (start-up files of shells, settings of git and
// of Go, hooks and the environment of the CLI; docs/protocol.md lists what is opened)
// ends with the process. What is kept is the short list of what a session cannot do
// without: its transcripts, and of the one that goes on the lines that say what was said
// (see [claude.CopyTranscript]). They are what the agent's side says of itself, no more: a
// command can write into them what it likes, and the next process believes it said that.
//
// The new home is built beside the old one, in which everything stays until the new one
// has taken its place:
//
//	home/N       the home of thread N
//	home/.new-N  its next one, while it is being built
//	home/.old-N  its last one, until it is removed
//
// Between the two renames there is no home/N; whoever looks for it then takes
// home/.old-N back. So there is a home with every transcript at each moment, and a
// thread's lease sees to it that one bot works on it.

// Bounds of what a home keeps. What is beyond them is left behind, the current session's
// transcript last.
const (
	maxKeptBytes = 1 << 30
	maxKeptFiles = 2_000
	// maxSeenNames bounds the names that are looked at to find them.
	maxSeenNames = 100_000
)

// Names of what is kept, below .claude/projects. The folder between is the working
// directory, spelt by the CLI.
var (
	slugName       = regexp.MustCompile(`^[A-Za-z0-9-]{1,255}$`)
	sessionName    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	transcriptName = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl$`)
	agentName      = regexp.MustCompile(`^agent-[A-Za-z0-9_-]{1,100}\.jsonl$`)
)

// homes are the home folders of threads below one folder, which nobody but the bot
// writes into.
type homes struct{ dir string }

// of is a thread's home folder: what one thread's commands leave in it is nobody else's.
func (h homes) of(threadID int64) string {
	return filepath.Join(h.dir, strconv.FormatInt(threadID, 10))
}

// renew makes the thread's home anew for a process that goes on with the session. Its
// error leaves the last home as it was.
func (h homes) renew(threadID int64, sessionID string) error {
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of homes: %w", err)
	}
	if err := h.recover(threadID); err != nil {
		return err
	}
	root, err := os.OpenRoot(h.dir)
	if err != nil {
		return fmt.Errorf("open the folder of homes: %w", err)
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	name, next, last := homeNames(threadID)
	if err := discard(root, next, last); err != nil {
		return fmt.Errorf("clear the home folder: %w", err)
	}
	if err := build(root, name, next, sessionID); err != nil {
		return fmt.Errorf("make the home folder: %w", err)
	}
	if _, err := root.Lstat(name); err == nil {
		if err := root.Rename(name, last); err != nil {
			return fmt.Errorf("put the last home folder aside: %w", err)
		}
	}
	if err := root.Rename(next, name); err != nil {
		return fmt.Errorf("put the home folder in its place: %w", err)
	}
	if err := discard(root, last); err != nil {
		return fmt.Errorf("remove the last home folder: %w", err)
	}
	return nil
}

// recover takes back the last home of a bot that died between two renames.
func (h homes) recover(threadID int64) error {
	name, _, last := homeNames(threadID)
	if _, err := os.Lstat(filepath.Join(h.dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Rename(filepath.Join(h.dir, last), filepath.Join(h.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("take the last home folder back: %w", err)
	}
	return nil
}

func homeNames(threadID int64) (name, next, last string) {
	name = strconv.FormatInt(threadID, 10)
	return name, ".new-" + name, ".old-" + name
}

// build makes the folder next, with what is kept of the home name.
func build(root *os.Root, name, next, sessionID string) error {
	if err := root.MkdirAll(path.Join(next, ".claude"), 0o700); err != nil {
		return err
	}
	kept, err := kept(root, path.Join(name, ".claude/projects"))
	if err != nil {
		return err
	}
	// The session that goes on comes first, then the newest.
	slices.SortStableFunc(kept, func(a, b keptFile) int {
		if c := compareTrue(a.session == sessionID, b.session == sessionID); c != 0 {
			return c
		}
		return cmp.Or(compareTrue(!a.agent, !b.agent), b.info.ModTime().Compare(a.info.ModTime()))
	})
	var size int64
	for i, f := range kept {
		if i == maxKeptFiles {
			break
		}
		if size+f.info.Size() > maxKeptBytes {
			continue
		}
		size += f.info.Size()
		take := f.move
		if f.session == sessionID && !f.agent {
			take = f.copy
		}
		if err := take(root, path.Join(name, ".claude/projects"), path.Join(next, ".claude/projects")); err != nil {
			return err
		}
	}
	return nil
}

// compareTrue sorts what is true before what is not.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// keptFile is a transcript of a home.
type keptFile struct {
	path    string // below projects
	session string
	agent   bool // a subagent's
	info    fs.FileInfo
}

// agentID is the name of a subagent's file without its ending, and empty of a session's
// own.
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

// lister lists folders until it has seen enough.
type lister struct {
	root *os.Root
	left int
	err  error
}

// folder lists what lies in a folder, in no order, links as links. A folder that is not
// there, or is none, or that is reached through a link, is empty.
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
		_ = l.root.Chmod(at, 0o700) // opening it tells whether that helped
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

// keepable reports whether a file is one of its own: no link, no pipe, no device, and no
// second name of a file that somebody else knows.
func keepable(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return info.Mode().IsRegular() && ok && st.Nlink == 1
}

// open opens the file, unless it is not what it was when it was listed: then it is nil.
func (f keptFile) open(root *os.Root, projects string) (*os.File, error) {
	// The name may have become a pipe meanwhile, which must not hold the thread.
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

// copy copies what the next process may go on with of its session's transcript: it is the
// one that is read again.
func (f keptFile) copy(root *os.Root, from, to string) (err error) {
	_ = root.Chmod(path.Join(from, f.path), 0o600) // opening it tells whether that helped
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
	// The old one is removed in a moment: a power cut must not leave neither.
	return errors.Join(claude.CopyTranscript(dst, io.LimitReader(src, maxKeptBytes)), dst.Sync(), dst.Close())
}

// move gives the file a second name in another folder of projects; its first one goes with
// the old home. Its content is neither copied nor written: it is as safe as it was. A file
// that has been exchanged since it was looked at is left behind.
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

// discard removes folders of root with all that is in them, whatever its modes and
// however deep: a folder within is moved up and emptied in its turn, so that no path
// gets longer and no more than one folder is open. Links are removed, not followed.
func discard(root *os.Root, names ...string) error {
	var errs []error
	for _, name := range names {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		case !info.IsDir():
			errs = append(errs, root.Remove(name))
		default:
			errs = append(errs, discardFolder(root, name))
		}
	}
	return errors.Join(errs...)
}

func discardFolder(root *os.Root, name string) error {
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	top, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer top.Close() //nolint:errcheck // it only names a folder
	// What lies there may have any name.
	fresh := names{prefix: ".discarded-" + rand.Text() + "-"}
	// A stack of folders that lie in top; what lies in top itself comes last.
	for pending := []string{"."}; len(pending) > 0; {
		at := pending[len(pending)-1]
		within, err := empty(top, at, &fresh)
		if err != nil {
			return err
		}
		switch {
		case len(within) > 0:
			pending = append(pending, within...)
		case at != ".":
			if err := top.Remove(at); err != nil {
				return err
			}
			fallthrough
		default:
			pending = pending[:len(pending)-1]
		}
	}
	return root.Remove(name)
}

// empty removes a bounded number of what lies in a folder of top, and returns the folders
// among it, where they lie in top from now on. It returns none when nothing is left.
func empty(top *os.Root, name string, fresh *names) (within []string, err error) {
	for {
		entries, err := someOf(top, name)
		if err != nil || len(entries) == 0 {
			return within, err
		}
		for _, e := range entries {
			at := path.Join(name, e.Name())
			if !e.IsDir() {
				if err := top.Remove(at); err != nil {
					return nil, err
				}
				continue
			}
			if err := top.Chmod(at, 0o700); err != nil { // else it cannot be moved
				return nil, err
			}
			to := fresh.next()
			if err := top.Rename(at, to); err != nil {
				return nil, err
			}
			within = append(within, to)
		}
		if len(within) > 0 {
			return within, nil
		}
	}
}

func someOf(root *os.Root, name string) ([]fs.DirEntry, error) {
	dir, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // it is only read
	entries, err := dir.ReadDir(1000)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// names are names that nothing has yet.
type names struct {
	prefix string
	n      int
}

func (n *names) next() string {
	n.n++
	return n.prefix + strconv.Itoa(n.n)
}
