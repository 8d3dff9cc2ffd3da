package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// limits bound how long an answer without a caller is read.
type limits struct {
	// silent is how long the provider may send nothing, and alone how long it may take in all. Then the call is
	// cut.
	silent, alone time.Duration
	// taking is how long a caller may read nothing. Then it counts as gone, so that it cannot hold up the provider.
	taking time.Duration
}

var usualLimits = limits{silent: 10 * time.Minute, alone: time.Hour, taking: time.Minute}

// passage is a call that costs something, on its way out and back. It outlives a caller that hangs up or is killed:
// it is read to its end, so that its cost is known. It can be cut from outside, and then ends with its caller if
// that is still there; closing a session cuts nothing.
type passage struct {
	limits limits

	mu      sync.Mutex
	booking Booking            // nil until it has begun
	end     context.CancelFunc // cuts it; nil until it leaves
	timers  []*time.Timer      // the first is that of silence; nil until the caller has left
	left    bool               // the caller has gone
	cut     bool               // it ends with its caller
	over    bool               // its whole cost is known
}

// leave starts the passage. It returns the context of the call to the provider, and what to call when it is over.
// ended is the gateway's context.
func (p *passage) leave(caller, ended context.Context, b Booking) (context.Context, func()) {
	ctx, end := context.WithCancel(context.WithoutCancel(caller))
	p.mu.Lock()
	p.booking, p.end = b, end
	p.mu.Unlock()
	closed, gone := context.AfterFunc(ended, end), context.AfterFunc(caller, p.callerLeft)
	return ctx, func() {
		gone()
		closed()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = true
		for _, t := range p.timers {
			t.Stop()
		}
		end()
	}
}

// Cut is [Call.Cut].
func (p *passage) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	if p.left && p.end != nil {
		p.end()
	}
}

func (p *passage) callerLeft() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left = true; p.cut || p.over {
		p.end()
		return
	}
	p.timers = []*time.Timer{time.AfterFunc(p.limits.silent, p.end), time.AfterFunc(p.limits.alone, p.end)}
	p.booking.Alone()
}

// received says that the provider has sent something.
func (p *passage) received() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timers != nil {
		p.timers[0].Reset(p.limits.silent)
	}
}

// complete says that nothing follows that costs.
func (p *passage) complete() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// deafWriter writes to a caller while there is one. It never fails, so that the proxy reads on.
type deafWriter struct {
	http.ResponseWriter
	limits  limits
	renewed time.Time // when the caller's write deadline was last extended
	gone    bool
}

func (w *deafWriter) Write(p []byte) (int, error) {
	if w.gone {
		return len(p), nil
	}
	// Not for every chunk: they come fifty times a second.
	if now := time.Now(); now.Sub(w.renewed) > w.limits.taking/4 {
		w.renewed = now
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(now.Add(w.limits.taking))
	}
	_, err := w.ResponseWriter.Write(p)
	w.gone = err != nil
	return len(p), nil
}

// FlushError implements flushing for [http.ResponseController].
func (w *deafWriter) FlushError() error {
	if !w.gone {
		w.gone = http.NewResponseController(w.ResponseWriter).Flush() != nil
	}
	return nil
}
