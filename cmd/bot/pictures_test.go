package main

import (
	"fmt"
	"image"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"deckhand/internal/playground/page/pagetest"
	"deckhand/internal/playground/slack"
)

// pictured is a story whose thread is looked at once it stands as its name says. tell returns
// where that is, and the text that is seen last.
type pictured struct {
	name, says string
	channel    string
	tell       func(w *world) (thread string)
}

// budgetOfAChannel is small, and of a channel of its own.
const budgetOfAChannel = `budgets:
  - {scope: channel, only: [C0GENERAL], per: day, limit: 0.03, then: ask, cheaper_model: haiku}
`

func pictures() []pictured {
	approved := func(w *world, thread string) {
		for range 3 { // npm test, the edit, npm test
			card := w.card(eng, thread)
			w.click(grace, eng, card.TS, "approve")
			w.find(eng, thread, "the approved card", func(m message) bool { return m.TS == card.TS && !m.has("approve") })
		}
	}
	return []pictured{
		{"approved", "Grace approves three times, and the work is done.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand fix the failing test")
			approved(w, thread)
			w.done(eng, thread, thread)
			return thread
		}},
		{"denied", "Grace denies with a reason, and the model goes another way.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand push this to main")
			v, _ := w.opens(grace, eng, w.card(eng, thread).TS, "deny_reason")
			w.submit(grace, v, map[string]any{"reason": map[string]any{"reason": "Open a pull request instead."}})
			w.done(eng, thread, thread)
			return thread
		}},
		{"stopped", "Linus stops what runs.", eng, func(w *world) string {
			w.must(http.MethodPost, "/_control/faults", map[string]any{"target": "model", "chars_per_second": 60, "match": "story"}, nil)
			thread := w.post(linus, eng, "", "@deckhand tell me a story about the tide")
			live := w.find(eng, thread, "a Stop button", func(m message) bool { return m.has("stop") })
			w.click(linus, eng, live.TS, "stop")
			w.find(eng, thread, "the prompt to be marked", func(m message) bool { return m.TS == thread && m.reacted("black_square_for_stop") })
			w.must(http.MethodDelete, "/_control/faults", nil, nil)
			return thread
		}},
		{"failed", "The provider refuses the request.", eng, func(w *world) string {
			w.must(http.MethodPost, "/_control/faults", map[string]any{"target": "model", "status": 400, "match": "opening hours"}, nil)
			thread := w.post(linus, eng, "", "@deckhand what are the opening hours?")
			w.find(eng, thread, "the prompt to be marked", func(m message) bool { return m.TS == thread && m.reacted("warning") })
			w.must(http.MethodDelete, "/_control/faults", nil, nil)
			return thread
		}},
		{"costs", "Linus asks what the thread has cost.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand what does this repo do?")
			w.done(eng, thread, thread)
			w.post(linus, eng, thread, "@deckhand costs")
			w.says(eng, thread, "This thread")
			return thread
		}},
		{"restarted", "The bot is killed while a card waits; the card is approved, and the work goes on.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand tag the summer release")
			card := w.card(eng, thread)
			old := w.PIDs["bot"]
			if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
				w.t.Fatal(err)
			}
			w.renewed("bot", old)
			w.eventually("a click to be heard", func() bool { // Slack does not deliver one again
				w.click(grace, eng, card.TS, "approve")
				return w.count(`SELECT count(*) FROM approvals WHERE status = 'allowed' AND input LIKE '%git tag summer%'`) == 1
			})
			w.done(eng, thread, thread)
			return thread
		}},
		{"asked", "Linus asks for something, and the card waits for an approver.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand fix the failing test")
			w.card(eng, thread)
			return thread
		}},
		{"question", "The model asks Linus, who asked it.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand ask me about the summer offer")
			w.find(eng, thread, "the question", func(m message) bool { return m.has("answer") })
			return thread
		}},
		{"plan", "The model has a plan, and waits for a yes.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand plan the fix of the failing test")
			entered := "" // plan mode itself is asked about
			w.find(eng, thread, "the plan", func(m message) bool {
				if m.has("approve") && m.TS != entered && !strings.Contains(m.all(), "Start work") {
					entered = m.TS
					w.click(grace, eng, m.TS, "approve")
				}
				return strings.Contains(m.all(), "Start work")
			})
			return thread
		}},
		{"budget", "A budget is used up in the middle of the work.", slack.ChannelGeneral, func(w *world) string {
			thread := w.post(linus, slack.ChannelGeneral, "", "@deckhand thanks for yesterday!")
			w.done(slack.ChannelGeneral, thread, thread) // one turn costs more than the limit
			w.find(slack.ChannelGeneral, thread, "the limit to be reached", func(m message) bool { return m.has("budget_raise") })
			w.post(linus, slack.ChannelGeneral, thread, "@deckhand well done!")
			w.says(slack.ChannelGeneral, thread, "This waits")
			return thread
		}},
	}
}

