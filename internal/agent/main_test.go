package agent

import (
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/attachment"
)

func TestMain(m *testing.M) {
	attachment.RunHelper()
	goleak.VerifyTestMain(m)
}
