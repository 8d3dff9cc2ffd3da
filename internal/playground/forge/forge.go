// Package forge is the playground's forge: bare git repositories in a folder, served over
// HTTP by git's own http-backend; the part of Gitea's API that is about pull requests; and a
// page for people. Where branches are, whether they conflict and what a merge makes of them
// is git's to say; the rest is kept in one file beside the repositories.
//
// Whoever reaches the address may do everything: the playground listens on loopback alone. A
// token only says in whose name, and whoever shows none is Deckhand. It runs nothing of what
// is pushed: checks are set by people.
package forge

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Root is where the forge lies on the playground's address.
const Root = "/forge/"

const gitTimeout = time.Minute

// Forge serves the repositories in a folder.
type Forge struct {
	dir string
	url func() string // of the playground
	git http.Handler

	mu    sync.Mutex
	state state

	faultsMu sync.Mutex
	faults   []*fault
}

// New serves the repositories in a folder; url is the address of the playground.
func New(dir string, url func() string) (*Forge, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("serve the forge: %w", err)
	}
	f := &Forge{dir: dir, url: url, git: &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Root: strings.TrimSuffix(Root, "/"), Dir: os.TempDir(),
		Env: []string{
			"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + os.DevNull,
		},
	}}
	return f, f.load()
}

// Make makes a repository of a name in the folder from the one that lies in from, unless it
// is there already.
func Make(dir, name, from string) error {
	to := filepath.Join(dir, name)
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the forge: %w", err)
	}
	tmp, err := os.MkdirTemp(dir, ".making-") // it is whole or not there
	if err != nil {
		return fmt.Errorf("make the forge: %w", err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // gone after the rename
	for _, args := range [][]string{
		{"clone", "--quiet", "--bare", "--no-hardlinks", "--template=", "--", from, tmp},
		{"-C", tmp, "remote", "remove", "origin"},
		{"-C", tmp, "config", "http.receivepack", "true"},
	} {
		if err := git(args...); err != nil {
			return err
		}
	}
	return os.Rename(tmp, to)
}

// Connect has a repository know where its forge is, and who commits.
func Connect(dir, url string) error {
	for name, value := range map[string]string{"remote.origin.url": url, "user.name": "Deckhand", "user.email": "deckhand@boathouse.example"} {
		if err := git("-C", dir, "config", name, value); err != nil {
			return err
		}
	}
	return nil
}

func git(args ...string) error {
	_, err := output(nil, args...)
	return err
}

// output runs git with these variables and returns what it says.
func output(env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1"), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
