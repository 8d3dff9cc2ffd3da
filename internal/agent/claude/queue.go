package claude

import (
	"context"
	"strings"
	"sync"
)

// queue carries messages from the reader to the consumer. put never waits.
// Deltas of the same block that wait in it are merged into one, and states of
// which only the latest matters replace the one before, so that what a slow
// consumer costs is the text itself and not the number of deltas.
type queue struct {
	mu      sync.Mutex
	entries []entry
	head    int
	// open finds, by stream, the entry that a following delta can join: no
	// message of that stream came in between.
	open  map[streamKey]int
	ended bool
	// wake holds one token when there is something new for a waiting consumer.
	wake chan struct{}
}

// streamKey names a sequence of messages that merge: one content block's
// deltas, or one kind of latest-wins state.
type streamKey struct {
	parent string
	kind   string
	index  int
}

type entry struct {
	m Message
	// more gathers the text of merged deltas after the first.
	more *strings.Builder
}

func newQueue() *queue {
	return &queue{open: make(map[streamKey]int), wake: make(chan struct{}, 1)}
}

func (q *queue) put(m Message) {
	q.mu.Lock()
	q.add(m)
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add appends m or merges it into an entry that still waits. A message that
// cannot merge closes the streams that it could overtake.
func (q *queue) add(m Message) {
	switch m := m.(type) {
	case *StreamEvent:
		if m.Delta == "" {
			q.close(m.ParentToolUseID)
			break
		}
		key := streamKey{m.ParentToolUseID, m.Delta, m.Index}
		if i, ok := q.open[key]; ok {
			e := &q.entries[i]
			if e.more == nil {
				e.more = new(strings.Builder)
			}
			e.more.WriteString(m.Text)
			return
		}
		q.open[key] = len(q.entries)
	case *KeepAlive:
		if q.replace(streamKey{kind: "keep_alive"}, m) {
			return
		}
	case *ToolProgress:
		if q.replace(streamKey{m.ToolUseID, "tool_progress", 0}, m) {
			return
		}
	case *System:
		switch m.Subtype {
		case "thinking_tokens":
			if q.replace(streamKey{m.ParentToolUseID, m.Subtype, 0}, m) {
				return
			}
		case "task_progress":
			if q.replace(streamKey{m.Task.ID, m.Subtype, 0}, m) {
				return
			}
		default:
			clear(q.open)
		}
	default:
		clear(q.open)
	}
	q.entries = append(q.entries, entry{m: m})
}

// replace puts m in the place of the waiting message of the same key, or notes
// that m itself is about to be appended.
func (q *queue) replace(key streamKey, m Message) bool {
	if i, ok := q.open[key]; ok {
		q.entries[i].m = m
		return true
	}
	q.open[key] = len(q.entries)
	return false
}

// close ends the merging of one parent's deltas.
func (q *queue) close(parent string) {
	for key := range q.open {
		if key.parent == parent {
			delete(q.open, key)
		}
	}
}

// take returns the next message, or false when there is none yet.
func (q *queue) take() (m Message, ok, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == len(q.entries) {
		return nil, false, q.ended
	}
	e := q.entries[q.head]
	q.entries[q.head] = entry{}
	for key, i := range q.open {
		if i == q.head {
			delete(q.open, key)
		}
	}
	q.head++
	if q.head == len(q.entries) {
		// Empty: start over, and let an unusually large backlog go.
		if cap(q.entries) > 1024 {
			q.entries = nil
		}
		q.entries, q.head = q.entries[:0], 0
	} else if q.head >= 1024 && q.head > len(q.entries)/2 {
		// Never empty: give back what lies before the head.
		n := copy(q.entries, q.entries[q.head:])
		clear(q.entries[n:])
		q.entries = q.entries[:n]
		for key := range q.open {
			q.open[key] -= q.head
		}
		q.head = 0
	}
	if e.more != nil {
		merged := *e.m.(*StreamEvent)
		merged.Text += e.more.String()
		return &merged, true, false
	}
	return e.m, true, false
}

// next waits for a message; ended is true after the last one.
func (q *queue) next(ctx context.Context) (m Message, ended bool, err error) {
	for {
		m, ok, ended := q.take()
		switch {
		case ok:
			return m, false, nil
		case ended:
			// Others may wait too.
			q.signal()
			return nil, true, nil
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// end lets consumers know that nothing more will come.
func (q *queue) end() {
	q.mu.Lock()
	q.ended = true
	q.mu.Unlock()
	q.signal()
}
