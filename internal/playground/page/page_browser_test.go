package page_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	slackgo "github.com/slack-go/slack"

	"deckhand/internal/playground/page/pagetest"
	"deckhand/internal/playground/slack"
)

// TestPage drives the page in a real Chromium, against the real workspace. Each
// part has a workspace and a profile of its own.
func TestPage(t *testing.T) {
	t.Parallel()
	chrome := pagetest.Start(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *pagetest.Browser)
	}{
		{"a thread from mention to approval", testStory},
		{"a modal with errors", testModal},
		{"one window, several people", testPeople},
		{"colours follow the system", testColours},
		{"every block is drawn", testGallery},
		{"foreign text cannot act", testHostileText},
		{"a lost connection is made up for", testReconnect},
		{"the reader's place is kept", testScrolling},
		{"menus and pickers", testElements},
		{"the home tab and a slash command", testHomeAndSlash},
		{"own messages, reactions and a file", testOwnMessages},
		{"an app that does not answer", testSilence},
		{"the page works by the keyboard only", testKeyboard},
		{"what people are notified of", testNotifications},
		{"the page works on a phone", testPhone},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, chrome) })
	}
}

const approval = `[
	{"type":"section","text":{"type":"mrkdwn","text":"*Bash* wants to run\n` + "```go test ./...```" + `"}},
	{"type":"context","elements":[{"type":"mrkdwn","text":"asked by <@U0LINUS> · expires in 10 minutes"}]},
	{"type":"actions","block_id":"decide","elements":[
		{"type":"button","action_id":"approve","style":"primary","value":"a1","text":{"type":"plain_text","text":"Approve"}},
		{"type":"button","action_id":"deny","style":"danger","value":"a1","text":{"type":"plain_text","text":"Deny"},
			"confirm":{"title":{"type":"plain_text","text":"Deny this?"},"text":{"type":"mrkdwn","text":"The model will be *told*."},"confirm":{"type":"plain_text","text":"Deny"},"deny":{"type":"plain_text","text":"Back"}}}
	]}
]`

