package slackui

import (
	"os"
	"testing"

	"deckhand/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if record := os.Getenv(asClaude); record != "" {
		os.Exit(askingCLI(record))
	}
	storetest.Main(m)
}
