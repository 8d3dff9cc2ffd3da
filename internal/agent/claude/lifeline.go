package claude

import (
	"os"
	"sync"
	"time"

	"deckhand/internal/agent/claude/reaper"
)

// Lifeline ends the processes that hang on it in time even if their host is stopped, and
// cannot: their reapers remove them when they have not heard of it for as long as it said
// last. It bounds nothing until it is renewed. The zero value is ready for use.
type Lifeline struct {
	mu     sync.Mutex
	until  time.Time
	orders map[*os.File]bool // the reapers'
}

// Renew has everything that hangs on the lifeline, now or later, end after this time,
// unless it is renewed again by then.
func (l *Lifeline) Renew(left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Now().Add(left)
	for orders := range l.orders {
		l.tell(orders)
	}
}

// hold hangs a reaper on the lifeline, until release is called.
func (l *Lifeline) hold(orders *os.File) (release func()) {
	if l == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.orders == nil {
		l.orders = map[*os.File]bool{}
	}
	l.orders[orders] = true
	if !l.until.IsZero() {
		l.tell(orders)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.orders, orders)
	}
}

// tell tells a reaper what is left. l.mu is held.
func (l *Lifeline) tell(orders *os.File) {
	// A reaper that is stopped reads nothing, and its pipe is full one day.
	_ = orders.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = orders.Write(reaper.Within(time.Until(l.until))) // one that has gone needs no order
	_ = orders.SetWriteDeadline(time.Time{})
}
