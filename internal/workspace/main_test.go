package workspace

import (
	"fmt"
	"os"
	"runtime"
	"testing"
)

// actVariable has this program do what it names, and nothing else: see [act].
const actVariable = "DECKHAND_TEST_ACT"

func init() {
	if os.Getenv(actVariable) != "" {
		runtime.LockOSThread() // the first thread makes all calls of the system, so that they can be counted
	}
}

func TestMain(m *testing.M) {
	if text := os.Getenv(actVariable); text != "" {
		if err := play(text); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
