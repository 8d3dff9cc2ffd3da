package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// tap reports a call to its meter. It belongs to the call's handler, in whose goroutine the proxy reads the answer.
type tap struct {
	call    Call
	booking Booking
	now     func() time.Time
	left    atomic.Bool // set by the transport's goroutine
	passage *passage
	over    bool

	status    int
	firstByte time.Time
	requestID string
	reading   reading
	free      bool // the provider bills nothing for such an answer
}

// begin asks the session's meter whether the call may leave. [Session.ServeHTTP] calls it before a call that costs
// something leaves; end follows when the call is over.
func (s *Session) begin(ctx context.Context, c Call) (*tap, *Refusal) {
	p := &passage{limits: s.gateway.limits}
	c.Cut = p.Cut
	b, err := s.meter.Begin(ctx, c)
	if err == nil {
		return &tap{call: c, booking: b, passage: p, now: time.Now}, nil
	}
	if no, ok := errors.AsType[*Refusal](err); ok {
		return nil, no
	}
	if ctx.Err() == nil {
		s.complain("a call could not be booked, and did not leave", zap.Error(err))
	}
	return nil, refuse(http.StatusServiceUnavailable, "What this call costs cannot be booked now, so it was not made. An admin finds the reason in the bot's log.")
}

type tapKey struct{}

// tapOf is the call's tap; nil if the call costs nothing.
func tapOf(r *http.Request) *tap {
	t, _ := r.Context().Value(tapKey{}).(*tap)
	return t
}

// follow attaches the tap to the call, and learns whether any of it left.
func (t *tap) follow(r *http.Request) *http.Request {
	ctx := context.WithValue(r.Context(), tapKey{}, t)
	return r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { t.left.Store(true) }}))
}

// answered notes the head of the provider's answer, and wraps its body.
func (t *tap) answered(resp *http.Response) {
	t.status, t.firstByte = resp.StatusCode, t.now()
	h := resp.Header
	t.requestID = printableName(cmp.Or(h.Get("Request-Id"), h.Get("X-Amzn-Requestid"), h.Get("X-Request-Id")))
	if resp.StatusCode >= 300 {
		t.free = true
		return
	}
	b := &tappedBody{ReadCloser: resp.Body, tap: t, missing: resp.ContentLength}
	switch kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); {
	case h.Get("Content-Encoding") != "":
		t.reading.unread = true
	case kind == "application/vnd.amazon.eventstream":
		b.decode = &frames{to: &t.reading}
	case kind == "text/event-stream", kind != "application/json" && t.call.Stream:
		b.decode = &lines{to: &t.reading}
	default:
		b.decode = &whole{to: &t.reading}
	}
	resp.Body = b
}

// answer is what is known now.
func (t *tap) answer() Answer {
	a := t.reading.answer()
	a.Status, a.RequestID, a.FirstByte, a.Left = t.status, t.requestID, t.firstByte, t.left.Load()
	a.Complete = a.Complete || t.free || !a.Left
	return a
}

// end tells the meter that the call is over. Only the first time counts.
func (t *tap) end() {
	if t.over {
		return
	}
	t.over = true
	t.passage.complete()
	a := t.answer()
	a.Ended = t.now()
	t.booking.End(a)
}

// decoder reads an answer in pieces of any size. It never fails: it notes in its reading what it cannot read.
type decoder interface {
	write(p []byte)
	// close says that the answer is over.
	close()
}

// tappedBody decodes an answer's body as it passes.
type tappedBody struct {
	io.ReadCloser
	tap     *tap
	decode  decoder // nil if nobody can read it
	missing int64   // bytes until the end; negative if unknown
}

func (b *tappedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	t := b.tap
	if t.over {
		return n, err
	}
	t.passage.received()
	known := t.reading.version
	if b.decode != nil {
		b.decode.write(p[:n])
		if b.missing -= int64(n); b.missing == 0 || err != nil {
			b.decode.close()
		}
	}
	switch {
	case t.reading.over || err != nil:
		t.end() // before the caller sees it
	case t.reading.version != known:
		t.booking.Seen(t.answer())
	}
	return n, err
}
