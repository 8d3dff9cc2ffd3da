package page_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"deckhand/internal/playground/page/pagetest"
	"deckhand/internal/playground/slack"
)

// testGallery posts every kind of block and looks for what must be seen of each.
func testGallery(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	raw, err := os.ReadFile("testdata/gallery.json")
	if err != nil {
		t.Fatal(err)
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(raw, &messages); err != nil {
		t.Fatal(err)
	}
	for _, blocks := range messages {
		// Image blocks need whole addresses.
		d.app.post(slack.ChannelRandom, "", strings.ReplaceAll(string(blocks), `"/files/`, `"`+d.url+`/files/`))
	}
	w := d.open(t, chrome, at(slack.ChannelRandom, slack.UserAda))
	w.See(fmt.Sprintf(`document.querySelectorAll('[data-ts]').length === %d`, len(messages)))
	for _, c := range []struct{ selector, text string }{
		{".block-header", "Weekly report"},
		{".block-section .mention-me", "@Ada Admin"},
		{".block-section .mention-link", "#engineering"},
		{".block-section time", "Nov 19, 2024"},
		{".field:nth-child(2)", "$0.42"},
		{".block-context", "expires in 10 minutes"},
		{".image-away", "nothing leaves this machine"},
		{".button.primary", "Primary"},
		{".picker-text", "Pick a model"},
		{".choices", "Allow"},
		{".markdown h1", "Heading one"},
		{".markdown .task-list-item", "done"},
		{".markdown .diff-add", "return a + b"},
		{".markdown td", "calc.go"},
		{".block-table tbody strong", "claude-sonnet"},
		{".rich-list", "first"},
		{".rich .pre", "formatted"},
		{".plan-count", "2 of 4"},
		{`.task[data-status="error"]`, "npm run build"},
		{".chart-legend", "sonnet"},
		{".chart figcaption", "Spend by model"},
	} {
		w.SeeText(c.selector, c.text)
	}
	for selector, want := range map[string]int{
		".block-divider": 1, ".image-thumb": 1, ".chart svg": 4, ".chart rect": 10, ".chart-pie path": 3,
		"input[type=date]": 1, "input[type=time]": 1, "input[type=radio]": 2, ".feedback button": 2, ".unknown": 0,
	} {
		if got := pagetest.Value[int](w, fmt.Sprintf("document.querySelectorAll(%q).length", selector)); got != want {
			t.Errorf("%d of %s, want %d", got, selector, want)
		}
	}
	w.Click(`.task[data-task-id="2"] .task-head`)
	w.SeeText(".task-body", "return a + b")
	w.Accessible("the gallery")

	// Nothing is wider than its pane, in any width.
	for _, width := range []int64{1280, 900, 420} {
		w.Do(chromedp.EmulateViewport(width, 900))
		w.See(`document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll('.message')].every((row) => row.scrollWidth <= row.clientWidth + 1)`)
		for _, theme := range []string{"light", "dark"} {
			w.Prefer(theme)
			w.Shot(fmt.Sprintf("gallery-%d-%s", width, theme))
		}
	}
}

// testHostileText holds that what others write is only ever text.
func testHostileText(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	const attack = `<script>window.hacked=1</script> <img src=x onerror=\"window.hacked=1\"> [click](javascript:window.hacked=1) ![pixel](https://evil.example/pixel.png) <javascript:window.hacked=1|label>`
	d.app.post(slack.ChannelRandom, "", `[
		{"type":"markdown","text":"`+attack+`"},
		{"type":"section","text":{"type":"mrkdwn","text":"`+attack+`"}},
		{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"link","url":"javascript:window.hacked=1","text":"rich"}]}]},
		{"type":"section","text":{"type":"mrkdwn","text":"`+strings.Repeat("long", 500)+`"}}
	]`)
	w := d.open(t, chrome, at(slack.ChannelRandom, slack.UserAda))
	w.SeeText(".markdown", "<script>window.hacked=1</script>")
	w.SeeText(".block-section", "<script>window.hacked=1</script>")
	if got := pagetest.Value[bool](w, "'hacked' in window"); got {
		t.Error("foreign text has run as a script")
	}
	if got := pagetest.Value[int](w, `document.querySelectorAll('.message a[href^="javascript"], .message img[src^="http"], .message script').length`); got != 0 {
		t.Errorf("%d scripts, foreign images or script links in the page", got)
	}
	w.See(`document.documentElement.scrollWidth <= innerWidth`)
}

func testReconnect(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	w := d.open(t, chrome, at(slack.ChannelRandom, slack.UserAda))
	w.See(`document.querySelector('.side-dot')?.dataset.on === 'true'`)
	w.Expect("Failed to load resource")
	d.server.CloseClientConnections()
	d.app.post(slack.ChannelRandom, "", `[{"type":"section","text":{"type":"plain_text","text":"said meanwhile"}}]`)
	w.SeeText(".list", "said meanwhile")
	w.See(`document.querySelector('.offline') === null`)
}

func testScrolling(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	say := func(i int) string {
		return d.app.post(slack.ChannelRandom, "", fmt.Sprintf(`[{"type":"section","text":{"type":"plain_text","text":"message %d"}}]`, i))
	}
	for i := range 200 {
		say(i)
	}
	w := d.open(t, chrome, at(slack.ChannelRandom, slack.UserAda))
	const fromEnd = `(() => { const box = document.querySelector('.channel .list-scroll'); return box.scrollHeight - box.scrollTop - box.clientHeight })()`
	w.SeeText(".list", "message 199")
	w.See(fromEnd + " < 2")
	ts := say(200)
	w.See(fmt.Sprintf(`document.querySelector('[data-ts=%q]') !== null && %s < 2`, ts, fromEnd))

	// Somebody who reads further up is left there.
	before := pagetest.Value[float64](w, `(document.querySelector('.channel .list-scroll').scrollTop = 300)`)
	w.SeeText(".to-end", "Latest messages")
	ts = say(201)
	w.See(fmt.Sprintf(`document.querySelector('[data-ts=%q]') !== null`, ts))
	if got := pagetest.Value[float64](w, `document.querySelector('.channel .list-scroll').scrollTop`); got != before {
		t.Errorf("the page scrolled from %v to %v under its reader", before, got)
	}
	w.Click(".to-end")
	w.See(fromEnd + " < 2")
	w.Do(chromedp.EmulateViewport(900, 500))
	w.See(fromEnd + " < 2")

	// Earlier messages come when they are asked for, and nothing moves.
	const first = `document.querySelector('[data-ts] .message-body').innerText`
	if got := pagetest.Value[string](w, first); got == "message 0" {
		t.Error("all messages are drawn at once")
	}
	w.Click(".earlier")
	w.See(first + ` === "message 0"`)
	w.See(`document.querySelector('.earlier') === null`)
	if got := pagetest.Value[float64](w, `document.querySelector('.channel .list-scroll').scrollTop`); got < 300 {
		t.Errorf("the page scrolled to %v when earlier messages came", got)
	}
}

func testElements(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	ts := d.app.post(slack.ChannelRandom, "", `[
		{"type":"actions","block_id":"a","elements":[
			{"type":"static_select","action_id":"model","placeholder":{"type":"plain_text","text":"Model"},"options":[
				{"text":{"type":"plain_text","text":"Opus"},"value":"opus"},{"text":{"type":"plain_text","text":"Haiku"},"value":"haiku"}]},
			{"type":"users_select","action_id":"who"},
			{"type":"overflow","action_id":"more","options":[{"text":{"type":"plain_text","text":"Copy"},"value":"copy"},{"text":{"type":"plain_text","text":"Stop"},"value":"stop"}]},
			{"type":"checkboxes","action_id":"flags","options":[{"text":{"type":"plain_text","text":"Tests"},"value":"tests"}]},
			{"type":"radio_buttons","action_id":"mode","options":[{"text":{"type":"plain_text","text":"Ask"},"value":"ask"},{"text":{"type":"plain_text","text":"Allow"},"value":"allow"}]},
			{"type":"datepicker","action_id":"day"}
		]}]`)
	w := d.open(t, chrome, at(slack.ChannelRandom, slack.UserAda))
	w.Click(inMessage(ts, `[data-action-id="model"]`))
	w.Click(`.listbox-option[data-value="haiku"]`)
	if got := await(t, d.app.clicks).ActionCallback.BlockActions[0].SelectedOption.Value; got != "haiku" {
		t.Errorf("selected model %q, want haiku", got)
	}
	w.SeeText(inMessage(ts, `[data-action-id="model"]`), "Haiku")

	w.Click(inMessage(ts, `[data-action-id="who"]`))
	w.Click(`.listbox-option[data-value="` + slack.UserGrace + `"]`)
	if got := await(t, d.app.clicks).ActionCallback.BlockActions[0].SelectedUser; got != slack.UserGrace {
		t.Errorf("selected user %q, want %q", got, slack.UserGrace)
	}

	w.Click(inMessage(ts, `[data-action-id="more"]`))
	w.Click(`.menu-item[data-value="stop"]`)
	if got := await(t, d.app.clicks).ActionCallback.BlockActions[0].SelectedOption.Value; got != "stop" {
		t.Errorf("chosen from the menu %q, want stop", got)
	}

	w.Click(inMessage(ts, `input[value="tests"]`))
	if got := await(t, d.app.clicks).ActionCallback.BlockActions[0].SelectedOptions; len(got) != 1 || got[0].Value != "tests" {
		t.Errorf("ticked %v, want tests", got)
	}
	w.Click(inMessage(ts, `input[value="tests"]`))
	if got := await(t, d.app.clicks).ActionCallback.BlockActions[0].SelectedOptions; len(got) != 0 {
		t.Errorf("ticked %v, want nothing", got)
	}

	w.Click(inMessage(ts, `input[value="allow"]`))
	click := await(t, d.app.clicks)
	if got := click.ActionCallback.BlockActions[0].SelectedOption.Value; got != "allow" {
		t.Errorf("mode %q, want allow", got)
	}
	if got := click.BlockActionState.Values["a"]["model"].SelectedOption.Value; got != "haiku" {
		t.Errorf("the state that goes with the click has model %q, want haiku", got)
	}

	w.Write(inMessage(ts, `[data-action-id="day"]`), "11202024")
	for { // a slow browser takes what is half typed for a pause
		if await(t, d.app.clicks).ActionCallback.BlockActions[0].SelectedDate == "2024-11-20" {
			break
		}
	}
}

func testHomeAndSlash(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	d.app.home = json.RawMessage(`{"type":"home","blocks":[
		{"type":"header","text":{"type":"plain_text","text":"Your sessions"}},
		{"type":"section","text":{"type":"mrkdwn","text":"*fix the failing test* in <#` + slack.ChannelEngineering + `>"},"accessory":{"type":"button","action_id":"resume","value":"1","text":{"type":"plain_text","text":"Resume"}}}]}`)
	w := d.open(t, chrome, "/?user="+slack.UserLinus)
	w.Click(`[data-testid="app-home"]`)
	w.SeeText(".home", "Your sessions")
	w.Shot("home-light")
	w.Click(`.home [data-action-id="resume"]`)
	if got := await(t, d.app.clicks).View.Type; got != "home" {
		t.Errorf("the click came from a %q, want home", got)
	}

	w.Click(`[data-channel="` + slack.ChannelEngineering + `"]`)
	w.Say(`[data-testid="composer"]`, "/deckhand costs")
	command := await(t, d.app.slashes)
	if got := command.Command + "|" + command.Text; got != "/deckhand|costs" {
		t.Errorf("the command was %q, want /deckhand|costs", got)
	}
	w.SeeText(".message.ephemeral", "You said: costs")
}

func testOwnMessages(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	w := d.open(t, chrome, at(slack.ChannelRandom, slack.UserAda))
	notes := t.TempDir() + "/notes.txt"
	if err := os.WriteFile(notes, []byte("first line\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Do(chromedp.SetUploadFiles(chromedp.CSS(`[data-testid="file-input"]`), []string{notes}))
	w.SeeText(".composer-files", "notes.txt")
	w.Say(`[data-testid="composer"]`, "see *these* notes")
	w.SeeText(".file", "notes.txt")
	w.SeeText(".snippet .pre", "second line")
	w.SeeText(".message-body strong", "these")

	w.Do(chromedp.Focus(chromedp.CSS(`[aria-label="Edit message"]`)))
	w.Enter()
	w.See(`document.querySelector('.edit-box textarea')?.value === 'see *these* notes'`)
	w.Say(".edit-box textarea", " please")
	w.SeeText(".message-body", "notes please")
	w.SeeText(".message-body", "(edited)")

	w.Do(chromedp.Focus(chromedp.CSS(`[aria-label="Add reaction"]`)))
	w.Enter()
	w.Click(`.emoji-cell[title=":eyes:"]`)
	w.See(`document.querySelector('[data-reaction="eyes"]')?.getAttribute('aria-pressed') === 'true'`)
	w.Click(`[data-reaction="eyes"]`)
	w.See(`document.querySelector('[data-reaction="eyes"]') === null`)

	w.Do(chromedp.Focus(chromedp.CSS(`[aria-label="Delete message"]`)))
	w.Enter()
	w.Click(`[data-testid="confirm"] .danger`)
	w.See(`document.querySelectorAll('[data-ts]').length === 0`)
}

func testSilence(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	ts := d.app.post(slack.ChannelRandom, "", approval)
	w := d.open(t, chrome, at(slack.ChannelRandom, slack.UserAda))
	d.app.setDeaf(true)
	w.Click(inMessage(ts, `[data-action-id="approve"]`))
	w.See(`document.querySelector('[data-action-id="approve"]').dataset.state === 'busy'`)
	w.SeeText(".toast.warning", "did not answer in time")
	w.See(`document.querySelector('[data-action-id="approve"]').dataset.state === 'failed'`)
	w.Shot("silence-light")

	d.app.setDeaf(false)
	w.Click(inMessage(ts, `[data-action-id="approve"]`))
	await(t, d.app.clicks)
	w.See(`document.querySelector('[data-action-id="approve"]').dataset.state === 'idle'`)
}

func testKeyboard(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	ts := d.app.post(slack.ChannelRandom, "", approval)
	w := d.open(t, chrome, at(slack.ChannelRandom, slack.UserAda))
	w.See(`document.activeElement?.dataset.testid === 'composer'`)
	w.Do(chromedp.Focus(chromedp.CSS(inMessage(ts, `[data-action-id="deny"]`))), chromedp.KeyEvent(" "))
	w.See(`document.querySelector('[data-testid="confirm"]')?.contains(document.activeElement)`)
	for range 5 { // Tab stays in the dialog
		w.Do(chromedp.KeyEvent(kb.Tab))
		w.See(`document.querySelector('[data-testid="confirm"]').contains(document.activeElement)`)
	}
	w.Do(chromedp.KeyEvent(kb.Escape))
	w.See(`document.querySelector('[data-testid="confirm"]') === null && document.activeElement?.dataset.actionId === 'deny'`)

	w.Do(chromedp.Focus(chromedp.CSS(`[data-testid="person-switch"]`)))
	w.Enter()
	w.See(`document.activeElement?.dataset.person === "` + slack.UserAda + `"`)
	w.Do(chromedp.KeyEvent(kb.ArrowDown))
	w.Enter()
	w.See(`document.querySelector('[data-testid="person-switch"]').dataset.user === "` + slack.UserGrace + `"`)

	unnamed := `[...document.querySelectorAll('button, a, input, textarea')].filter((e) => e.offsetParent && !(e.innerText || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.closest('label'))).map((e) => e.outerHTML.slice(0, 120))`
	if got := pagetest.Value[[]string](w, unnamed); len(got) > 0 {
		t.Errorf("controls without a name: %q", got)
	}
}
