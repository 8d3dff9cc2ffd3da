package sandbox

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	RunStage()
	os.Exit(m.Run())
}
