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

// A thread's home folder is renewed for each of its processes: whatever a command could write there that a program
// obeys (start-up files of shells, settings of git and of Go, hooks and the environment of the CLI;
// docs/protocol.md lists what is opened) ends with the process. Only a session's transcripts are kept, and of the
// continued one only the lines that report what was said (see [claude.CopyTranscript]). They are only the agent
// side's account: a command can write anything into them, and the next process believes that it said that.
//
// The new home is built beside the old one, in which everything stays until the new one
// has taken its place:
//
//	home/N       the home of thread N
//	home/.new-N  its next one, while it is being built
//	home/.old-N  its last one, until it is removed
//
// Between the two renames there is no home/N; the next caller then restores home/.old-N. So a home with every
// transcript exists at any time, and the thread's lease ensures that only one bot works on it.

// Bounds of what a home keeps. The current session's transcript is dropped last.
const (
	maxKeptBytes = 1 << 30
	maxKeptFiles = 2_000
	// maxSeenNames bounds the names scanned to find them.
	maxSeenNames = 100_000
)

// Homes are the home folders of threads below one folder, which only the bot writes to.
type Homes struct{ Dir string }

// Of is a thread's home folder, which only that thread's commands can write to.
func (h Homes) Of(threadID int64) string {
	return filepath.Join(h.Dir, strconv.FormatInt(threadID, 10))
}

// Renew renews the thread's home for a process that continues the session. On an error the old home is unchanged.
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
	// The continued session comes first, then the newest.
	slices.SortStableFunc(kept, func(a, b keptFile) int {
		return cmp.Or(compareTrue(a.session == sessionID, b.session == sessionID), compareTrue(!a.agent, !b.agent), b.info.ModTime().Compare(a.info.ModTime()))
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

// compareTrue sorts true before false.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
