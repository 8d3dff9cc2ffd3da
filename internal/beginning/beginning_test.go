package beginning_test

import (
	"fmt"
	"testing"

	"deckhand/internal/beginning"
)

func TestTheBeginningIsKept(t *testing.T) {
	t.Parallel()
	b := &beginning.Buffer{Most: 5}
	for _, text := range []string{"ab", "cd", "efg", "h"} {
		if n, err := fmt.Fprint(b, text); n != len(text) || err != nil {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	if b.String() != "abcde" {
		t.Error(b.String())
	}
}