// TestPictures draws each story as people see it, in light, in dark and on a phone, and writes
// who was notified of what: into the folder that DECKHAND_PICTURES names, and not without it.
func TestPictures(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("DECKHAND_PICTURES")
	if folder == "" {
		t.Skip("DECKHAND_PICTURES names no folder: see make pictures")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	chrome := pagetest.Start(t)
	w := newWorldWith(t, budgetOfAChannel)
	tab := chrome.Open(t, w.URL, "/#/c/"+eng+"?user="+linus)
	tab.Click(`[aria-label="Hide this note"]`)

	book := &strings.Builder{}
	book.WriteString("# Ten stories, and who is notified of what\n\nMade by `make pictures`: each story in light, in dark and on a phone, as Linus sees it, who asked; and what the devices of each person show, by Slack's default preferences.\n")
	for _, p := range pictures() {
		from := len(w.notices())
		thread := ""
		t.Run(p.name, func(t *testing.T) {
			own := *w
			own.t = t
			thread = p.tell(&own)
			w.demoState = own.demoState
		})
		if thread == "" {
			continue
		}
		tab.Do(chromedp.Navigate(w.URL + "/#/c/" + p.channel + "/t/" + thread + "?user=" + linus))
		tab.See(`document.querySelectorAll('[data-testid="thread"] [data-ts]').length > 1`)
		sheet := side(pane(tab, "light"), pane(tab, "dark"), phone(tab))
		if err := writePicture(filepath.Join(folder, p.name+".png"), sheet); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(book, "\n## %s\n\n%s\n\n![%s](%s.png)\n\n", capitalised(p.name), p.says, capitalised(p.name), p.name)
		told := w.notices()[from:]
		once(t, p.name, told)
		tell(book, w, told)
	}
	if err := os.WriteFile(filepath.Join(folder, "stories.md"), []byte(book.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// notice is what somebody's device has shown.
type notice struct{ User, Reason, Channel, Text string }

func (w *world) notices() []notice {
	w.t.Helper()
	var out struct{ Notifications []notice }
	w.must("GET", "/_control/notifications", nil, &out)
	return out.Notifications
}

// once holds that nobody hears the same twice, or something that is no sentence. A request is
// told again when it is made again, and so is a turn that goes on after a restart.
func once(t *testing.T, story string, list []notice) {
	t.Helper()
	heard := map[notice]bool{}
	for _, n := range list {
		key := notice{User: n.User, Text: codes.ReplaceAllString(n.Text, "CODE")}
		again := strings.Contains(n.Text, "with the buttons") || strings.HasPrefix(n.Text, "Deckhand is at work") // each of a card, or message, of its own
		if heard[key] && !again {
			t.Errorf("%s: %s hears twice: %s", story, n.User, n.Text)
		}
		heard[key] = true
		if end := strings.TrimSpace(n.Text); end == "" || strings.HasSuffix(end, ":") || strings.HasSuffix(end, "Working…") || strings.HasSuffix(end, "Thinking…") {
			t.Errorf("%s: %s hears no sentence: %q", story, n.User, n.Text)
		}
	}
}

// codes are those that a card is decided by in a reply; each is another one.
var codes = regexp.MustCompile(`\b[A-Z0-9]{5}\b`)

// tell writes who was notified of what, in order, as a table.
func tell(book *strings.Builder, w *world, list []notice) {
	if len(list) == 0 {
		book.WriteString("Nobody is notified.\n")
		return
	}
	names := map[string]string{ada: "Ada, admin", grace: "Grace, approver", linus: "Linus, who asked", mallory: "Mallory"}
	reasons := map[string]string{"direct": "direct message", "mention": "mentioned", "thread": "in their thread"}
	book.WriteString("| whom | why | what the lock screen says |\n|---|---|---|\n")
	for _, n := range list {
		text := strings.NewReplacer("|", `\|`, "\n", " ⏎ ", "<", "&lt;", w.dir, "DIR").Replace(codes.ReplaceAllString(n.Text, "CODE"))
		fmt.Fprintf(book, "| %s | %s | %s |\n", names[n.User], reasons[n.Reason], text)
	}
}

func capitalised(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// pane is the thread beside its channel, in a colour.
func pane(tab *pagetest.Tab, scheme string) image.Image {
	tab.Prefer(scheme)
	tab.See(`document.documentElement.dataset.theme === '` + scheme + `'`)
	tab.Do(chromedp.EmulateViewport(1280, 900))
	settled(tab)
	return tab.Picture(`[data-testid="thread"]`)
}

// phone is the whole page as a phone shows it, in light.
func phone(tab *pagetest.Tab) image.Image {
	tab.Prefer("light")
	tab.Do(chromedp.EmulateViewport(390, 900))
	settled(tab)
	return tab.Picture("body")
}

// settled waits until the thread has its end in view, at its new size.
func settled(tab *pagetest.Tab) {
	tab.See(`(() => { const box = document.querySelector('[data-testid="thread"] .list-scroll'); return box !== null && box.scrollHeight - box.scrollTop - box.clientHeight < 2 })()`)
}
