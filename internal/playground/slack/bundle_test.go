package slack_test

import (
	"context"
	"errors"
	"io"
	"log"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"deckhand/internal/playground/slack"
)

// bundle is a workspace in a bubble with slack-go's client for the app.
type bundle struct {
	*fast
	api *slackgo.Client
}

// withSlackGo runs a test against a workspace with slack-go in a bubble.
func withSlackGo(t *testing.T, o slack.Options, test func(t *testing.T, b *bundle)) {
	t.Helper()
	inBubble(t, o, func(t *testing.T, f *fast) {
		test(t, &bundle{fast: f, api: slackgo.New(f.srv.BotToken(), slackgo.OptionAppLevelToken(f.srv.AppToken()),
			slackgo.OptionAPIURL(base+"/api/"), slackgo.OptionHTTPClient(f.http))})
	})
}

// app is a Socket Mode client that acknowledges what its handler does not.
type app struct {
	t      *testing.T
	client *socketmode.Client
	events chan socketmode.Event // everything but connection events
	mu     sync.Mutex
	answer func(socketmode.Event) (any, bool) // payload and whether to acknowledge
}

// connect starts slack-go's Socket Mode client and waits for the hello.
func (b *bundle) connect() *app {
	b.t.Helper()
	a := &app{t: b.t, events: make(chan socketmode.Event, 1000)}
	a.client = socketmode.New(b.api, socketmode.OptionLog(log.New(io.Discard, "", 0)),
		socketmode.OptionDialer(&websocket.Dialer{NetDialContext: b.net.dial, WriteBufferSize: 32 << 10}))
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	hello := make(chan struct{}, 100)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := a.client.RunContext(ctx); err != nil && !errors.Is(err, context.Canceled) && ctx.Err() == nil {
			b.t.Errorf("socket mode: %v", err)
		}
	})
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-a.client.Events:
				switch e.Type {
				case socketmode.EventTypeHello:
					hello <- struct{}{}
				case socketmode.EventTypeEventsAPI, socketmode.EventTypeInteractive, socketmode.EventTypeSlashCommand, socketmode.EventTypeErrorBadMessage:
					a.handle(ctx, e)
				case socketmode.EventTypeDisconnect:
					a.events <- e
				default:
				}
			}
		}
	})
	b.t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	select {
	case <-hello:
	case <-time.After(time.Hour):
		b.t.Fatal("no hello in an hour")
	}
	return a
}

func (a *app) handle(ctx context.Context, e socketmode.Event) {
	a.mu.Lock()
	answer := a.answer
	a.mu.Unlock()
	var payload any
	ack := true
	if answer != nil {
		payload, ack = answer(e)
	}
	if ack && e.Request != nil {
		if err := a.client.AckCtx(ctx, e.Request.EnvelopeID, payload); err != nil && ctx.Err() == nil {
			a.t.Errorf("ack: %v", err)
		}
	}
	a.events <- e
}

// respond decides how envelopes are acknowledged from now on.
func (a *app) respond(f func(socketmode.Event) (any, bool)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

// next waits for the next envelope.
func (a *app) next() socketmode.Event {
	a.t.Helper()
	select {
	case e := <-a.events:
		return e
	case <-time.After(time.Hour):
		a.t.Fatal("no envelope in an hour")
		return socketmode.Event{}
	}
}

// obj is a JSON object.
type obj = map[string]any

// dig reads a path of object keys and list indexes, for example "view/blocks/0/type".
func dig(t *testing.T, v any, path string) any {
	t.Helper()
	for part := range strings.SplitSeq(path, "/") {
		switch x := v.(type) {
		case obj:
			v = x[part]
		case []any:
			i := 0
			for _, c := range part {
				i = i*10 + int(c-'0')
			}
			if i >= len(x) {
				t.Fatalf("%s: only %d items", path, len(x))
			}
			v = x[i]
		default:
			t.Fatalf("%s: nothing at %q in %v", path, part, v)
		}
	}
	return v
}
