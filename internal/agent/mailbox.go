package agent

import (
	"slices"
	"sync"

	"deckhand/internal/gateway/egress"
	"deckhand/internal/store"
)

type letterKind int

const (
	letterWake      letterKind = iota // there may be a prompt
	letterDecided                     // id: an approval has ended
	letterStop                        // id: the person who stops the turn
	letterChecked                     // checked: it is known which of its people are entitled
	letterReach                       // question: connections of a session wait for a host
	letterLeft                        // question: none waits any more
	letterHibernate                   // another session needs the slot
	letterLeaseLost                   // epoch: of the lease
	letterPutAway                     // its folder has rested for long enough
	letterForget                      // what is kept of its work has
	letterHeld                        // a call of the turn waits for a budget, or does no longer
)

type letter struct {
	kind    letterKind
	id      string
	decided *store.Approval // with letterDecided from this replica: the decision
	epoch   int64
	checked *check
	// entitled are the people whose grants count for checked.
	entitled map[string]bool
	question *egress.Question
	of       *session // whose question it is
	eager    bool     // with letterWake: take the thread though another replica suits it better
}

// mailbox is an unbounded queue that never makes a sender wait. Wakes are
// merged. The zero value is not usable: see newMailbox.
type mailbox struct {
	mu      sync.Mutex
	letters []letter
	wake    bool
	signal  chan struct{} // has a token when there may be something
}

func newMailbox() *mailbox { return &mailbox{signal: make(chan struct{}, 1)} }

func (b *mailbox) put(l letter) {
	b.mu.Lock()
	if l.kind == letterWake {
		b.wake = true
	} else {
		b.letters = append(b.letters, l)
	}
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// take empties the mailbox; the wake, if any, comes last.
func (b *mailbox) take() []letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.letters
	b.letters = nil
	if b.wake {
		out = append(out, letter{kind: letterWake})
		b.wake = false
	}
	return out
}

// hasWork reports whether a letter is there that a worker comes back for: while the bot
// stops, one that stops the thread.
func (b *mailbox) hasWork(stopping bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wake && !stopping || slices.ContainsFunc(b.letters, func(l letter) bool { return l.kind == letterStop })
}

// idSet is a set of ids, safe for concurrent use. The zero value is empty.
type idSet struct{ m sync.Map }

func (s *idSet) add(id string)    { s.m.Store(id, nil) }
func (s *idSet) remove(id string) { s.m.Delete(id) }
func (s *idSet) has(id string) bool {
	_, ok := s.m.Load(id)
	return ok
}
