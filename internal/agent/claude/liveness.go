package claude

import (
	"maps"
	"sync"
	"time"
)

// Silence says that the CLI has said nothing for too long while it should
// speak: while a turn runs, no approval is due and no tool runs. It is handed
// out once for each such silence.
type Silence struct {
	Meta
	LastEvent time.Time
}

// liveness follows the conversation just far enough to know who should speak.
type liveness struct {
	mu        sync.Mutex
	ended     bool
	running   bool
	lastEvent time.Time
	reported  bool
	// awaiting maps approvals that are due, and tools the calls that run, to
	// the subagent that they are of; "" is the main conversation.
	awaiting map[string]string
	tools    map[string]string
}

func newLiveness(now time.Time) *liveness {
	return &liveness{lastEvent: now, awaiting: make(map[string]string), tools: make(map[string]string)}
}

// heard takes note of a message.
func (l *liveness) heard(m Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastEvent, l.reported = time.Now(), false
	switch m := m.(type) {
	case *StreamEvent:
		if l.running || m.ParentToolUseID != "" {
			return
		}
		l.running = true
	case *System:
		if m.Subtype == "init" {
			l.running = true
		}
	case *CommandLifecycle:
		if m.State == "started" {
			l.running = true
		}
	case *Assistant:
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				l.tools[b.ID] = m.ParentToolUseID
			}
		}
	case *User:
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				delete(l.tools, b.ToolUseID)
			}
		}
	case *CanUseTool:
		l.awaiting[m.RequestID] = m.AgentID
	case *CancelRequest:
		delete(l.awaiting, m.RequestID)
	case *Result:
		// Subagents in the background go on after a turn, and go on asking.
		isMain := func(_, agent string) bool { return agent == "" }
		maps.DeleteFunc(l.awaiting, isMain)
		maps.DeleteFunc(l.tools, isMain)
		l.running = m.QueuedTurns > 0
	}
}

func (l *liveness) answered(requestID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.awaiting[requestID]; ok {
		delete(l.awaiting, requestID)
		l.lastEvent, l.reported = time.Now(), false
	}
}

// prompted starts the turn that a prompt will begin.
func (l *liveness) prompted(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = true
	l.lastEvent, l.reported = now, false
}

func (l *liveness) exited() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// busy reports whether a turn runs.
func (l *liveness) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}

// silence returns a report when the CLI should have spoken for longer than
// limit, once.
func (l *liveness) silence(now time.Time, limit time.Duration) *Silence {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit <= 0 || l.reported || l.ended || !l.running || len(l.awaiting) > 0 || len(l.tools) > 0 || now.Sub(l.lastEvent) < limit {
		return nil
	}
	l.reported = true
	return &Silence{Meta: Meta{Type: "deckhand", Subtype: "silence"}, LastEvent: l.lastEvent}
}

// watchInterval is how often to look for a silence.
func watchInterval(limit time.Duration) time.Duration {
	if limit <= 0 {
		return time.Hour
	}
	return max(limit/4, 10*time.Millisecond)
}
