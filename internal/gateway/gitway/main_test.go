package gitway

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/gateway/gitway/forgetest"
)

func TestMain(m *testing.M) {
	RunHelper()
	if err := os.Setenv(forgetest.TokenEnv, forgetest.Password); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
