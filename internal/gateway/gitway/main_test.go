package gitway

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/gateway/gitway/forgetest"
	"deckhand/internal/sandbox"
)

func TestMain(m *testing.M) {
	RunHelper()
	sandbox.RunStage()
	if err := os.Setenv(forgetest.TokenEnv, forgetest.Password); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
