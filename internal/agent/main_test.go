package agent

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/attachment"
	"deckhand/internal/store/storetest"
)

// roleVariable makes the test binary be another program: the bot that the histories
// kill.
const roleVariable = "DECKHAND_TEST_ROLE"

func TestMain(m *testing.M) {
	attachment.RunHelper()
	if os.Getenv(roleVariable) == "bot" {
		if err := playBot(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bot:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	storetest.Main(m, func() error { return goleak.Find() })
}

var errAway = errors.New("the database is away")
