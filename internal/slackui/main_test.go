package slackui

import (
	"os"
	"testing"

	"deckhand/internal/attachment"
	"deckhand/internal/store/storetest"
)

func TestMain(m *testing.M) {
	attachment.RunHelper()
	if record := os.Getenv(asClaude); record != "" {
		os.Exit(askingCLI(record))
	}
	storetest.Main(m)
}
