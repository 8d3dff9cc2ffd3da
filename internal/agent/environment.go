package agent

import (
	"maps"
	"path/filepath"

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

// homes are the threads' home folders.
func (h *host) homes() homes { return homes{dir: filepath.Join(h.dataDir, "home")} }

// home is a thread's home folder.
func (h *host) home(threadID int64) string { return h.homes().of(threadID) }

// configDir is where the CLI keeps the thread's transcripts.
func (h *host) configDir(threadID int64) string {
	return filepath.Join(h.home(threadID), ".claude")
}
