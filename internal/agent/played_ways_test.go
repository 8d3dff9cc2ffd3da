package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/price"
	"deckhand/internal/store/approvals"
)

// The ways out of a played process: calls of the model, and connections to hosts.

// hangUp makes a call of the model and leaves it, so that it is read to its end.
func (p *playedProcess) hangUp() {
	if !p.prompted() {
		return
	}
	go func() {
		l := leftCall{begun: make(chan struct{})}
		b, err := p.calls.Begin(context.Background(), gateway.Call{ID: uuid.New(), Model: "claude-opus-5-5", At: time.Now(), Cut: l.cut})
		if err != nil {
			return
		}
		b.Alone()
		l.booking = b
		close(l.begun)
		p.stage.mu.Lock()
		defer p.stage.mu.Unlock()
		p.stage.left = append(p.stage.left, &l)
	}()
}

// leftCall is a call that is read to its end for nobody.
type leftCall struct {
	begun   chan struct{} // closed when there is its booking
	booking gateway.Booking
	once    sync.Once
}

// cut ends it before it has told all.
func (l *leftCall) cut() {
	l.end(gateway.Answer{Status: 200, Usage: price.Usage{Input: 10}, Left: true})
}

func (l *leftCall) end(a gateway.Answer) {
	a.Ended = time.Now()
	go l.once.Do(func() {
		<-l.begun
		l.booking.End(a)
	})
}

// readOn ends the calls that were left.
func (s *stage) readOn() {
	s.mu.Lock()
	left := s.left
	s.left = nil
	s.mu.Unlock()
	for _, l := range left {
		l.end(gateway.Answer{Status: 200, Usage: price.Usage{Input: 1000}, Left: true, Complete: true})
	}
}

// spend has a call of the model cost three dollars, or end the turn if it is refused, as
// the CLI does.
func (p *playedProcess) spend() {
	go func() {
		err := p.call(3_000_000)
		no, refused := errors.AsType[*gateway.Refusal](err)
		p.mu.Lock()
		defer p.mu.Unlock()
		if refused && p.turn {
			p.end(claude.Result{IsError: true, APIErrorStatus: no.Status, Text: "API Error: " + no.Sentence})
		}
	}()
}

// call makes a call of the model, as its gateway tells it. A process that has worked on
// nothing has made none.
func (p *playedProcess) call(microUSD int64) error {
	if !p.prompted() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	go func() { // the gateway's session ends with its process
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	b, err := p.calls.Begin(ctx, gateway.Call{ID: uuid.New(), Model: "claude-opus-5-5", At: time.Now(), Cut: cancel})
	if err == nil {
		b.End(gateway.Answer{Status: 200, Usage: price.Usage{Input: microUSD / 4}, Complete: true, Left: true, Ended: time.Now()})
	}
	return err
}

func (p *playedProcess) OnAsk(a egress.Asker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asker = a
}

// connection is one that waits for its host, as those of a gateway's session do.
type connection struct {
	host           string
	question       *egress.Question
	answered, left bool
}

func (c *connection) waits() bool { return !c.answered && !c.left }

// connect has a program want to reach a host, unless one waits for it already.
func (p *playedProcess) connect(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit != nil || slices.ContainsFunc(p.connections, func(c *connection) bool { return c.host == host && c.waits() }) {
		return
	}
	c := &connection{host: host}
	c.question = egress.NewQuestion(host, 443, func(a egress.Answer) { p.answered(c, a) })
	p.connections = append(p.connections, c)
	p.asker.Ask(c.question)
}

// disconnect has the connection leave that waits longest, if one does.
func (p *playedProcess) disconnect() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.connections {
		if c.waits() {
			c.left = true
			p.asker.Left(c.question)
			return true
		}
	}
	return false
}

// answered is the gateway: no connection is made without a decision on exactly its host.
func (p *playedProcess) answered(c *connection, a egress.Answer) {
	p.mu.Lock()
	waits := c.waits() && p.exit == nil
	c.answered = true
	p.mu.Unlock()
	switch {
	case !waits:
		return
	case !a.Allow:
		p.told("%s refused: %s", c.host, a.Refusal)
		if a.Refusal == "" {
			p.stage.breach("%s was refused a host without a sentence", p.name)
		}
		return
	}
	p.told("%s reached", c.host)
	input := string(policy.NetworkInput(c.host, 443))
	if a.During == nil || a.During.Err() != nil || !slices.ContainsFunc(p.stage.store.Approvals(), func(r approvals.Approval) bool {
		return r.ToolName == policy.NetworkTool && r.Status == approvals.Allowed && string(r.Input) == input && r.InputSHA256 == sha256.Sum256(r.Input) && r.ThreadID == p.thread && !r.TurnEnded
	}) {
		p.stage.breach("%s reached %s without a decision", p.name, c.host)
	}
}
