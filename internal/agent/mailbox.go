package agent

import (
	"context"
	"slices"
	"sync"

	"deckhand/internal/store/approvals"
)

type messageKind int

const (
	messageWake      messageKind = iota // there may be a prompt
	messageDecided                      // id: an approval has ended
	messageStop                         // id: the person who stops the turn
	messageLater                        // then: what goes on in the loop
	messageHibernate                    // another session needs the slot
	messageLeaseLost                    // epoch: of the lease
	messagePutAway                      // its folder has rested for long enough
	messageForget                       // what is kept of its work has
	messageServers                      // the MCP servers are to be looked at
	messageHeld                         // a call of the turn waits for a budget, or does no longer
)

type message struct {
	kind    messageKind
	id      string
	decided *approvals.Approval // with messageDecided from this replica: the decision
	epoch   int64
	then    func(context.Context) error
	eager   bool // with messageWake: take the thread though another replica suits it better
}

// mailbox is an unbounded queue that never makes a sender wait. Wakes are
// merged. The zero value is not usable: see newMailbox.
type mailbox struct {
	mu       sync.Mutex
	messages []message
	wake     bool
	signal   chan struct{} // has a token when there may be something
}

func newMailbox() *mailbox { return &mailbox{signal: make(chan struct{}, 1)} }

func (b *mailbox) put(m message) {
	b.mu.Lock()
	if m.kind == messageWake {
		b.wake = true
	} else {
		b.messages = append(b.messages, m)
	}
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// take empties the mailbox; the wake, if any, comes last.
func (b *mailbox) take() []message {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.messages
	b.messages = nil
	if b.wake {
		out = append(out, message{kind: messageWake})
		b.wake = false
	}
	return out
}

// hasWork reports whether a message is there that a worker comes back for: while the bot
// stops, one that stops the thread.
func (b *mailbox) hasWork(stopping bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wake && !stopping || slices.ContainsFunc(b.messages, func(m message) bool { return m.kind == messageStop })
}
