package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/agent/gitdata"
	"deckhand/internal/store"
)

const (
	gitTimeout     = 5 * time.Minute
	publishTimeout = time.Minute
	// settingsTimeout bounds the look at a repository's settings, and maxFilters what is
	// found there.
	settingsTimeout = 5 * time.Second
	maxFilters      = 200
	maxFilterNames  = 32 << 10 // bytes
	// maxInstructions bounds the CLAUDE.md that goes into the system prompt, in bytes.
	maxInstructions = 40 << 10
)

// workspace returns the folder that the thread works in, making it at the first use and
// whenever it is missing, and what people should know of that, in sentences. Its errors
// are sentences for people.
func (h *host) workspace(ctx context.Context, t store.Thread, p Project) (dir string, told []string, err error) {
	if t.Workspace != "" && isDir(t.Workspace) {
		return t.Workspace, nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, fmt.Errorf("git: no end in %s", gitTimeout))
	defer cancel()
	if p.Workspace == WorkspaceScratch {
		own := h.ownFolder(t, p)
		return own, nil, os.MkdirAll(own, 0o700)
	}
	source := h.source(p)
	if p.Repo != "" && !isDir(source) {
		if err := h.kept(p).once(ctx, func(ctx context.Context) error { return clone(ctx, p.remote(p.Repo), source) }); err != nil {
			return "", nil, fmt.Errorf("the repository of project %s could not be cloned: %w", p.Name, err)
		}
	}
	if !isDir(source) {
		return "", nil, fmt.Errorf("the folder of project %s does not exist: %s", p.Name, source)
	}
	if p.Workspace == WorkspaceShared {
		return source, nil, nil
	}
	if dir, told, err = h.workingTree(ctx, t, p); err != nil {
		return "", nil, fmt.Errorf("no working tree could be made for project %s: %w", p.Name, err)
	}
	return dir, told, nil
}

func (h *host) missing(dir string) bool { return dir != "" && !isDir(dir) }

func (h *host) ownFolder(t store.Thread, p Project) string {
	return filepath.Join(h.dataDir, "workspaces", p.Name, strconv.FormatInt(t.ID, 10))
}

// branch is the branch that a thread with a working tree of its own works on.
func branch(threadID int64) string { return "deckhand/" + strconv.FormatInt(threadID, 10) }

// scratch is a folder for what git needs for a moment.
func (h *host) scratch() string { return filepath.Join(h.dataDir, "scratch") }

// borrowed are the folders, besides the workspace, that the workspace's git reads objects
// from: they may be shown to the session, read-only.
func (h *host) borrowed(p Project) ([]string, error) {
	if p.Workspace != WorkspaceWorktree {
		return nil, nil
	}
	r, err := gitdata.Open(h.source(p))
	if err != nil {
		return nil, err
	}
	return r.Objects()
}

// publish brings what the thread has committed on its own branch into the project's
// repository. Its errors are sentences for people.
func (h *host) publish(ctx context.Context, t store.Thread, p Project) error {
	if p.Workspace != WorkspaceWorktree || !isDir(t.Workspace) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, publishTimeout, fmt.Errorf("git: no end in %s", publishTimeout))
	defer cancel()
	source, err := gitdata.Open(h.source(p))
	if err == nil {
		_, err = gitdata.Publication{Clone: t.Workspace, Source: source, Branch: branch(t.ID), Scratch: h.scratch()}.Publish(ctx)
	}
	if err != nil {
		return fmt.Errorf("publish %s in the repository of project %s: %w", branch(t.ID), p.Name, err)
	}
	return nil
}

// head is read without git: the folder is the agent's.
func (h *host) head(_ context.Context, dir string) string {
	r, err := gitdata.Open(dir)
	if err != nil {
		return ""
	}
	_, commit, err := r.Head()
	if err != nil {
		return ""
	}
	return commit
}

// instructions is the workspace's CLAUDE.md, which the CLI does not load itself
// when it reads user settings only. A link that leads out of the workspace is
// not followed.
func instructions(workspace string) (string, error) {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return "", err
	}
	defer root.Close()                                                      //nolint:errcheck // it only reads
	f, err := root.OpenFile("CLAUDE.md", os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold the thread
	if err != nil {
		return "", nil // it is not there, or leads out of the workspace
	}
	defer f.Close() //nolint:errcheck // it only reads
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxInstructions+1))
	if err != nil {
		return "", fmt.Errorf("read CLAUDE.md: %w", err)
	}
	if len(b) > maxInstructions {
		b = append(b[:maxInstructions], "\n[CLAUDE.md is longer and was cut here: read the file for the rest.]"...)
	}
	return strings.ToValidUTF8(string(b), "�"), nil
}

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}

// deaf are settings that keep the git of the agent's process from running what a
// repository's own settings name, whenever the CLI looks at the repository: its hooks,
// its monitor, its filters. Their names are asked of git, which runs nothing for that, but
// reads whatever the settings include: it has a moment for it.
func deaf(ctx context.Context, dir string) (settings [][2]string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settingsTimeout, fmt.Errorf("git: no end in %s", settingsTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--local", "--includes", "--null", "--name-only", "--get-regexp", `^filter\..*\.(clean|smudge|process|required)$`)
	cmd.Dir, cmd.Env = dir, append(agentEnviron(nil, nil), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, _ := cmd.Output() // it fails when there is none, or no repository
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("read the settings of the repository in %s: %w", dir, err)
	}
	set := [][2]string{{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}}
	for key := range strings.SplitSeq(string(out), "\x00") {
		value := ""
		if strings.HasSuffix(key, ".required") {
			value = "false"
		}
		if key != "" {
			set = append(set, [2]string{key, value})
		}
	}
	if len(set) > maxFilters || len(out) > maxFilterNames {
		return nil, fmt.Errorf("the settings of the repository in %s name too many filters; remove them", dir)
	}
	return set, nil
}
