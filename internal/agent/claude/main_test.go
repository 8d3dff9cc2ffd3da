package claude_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite golden files and the tables in docs/protocol.md")

// TestMain is also every helper program that the tests start: the reaper, a
// fake CLI, an MCP server, and a bot that is killed.
func TestMain(m *testing.M) {
	if role := os.Getenv("DECKHAND_TEST_ROLE"); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}
