package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"

	"deckhand/internal/playground/slack"
	"deckhand/internal/waittest"
)

// app is what the people in the page talk to: connected over Socket Mode like
// any app, and doing what the test says.
type app struct {
	t    *testing.T
	base string
	bot  string

	http     *http.Client // keeps no connections: a test may break the server's
	api      *slackgo.Client
	mentions chan *slackevents.AppMentionEvent
	clicks   chan slackgo.InteractionCallback
	slashes  chan slackgo.SlashCommand

	mu     sync.Mutex
	submit func(slackgo.View) any // answers a modal's submission; nil closes it
	home   any                    // published when somebody opens the home tab
	deaf   bool                   // does not acknowledge clicks
}

// connect starts an app and waits until its socket is open.
func connect(t *testing.T, workspace *slack.Server, base string) *app {
	t.Helper()
	a := &app{
		t:        t,
		base:     base,
		bot:      workspace.BotToken(),
		http:     &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		api:      slackgo.New(workspace.BotToken(), slackgo.OptionAppLevelToken(workspace.AppToken()), slackgo.OptionAPIURL(base+"/api/")),
		mentions: make(chan *slackevents.AppMentionEvent, 10),
		clicks:   make(chan slackgo.InteractionCallback, 10),
		slashes:  make(chan slackgo.SlashCommand, 10),
	}
	socket := socketmode.New(a.api)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { _ = socket.RunContext(ctx) }) // ends with the context, which is no failure
	running.Go(func() { a.listen(ctx, socket, ready) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		http.DefaultClient.CloseIdleConnections()
	})
	select {
	case <-ready:
	case <-t.Context().Done():
	}
	return a
}

func (a *app) listen(ctx context.Context, socket *socketmode.Client, ready chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-socket.Events:
			switch event.Type {
			case socketmode.EventTypeHello:
				close(ready)
			case socketmode.EventTypeEventsAPI:
				a.ack(socket, event, nil)
				a.event(event.Data.(slackevents.EventsAPIEvent))
			case socketmode.EventTypeSlashCommand:
				command := event.Data.(slackgo.SlashCommand)
				a.ack(socket, event, map[string]any{"text": "You said: " + command.Text})
				a.slashes <- command
			case socketmode.EventTypeInteractive:
				callback := event.Data.(slackgo.InteractionCallback)
				if callback.Type == slackgo.InteractionTypeViewSubmission {
					a.mu.Lock()
					submit := a.submit
					a.mu.Unlock()
					a.ack(socket, event, submit(callback.View))
					continue
				}
				a.mu.Lock()
				deaf := a.deaf
				a.mu.Unlock()
				if !deaf {
					a.ack(socket, event, nil)
					a.clicks <- callback
				}
			default: // connecting, connected and the like say nothing of interest
			}
		}
	}
}

func (a *app) setDeaf(deaf bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deaf = deaf
}

func (a *app) ack(socket *socketmode.Client, event socketmode.Event, payload any) {
	var err error
	if payload == nil {
		err = socket.Ack(*event.Request)
	} else {
		err = socket.Ack(*event.Request, payload)
	}
	if err != nil {
		a.t.Errorf("acknowledge: %v", err)
	}
}

func (a *app) event(event slackevents.EventsAPIEvent) {
	switch inner := event.InnerEvent.Data.(type) {
	case *slackevents.AppMentionEvent:
		a.mentions <- inner
	case *slackevents.AppHomeOpenedEvent:
		a.mu.Lock()
		home := a.home
		a.mu.Unlock()
		if home != nil {
			a.call("views.publish", map[string]any{"user_id": inner.User, "view": home})
		}
	}
}

// call is one Web API call; what Slack would refuse fails the test.
func (a *app) call(method string, arguments any) map[string]any {
	a.t.Helper()
	body, err := json.Marshal(arguments)
	if err != nil {
		a.t.Errorf("encode %s: %v", method, err)
		return nil
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(a.t.Context()), http.MethodPost, a.base+"/api/"+method, bytes.NewReader(body))
	if err != nil {
		a.t.Errorf("make %s: %v", method, err)
		return nil
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Authorization", "Bearer "+a.bot)
	response, err := a.http.Do(request)
	if err != nil {
		a.t.Errorf("call %s: %v", method, err)
		return nil
	}
	defer func() { _ = response.Body.Close() }() // read to its end below
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		a.t.Errorf("decode %s: %v", method, err)
		return nil
	}
	if answer["ok"] != true {
		a.t.Errorf("%s: %v", method, answer)
	}
	return answer
}

// post posts blocks, written as JSON, and returns the message's timestamp.
func (a *app) post(channel, thread, blocks string) string {
	a.t.Helper()
	arguments := map[string]any{"channel": channel, "text": "fallback", "blocks": json.RawMessage(blocks)}
	if thread != "" {
		arguments["thread_ts"] = thread
	}
	ts, _ := a.call("chat.postMessage", arguments)["ts"].(string)
	return ts
}

// await is the next of something that the app is told.
func await[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	select {
	case got := <-from:
		return got
	case <-ctx.Done():
		t.Fatalf("the app was never told: %v", ctx.Err())
	}
	panic("unreachable")
}

// inMessage selects something in one message.
func inMessage(ts, selector string) string {
	return fmt.Sprintf(`[data-ts=%q] %s`, ts, selector)
}
