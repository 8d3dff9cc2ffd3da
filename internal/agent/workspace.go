package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/store"
)

const (
	gitTimeout = 5 * time.Minute
	// maxInstructions bounds the CLAUDE.md that goes into the system prompt, in bytes.
	maxInstructions = 40 << 10
)

// workspace returns the folder that the thread works in, making it at the
// first use. Its errors are sentences for people.
func (h *host) workspace(ctx context.Context, t store.Thread, p Project) (string, error) {
	if t.Workspace != "" && isDir(t.Workspace) {
		return t.Workspace, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, fmt.Errorf("git: no end in %s", gitTimeout))
	defer cancel()

	source := p.Dir
	if p.Repo != "" {
		source = filepath.Join(h.dataDir, "repos", p.Name)
		if !isDir(source) {
			if err := clone(ctx, p.Repo, source); err != nil {
				return "", fmt.Errorf("the repository of project %s could not be cloned: %w", p.Name, err)
			}
		}
	}
	own := filepath.Join(h.dataDir, "workspaces", p.Name, strconv.FormatInt(t.ID, 10))
	switch p.Workspace {
	case WorkspaceScratch:
		return own, os.MkdirAll(own, 0o700)
	case WorkspaceWorktree:
		if !isDir(source) {
			return "", fmt.Errorf("the folder of project %s does not exist: %s", p.Name, source)
		}
		base := p.Base
		if base == "" {
			base = "HEAD"
		}
		if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
			return "", err
		}
		_ = git(ctx, source, "worktree", "prune") // forgets folders that were removed by hand
		branch := "deckhand/" + strconv.FormatInt(t.ID, 10)
		if err := git(ctx, source, "worktree", "add", "-B", branch, own, base); err != nil {
			return "", fmt.Errorf("no worktree could be made for project %s: %w", p.Name, err)
		}
		return own, nil
	default:
		if !isDir(source) {
			return "", fmt.Errorf("the folder of project %s does not exist: %s", p.Name, source)
		}
		return source, nil
	}
}

// clone appears at dir whole or not at all.
func clone(ctx context.Context, url, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".clone-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // gone after the rename
	if err := git(ctx, "", "clone", "--", url, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

func git(ctx context.Context, dir string, args ...string) error {
	_, err := gitOutput(ctx, dir, args...)
	return err
}

// gitOutput is what git prints. Its error is git's own last line.
func gitOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(agentEnviron(nil, nil), "GIT_TERMINAL_PROMPT=0", "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	cmd.Env = append(cmd.Env, deaf(ctx, dir)...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return "", cause
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("git is not installed")
	}
	return "", fmt.Errorf("git %s: %s", args[0], lastLine(errOut.String()+out.String()))
}

// head runs nothing that the repository names.
func (h *host) head(ctx context.Context, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "rev-parse", "--verify", "--quiet", "HEAD")
	cmd.Dir = dir
	cmd.Env = agentEnviron(nil, nil)
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
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

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// deaf are variables that keep git from running what a repository's own settings
// name: its hooks, its monitor, its filters.
func deaf(ctx context.Context, dir string) []string {
	set := [][2]string{{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}}
	if dir != "" {
		cmd := exec.CommandContext(ctx, "git", "config", "--local", "--includes", "--null", "--name-only", "--get-regexp", `^filter\..*\.(clean|smudge|process|required)$`)
		cmd.Dir, cmd.Env = dir, agentEnviron(nil, nil)
		out, _ := cmd.Output() // it fails when there is none
		for key := range strings.SplitSeq(string(out), "\x00") {
			value := ""
			if strings.HasSuffix(key, ".required") {
				value = "false"
			}
			if key != "" {
				set = append(set, [2]string{key, value})
			}
		}
	}
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(set))}
	for i, kv := range set {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, kv[1]))
	}
	return env
}
