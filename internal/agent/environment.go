package agent

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"deckhand/internal/agent/claude"
)

// agentEnviron is the environment of whatever runs for an agent: an allow-list
// (see [claude.Environ]), what the project passes on by name, and what Deckhand
// sets. Slack's and the database's credentials are never in it.
func agentEnviron(passthrough []string, set map[string]string) []string {
	return claude.Environ(passthrough, set)
}

// environ is the environment of the project's CLI processes. The home folder is
// the thread's own: its transcripts are in it.
func (h *host) environ(p Project, threadID int64) []string {
	set := map[string]string{
		"HOME":              h.home(threadID),
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
	}
	maps.Copy(set, h.credentials)
	return agentEnviron(p.Env, set)
}

// home is a thread's home folder: what one thread's commands leave in it is nobody
// else's.
func (h *host) home(threadID int64) string {
	return filepath.Join(h.dataDir, "home", strconv.FormatInt(threadID, 10))
}

// configDir is where the CLI keeps the thread's transcripts.
func (h *host) configDir(threadID int64) string {
	return filepath.Join(h.home(threadID), ".claude")
}

// prepareHome makes a thread's home folder and removes what shells, git and the CLI
// would obey at their start: a command that was allowed once may have written it.
func (h *host) prepareHome(threadID int64) error {
	if err := os.MkdirAll(h.configDir(threadID), 0o700); err != nil {
		return fmt.Errorf("make the home folder: %w", err)
	}
	for _, name := range obeyed {
		if err := os.RemoveAll(filepath.Join(h.home(threadID), name)); err != nil {
			return fmt.Errorf("clean the home folder: %w", err)
		}
	}
	return nil
}

// obeyed are files of a home folder that programs take orders from.
var obeyed = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
	".gitconfig", ".config/git", ".ssh/config", ".npmrc",
	".claude/settings.json", ".claude/settings.local.json", ".claude/CLAUDE.md", ".claude/agents", ".claude/commands", ".claude/skills",
	".claude/plugins", ".claude/hooks", ".claude/output-styles", ".claude/rules", ".claude/workflows", ".claude/shell-snapshots",
}
