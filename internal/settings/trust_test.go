package settings

import (
	"strings"
	"testing"
)

// TestTrust: what cannot be trusted is refused with what to write instead.
func TestTrust(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"trust: [commands, agents, skills], workspace: worktree": "",
		"trust: commands, workspace: worktree":                   "",
		"trust: []":                                              "the list is empty",
		"trust: commands":                                        "write workspace: worktree",
		"trust: [hooks], workspace: worktree":                    "trust[0]: hooks of a repository are not run",
		"trust: [commands, mcp_servers], workspace: worktree":    "trust[1]: MCP servers of a repository are not started",
		"trust: [output_styles], workspace: worktree":            "write append_system_prompt",
		"trust: [plugins], workspace: worktree":                  `"plugins" is nothing that can be trusted`,
		"trust: [skills, skills], workspace: worktree":           "stands here twice",
	} {
		_, err := ReadFile(write(t, "projects:\n  web: {repo: https://example.com/web.git, "+text+"}\nchannels: {C0123456789: web}\nroles: {users: [U0123456789]}\n"))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
