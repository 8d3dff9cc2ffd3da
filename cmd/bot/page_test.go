package main

import (
	"strings"
	"testing"

	"deckhand/internal/playground/page/pagetest"
)

// TestTheStoryInThePage: a person mentions the bot and approves with a click, in
// a real browser. With DECKHAND_SCREENSHOTS set, its pictures go there.
func TestTheStoryInThePage(t *testing.T) {
	t.Parallel()
	chrome := pagetest.Start(t)
	w := newWorld(t)
	tab := chrome.Open(t, w.URL, "/#/c/"+eng+"?user="+grace)
	tab.Say(`[data-testid="composer"]`, "@deckhand fix the failing test")
	var thread string
	w.eventually("the post", func() bool {
		for _, m := range w.messages(eng, "") {
			if strings.Contains(m.Text, "fix the failing test") {
				thread = m.TS
			}
		}
		return thread != ""
	})
	tab.See(`(location.hash = "#/c/` + eng + `/t/` + thread + `?user=` + grace + `", true)`)
	for i := range 3 { // npm test, the edit, npm test
		tab.SeeText(`[data-testid="thread"]`, "Approve")
		card := w.card(eng, thread)
		tab.Shot([]string{"approve-command", "approve-edit", "approve-again"}[i])
		// By the button and not by its place: the thread moves while it grows.
		button := `document.querySelector('[data-ts="` + card.TS + `"] [data-action-id="approve"]')`
		tab.See(button + ` != null && (` + button + `.click(), true)`)
		w.find(eng, thread, "the approved card", func(m message) bool { return m.TS == card.TS && !m.has("approve") })
	}
	w.done(eng, thread, thread)
	tab.SeeText(`[data-testid="thread"]`, "turns ·")
	tab.Shot("story")
	tab.Say(`[data-testid="thread-composer"]`, "@deckhand costs")
	tab.SeeText(`[data-testid="thread"]`, "What it cost")
	tab.Shot("costs")
	tab.Prefer("dark")
	tab.Shot("story-dark")
	tab.Click(`[data-testid="app-home"]`)
	tab.SeeText("main", "What you spent")
	tab.Shot("home-dark")
	if !testsPass(t, w.Workspace) {
		t.Error("the sample's tests do not pass after the fix")
	}
}
