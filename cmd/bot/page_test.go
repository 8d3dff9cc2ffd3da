package main

import (
	"slices"
	"strings"
	"syscall"
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
		if i == 1 {
			v := window{tab, w}
			v.press(card.TS, "edits_below")
			v.accessible("Always allow", "the form about edits below a folder")
		}
		// By the button and not by its place: the thread moves while it grows.
		button := `document.querySelector('[data-ts="` + card.TS + `"] [data-action-id="approve"]')`
		tab.See(button + ` != null && (` + button + `.click(), true)`)
		w.find(eng, thread, "the approved card", func(m message) bool { return m.TS == card.TS && !m.has("approve") })
	}
	w.done(eng, thread, thread)
	tab.SeeText(`[data-testid="thread"]`, "steps ·")
	tab.Shot("story")
	tab.Prefer("dark")
	tab.Shot("story-dark")
	tab.Prefer("light")
	tab.Say(`[data-testid="thread-composer"]`, "@deckhand costs")
	tab.SeeText(`[data-testid="thread"]`, "This thread since it began")
	tab.Shot("costs")
	tab.Accessible("a thread with an answer, a card and its costs")
	v := window{tab, w}
	v.See(`(b => b != null && (b.click(), true))(document.querySelector('[data-testid="thread"] [data-action-id="steps"]'))`)
	v.accessible("npm test", "the window with the steps")
	next := w.post(grace, eng, thread, `@deckhand tools: [{"name":"Read","input":{"file_path":"/etc/hosts"}},{"name":"Read","input":{"file_path":"/etc/group"}}]`)
	card := w.card(eng, thread)
	v.See(`document.querySelector('[data-ts="` + card.TS + `"] [data-action-id="approve_ticked"]') != null`)
	tab.Shot("approve-together")
	tab.Accessible("a card of several requests")
	v.press(card.TS, "approve_ticked")
	w.done(eng, thread, next)
	tab.Prefer("dark")
	tab.Click(`[data-testid="app-home"]`)
	tab.SeeText("main", "What you spent")
	tab.Shot("home-dark")
	tab.Accessible("the Home")
	if !testsPass(t, w.Workspace) {
		t.Error("the sample's tests do not pass after the fix")
	}
}

// window is a browser's tab on a thread, as one person.
type window struct {
	*pagetest.Tab
	w *world
}

// in opens a thread as somebody.
func (w *world) in(t *testing.T, chrome *pagetest.Browser, user, channel, thread string) window {
	t.Helper()
	return window{chrome.Open(t, w.URL, "/#/c/"+channel+"/t/"+thread+"?user="+user), w}
}

// press presses a button of a message, by the button and not by its place: the
// thread moves while it grows.
func (v window) press(ts, action string) {
	press := func(selector string) {
		button := "document.querySelector('" + selector + "')"
		v.See(button + ` != null && !` + button + `.disabled && (` + button + `.click(), true)`)
	}
	if !slices.Contains([]string{"edits_below", "always", "edit_input", "deny_reason", "view_input"}, action) {
		press(`[data-ts="` + ts + `"] [data-action-id="` + action + `"]`)
		return
	}
	press(`[data-ts="` + ts + `"] [data-action-id="more"]`)
	press(`[role="menuitem"][data-value^="` + action + ` "]`)
}

// fill sends the open modal after something was done in it.
func (v window) fill(done string) {
	v.See(`document.querySelector('[data-testid="modal"]') != null`)
	if done != "" {
		v.See(`(` + done + `, true)`)
	}
	v.Click(`[data-testid="modal-submit"]`)
	v.See(`document.querySelector('[data-testid="modal"]') == null`)
}

// accessible holds that the modal which shows text is, and closes it.
func (v window) accessible(text, what string) {
	v.SeeText(`[data-testid="modal"]`, text)
	v.Accessible(what)
	v.See(`(b => b != null && (b.click(), true))(document.querySelector('[data-testid="modal"] .dialog-footer .button:not([type="submit"])'))`)
	v.See(`document.querySelector('[data-testid="modal"]') == null`)
}

// TestApprovingInThePage: what people do with cards, in real browsers: approve,
// deny with a reason, always allow and revoke, two people for one command, somebody
// who may not, and a bot that dies in the middle.
func TestApprovingInThePage(t *testing.T) {
	t.Parallel()
	chrome := pagetest.Start(t)
	w := newWorldWith(t, quorumOfTwo)

	thread := w.runs(linus, eng, "", "git tag first")
	graces := w.in(t, chrome, grace, eng, thread)
	card := w.card(eng, thread)
	mallorys := w.in(t, chrome, mallory, eng, thread)
	mallorys.press(card.TS, "approve")
	mallorys.SeeText(".message.ephemeral", "Only approvers can decide")
	mallorys.Shot("approving-refused")
	graces.press(card.TS, "always")
	graces.SeeText(`[data-testid="modal"]`, "Bash(git tag *)")
	graces.Shot("approving-always")
	graces.Accessible("the form of a grant")
	graces.fill(`document.querySelectorAll('[data-testid="modal"] [data-action-id="rule"] input')[1].click()`)
	w.done(eng, thread, thread)
	second := w.runs(linus, eng, thread, "git tag second")
	w.done(eng, thread, second)
	graces.SeeText(`[data-testid="thread"]`, "by a rule of")

	graces.Click(`[data-testid="app-home"]`)
	graces.SeeText("main", "Bash(git tag *)")
	graces.Shot("approving-home")
	graces.See(`(b => b != null && (b.click(), true))(document.querySelector('main [data-action-id="revoke"]'))`)
	graces.SeeText(`[data-testid="confirm"]`, "")
	graces.See(`(b => b != null && (b.click(), true))(document.querySelector('[data-testid="confirm"] button[type="submit"], [data-testid="confirm"] .button.primary, [data-testid="confirm"] .button.danger'))`)
	w.eventually("the grant to be revoked", func() bool {
		return w.count(`SELECT count(*) FROM grants WHERE revoked_by = 'U0GRACE'`) == 1
	})

	third := w.runs(linus, eng, thread, "git tag third")
	adas := w.in(t, chrome, ada, eng, thread)
	card = w.card(eng, thread)
	adas.press(card.TS, "deny_reason")
	adas.See(`document.querySelector('[data-testid="modal"] [data-action-id="reason"]') != null`)
	adas.Write(`[data-testid="modal"] [data-action-id="reason"]`, "two tags are enough")
	adas.fill("")
	w.done(eng, thread, third)
	adas.SeeText(`[data-testid="thread"]`, "two tags are enough")
	adas.Shot("approving-denied")

	fourth := w.runs(linus, eng, thread, "mkdir together")
	card = w.card(eng, thread)
	adas.press(card.TS, "approve")
	adas.SeeText(`[data-ts="`+card.TS+`"]`, "1 of 2")
	adas.Shot("approving-quorum")
	old := w.PIDs["bot"]
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.renewed("bot", old)
	w.connected()
	gracesAgain := w.in(t, chrome, grace, eng, thread)
	gracesAgain.press(card.TS, "approve")
	w.done(eng, thread, fourth)
	gracesAgain.SeeText(`[data-ts="`+card.TS+`"]`, "approved by")
	gracesAgain.Prefer("dark")
	gracesAgain.Shot("approving-dark")
	if !w.exists("together") || w.exists(".git/refs/tags/third") {
		t.Error("the wrong things ran")
	}
	w.auditIsWhole()
}
