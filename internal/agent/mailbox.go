package agent

import (
	"slices"
	"sync"

	"deckhand/internal/agent/claude"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/store"
)

type messageKind int

const (
	messageWake      messageKind = iota // there may be a prompt
	messageDecided                      // id: an approval has ended
	messageStop                         // id: the person who stops the turn
	messageChecked                      // checked: it is known which of its people are entitled
	messagePushRead                     // checked, push: a push was looked at
	messageReach                        // question: connections of a session wait for a host
	messageLeft                         // question: none waits any more
	messageHibernate                    // another session needs the slot
	messageLeaseLost                    // epoch: of the lease
	messagePutAway                      // its folder has rested for long enough
	messageForget                       // what is kept of its work has
	messageServers                      // the MCP servers are to be looked at; with of: servers, again: how they are
	messageHeld                         // a call of the turn waits for a budget, or does no longer
)

type message struct {
	kind    messageKind
	id      string
	decided *store.Approval // with letterDecided from this replica: the decision
	epoch   int64
	checked *check
	push    *store.Push
	// entitled are the people whose grants count for checked.
	entitled map[string]bool
	question *egress.Question
	of       *session // whose question it is, or whose servers
	servers  []claude.MCPServer
	again    []string // those that were connected again
	eager    bool     // with letterWake: take the thread though another replica suits it better
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

func (b *mailbox) put(l message) {
	b.mu.Lock()
	if l.kind == messageWake {
		b.wake = true
	} else {
		b.messages = append(b.messages, l)
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
	return b.wake && !stopping || slices.ContainsFunc(b.messages, func(l message) bool { return l.kind == messageStop })
}

// idSet is a set of ids, safe for concurrent use. The zero value is empty.
type idSet struct{ m sync.Map }

func (s *idSet) add(id string)    { s.m.Store(id, nil) }
func (s *idSet) remove(id string) { s.m.Delete(id) }
func (s *idSet) has(id string) bool {
	_, ok := s.m.Load(id)
	return ok
}
