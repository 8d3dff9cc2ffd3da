package chat

import (
	"testing"

	"deckhand/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.Main(m)
}