func testStory(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	w := d.open(t, chrome, at(slack.ChannelEngineering, slack.UserLinus))
	w.SeeText(".banner", "This is a playground")

	// The bot's name is completed, and what is sent reaches the app.
	w.Write(`[data-testid="composer"]`, "@deck")
	w.SeeText(".suggestions", "Deckhand")
	w.Enter()
	w.Say(`[data-testid="composer"]`, "fix the failing test")
	mention := await(t, d.app.mentions)
	if want := "<@" + slack.BotUser + "> fix the failing test"; mention.Text != want {
		t.Fatalf("the app was told %q, want %q", mention.Text, want)
	}
	w.See(`document.querySelector('[data-testid="composer"]').value === ''`)
	root := mention.TimeStamp

	d.app.call("reactions.add", map[string]any{"channel": mention.Channel, "timestamp": root, "name": "eyes"})
	w.See(`document.querySelector('[data-reaction="eyes"]') !== null`)

	// The answer grows while it is written.
	stream, _ := d.app.call("chat.startStream", map[string]any{
		"channel": mention.Channel, "thread_ts": root, "markdown_text": "Reading **calc.go**",
		"recipient_user_id": slack.UserLinus, "recipient_team_id": slack.TeamID,
	})["ts"].(string)
	w.Click(".thread-link")
	w.SeeText(inMessage(stream, "strong"), "calc.go")
	w.See(`document.querySelector('[data-stream="live"] .typing') !== null`)
	d.app.call("assistant.threads.setStatus", map[string]any{"channel_id": mention.Channel, "thread_ts": root, "status": "is running the tests…"})
	w.SeeText(`[data-testid="thread-status"]`, "Deckhand is running the tests…")
	d.app.call("agents.sessions.setStatus", map[string]any{"channel_id": mention.Channel, "thread_ts": root, "status": "processing"})
	w.See(`document.querySelector('[data-testid="stop"]') !== null`)
	w.Shot("streaming-light")
	d.app.call("chat.appendStream", map[string]any{"channel": mention.Channel, "ts": stream, "markdown_text": " and its test.\n\n- one\n- two\n"})
	w.SeeText(inMessage(stream, "li:last-child"), "two")
	d.app.call("chat.stopStream", map[string]any{"channel": mention.Channel, "ts": stream})
	w.See(`document.querySelector('.typing') === null`)
	w.Click(`[data-testid="stop"]`) // which asks the app: the session goes on until it says otherwise
	d.app.call("agents.sessions.setStatus", map[string]any{"channel_id": mention.Channel, "thread_ts": root, "status": "active"})
	w.See(`document.querySelector('[data-testid="stop"]') === null`)

	// The asker may not approve, and only the asker is told so.
	card := d.app.post(mention.Channel, root, approval)
	w.Click(inMessage(card, `[data-action-id="approve"]`))
	click := await(t, d.app.clicks)
	if got := click.User.ID; got != slack.UserLinus {
		t.Errorf("the click is %s's, want %s's", got, slack.UserLinus)
	}
	d.app.call("chat.postEphemeral", map[string]any{"channel": mention.Channel, "user": slack.UserLinus, "thread_ts": root, "text": "Only *approvers* may decide this."})
	w.SeeText(".message.ephemeral", "Only visible to you")
	w.SeeText(".message.ephemeral", "Only approvers may decide this.")
	w.Shot("approval-light")
	w.Accessible("a thread with a card")

	// An approver sees the same thread without it, and decides.
	w.Click(`[data-testid="person-switch"]`)
	w.Click(`[data-person="` + slack.UserAda + `"]`)
	w.See(`document.querySelector('.message.ephemeral') === null`)
	w.Click(inMessage(card, `[data-action-id="deny"]`))
	w.SeeText(`[data-testid="confirm"]`, "The model will be told.")
	w.Click(`[data-testid="confirm"] button[type="button"].button`)
	w.See(`document.querySelector('[data-testid="confirm"]') === null`)
	w.Click(inMessage(card, `[data-action-id="approve"]`))
	click = await(t, d.app.clicks)
	if got, want := click.User.ID+" "+click.ActionCallback.BlockActions[0].Value, slack.UserAda+" a1"; got != want {
		t.Errorf("the click is %q, want %q", got, want)
	}
	d.app.call("chat.update", map[string]any{
		"channel": mention.Channel, "ts": card, "text": "approved",
		"blocks": json.RawMessage(`[{"type":"section","text":{"type":"mrkdwn","text":":white_check_mark: Approved by <@` + slack.UserAda + `>"}}]`),
	})
	w.SeeText(inMessage(card, ".message-body"), "Approved by @Ada Admin")
	w.See(`document.querySelector('[data-action-id="approve"]') === null`)

	// The conversation goes on in the thread.
	w.Say(`[data-testid="thread-composer"]`, "thank you")
	w.SeeText(`[data-testid="thread"]`, "thank you")
	w.SeeText(".channel .thread-link", "3 replies")
	w.Prefer("dark")
	w.Shot("thread-dark")
}

func testModal(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	got := make(chan map[string]map[string]slackgo.BlockAction, 1)
	d.app.submit = func(view slackgo.View) any {
		if strings.Contains(view.State.Values["why"]["text"].Value, "no reason") {
			return map[string]any{"response_action": "errors", "errors": map[string]string{"why": "Please give a reason."}}
		}
		got <- view.State.Values
		return nil
	}
	card := d.app.post(slack.ChannelEngineering, "", approval)
	w := d.open(t, chrome, at(slack.ChannelEngineering, slack.UserAda))
	w.Click(inMessage(card, `[data-action-id="approve"]`))
	click := await(t, d.app.clicks)
	d.app.call("views.open", map[string]any{"trigger_id": click.TriggerID, "view": json.RawMessage(`{
		"type":"modal","title":{"type":"plain_text","text":"Edit before it runs"},"submit":{"type":"plain_text","text":"Approve"},"close":{"type":"plain_text","text":"Cancel"},
		"blocks":[
			{"type":"input","block_id":"command","label":{"type":"plain_text","text":"Command"},"element":{"type":"plain_text_input","action_id":"text","multiline":true,"initial_value":"go test ./..."}},
			{"type":"input","block_id":"why","label":{"type":"plain_text","text":"Reason"},"element":{"type":"plain_text_input","action_id":"text"}},
			{"type":"input","block_id":"scope","label":{"type":"plain_text","text":"For"},"optional":true,"element":{"type":"radio_buttons","action_id":"scope","options":[
				{"text":{"type":"plain_text","text":"Once"},"value":"once"},{"text":{"type":"plain_text","text":"This session"},"value":"session"}]}},
			{"type":"input","block_id":"tell","label":{"type":"plain_text","text":"Tell"},"optional":true,"element":{"type":"multi_users_select","action_id":"tell"}}
		]}`)})
	w.SeeText(`[data-testid="modal"]`, "Edit before it runs")

	w.Click(`[data-testid="modal-submit"]`)
	w.SeeText(`[data-block-id="why"]`, "Please complete this required field.")
	w.Write(`[data-block-id="why"] input`, "no reason")
	w.See(`!document.querySelector('[data-block-id="why"] .input-error')`)
	w.Click(`[data-testid="modal-submit"]`)
	w.SeeText(`[data-block-id="why"]`, "Please give a reason.")
	w.Shot("modal-light")
	w.Accessible("a modal with an error")

	w.Write(`[data-block-id="why"] input`, strings.Repeat(kb.Backspace, len("no reason")))
	w.Write(`[data-block-id="why"] input`, "it only reads")
	w.Click(`[data-block-id="scope"] input[value="session"]`)
	w.Click(`[data-block-id="tell"] .picker-button`)
	w.Click(`.listbox-option[data-value="` + slack.UserGrace + `"]`)
	w.Do(chromedp.KeyEvent(kb.Escape))
	w.See(`document.querySelector('.listbox') === null && document.querySelector('[data-testid="modal"]') !== null`)
	w.Click(`[data-testid="modal-submit"]`)
	w.See(`document.querySelector('[data-testid="modal"]') === null`)

	values := await(t, got)
	want := []string{"go test ./...", "it only reads", "session", slack.UserGrace}
	if diff := cmp.Diff(want, []string{values["command"]["text"].Value, values["why"]["text"].Value, values["scope"]["scope"].SelectedOption.Value, strings.Join(values["tell"]["tell"].SelectedUsers, " ")}); diff != "" {
		t.Errorf("the app got other values (-want +got):\n%s", diff)
	}
}

