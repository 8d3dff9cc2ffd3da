package main

import (
	"image"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// rests waits until a thread stands as it will stay: with buttons and a status where somebody is
// waited for, without either where the work has ended.
func (w *world) rests(channel, thread string, waits bool) {
	w.t.Helper()
	w.eventually("the thread to rest", func() bool {
		open, ended, status := false, false, false
		for _, m := range w.messages(channel, thread) {
			open = open || m.has("stop") || m.has("approve") || m.has("answer")
			ended = ended || m.User == w.BotUser && strings.Contains(m.all(), "· opus")
			status = status || m.TS == thread && m.Status != ""
		}
		return open == waits && ended != waits && status == waits
	})
}

// before is where it is kept what an older bot showed in the same stories.
const before = "../../docs/pictures/before"

// toGrace is the story of which Grace's direct message is drawn, too.
const toGrace = "asked"

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
			w.rests(eng, thread, false)
			return thread
		}},
		{"denied", "Grace denies with a reason, and the model goes another way.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand push this to main")
			v, _ := w.opens(grace, eng, w.card(eng, thread).TS, "deny_reason")
			w.submit(grace, v, map[string]any{"reason": map[string]any{"reason": "Open a pull request instead."}})
			w.done(eng, thread, thread)
			w.rests(eng, thread, false)
			return thread
		}},
		{"stopped", "Linus stops what runs.", eng, func(w *world) string {
			w.must(http.MethodPost, "/_control/faults", map[string]any{"target": "model", "chars_per_second": 60, "match": "story"}, nil)
			thread := w.post(linus, eng, "", "@deckhand tell me a story about the tide")
			live := w.find(eng, thread, "a Stop button", func(m message) bool { return m.has("stop") })
			w.click(linus, eng, live.TS, "stop")
			w.find(eng, thread, "the prompt to be marked", func(m message) bool { // by another bot as if it were done
				return m.TS == thread && (m.reacted("black_square_for_stop") || m.reacted("white_check_mark"))
			})
			w.must(http.MethodDelete, "/_control/faults", nil, nil)
			w.rests(eng, thread, false)
			return thread
		}},
		{"failed", "The provider refuses the request.", eng, func(w *world) string {
			w.must(http.MethodPost, "/_control/faults", map[string]any{"target": "model", "status": 400, "match": "opening hours"}, nil)
			thread := w.post(linus, eng, "", "@deckhand what are the opening hours?")
			w.find(eng, thread, "the prompt to be marked", func(m message) bool { return m.TS == thread && m.reacted("warning") })
			w.must(http.MethodDelete, "/_control/faults", nil, nil)
			w.rests(eng, thread, false)
			return thread
		}},
		{"costs", "Linus asks what the thread has cost.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand what does this repo do?")
			w.done(eng, thread, thread)
			w.post(linus, eng, thread, "@deckhand costs")
			w.says(eng, thread, "This thread")
			w.rests(eng, thread, false)
			return thread
		}},
		{"restarted", "The bot is killed while a card waits; the card is approved, and the work goes on.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand tag the summer release")
			card := w.card(eng, thread)
			w.eventually("Grace to be called", func() bool {
				return slices.ContainsFunc(w.notices(), func(n notice) bool { return n.User == grace && strings.Contains(n.Text, "git tag summer") })
			})
			old := w.PIDs["bot"]
			if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
				w.t.Fatal(err)
			}
			w.renewed("bot", old)
			w.connected()
			w.click(grace, eng, card.TS, "approve")
			w.done(eng, thread, thread)
			w.rests(eng, thread, false)
			return thread
		}},
		{"asked", "Linus asks for something, and the card waits for an approver.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand fix the failing test")
			w.card(eng, thread)
			w.rests(eng, thread, true)
			return thread
		}},
		{"question", "The model asks Linus, who asked it.", eng, func(w *world) string {
			thread := w.post(linus, eng, "", "@deckhand ask me about the summer offer")
			w.find(eng, thread, "the question", func(m message) bool { return m.has("answer") })
			w.rests(eng, thread, true)
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
			w.rests(eng, thread, true)
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

// TestPictures draws each story as people see it, in light, in dark and on a phone, beside what
// an older bot showed them, and writes who was notified of what: into the folder that
// DECKHAND_PICTURES names, and not without it. Where TEST_OTHER_BOT names that older bot, its
// looks and notifications alone are written, as the next run takes them for what was before.
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
	w := unstartedWorld(t)
	w.configure(demoSandbox(t.Context()), budgetOfAChannel)
	other := os.Getenv(otherBot) != ""
	if other {
		w.database, w.owner = "", "" // this one's tables are not the other's
	}
	w.start()
	tab := chrome.Open(t, w.URL, "/#/c/"+eng+"?user="+linus)
	tab.Click(`[aria-label="Hide this note"]`)

	b := lockScreens{Bot: os.Getenv("DECKHAND_PICTURES_OF"), Told: map[string][]notice{}, Length: map[string]length{}}
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
		size := length{Posts: w.posts(p.channel, thread)}
		now := looks{light: pane(tab, "light")}
		size.Lines, size.Pixels = linesOf(tab), now.light.Bounds().Dy()
		now.dark, now.phone = pane(tab, "dark"), phone(tab)
		size.PhoneLines, size.PhonePixel = linesOf(tab), now.phone.Bounds().Dy()
		b.Length[p.name] = size
		told := w.notices()[from:]
		b.Told[p.name] = plain(w, told)
		if other {
			if err := now.write(filepath.Join(folder, p.name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if p.name == toGrace {
			if err := writePicture(filepath.Join(folder, p.name+"-grace.png"), directMessage(tab, w.URL, told)); err != nil {
				t.Fatal(err)
			}
		}
		once(t, p.name, b.Told[p.name])
		if err := now.beside(filepath.Join(before, p.name), filepath.Join(folder, p.name)); err != nil {
			t.Fatal(err)
		}
	}
	if other {
		b.keep(t, filepath.Join(folder, "notices.json"))
		return
	}
	for _, of := range []struct{ user, scheme, name string }{{ada, "light", "home-decides"}, {linus, "dark", "home-asks"}} {
		tab.Prefer(of.scheme)
		tab.Do(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(w.URL+"/#/home?user="+of.user))
		tab.SeeText("main", "What you spent")
		tab.Shot(of.name)
	}
	then := kept(t, filepath.Join(before, "notices.json"))
	count(t, filepath.Join(folder, "..", "pictures.md"), then, b)
	if err := os.WriteFile(filepath.Join(folder, "stories.md"), []byte(stories(then, b)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// posts is how many messages of the bot stand in a thread.
func (w *world) posts(channel, thread string) (n int) {
	for _, m := range w.messages(channel, thread) {
		if m.User == w.BotUser {
			n++
		}
	}
	return n
}

// linesOf is how many lines of text stand in the thread, one below the other.
func linesOf(tab *pagetest.Tab) int {
	return pagetest.Value[int](tab, `(() => {
		const texts = document.createTreeWalker(document.querySelector('[data-testid="thread"]'), NodeFilter.SHOW_TEXT), ends = [];
		while (texts.nextNode()) {
			const range = document.createRange();
			range.selectNodeContents(texts.currentNode);
			for (const r of range.getClientRects()) if (r.width > 1 && r.height > 1) ends.push(r.bottom);
		}
		return ends.sort((a, b) => a - b).filter((end, i) => i === 0 || end - ends[i - 1] > 5).length;
	})()`)
}

// looks are what one thread looks like, as the person who asked sees it.
type looks struct{ light, dark, phone image.Image }

// pane is the thread beside its channel, in a colour.
func pane(tab *pagetest.Tab, scheme string) image.Image {
	tab.Prefer(scheme)
	tab.See(`document.documentElement.dataset.theme === '` + scheme + `'`)
	whole(tab, 1280)
	return still(tab, `[data-testid="thread"]`)
}

// phone is the whole page as a phone shows it, in light.
func phone(tab *pagetest.Tab) image.Image {
	tab.Prefer("light")
	whole(tab, 390)
	return still(tab, "body")
}

// directMessage is what Grace finds on her phone when she was notified by a direct message.
func directMessage(tab *pagetest.Tab, url string, told []notice) image.Image {
	channel := ""
	for _, n := range told {
		if n.User == grace && n.Reason == "direct" {
			channel = n.Channel
		}
	}
	tab.Do(chromedp.EmulateViewport(390, 760), chromedp.Navigate(url+"/#/c/"+channel+"?user="+grace))
	tab.SeeText("main", "Run ")
	return still(tab, "body")
}

// still is an element's picture once it is drawn: what scrolls by itself comes a moment later.
func still(tab *pagetest.Tab, selector string) image.Image {
	tab.See(`(document.activeElement?.blur(), true)`) // no cursor blinks
	last := tab.Picture(selector)
	for range 10 {
		next := tab.Picture(selector)
		if same(last, next) {
			break
		}
		last = next
	}
	return last
}

// whole makes the window as high as the thread is long, also where it grows meanwhile.
func whole(tab *pagetest.Tab, width int64) {
	const list = `document.querySelector('[data-testid="thread"] .list-scroll')`
	height := int64(500)
	for more := height; more > 1; height += more {
		tab.Do(chromedp.EmulateViewport(width, height))
		tab.See(list + ` !== null && innerWidth === ` + strconv.FormatInt(width, 10) + ` && innerHeight === ` + strconv.FormatInt(height, 10))
		more = pagetest.Value[int64](tab, `(list => list.scrollHeight - list.clientHeight)(`+list+`)`)
	}
}
