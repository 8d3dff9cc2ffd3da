package transcript

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"deckhand/internal/store/transcripts"
)

// A process that resumes a session reads it from the thread's home, on the machine of its last process. Before it
// starts, the home's file is compared with the copy in the database: if it begins with its copy it is newer, or the
// same; otherwise, or if it is missing, it is replaced by the copy, which only the holder of the lease writes.

// HomeError is a failure to write a home.
type HomeError struct{ err error }

func (e *HomeError) Error() string { return e.err.Error() }
func (e *HomeError) Unwrap() error { return e.err }

// ReadCopy writes a copy to out.
type ReadCopy func(ctx context.Context, t transcripts.Transcript, out io.Writer) error

// Restore writes the copies of a session into the thread's home, unless its own file there begins with its copy,
// and reports whether it did. [transcripts.ErrDamaged] says that a copy could not be read: only a subagent's if it
// reports true. No process of the thread may run.
func (h Homes) Restore(ctx context.Context, threadID int64, sessionID string, copies []transcripts.Transcript, read ReadCopy) (bool, error) {
	if copies[0].Agent != "" {
		return false, nil // subagents' files alone are not a session
	}
	if err := h.recover(threadID); err != nil {
		return false, &HomeError{err}
	}
	if h.begins(threadID, sessionID, copies[0]) {
		return false, nil
	}
	// A renewed home is as the bot made it: nothing in it leads elsewhere.
	if err := h.Renew(threadID, sessionID); err != nil {
		return false, &HomeError{err}
	}
	root, err := openHome(h.Of(threadID))
	if err != nil {
		return false, &HomeError{err}
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	fresh := path.Join(path.Dir(keptProjects), "restored.jsonl")
	if err := restoreFile(ctx, root, fresh, copies[0], read); err != nil {
		return false, err
	}
	slug, err := removeSession(root, sessionID)
	if err != nil {
		return false, &HomeError{err}
	}
	// The session's own file comes last: while it is missing everything is restored again.
	var damaged error
	for _, c := range copies[1:] {
		if name := c.Agent + ".jsonl"; agentName.MatchString(name) {
			err := restoreFile(ctx, root, path.Join(keptProjects, slug, sessionID, "subagents", name), c, read)
			if err != nil && !errors.Is(err, transcripts.ErrDamaged) {
				return false, err
			}
			damaged = errors.Join(damaged, err)
		}
	}
	if err = root.MkdirAll(path.Join(keptProjects, slug), 0o700); err == nil {
		err = root.Rename(fresh, path.Join(keptProjects, slug, sessionID+".jsonl"))
	}
	if err != nil {
		return false, &HomeError{err}
	}
	return true, damaged
}

// removeSession removes a session's files from a home that the bot has made, and returns the folder of projects for
// the new ones.
func removeSession(root *os.Root, sessionID string) (slug string, err error) {
	slug = "-restored" // the CLI finds a session in any folder
	for {
		old, err := sessionFiles(root, sessionID)
		if err != nil || len(old) == 0 {
			return slug, err
		}
		for _, f := range old {
			slug, _, _ = strings.Cut(f.path, "/")
			if err := root.Remove(path.Join(keptProjects, f.path)); err != nil {
				return "", err
			}
		}
	}
}

// begins reports whether the thread's home has a readable file of the session that begins with its copy.
func (h Homes) begins(threadID int64, sessionID string, t transcripts.Transcript) bool {
	root, err := openHome(h.Of(threadID))
	if err != nil || root == nil {
		return false
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	found, err := sessionFiles(root, sessionID)
	if err != nil || len(found) == 0 || found[0].agent {
		return false
	}
	src, err := found[0].open(root, keptProjects)
	if err != nil || src == nil {
		return false
	}
	defer src.Close() //nolint:errcheck // it is only read
	here, err := begins(io.LimitReader(src, maxKeptBytes), t)
	return here && err == nil
}

// restoreFile writes a copy, and removes it if it is incomplete.
func restoreFile(ctx context.Context, root *os.Root, name string, t transcripts.Transcript, read ReadCopy) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return &HomeError{err}
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &HomeError{err}
	}
	out := &homeWriter{f: f}
	err = read(ctx, t, out)
	if out.err != nil {
		err = &HomeError{out.err}
	}
	if closed := f.Close(); err == nil && closed != nil {
		err = &HomeError{closed}
	}
	if err != nil {
		return errors.Join(err, root.Remove(name))
	}
	return nil
}

// homeWriter remembers its first error.
type homeWriter struct {
	f   *os.File
	err error
}

func (w *homeWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	w.err = err
	return n, err
}
