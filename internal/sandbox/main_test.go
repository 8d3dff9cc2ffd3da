package sandbox

import (
	"fmt"
	"os"
	"testing"
)

// roleVariable makes the test binary be a program inside of a sandbox, or one that
// starts a sandbox and is killed.
const roleVariable = "DECKHAND_TEST_ROLE"

// roles are what the test binary can be instead.
var roles = map[string]func() error{}

func TestMain(m *testing.M) {
	RunStage()
	if role, ok := roles[os.Getenv(roleVariable)]; ok {
		if err := role(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
