package agent

import (
	"strings"
	"testing"

	"deckhand/internal/agent/claude"
)

// Whoever reads that the provider refused something reads what to do first, and its words
// below.
func TestAFailureSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for status, do := range map[int]string{
		400: "Try again with a shorter message", 401: "Ask an admin to run bot doctor --call-model", 403: "Ask an admin",
		404: "Ask an admin", 413: "begin a new thread", 429: "Try again in a few minutes", 500: "Try again in a few minutes", 529: "Try again in a few minutes",
	} {
		got := failure(&claude.Result{IsError: true, APIErrorStatus: status, Text: "API Error: it is\n not \x00valid"})
		first, words, _ := strings.Cut(got, "\n")
		if !strings.Contains(first, do) || words != "The provider's words: API Error: it is not valid" {
			t.Errorf("%d: %q", status, got)
		}
	}
	if got := failure(&claude.Result{IsError: true, Text: "it fell over"}); got != "Claude Code failed: it fell over" {
		t.Errorf("%q", got)
	}
}
