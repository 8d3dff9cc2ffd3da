package claude

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"deckhand/internal/agent/claude/reaper"
)

// Lifeline ends the processes that hang on it in time even if their host is stopped, and
// cannot: their reapers remove them when they have not been told of it for as long as it said
// last, which they are told when they are started. It bounds nothing until it is renewed.
// The zero value is ready for use.
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

// atStart is the value of [reaper.Variable] for a reaper that is started now.
func (l *Lifeline) atStart() string {
	if l == nil {
		return reaper.Unbounded
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.IsZero() {
		return reaper.Unbounded
	}
	return reaper.Bounded(time.Until(l.until))
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
	writeOrder(orders, reaper.Within(time.Until(l.until)))
}

// writeOrder writes an order at once, whole or not at all. It is not written to a reaper
// that has gone, and to one that is stopped once its pipe is full of bounds that it has not
// read: the last of these ends it.
func writeOrder(orders *os.File, order []byte) {
	conn, err := orders.SyscallConn()
	if err != nil {
		return
	}
	// Without a deadline, which may pass before the write is tried.
	_ = conn.Write(func(fd uintptr) bool {
		for {
			if _, err := syscall.Write(int(fd), order); !errors.Is(err, syscall.EINTR) {
				return true
			}
		}
	})
}
