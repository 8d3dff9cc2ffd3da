package threads_test

import (
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main(m, func() error { return goleak.Find() })
}
