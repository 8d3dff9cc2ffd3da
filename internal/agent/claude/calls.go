package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"
)

// ErrUnsupported means that this CLI does not know the request.
var ErrUnsupported = errors.New("not supported by this version of the CLI")

// ErrNoAnswer means that the CLI did not answer in time; old versions do not
// answer requests that they do not know.
var ErrNoAnswer = errors.New("no answer")

// ErrKilled means that the CLI or its reaper was killed from outside, such as by a machine
// that has no memory left. An [ExitError] is it, too, if that is its reason.
var ErrKilled = errors.New("it was killed")

// ErrNotPending means that a request of the CLI's was already answered,
// withdrawn, or never made.
var ErrNotPending = errors.New("the request is not pending")

// requestError is the CLI's refusal of a control request.
type requestError struct {
	// Request is the request's subtype, Message what the CLI said.
	Request, Message string
	unsupported      bool
}

func (e *requestError) Error() string { return fmt.Sprintf("%s: %s", e.Request, e.Message) }

// Is makes a refusal of an unknown request match [ErrUnsupported].
func (e *requestError) Is(target error) bool { return target == ErrUnsupported && e.unsupported }

// calls are the requests in flight in both directions.
type calls struct {
	mu   sync.Mutex
	last int
	// ours wait for the CLI's answer; theirs wait for ours, by request id.
	ours   map[string]chan *controlResponse
	theirs map[string]bool
	err    error
}

func newCalls() *calls {
	return &calls{ours: make(map[string]chan *controlResponse), theirs: make(map[string]bool)}
}

// begin makes an id for a request of ours and a place for its answer.
func (c *calls) begin() (id string, answer chan *controlResponse, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return "", nil, c.err
	}
	c.last++
	id = "deckhand-" + strconv.Itoa(c.last)
	answer = make(chan *controlResponse, 1)
	c.ours[id] = answer
	return id, answer, nil
}

func (c *calls) forget(id string) {
	c.mu.Lock()
	delete(c.ours, id)
	c.mu.Unlock()
}

// resolve hands an answer to who waits for it; false when nobody does, as for
// an echo of our own answers.
func (c *calls) resolve(m *controlResponse) bool {
	c.mu.Lock()
	answer, ok := c.ours[m.requestID]
	delete(c.ours, m.requestID)
	c.mu.Unlock()
	if ok {
		answer <- m
	}
	return ok
}

// open notes a request of the CLI's.
func (c *calls) open(id string) {
	c.mu.Lock()
	c.theirs[id] = true
	c.mu.Unlock()
}

// close drops a request of the CLI's; false when it was not pending.
func (c *calls) close(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ok := c.theirs[id]
	delete(c.theirs, id)
	return ok
}

// fail ends everything in flight, now and later.
func (c *calls) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	for id, answer := range c.ours {
		close(answer)
		delete(c.ours, id)
	}
	clear(c.theirs)
}

// request asks the CLI and waits for its answer, at most for timeout. fields
// are the members of the request beside its subtype.
func (p *Process) request(ctx context.Context, timeout time.Duration, subtype string, fields map[string]any) (json.RawMessage, error) {
	if version := p.knownVersion(); !supports(version, subtype) {
		return nil, &requestError{Request: subtype, Message: "not in version " + version, unsupported: true}
	}
	id, answer, err := p.calls.begin()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", subtype, err)
	}
	defer p.calls.forget(id)
	inner := map[string]any{"subtype": subtype}
	maps.Copy(inner, fields)
	line, err := json.Marshal(map[string]any{"type": "control_request", "request_id": id, "request": inner})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", subtype, err)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	if err := p.in.post(line, nil); err != nil {
		if errors.Is(err, errInputClosed) {
			select { // how it ended says more
			case <-p.done:
				err = p.exit
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		return nil, fmt.Errorf("%s: %w", subtype, err)
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: %w", subtype, p.calls.err)
		case m.failed:
			return nil, &requestError{Request: subtype, Message: m.err, unsupported: unsupportedMessage(m.err)}
		}
		return m.response, nil
	case <-timer.C:
		return nil, fmt.Errorf("%s: %w in %v", subtype, ErrNoAnswer, timeout)
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", subtype, context.Cause(ctx))
	}
}

// ask is request with the usual time limit, decoding the answer into out.
func (p *Process) ask(ctx context.Context, subtype string, fields map[string]any, out any) error {
	return p.askWithin(ctx, p.o.RequestTimeout, subtype, fields, out)
}

func (p *Process) askWithin(ctx context.Context, timeout time.Duration, subtype string, fields map[string]any, out any) error {
	raw, err := p.request(ctx, timeout, subtype, fields)
	if err != nil || out == nil || len(raw) == 0 {
		return err
	}
	if err := unmarshal(raw, out); err != nil {
		return fmt.Errorf("%s: read answer: %w", subtype, err)
	}
	return nil
}
