package chat

import (
	"testing"

	"deckhand/internal/store/inbox"
)

// TestWhatNobodyWrote: a prompt that waits is told as the button that was pressed, or as what it comes of by itself.
func TestWhatNobodyWrote(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[Linus pressed Address these:]\nPull request #1 of this thread: checks have failed.":           "Address these",
		"[Linus pressed Continue: a budget had stopped you, go on where you were.]":                     "Continue",
		"[Linus pressed Open pull request:]\nOpen a pull request for this work, with a title: and more": "Open pull request",
	} {
		if got := (queuePosts{}).saidIn(inbox.QueuedPrompt{Prompt: inbox.Prompt{Text: text}, Kind: inbox.Action}); got != want {
			t.Errorf("%q is told as %q", text, got)
		}
	}
	woken := inbox.Prompt{Text: "[This comes by itself:]\nPull request #1 of this thread: checks have failed. Read it.", ByItself: true}
	if got, want := (queuePosts{}).saidIn(inbox.QueuedPrompt{Prompt: woken, Kind: inbox.Event}), "Pull request #1 of this thread: checks have failed"; got != want {
		t.Errorf("what comes by itself is told as %q", got)
	}
}
