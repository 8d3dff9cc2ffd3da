package slack

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
)

// ackWithin is how long an app has to acknowledge an envelope.
const ackWithin = 3 * time.Second

// retryDelays are the pauses before an event's second, third and last attempt.
var retryDelays = []time.Duration{0, time.Minute, 5 * time.Minute}

// eventLife is how long an event waits for a connection: as long as its retries
// would have taken.
const eventLife = 6 * time.Minute

// The envelope types.
const (
	envelopeEvent       = "events_api"
	envelopeInteractive = "interactive"
	envelopeSlash       = "slash_commands"
)

// switchboard routes envelopes to the app's sockets and follows them up: an
// acknowledgement within three seconds, else an event is sent again and a click
// is lost.
//
//	event:  queued (no connection) → sent → acknowledged
//	                    ↑              │ 3 s, or the connection broke
//	                    └── +0, +1 min, +5 min ──→ lost
//	click:  sent → acknowledged, or lost after 3 s
type switchboard struct {
	ctx    context.Context
	log    *zap.Logger
	wg     *sync.WaitGroup
	onLost func(payload object) // an event was given up

	mu      sync.Mutex
	closed  bool
	conns   []*socket
	tickets map[string]time.Time
	queue   []*delivery // events without a connection, oldest first

	duplicates int           // how many of the next events go out twice
	loseEvents int           // how many of the next events are never delivered: Slack has given them up
	dropClicks int           // how many of the next clicks are not delivered
	dropAcks   int           // how many of the next acknowledgements are not heard
	late       time.Duration // how long events are held back
	lateTimes  int           // how many of the next events; 0 = all
}

// delivery is one envelope on its way.
type delivery struct {
	kind    string
	payload json.RawMessage
	accepts bool
	attempt int
	reason  string
	event   object // for onLost

	sent   chan struct{}        // buffered: it was written to a connection
	acked  chan json.RawMessage // buffered: the response payload, may be nil
	broken chan struct{}        // buffered: its connection ended first
}

func newDelivery(kind string, payload object, accepts bool) *delivery {
	return &delivery{
		kind: kind, payload: mustJSON(payload), accepts: accepts, event: payload,
		sent: make(chan struct{}, 1), acked: make(chan json.RawMessage, 1), broken: make(chan struct{}, 1),
	}
}

func newSwitchboard(ctx context.Context, log *zap.Logger, wg *sync.WaitGroup) *switchboard {
	return &switchboard{ctx: ctx, log: log, wg: wg, tickets: map[string]time.Time{}}
}

// ticket makes a single-use credential for one connection.
func (b *switchboard) ticket() string {
	t := uuid.NewString()
	b.mu.Lock()
	defer b.mu.Unlock()
	for old, until := range b.tickets {
		if now().After(until) {
			delete(b.tickets, old)
		}
	}
	b.tickets[t] = now().Add(ticketLife)
	return t
}

// redeem takes a ticket; it says whether it was good.
func (b *switchboard) redeem(t string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	until, ok := b.tickets[t]
	delete(b.tickets, t)
	return ok && now().Before(until)
}

func (b *switchboard) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.conns)
}

// join adds a connection: it is greeted and given what was waiting. An eleventh
// one is told to go away.
func (b *switchboard) join(c *socket, host string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.wg.Add(1) // the reader, until it leaves
	b.wg.Go(func() { b.write(c) })
	debug := object{"host": host, "build_number": 1, "approximate_connection_time": 18060}
	if len(b.conns) >= maxConnections {
		c.out <- mustJSON(object{"type": "disconnect", "reason": "too_many_websockets", "debug_info": debug})
		b.hangUp(c)
		return true
	}
	b.conns = append(b.conns, c)
	c.out <- mustJSON(object{
		"type": "hello", "num_connections": len(b.conns), "debug_info": debug,
		"connection_info": object{"app_id": AppID},
	})
	waiting := b.queue
	b.queue = nil
	for _, d := range waiting {
		b.send(d)
	}
	return true
}

// leave forgets a connection; envelopes that it never acknowledged are broken.
func (b *switchboard) leave(c *socket) {
	defer b.wg.Done()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hangUp(c)
	b.conns = slices.DeleteFunc(b.conns, func(x *socket) bool { return x == c })
	for id, d := range c.pending {
		delete(c.pending, id)
		select {
		case d.broken <- struct{}{}:
		default:
		}
	}
}

// hangUp ends a connection from our side, once. The caller holds the mutex.
func (b *switchboard) hangUp(c *socket) {
	if !c.gone {
		c.gone = true
		close(c.done)
	}
}

// acknowledge hears the app's answer to an envelope.
func (b *switchboard) acknowledge(c *socket, envelope string, payload json.RawMessage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := c.pending[envelope]
	if d == nil {
		return // unknown, too late, or a second time
	}
	if b.dropAcks > 0 {
		b.dropAcks--
		return
	}
	delete(c.pending, envelope)
	d.acked <- payload
}

