package attachment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"
)

// Inbox is the folder of a thread's files in its workspace:
//
//	.deckhand/.gitignore      "*": nothing here is git's, and nothing is saved with the work
//	.deckhand/inbox/<thread>/<prompt>/<name>
//
// Programs in the session may have changed that folder in any way: no link is followed, and no existing file is
// written to.
type Inbox struct {
	Workspace string
	Thread    int64
}

// Folder is the part of a workspace that contains inboxes.
const Folder = ".deckhand"

const (
	// staleAfter is the age at which a thread's files are removed when another thread puts files into the same
	// workspace.
	staleAfter = 7 * 24 * time.Hour
	// sameName bounds the files with the same name in one message.
	sameName = 1000
)

// Own has [Folder] be a plain folder of the workspace that git ignores.
func Own(workspace string) error {
	root, err := Inbox{Workspace: workspace}.open()
	if err != nil {
		return err
	}
	return root.Close()
}

// Begin empties a prompt's inbox, which is about to be filled again.
func (i Inbox) Begin(prompt int64) error {
	root, err := i.open()
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it was only looked into
	i.sweep(root)
	return root.RemoveAll(i.at(prompt))
}

// Put writes a file into the inbox, and returns its path in the workspace, with slashes. A second file of the same
// name is called name-2.
func (i Inbox) Put(prompt int64, name string, content []byte) (rel string, err error) {
	root, err := i.open()
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // the file was closed
	dir := i.at(prompt)
	for part := ""; part != dir; {
		part = path.Join(part, firstOf(dir[len(part):]))
		if err := ownDir(root, part); err != nil {
			return "", err
		}
	}
	name = Name(name)
	ext := filepath.Ext(name)
	for n := 1; n <= sameName; n++ {
		free := name
		if n > 1 {
			free = name[:len(name)-len(ext)] + "-" + strconv.Itoa(n) + ext
		}
		f, err := root.OpenFile(path.Join(dir, free), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("lay a file into the inbox: %w", err)
		}
		_, err = f.Write(content)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", errors.Join(fmt.Errorf("lay a file into the inbox: %w", err), root.Remove(path.Join(dir, free)))
		}
		return path.Join(Folder, dir, free), nil
	}
	return "", fmt.Errorf("lay a file into the inbox: there are %d of its name", sameName)
}

// Clear removes the thread's inbox.
func (i Inbox) Clear() error {
	if _, err := os.Lstat(filepath.Join(i.Workspace, Folder)); err != nil {
		return nil //nolint:nilerr // nothing was put there
	}
	root, err := i.open()
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it was only looked into
	return root.RemoveAll(path.Join("inbox", strconv.FormatInt(i.Thread, 10)))
}

// at is a prompt's folder below [Folder].
func (i Inbox) at(prompt int64) string {
	return path.Join("inbox", strconv.FormatInt(i.Thread, 10), strconv.FormatInt(prompt, 10))
}

// firstOf is the first element of a path, which may begin with a slash.
func firstOf(rel string) string {
	if rel != "" && rel[0] == '/' {
		rel = rel[1:]
	}
	for i := range len(rel) {
		if rel[i] == '/' {
			return rel[:i]
		}
	}
	return rel
}

// open opens .deckhand, which is created if missing, and must not be a link.
func (i Inbox) open() (*os.Root, error) {
	workspace, err := os.OpenRoot(i.Workspace)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	defer workspace.Close() //nolint:errcheck // it was only looked into
	if err := ownDir(workspace, Folder); err != nil {
		return nil, err
	}
	root, err := workspace.OpenRoot(Folder)
	if err != nil {
		return nil, fmt.Errorf("open the inbox: %w", err)
	}
	// Verify that what was opened is what was checked, and is still there.
	opened, err := root.Stat(".")
	stands, err2 := workspace.Lstat(Folder)
	if err != nil || err2 != nil || !stands.IsDir() || !os.SameFile(opened, stands) {
		return nil, errors.Join(fmt.Errorf("%s in the workspace is not a plain folder", Folder), root.Close())
	}
	f, err := root.OpenFile(".gitignore", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return root, nil
	}
	if err == nil {
		_, err = f.WriteString("*\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the inbox's .gitignore: %w", err), root.Close())
	}
	return root, nil
}

// ownDir creates a folder if missing; anything else in its place is an error.
func ownDir(root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the inbox: %w", err)
	}
	if st, err := root.Lstat(name); err != nil || !st.IsDir() {
		return fmt.Errorf("make the inbox: %s in the workspace is not a plain folder", path.Join(Folder, name))
	}
	return nil
}

// sweep removes the files of threads without new ones for long. What cannot be removed stays.
func (i Inbox) sweep(root *os.Root) {
	found, err := fs.ReadDir(root.FS(), "inbox")
	if err != nil {
		return
	}
	for _, d := range found {
		info, err := d.Info()
		if err == nil && d.IsDir() && d.Name() != strconv.FormatInt(i.Thread, 10) && time.Since(info.ModTime()) > staleAfter {
			_ = root.RemoveAll(path.Join("inbox", d.Name()))
		}
	}
}
