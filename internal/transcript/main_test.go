package transcript

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(homeVariable) != "" {
		if err := playHome(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	storetest.Main(m, func() error { return goleak.Find() })
}
