package chat

import "sync"

// lanes run functions of one key one after another, and those of different keys
// side by side. The zero value is ready to use.
type lanes struct {
	mu    sync.Mutex
	tails map[string]chan struct{} // closed when the last of the key is done
}

// reserve takes a place in the lane of key, in the order of the calls. enter waits
// until those before it have left; leave must be called whatever happens.
func (l *lanes) reserve(key string) (enter func(), leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tails == nil {
		l.tails = map[string]chan struct{}{}
	}
	before, done := l.tails[key], make(chan struct{})
	l.tails[key] = done
	enter = func() {
		if before != nil {
			<-before
		}
	}
	leave = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(done)
		if l.tails[key] == done {
			delete(l.tails, key)
		}
	}
	return enter, leave
}
