package transcript

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
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

// Homes are the home folders of threads below one folder, which nobody but the bot
// writes into.
type Homes struct{ Dir string }

// Of is a thread's home folder: what one thread's commands leave in it is nobody else's.
func (h Homes) Of(threadID int64) string {
	return filepath.Join(h.Dir, strconv.FormatInt(threadID, 10))
}

// Renew makes the thread's home anew for a process that goes on with the session. Its
// error leaves the last home as it was.
func (h Homes) Renew(threadID int64, sessionID string) error {
	if err := os.MkdirAll(h.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of homes: %w", err)
	}
	if err := h.recover(threadID); err != nil {
		return err
	}
	root, err := os.OpenRoot(h.Dir)
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
func (h Homes) recover(threadID int64) error {
	name, _, last := homeNames(threadID)
	if _, err := os.Lstat(filepath.Join(h.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Rename(filepath.Join(h.Dir, last), filepath.Join(h.Dir, name))
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
	kept, err := kept(root, path.Join(name, keptProjects))
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
		if err := take(root, path.Join(name, keptProjects), path.Join(next, keptProjects)); err != nil {
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
