package ask

import (
	"encoding/json"
	"testing"

	"deckhand/internal/agent/policy"
)

// A push's card shows its commits, and does not guess at what its words do.
func TestAPushIsNotGuessedAt(t *testing.T) {
	t.Parallel()
	for command, guessed := range map[string]bool{
		"git push origin main": false, "git push -f origin main": false, "git push --force-with-lease origin HEAD:deckhand/x": false,
		"git push -f origin main && make x": true, "make x": true,
	} {
		input, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if got := Touched(policy.Call{Tool: "Bash", Input: input, Workspace: t.TempDir()}); (got != nil) != guessed {
			t.Errorf("%s: %s", command, got)
		}
	}
}
