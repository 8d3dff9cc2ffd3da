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
// private to the bot and shared by its sessions: their transcripts are in it.
func (s *Supervisor) environ(p Project) []string {
	home := filepath.Join(s.c.DataDir, "home")
	set := map[string]string{
		"HOME":              home,
		"CLAUDE_CONFIG_DIR": filepath.Join(home, ".claude"),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"DISABLE_AUTOUPDATER":                      "1",
		// What runs in the background outlives its turn: nobody could be asked about
		// its tools, and its cost would belong to nobody.
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
		"GIT_TERMINAL_PROMPT":                  "0",
	}
	maps.Copy(set, s.c.Credentials)
	return agentEnviron(p.Env, set)
}
