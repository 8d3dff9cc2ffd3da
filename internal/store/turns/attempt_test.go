package turns_test

import (
	"testing"

	"deckhand/internal/store/turns"
)

// TestAttemptsHaveIDs: the id of an attempt follows from its turn's row alone, and no
// two are the same.
func TestAttemptsHaveIDs(t *testing.T) {
	t.Parallel()
	const prompt = "1c3a5d3e-7a53-4a5c-9d3e-6f1c0b8a9e12"
	seen := map[string]bool{}
	for attempt := 1; attempt <= 3; attempt++ {
		id := turns.AttemptUUID(prompt, attempt)
		if seen[id] || id != turns.AttemptUUID(prompt, attempt) || len(id) != len(prompt) {
			t.Errorf("attempt %d is %s", attempt, id)
		}
		seen[id] = true
	}
	if !seen[prompt] {
		t.Error("the first attempt is not the prompt's own")
	}
}