func testPeople(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	ada := d.open(t, chrome, "/?user="+slack.UserAda+"#/c/"+slack.ChannelPrivate)
	ada.SeeText(".channel h1", "private-ops")
	linus := d.open(t, chrome, at(slack.ChannelEngineering, slack.UserLinus))
	linus.SeeText(".sidebar", "engineering")
	if got := linus.Text(".sidebar"); strings.Contains(got, "private-ops") {
		t.Errorf("Linus sees the private channel:\n%s", got)
	}

	// Two windows are two people in one conversation.
	ada.Click(`[data-channel="` + slack.ChannelEngineering + `"]`)
	ada.Say(`[data-testid="composer"]`, "hello @linus")
	ada.Enter() // the first one took the suggestion
	linus.SeeText(".list", "hello @Linus Engineer")
	linus.See(`document.querySelector('.mention-me') !== null`)

	// A guest sees one channel; who one is outlives a reload.
	linus.Click(`[data-testid="person-switch"]`)
	linus.Shot("people-light")
	linus.Accessible("the choice of a person")
	linus.Click(`[data-person="` + slack.UserGuest + `"]`)
	linus.See(`document.querySelector('[data-testid="person-switch"]').dataset.user === "` + slack.UserGuest + `"`)
	linus.See(`document.querySelectorAll('[data-channel^="C"]').length === 1`)
	linus.Do(chromedp.Navigate(d.url + "/"))
	linus.See(`document.querySelector('[data-testid="person-switch"]')?.dataset.user === "` + slack.UserGuest + `"`)

	// What one has not read is marked.
	ada.Click(`[data-channel="` + slack.ChannelRandom + `"]`)
	d.app.post(slack.ChannelEngineering, "", `[{"type":"section","text":{"type":"mrkdwn","text":"<@`+slack.UserAda+`>, look"}}]`)
	ada.SeeText(`[data-channel="`+slack.ChannelEngineering+`"] .side-count`, "1")
	ada.Click(`[data-channel="` + slack.ChannelEngineering + `"]`)
	ada.See(`document.querySelector('.side-count') === null`)
}

func testColours(t *testing.T, chrome *pagetest.Browser) {
	d := newDesk(t)
	w := d.open(t, chrome, at(slack.ChannelEngineering, slack.UserAda))
	w.See(`document.querySelector('[data-testid="composer"]') !== null`)
	lightness := `(getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3)`
	w.Prefer("dark")
	w.See(lightness + " < 60")
	w.Shot("empty-dark")
	w.Prefer("light")
	w.See(lightness + " > 240")
	w.Click(`[data-testid="theme"]`)
	w.See(lightness + " < 60")
	w.Do(chromedp.Navigate(d.url + "/"))
	w.See(`document.querySelector('[data-testid="composer"]') !== null`)
	w.See(lightness + " < 60")
}
