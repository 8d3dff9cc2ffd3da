package sandbox

import (
	"fmt"

	"deckhand/internal/sandbox/stage"
)

// staged is the kind's outer stage with its plan; the program's further arguments follow.
func staged(kind Kind, plan any) ([]string, error) {
	self, err := stage.Self()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return stage.Words(self, string(kind), plan)
}
