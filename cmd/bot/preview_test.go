package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/needtest"
	"deckhand/internal/playground/slack"
)

// TestAPageIsShownBeforeAndAfter: a session of a contained channel shows its page unasked, in one
// message; the pull request gets the pictures by the card that it is opened with; and where people
// are asked about each call, they are asked about this one.
func TestAPageIsShownBeforeAndAfter(t *testing.T) {
	t.Parallel()
	needtest.Chromium(t)
	w := pullWorld(t)
	w.start()
	thread := w.runs(linus, eng, "", "sed -i 's/days > t/days >= t/' src/quote.js && git commit -aqm 'Another page'")
	w.done(eng, thread, thread)
	prompt := w.post(linus, eng, thread, "@deckhand show me the page")
	w.done(eng, thread, prompt)
	w.find(eng, thread, "the page before and after", func(m message) bool {
		return m.User == w.BotUser && len(m.Files) == 2 && m.Files[0].Name == "before.png" && m.Files[1].Name == "after.png"
	})
	inbox, err := filepath.Glob(filepath.Join(w.text(`SELECT workspace FROM threads`), ".deckhand/inbox/*/*/*.png"))
	if err != nil || len(inbox) != 2 {
		t.Errorf("the session can look at %q, %v", inbox, err)
	} else if one, two := content(t, inbox[0]), content(t, inbox[1]); one == two || !strings.HasPrefix(one, "\x89PNG") {
		t.Errorf("the pictures are of %d and %d bytes, and the same: %v", len(one), len(two), one == two)
	}

	prompt = w.callsTool(linus, thread, "open_pull_request", map[string]any{"title": "Another page", "body": "Text."})
	card := w.card(eng, thread)
	if !strings.Contains(card.all(), "With the pictures of the page") {
		t.Errorf("the card says\n%s", card.all())
	}
	w.click(ada, eng, card.TS, "approve")
	w.done(eng, thread, prompt)
	answer, err := http.Get(w.URL + "/forge/boathouse/pulls/1") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read
	if page, err := io.ReadAll(answer.Body); err != nil || strings.Count(string(page), `<img src="http`) != 2 {
		t.Errorf("the pull request shows\n%s\n%v", page, err)
	}

	prompt = w.post(linus, slack.ChannelCareful, "", "@deckhand\ntool: mcp__deckhand__preview {}")
	w.click(ada, slack.ChannelCareful, w.card(slack.ChannelCareful, prompt).TS, "deny")
	w.auditIsWhole()
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
