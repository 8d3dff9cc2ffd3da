package egress

import (
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/agent/claude"
	"deckhand/internal/sandbox"
)

func TestMain(m *testing.M) {
	claude.RunReaper()
	sandbox.RunStage()
	goleak.VerifyTestMain(m)
}
