package pulls

import (
	"errors"
	"os"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/storetest"
)

func TestMain(m *testing.M) {
	gitway.RunHelper()
	storetest.Main(m, func() error { return errors.Join(os.RemoveAll(templates), goleak.Find()) })
}
