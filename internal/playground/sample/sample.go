// Package sample holds the small project that the demo works on: "boathouse",
// a price calculator in JavaScript with no dependencies and one failing test.
// The scripted model in the package beside this one knows its files by heart:
// change them together.
//
// It is no place for fixtures of other tests, and owns no goroutines.
package sample

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed all:repo
var repo embed.FS

// ErrExists says that the folder is already there and holds something.
var ErrExists = errors.New("the folder is not empty")

// gitTimeout bounds each git command; they take milliseconds.
const gitTimeout = 30 * time.Second

// Write writes the project to dir, which must not exist or be empty
// (ErrExists), and makes it a git repository with one commit on the branch
// main. Author and date are fixed, so that the commit has the same id
// everywhere. It needs git in the PATH. When it fails, what it wrote is
// removed again.
func Write(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find folder of the sample project: %w", err)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("write sample project to %s: %w", dir, ErrExists)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write sample project: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("write sample project: %w", err)
	}
	// Written beside and moved: dir is whole or not there.
	staging, err := os.MkdirTemp(filepath.Dir(dir), ".sample-")
	if err != nil {
		return fmt.Errorf("write sample project: %w", err)
	}
	defer func() { _ = os.RemoveAll(staging) }() // gone already when all went well
	if err := fill(staging); err != nil {
		return fmt.Errorf("write sample project: %w", err)
	}
	if err := os.Chmod(staging, 0o755); err != nil {
		return fmt.Errorf("write sample project: %w", err)
	}
	switch err := os.Remove(dir); {
	case errors.Is(err, fs.ErrExist): // filled by somebody else meanwhile
		return fmt.Errorf("write sample project to %s: %w", dir, ErrExists)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write sample project: %w", err)
	}
	if err := os.Rename(staging, dir); err != nil {
		return fmt.Errorf("write sample project: %w", err)
	}
	return nil
}

// fill writes the files to dir and commits them.
func fill(dir string) error {
	files, err := fs.Sub(repo, "repo")
	if err != nil {
		return fmt.Errorf("open embedded files: %w", err)
	}
	if err := os.CopyFS(dir, files); err != nil {
		return fmt.Errorf("copy files: %w", err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"commit", "--quiet", "--message=Boathouse: quotes, discounts and receipts"},
	} {
		if err := git(dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// git runs git in dir with nothing of the user's configuration.
func git(dir string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	const author, mail, date = "Boathouse", "crew@boathouse.example", "2026-06-01T09:00:00Z"
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(
		cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_TEMPLATE_DIR=",
		"GIT_AUTHOR_NAME="+author, "GIT_AUTHOR_EMAIL="+mail, "GIT_AUTHOR_DATE="+date,
		"GIT_COMMITTER_NAME="+author, "GIT_COMMITTER_EMAIL="+mail, "GIT_COMMITTER_DATE="+date,
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
