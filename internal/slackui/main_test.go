package slackui

import (
	"os"
	"testing"

	"deckhand/internal/agent/claude"
	"deckhand/internal/sandbox"
	"deckhand/internal/store/storetest"
)

func TestMain(m *testing.M) {
	claude.RunReaper()
	sandbox.RunStage()
	if record := os.Getenv(asClaude); record != "" {
		os.Exit(askingCLI(record))
	}
	storetest.Main(m)
}
