package slackui

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
	"go.uber.org/zap"
)

const (
	// sockets is how many connections we hold: Slack refreshes each now and then,
	// does not deliver a click again, and sends it to any that is there.
	sockets = 2
)

// listen holds the sockets until ctx ends.
func (a *App) listen(ctx context.Context) {
	var wg sync.WaitGroup
	var up atomic.Int32
	for i := range sockets {
		wg.Go(func() { a.holdSocket(ctx, i, &up) })
	}
	wg.Wait()
}

// holdSocket connects again and again: slack-go gives up on some refusals and
// does not wait between attempts on others.
func (a *App) holdSocket(ctx context.Context, n int, up *atomic.Int32) {
	log := a.screen.c.Log.With(zap.Int("socket", n))
	wait := time.Second
	for ctx.Err() == nil {
		began := time.Now()
		client := socketmode.New(a.client)
		var wg sync.WaitGroup
		connCtx, cancel := context.WithCancel(ctx)
		wg.Go(func() { a.consume(connCtx, client, log, up) })
		err := client.RunContext(connCtx)
		cancel()
		wg.Wait()
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			wait = time.Second
		}
		log.Error("Slack's socket ended; connecting again", zap.Error(err), zap.Duration("in", wait))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// consume takes events off the client and never waits for what they lead to: a
// consumer that stands still makes slack-go miss pings and the link die.
func (a *App) consume(ctx context.Context, client *socketmode.Client, log *zap.Logger, up *atomic.Int32) {
	connected := false
	set := func(now bool) {
		if now == connected {
			return
		}
		connected = now
		delta := int32(1)
		if !now {
			delta = -1
		}
		hears := up.Add(delta) > 0
		a.Hears(hears)
	}
	defer set(false)
	for {
		var ev socketmode.Event
		select {
		case <-ctx.Done():
			return
		case ev = <-client.Events:
		}
		switch ev.Type {
		case socketmode.EventTypeHello:
			set(true)
			a.greet(ev.Request, log)
		case socketmode.EventTypeConnecting, socketmode.EventTypeDisconnect:
			set(false)
		case socketmode.EventTypeConnectionError:
			set(false)
			log.Warn("connect to Slack's socket", zap.Any("error", ev.Data))
		case socketmode.EventTypeErrorBadMessage:
			// slack-go does not know it and would never acknowledge it.
			bad, ok := ev.Data.(*socketmode.ErrorBadMessage)
			if !ok {
				continue
			}
			var e envelope
			if err := json.Unmarshal(bad.Message, &e); err != nil || e.ID == "" {
				log.Warn("a frame that is no envelope", zap.Error(bad.Cause))
				continue
			}
			a.take(ctx, client, e)
		case socketmode.EventTypeEventsAPI, socketmode.EventTypeInteractive, socketmode.EventTypeSlashCommand:
			a.take(ctx, client, envelope{ID: ev.Request.EnvelopeID, Type: ev.Request.Type, Payload: ev.Request.Payload})
		case socketmode.EventTypeErrorWriteFailed:
			log.Warn("an acknowledgement was not written; Slack will deliver again", zap.Any("error", ev.Data))
		}
	}
}

// greet checks that nobody else receives our envelopes.
func (a *App) greet(hello *socketmode.Request, log *zap.Logger) {
	if hello == nil {
		return
	}
	log.Info("connected to Slack", zap.Int("connections", hello.NumConnections), zap.String("app", hello.ConnectionInfo.AppID))
	if hello.NumConnections > sockets {
		log.Warn("the app has more connections than this process holds: another replica, or a stranger with the app token who receives part of the clicks",
			zap.Int("connections", hello.NumConnections), zap.Int("ours", sockets))
	}
}

// envelope is a frame of Socket Mode.
type envelope struct {
	ID      string          `json:"envelope_id"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// take hands an envelope on, which is acknowledged when what it says is committed.
func (a *App) take(ctx context.Context, client *socketmode.Client, e envelope) {
	in, err := a.screen.decode(e)
	if err != nil {
		a.screen.c.Log.Warn("an envelope of an unknown shape is ignored", zap.String("type", e.Type), zap.Error(err))
	}
	a.Take(ctx, in, func(ctx context.Context, wrong map[string]string) {
		var payload any
		if wrong != nil { // a modal that stays open
			payload = slack.NewErrorsViewSubmissionResponse(wrong)
		}
		if err := client.AckCtx(ctx, e.ID, payload); err != nil {
			a.screen.c.Log.Warn("acknowledge an envelope", zap.Error(err))
		}
	})
}