// send hands an envelope to any one connection, or queues an event when there is
// none. It says whether it was sent. The caller holds the mutex.
func (b *switchboard) send(d *delivery) bool {
	live := slices.DeleteFunc(slices.Clone(b.conns), func(c *socket) bool { return c.gone })
	for len(live) > 0 {
		i := rand.IntN(len(live))
		c := live[i]
		envelope := uuid.NewString()
		frame := object{
			"envelope_id": envelope, "type": d.kind, "payload": d.payload,
			"accepts_response_payload": d.accepts,
		}
		if d.kind == envelopeEvent {
			frame["retry_attempt"] = d.attempt
			frame["retry_reason"] = d.reason
		}
		select {
		case c.out <- mustJSON(frame):
			c.pending[envelope] = d
			d.sent <- struct{}{}
			return true
		default: // it does not read: it is as good as gone
			b.log.Warn("an app does not read its socket; it is disconnected")
			b.hangUp(c)
			live = slices.Delete(live, i, i+1)
		}
	}
	if d.kind == envelopeEvent {
		b.queue = append(b.queue, d)
	}
	return false
}

// event delivers an event and retries it; it returns at once. The first attempt
// is made before it returns, so events leave in the order in which they happen.
func (b *switchboard) event(payload object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	if b.loseEvents > 0 {
		b.loseEvents--
		return
	}
	copies := 1
	if b.duplicates > 0 {
		b.duplicates--
		copies = 2
	}
	hold := b.late
	if b.lateTimes > 0 {
		if b.lateTimes--; b.lateTimes == 0 {
			b.late = 0
		}
	}
	for range copies {
		d := newDelivery(envelopeEvent, payload, false)
		if hold == 0 {
			b.send(d)
		}
		b.wg.Go(func() { b.follow(d, hold) })
	}
}

// follow sees an event through its attempts.
func (b *switchboard) follow(d *delivery, hold time.Duration) {
	expired := time.After(hold + eventLife)
	for attempt := 0; ; attempt++ {
		pause, send := hold, hold > 0
		if attempt > 0 {
			pause, send = retryDelays[attempt-1], true
		}
		if !b.pause(pause) {
			return
		}
		if send {
			b.mu.Lock()
			d.attempt = attempt
			b.send(d)
			b.mu.Unlock()
		}
		select {
		case <-d.sent:
		case <-expired:
			b.lost(d)
			return
		case <-b.ctx.Done():
			return
		}
		timeout := time.NewTimer(ackWithin)
		select {
		case <-d.acked:
			timeout.Stop()
			return
		case <-d.broken:
			timeout.Stop()
		case <-timeout.C:
		case <-b.ctx.Done():
			timeout.Stop()
			return
		}
		if b.forget(d) {
			return // acknowledged in the same instant
		}
		if attempt == len(retryDelays) {
			b.lost(d)
			return
		}
		b.mu.Lock()
		d.reason = "timeout"
		b.mu.Unlock()
	}
}

// click delivers an interactive envelope or a slash command, once. The result
// comes on the channel within three seconds, unless the workspace closes.
func (b *switchboard) click(kind string, payload object) <-chan clickResult {
	d := newDelivery(kind, payload, true)
	result := make(chan clickResult, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		result <- clickResult{}
		return result
	case b.dropClicks > 0:
		b.dropClicks-- // it never leaves; the person waits all the same
	case !b.send(d):
		result <- clickResult{}
		return result
	}
	b.wg.Go(func() {
		timeout := time.NewTimer(ackWithin)
		defer timeout.Stop()
		select {
		case p := <-d.acked:
			result <- clickResult{acked: true, payload: p}
			return
		case <-d.broken:
		case <-timeout.C:
		case <-b.ctx.Done():
		}
		if b.forget(d) {
			result <- clickResult{acked: true, payload: <-d.acked}
			return
		}
		result <- clickResult{}
	})
	return result
}

// clickResult is how an interactive envelope ended.
type clickResult struct {
	acked   bool
	payload json.RawMessage // the app's answer in the acknowledgement, may be nil
}

// forget takes an envelope off the database, so that a late acknowledgement is not
// heard. It says whether one has just been heard.
func (b *switchboard) forget(d *delivery) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		for id, x := range c.pending {
			if x == d {
				delete(c.pending, id)
			}
		}
	}
	select {
	case <-d.broken: // of the attempt that is over
	default:
	}
	return len(d.acked) > 0
}

// lost gives an event up.
func (b *switchboard) lost(d *delivery) {
	b.mu.Lock()
	b.queue = slices.DeleteFunc(b.queue, func(x *delivery) bool { return x == d })
	b.mu.Unlock()
	b.log.Warn("an event was never acknowledged and is given up", zap.Any("event_id", d.event["event_id"]))
	if b.onLost != nil {
		b.onLost(d.event)
	}
}

func (b *switchboard) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-b.ctx.Done():
		return false
	}
}

// disconnect sends every connection a disconnect frame and ends it: at once when
// the link is disabled, else after the time that Slack leaves for a replacement.
// The reason "drop" cuts the connections without a word.
func (b *switchboard) disconnect(reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		if reason == "drop" {
			_ = c.conn.NetConn().Close()
			continue
		}
		select {
		case c.out <- mustJSON(object{"type": "disconnect", "reason": reason, "debug_info": object{"host": "playground"}}):
		default:
		}
		if reason == "link_disabled" {
			b.hangUp(c)
			continue
		}
		b.wg.Go(func() {
			select {
			case <-c.done:
				return
			case <-b.ctx.Done():
				return
			case <-time.After(disconnectGrace):
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.hangUp(c)
		})
	}
}

// close ends all connections; their goroutines are waited for by the Server.
func (b *switchboard) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, c := range b.conns {
		b.hangUp(c)
	}
	b.queue = nil
}
