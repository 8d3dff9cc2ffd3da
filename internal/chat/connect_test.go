package chat

import (
	"strings"
	"testing"

	"deckhand/internal/chat/view"
)

// TestAWrongTokenIsToldInItsForm: an address with a code is spoken of only where the form asks for one.
func TestAWrongTokenIsToldInItsForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ state, value, want string }{
		{"mine.example/mcp", " abc-123 ", ""},
		{"mine.example/mcp", "bad token with spaces", "no token"},
		{"mine.example/mcp", "tök", "no token"},
		{"mine.example/mcp\nkept", "http://127.0.0.1:8976/callback?code=1", ""},
		{"mine.example/mcp\nkept", "an address", "no address"},
	} {
		wrong := wrongToken(&Submission{State: c.state, Inputs: view.Inputs{view.TokenField: {view.TokenField: {Value: c.value}}}})
		if got := wrong[view.TokenField]; (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%q in %q: %q", c.value, c.state, got)
		}
	}
}
