package slackui

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

const (
	// sockets is how many connections we hold: Slack refreshes each now and then,
	// does not deliver a click again, and sends it to any that is there.
	sockets = 2
	// ackLimit is Slack's time for an acknowledgement, less the way back.
	ackLimit = 2500 * time.Millisecond
	// routeLimit bounds what one envelope may take after it is acknowledged.
	routeLimit = store.HoldFor * 3 / 4
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
	log := a.log.With(zap.Int("socket", n))
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
		a.connected.Store(hears)
		if !hears {
			a.cursor.mute()
		}
		signal(a.cursor.wake)
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

// take commits the envelope, acknowledges it, and then acts on it. What cannot be
// committed is not acknowledged, so that Slack delivers it again.
func (a *App) take(ctx context.Context, client *socketmode.Client, e envelope) {
	in, err := decode(e)
	if err != nil {
		a.log.Warn("an envelope of an unknown shape is ignored", zap.String("type", e.Type), zap.Error(err))
	}
	if in == nil || a.ours(in.store) {
		a.ack(ctx, client, e.ID)
		return
	}
	if in.byBot {
		a.ack(ctx, client, e.ID)
		a.envelopes.Go(func() { // no answer: two bots that answer each other never end
			_ = a.recordRefusal(context.WithoutCancel(ctx), in.person(), access.Prompt, &access.Refusal{Reason: "a bot"})
		})
		return
	}
	if wrong := a.wrongValues(in); wrong != nil {
		a.ackWith(ctx, client, e.ID, slack.NewErrorsViewSubmissionResponse(wrong))
		return
	}
	enter, leave := func() {}, func() {}
	if in.store.Kind == store.KindMessage { // or a change of one
		enter, leave = a.lanes.reserve(in.store.ChannelID + "/" + in.store.ThreadTS)
	}
	a.envelopes.Go(func() {
		defer leave()
		enter()
		// What was begun is finished even while the bot stops.
		ctx := context.WithoutCancel(ctx)
		switch {
		case in.change != nil:
			a.takeChange(ctx, client, e.ID, in)
		case in.transient:
			a.ack(ctx, client, e.ID)
			a.act(ctx, in)
		case in.click != nil && !in.isPrompt():
			// A decision is committed before it has any effect, so it need not wait for
			// the inbox: the person does, for the tool.
			var outcome string
			in.lasts = true
			var acting sync.WaitGroup
			acting.Go(func() { outcome = a.act(ctx, in) })
			id, fresh := a.commit(ctx, client, e.ID, in)
			acting.Wait()
			if fresh {
				a.finish(ctx, id, in, outcome)
			} else {
				a.tellNow(in)
			}
		default:
			id, fresh := a.commit(ctx, client, e.ID, in)
			if fresh {
				in.store.ID, in.lasts = id, true
				a.work(ctx, in)
			}
		}
	})
}

// takeChange acts on a change of a message. One by which the message mentions us for the first
// time is taken as a message, unless it is here already.
func (a *App) takeChange(ctx context.Context, client *socketmode.Client, envelopeID string, in *incoming) {
	if !a.onChange(ctx, in) {
		return
	}
	post := in.mentions(a.mention())
	if post == nil {
		a.ack(ctx, client, envelopeID)
	} else if id, fresh := a.commit(ctx, client, envelopeID, post); fresh {
		post.store.ID, post.lasts = id, true
		a.work(ctx, post)
		return
	}
	a.tellLate(ctx, in)
}

// commit stores and acknowledges the envelope. fresh is false when it was here
// already, is not for us, or could not be stored.
func (a *App) commit(ctx context.Context, client *socketmode.Client, envelopeID string, in *incoming) (id int64, fresh bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, ackLimit, fmt.Errorf("commit an envelope: no end in %s", ackLimit))
	defer cancel()
	if !a.relevant(ctx, in) {
		a.ack(ctx, client, envelopeID)
		return 0, false
	}
	row := in.store // which whoever acts on a click reads meanwhile
	row.Holder = a.inbox.holder
	id, fresh, err := a.c.Store.Receive(ctx, row)
	if err != nil {
		a.log.Error("an envelope could not be stored and is not acknowledged", zap.String("event", in.store.EventID), zap.Error(err))
		if in.store.Kind == store.KindMessage {
			a.keepUnstored(in)
		} else if in.store.ChannelID != "" { // Slack does not deliver it again
			a.whisper(in.store.ChannelID, in.store.ThreadTS, in.store.UserID, render.Sentence(sorry))
		}
		return 0, false
	}
	if !fresh && !a.completeFiles(ctx, in) {
		return 0, false
	}
	a.ack(ctx, client, envelopeID)
	return id, fresh
}

func (a *App) ack(ctx context.Context, client *socketmode.Client, envelopeID string) {
	a.ackWith(ctx, client, envelopeID, nil)
}

// ackWith acknowledges a modal's submission with what becomes of the modal.
func (a *App) ackWith(ctx context.Context, client *socketmode.Client, envelopeID string, payload any) {
	if err := client.AckCtx(ctx, envelopeID, payload); err != nil {
		a.log.Warn("acknowledge an envelope", zap.Error(err))
	}
}
