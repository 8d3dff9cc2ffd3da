package gateway_test

import (
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/agent/claude"
)

func TestMain(m *testing.M) {
	claude.RunReaper()
	goleak.VerifyTestMain(m)
}
