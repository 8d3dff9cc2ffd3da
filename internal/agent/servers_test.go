package agent

import (
	"testing"

	"deckhand/internal/agent/claude"
)

// TestWhyAServerFails: what a server says of itself is one line that the database takes.
func TestWhyAServerFails(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"connection\nclosed.": "connection closed",
		"a\x00b\x1b[31m":      "a b [31m",
		"\xff":                "�",
		" \x00 ":              "Claude Code does not say why",
		"Error POSTing to endpoint: The MCP server cannot be reached. An admin finds the reason in the bot's log.\n": "it cannot be reached. An admin finds the reason in the bot's log",
	} {
		if got := reasonOf(claude.MCPServer{Status: ServerFailed, Error: said}); got != want {
			t.Errorf("%q: %q", said, got)
		}
	}
}
