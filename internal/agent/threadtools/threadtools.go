// Package threadtools has the tools of every session that act in its own thread: one posts a file
// of the workspace, one reads what people have said.
package threadtools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"deckhand/internal/agent/tools"
	"deckhand/internal/attachment"
	"deckhand/internal/store/threads"
)

// Chat is where a session's thread is.
type Chat interface {
	// PostFiles posts files into a thread, in one message, and returns once they are there. Its
	// error is a sentence for the model.
	PostFiles(ctx context.Context, k threads.ThreadKey, files ...File) error
	// ReadThread is what was said in a thread: the first post and the newest. An empty link is for
	// the thread k itself, any other leads to a message. Its error is a sentence for the model.
	ReadThread(ctx context.Context, k threads.ThreadKey, link string) (string, error)
}

// File is one that is posted.
type File struct {
	Name, Title string
	Content     []byte
}

// filesMost is how many files a turn may post.
const filesMost = 10

type posting struct {
	Path  string `json:"path"`
	Title string `json:"title"`
}

type reading struct {
	Link string `json:"link"`
}

// Tools are those of a thread. hidden are files and folders that no session sees.
func Tools(t threads.Thread, chat Chat, hidden []string) []tools.Tool {
	var mu sync.Mutex
	posted := map[int64]int{} // by turn
	return []tools.Tool{
		{
			Name:        "post_file",
			Description: "Post a file of the workspace into this Slack thread, where everybody in the channel sees it: a picture, a chart (draw it to a PNG first), a table as CSV, a report. Pictures are PNG, JPEG, GIF or WebP. Say in your answer what it shows.",
			Schema:      `{"type":"object","properties":{"path":{"type":"string","description":"in the workspace"},"title":{"type":"string","maxLength":100}},"required":["path"],"additionalProperties":false}`,
			Run: func(ctx context.Context, c tools.Call) (string, error) {
				var in posting
				if err := tools.Read(c.Input, &in); err != nil {
					return "", err
				}
				if !filepath.IsAbs(in.Path) { // as it was decided
					in.Path = filepath.Join(cmp.Or(c.Approval.Dir, t.Workspace), in.Path)
				}
				content, err := within(t.Workspace, in.Path, hidden)
				if err != nil {
					return "", err
				}
				mu.Lock()
				posted[c.Approval.TurnID]++
				n := posted[c.Approval.TurnID]
				mu.Unlock()
				if n > filesMost {
					return "", fmt.Errorf("a turn posts %d files at most: put the others into an archive, or ask which are wanted", filesMost)
				}
				if err := chat.PostFiles(ctx, t.Key(), File{filepath.Base(in.Path), in.Title, content}); err != nil {
					return "", err
				}
				return "Posted.", nil
			},
		},
		{
			Name:        "read_thread",
			Description: "Read what people have said in this Slack thread, the first post and the newest; or, by the link of a message, in a thread of a public channel that Deckhand is in.",
			Schema:      `{"type":"object","properties":{"link":{"type":"string","description":"of a Slack message; none for this thread"}},"additionalProperties":false}`,
			Run: func(ctx context.Context, c tools.Call) (string, error) {
				var in reading
				if err := tools.Read(c.Input, &in); err != nil {
					return "", err
				}
				return chat.ReadThread(ctx, t.Key(), in.Link)
			},
		},
	}
}

// within reads a file of a workspace that is none of the hidden files and folders, which may
// contain the workspace. No link is followed, so that a path means what it says, and a session
// that swaps folders meanwhile gains nothing. Its error is a sentence for the model.
func within(workspace, path string, hidden []string) ([]byte, error) {
	folder, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil, errors.New("the workspace's folder cannot be opened")
	}
	rel := filepath.Clean(path)
	for _, of := range []string{folder, workspace} { // as a session may name it, too
		if filepath.IsAbs(path) && below(of, path) {
			rel, _ = filepath.Rel(of, path)
		}
	}
	if !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("%s is not in the workspace", path)
	}
	path = filepath.Join(folder, rel)
	for _, h := range hidden {
		if h, err = filepath.EvalSymlinks(h); err == nil && below(h, path) && !below(h, folder) {
			return nil, fmt.Errorf("%s is the bot's own, and not posted", rel)
		}
	}
	f, err := openPlain(folder, rel)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s is not there", rel)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be opened; what links lead to is not posted: copy it", rel)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", rel)
	case info.Size() > attachment.DefaultBytes:
		return nil, fmt.Errorf("%s is %s large; up to %s are posted", rel, attachment.Size(info.Size()), attachment.Size(attachment.DefaultBytes))
	}
	content, err := io.ReadAll(io.LimitReader(f, attachment.DefaultBytes))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read", rel)
	}
	return content, nil
}

// below reports whether a path is a folder or below it.
func below(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// openPlain opens a file for reading, none of whose names below folder is a link. A pipe that
// nobody writes to does not hold it up.
func openPlain(folder, rel string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Open(folder, flags|unix.O_DIRECTORY, 0)
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		if err != nil {
			return nil, err
		}
		at := fd
		fd, err = unix.Openat(at, name, flags, 0)
		_ = unix.Close(at)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), rel), nil
}
