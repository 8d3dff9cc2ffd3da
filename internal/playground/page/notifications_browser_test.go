package page_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"deckhand/internal/playground/page/pagetest"
	"deckhand/internal/playground/slack"
)

// testNotifications watches what people's devices would have shown, as it happens, and has
// one of them keep quiet.
func testNotifications(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	say := func(text string) string {
		return d.app.post(slack.ChannelEngineering, "", fmt.Sprintf(`[{"type":"section","text":{"type":"mrkdwn","text":%q}}]`, text))
	}
	first := say("<@" + slack.UserAda + ">, look")
	w := d.open(t, chrome, at(slack.ChannelEngineering, slack.UserAda))
	w.Click(`[data-testid="notifications"]`)
	w.SeeText(`[data-testid="notices"]`, "mentioned")
	w.See(`document.title.startsWith('Notifications')`)

	// The newest stands first, without a reload; edits are no news.
	d.app.call("chat.update", map[string]any{"channel": slack.ChannelEngineering, "ts": first, "text": "<@" + slack.UserAda + ">, again"})
	second := d.app.call("chat.postMessage", map[string]any{"channel": "D0ADA", "text": "Your answer is there."})["ts"]
	w.SeeText(`[data-testid="notices"] li:first-child`, "Your answer is there.")
	w.See(`document.querySelectorAll('[data-testid="notices"] li').length === 2`)

	// By the keyboard: Ada pauses her notifications, and Linus is still called.
	w.Do(chromedp.Focus(chromedp.CSS(`[data-testid="dnd"]`)), chromedp.KeyEvent(kb.ArrowDown))
	w.See(`document.querySelector('[data-testid="dnd"]').value === 'paused'`)
	say("<@" + slack.UserAda + "> <@" + slack.UserLinus + ">, once more")
	w.SeeText(`[data-testid="notices"] li:first-child`, "Held back: do not disturb")
	w.Click(`[data-testid="notices-all"]`)
	w.SeeText(`[data-testid="notices"]`, "to Linus Engineer: mentioned")
	w.Accessible("the notifications")
	w.Shot("notifications-light")
	w.Do(chromedp.EmulateViewport(420, 900))
	w.See(`document.documentElement.scrollWidth <= innerWidth`)
	w.Shot("notifications-420-light")
	w.Do(chromedp.EmulateViewport(1280, 800))
	w.Click(fmt.Sprintf(`[data-notice=%q]`, second))
	w.SeeText(".list", "Your answer is there.")
}

// testPhone walks through the page where there is room for one thing at a time, without a
// pointer's help: from the list of channels into a thread and a card's form, and out again.
func testPhone(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	root := d.app.post(slack.ChannelEngineering, "", `[{"type":"section","text":{"type":"mrkdwn","text":"✅ a thread"}}]`)
	card := d.app.post(slack.ChannelEngineering, root, approval)
	w := d.open(t, chrome, at(slack.ChannelRandom, slack.UserAda))
	w.Do(chromedp.EmulateViewport(390, 844))
	w.See(`[...document.querySelectorAll('.banner-try button')].filter((b) => b.offsetParent != null).length === 3`)
	focus := func(selector string) {
		w.Do(chromedp.Focus(chromedp.CSS(selector)))
		w.Enter()
	}
	focus(".drawer")
	w.See(`getComputedStyle(document.querySelector('.sidebar')).visibility === 'visible'`)
	w.Accessible("the list of channels on a phone")
	focus(`[data-channel="` + slack.ChannelEngineering + `"]`)
	w.SeeText(".channel h1", "engineering")
	w.See(`getComputedStyle(document.querySelector('.sidebar')).visibility === 'hidden'`)
	focus(".thread-link")
	w.See(`document.querySelector(` + "`" + inMessage(card, `[data-action-id="approve"]`) + "`" + `)?.offsetParent != null`)
	w.See(`[...document.querySelectorAll('.pre')].every((pre) => pre.scrollWidth <= pre.clientWidth + 1)`)
	w.See(drawn)
	w.Accessible("a thread on a phone")
	w.Shot("phone-thread-light")
	focus(inMessage(card, `[data-action-id="deny"]`))
	w.See(`document.querySelector('[data-testid="confirm"]')?.contains(document.activeElement)`)
	w.Do(chromedp.KeyEvent(kb.Escape))
	w.See(`document.querySelector('[data-testid="confirm"]') === null && document.activeElement?.dataset.actionId === 'deny'`)
	w.Do(chromedp.KeyEvent(kb.Escape)) // out of the thread
	w.See(`document.querySelector('[data-testid="thread"]') === null`)
	w.See(`document.documentElement.scrollWidth <= innerWidth`)
	w.Click(".banner-try button:nth-of-type(2)")
	w.See(`document.querySelector('[data-testid="composer"]').value === '@deckhand explain this project'`)
}

// drawn is whether a sign is one that a font has, or words.
const drawn = `(() => {
	const draw = (char) => {
		const context = Object.assign(document.createElement('canvas'), {width: 32, height: 32}).getContext('2d');
		context.font = '24px sans-serif';
		context.fillText(char, 2, 26);
		return context.getImageData(0, 0, 32, 32).data.join();
	};
	const missing = draw('✅') === draw('\u{10FFFD}'); // some fonts have 😀 alone
	return document.querySelector('[data-testid="thread"]').innerText.includes(missing ? '[done] a thread' : '✅ a thread');
})()`
