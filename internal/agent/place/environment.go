package place

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/agent/claude"
	"deckhand/internal/sandbox"
	"deckhand/internal/transcript"
)

// environ is the environment of the project's CLI processes. The home folder is
// the thread's own: its transcripts are in it.
func (h *Host) environ(p Project, threadID int64, bash string) []string {
	set := map[string]string{
		// The CLI takes the first that it finds, and zsh before bash: a relative one it would
		// run to see what it is. The policy reads commands as bash does.
		"CLAUDE_CODE_SHELL": bash,
		"SHELL":             bash,
		"HOME":              h.Home(threadID),
		"CLAUDE_CONFIG_DIR": h.configDir(threadID),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_AUTOUPDATER":                      "1",
		// What runs in the background outlives its turn: nobody could be asked about
		// its tools, and its cost would belong to nobody.
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
		"GIT_TERMINAL_PROMPT":                  "0",
		// The CLI would read what a message mentions as @path, and ask nobody.
		"CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
		"CLAUDE_CODE_DISABLE_AUTO_MEMORY":   "1",
		// A file of the workspace would have it prompted by the clock.
		"CLAUDE_CODE_DISABLE_CRON": "1",
	}
	return claude.Environ(p.Env, set)
}

// errNoBash is a sentence for people.
var errNoBash = errors.New("bash is not installed: Claude Code runs its commands in it, and the policy reads them as bash does; install it (apt-get install bash)")

// bashOf is the shell that a session's commands run in, by its absolute path. What is
// installed where a container or a launcher leads is not looked at from here: there it is
// where every distribution has it.
func bashOf(kind sandbox.Kind) (string, error) {
	const usual = "/bin/bash"
	if kind == sandbox.Container || kind == sandbox.Command || executable(usual) {
		return usual, nil
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if path := filepath.Join(dir, "bash"); filepath.IsAbs(path) && executable(path) {
			return path, nil
		}
	}
	return "", errNoBash
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
}

// homes are the threads' home folders.
func (h *Host) homes() transcript.Homes {
	return transcript.Homes{Dir: filepath.Join(h.DataDir, "home")}
}

// Home is a thread's home folder.
func (h *Host) Home(threadID int64) string { return h.homes().Of(threadID) }

// configDir is where the CLI keeps the thread's transcripts.
func (h *Host) configDir(threadID int64) string {
	return filepath.Join(h.Home(threadID), ".claude")
}

const (
	// settingsTimeout bounds the look at a repository's settings, and maxFilters what is
	// found there.
	settingsTimeout = 5 * time.Second
	maxFilters      = 200
	maxFilterNames  = 32 << 10 // bytes
)

// deaf are settings that keep the git of the agent's process from running what a
// repository's own settings name, whenever the CLI looks at the repository: its hooks,
// its monitor, its filters. Their names are asked of git, which runs nothing for that, but
// reads whatever the settings include: it has a moment for it. Where that is too short, as on a
// busy machine, the error is [claude.ErrNoAnswer], and the start is tried again.
func deaf(ctx context.Context, dir string) (settings [][2]string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settingsTimeout, fmt.Errorf("git: %w in %s", claude.ErrNoAnswer, settingsTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--local", "--includes", "--null", "--name-only", "--get-regexp", `^filter\..*\.(clean|smudge|process|required)$`)
	cmd.Dir, cmd.Env = dir, append(claude.Environ(nil, nil), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
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
