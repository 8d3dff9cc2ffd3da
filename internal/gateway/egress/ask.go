package egress

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxHeld bounds the connections of a session that wait for an answer, so that some are left for allowed hosts.
	maxHeld = 64
	// holdTime is how long a connection waits. Few programs wait longer; a later call finds the decision.
	holdTime = 10 * time.Minute
)

// Asker receives questions about hosts that no rule names. Its methods must return at once, without answering.
type Asker interface {
	// Ask says that connections wait for q. It must be answered.
	Ask(q *Question)
	// Left says that none waits any more; an answer changes nothing.
	Left(q *Question)
}

// Question is a host that no rule names and that at least one connection of a session waits for. There is at most
// one for a host and port at a time.
type Question struct {
	// Host is as it is dialled: a lower-case ASCII name without a final dot, or an address without brackets.
	Host string
	Port uint16

	reply func(Answer)
}

// NewQuestion returns a question whose answers are given to reply.
func NewQuestion(host string, port uint16, reply func(Answer)) *Question {
	return &Question{host, port, reply}
}

// String is host:port.
func (q *Question) String() string { return net.JoinHostPort(q.Host, strconv.Itoa(int(q.Port))) }

// Answer lets the connections that wait for q go on, or ends them. The first answer counts.
func (q *Question) Answer(a Answer) { q.reply(a) }

// Answer decides about the connections that wait for a [Question].
type Answer struct {
	Allow bool
	// During ends what is allowed; nil means until the session ends.
	During context.Context //nolint:containedctx // it is the answer's span
	// Refusal is the sentence for whoever connects, if it is not allowed.
	Refusal string
}

// questions are the open questions of a session.
type questions struct {
	mu    sync.Mutex
	asker Asker // nil: nobody can be asked
	open  map[target]*wait
	held  int // connections, of all of them
}

// wait is the wait for the answer to a question.
type wait struct {
	*Question
	target   target
	waiting  int           // connections; under the lock of questions
	answered chan struct{} // closed when answer is there
	answer   Answer
}

// OnAsk sets who is asked about hosts that no rule names, if the session's options have Ask. Until then they are
// refused.
func (s *Session) OnAsk(a Asker) {
	s.questions.mu.Lock()
	defer s.questions.mu.Unlock()
	s.questions.asker = a
}

// answer ends a wait.
func (all *questions) answer(q *wait, a Answer) {
	all.mu.Lock()
	defer all.mu.Unlock()
	select {
	case <-q.answered:
		return
	default:
	}
	q.answer = a
	close(q.answered)
	if all.open[q.target] == q {
		delete(all.open, q.target)
	}
}

// ask holds a connection until its target is answered, the caller has gone, or the time is over.
func (s *Session) ask(ctx context.Context, t target) (admission, error) {
	if n := s.unaskable(t); n != nil {
		return admission{}, n
	}
	q, n := s.join(t)
	if n != nil {
		return admission{}, n
	}
	defer s.leave(q)
	patience := time.NewTimer(s.proxy.hold)
	defer patience.Stop()
	select {
	case <-q.answered:
	case <-patience.C:
		return admission{}, refuse("nobody has decided about %s in %s; the question stands, so try again when somebody has", t, s.proxy.hold)
	case <-ctx.Done():
		return admission{}, ctx.Err()
	case <-s.ctx.Done():
		return admission{}, s.ctx.Err()
	}
	if !q.answer.Allow {
		return admission{}, refuse("%s", oneLine(q.answer.Refusal))
	}
	during := q.answer.During
	if during == nil {
		during = s.ctx
	}
	return admission{asked: true, during: during}, nil
}

var notPublicNames = []string{".localhost", ".local", ".internal", ".home.arpa"}

// unaskable refuses what no answer could open. It looks nothing up: a lookup would reach the name's owner before
// somebody has allowed it.
func (s *Session) unaskable(t target) *refusal {
	why := ""
	switch {
	case t.addr.IsValid():
		if !reachable(t.addr, false) || ownAddress(t.addr) {
			why = "its address is not public"
		}
	case !strings.Contains(t.host, "."), slices.ContainsFunc(notPublicNames, func(end string) bool { return strings.HasSuffix(t.host, end) }):
		why = "it is no name of the public network"
	}
	if why == "" {
		return nil
	}
	return refuse("%s is not reached, and nobody is asked about it: %s; an admin can list it under network: in deckhand.yaml, with internal: before it", t, why)
}

// join makes a connection wait for its target's question, and opens one if there is none.
func (s *Session) join(t target) (*wait, *refusal) {
	all := &s.questions
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case all.asker == nil:
		return nil, refuse("network: of project %s does not list %s, and nobody can be asked yet", s.options.Project, t)
	case all.held >= maxHeld:
		return nil, refuse("%s is not decided about, and %d connections wait for decisions already; try again later", t, maxHeld)
	}
	all.held++
	q := all.open[t]
	if q == nil {
		q = &wait{target: t, answered: make(chan struct{})}
		q.Question = NewQuestion(t.host, t.port, func(a Answer) { all.answer(q, a) })
		if all.open == nil {
			all.open = map[target]*wait{}
		}
		all.open[t] = q
		all.asker.Ask(q.Question)
	}
	q.waiting++
	return q, nil
}

// leave ends a connection's wait.
func (s *Session) leave(q *wait) {
	all := &s.questions
	all.mu.Lock()
	defer all.mu.Unlock()
	all.held--
	q.waiting--
	if q.waiting == 0 && all.open[q.target] == q {
		delete(all.open, q.target)
		all.asker.Left(q.Question)
	}
}

// oneLine makes a sentence fit into a status line, whoever wrote it.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
