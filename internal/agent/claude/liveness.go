package claude

import (
	"maps"
	"sync"
	"time"
)

// State is what a process is doing.
type State string

// The states of a process. The names are for people too.
const (
	StateStarting State = "starting"
	StateReady    State = "ready"
	StateRunning  State = "running"
	StateAwaiting State = "awaiting approval"
	StateIdle     State = "idle"
	StateExited   State = "exited"
)

// Liveness is a snapshot of what a process is doing.
type Liveness struct {
	State State
	// Since is when the state began, LastEvent when the CLI last said anything
	// (the start, before it did).
	Since, LastEvent time.Time
	// Awaiting counts the approvals that are due, and Tools the tool calls that
	// run.
	Awaiting, Tools int
}

// Silence says that the CLI has said nothing for too long while it should
// speak: while a turn runs, no approval is due and no tool runs. It is handed
// out once for each such silence.
type Silence struct {
	Meta
	LastEvent time.Time
}

// CorruptLine says that a line was skipped because it was no valid JSON.
type CorruptLine struct {
	Meta
	// Bytes is the line's length.
	Bytes int
}

// liveness follows the conversation just far enough to derive the state.
type liveness struct {
	mu        sync.Mutex
	ready     bool
	everRan   bool
	ended     bool
	running   bool
	since     time.Time
	state     State
	lastEvent time.Time
	reported  bool
	// awaiting maps approvals that are due, and tools the calls that run, to
	// the subagent that they are of; "" is the main conversation.
	awaiting map[string]string
	tools    map[string]string
}

func newLiveness(now time.Time) *liveness {
	return &liveness{
		since: now, lastEvent: now, state: StateStarting,
		awaiting: make(map[string]string), tools: make(map[string]string),
	}
}

// Liveness returns what the process is doing now.
func (p *Process) Liveness() Liveness {
	l := p.life
	l.mu.Lock()
	defer l.mu.Unlock()
	return Liveness{State: l.state, Since: l.since, LastEvent: l.lastEvent, Awaiting: len(l.awaiting), Tools: len(l.tools)}
}

// derive updates the state after a change. The caller holds the lock.
func (l *liveness) derive(now time.Time) {
	state := StateStarting
	switch {
	case l.ended:
		state = StateExited
	case len(l.awaiting) > 0:
		state = StateAwaiting
	case l.running:
		state = StateRunning
	case l.everRan:
		state = StateIdle
	case l.ready:
		state = StateReady
	}
	if state != l.state {
		l.state, l.since = state, now
	}
}

// heard takes note of a message.
func (l *liveness) heard(m Message) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastEvent, l.reported = now, false
	switch m := m.(type) {
	case *StreamEvent:
		if l.running || m.ParentToolUseID != "" {
			return
		}
		l.running, l.everRan = true, true
	case *controlResponse:
		l.ready = true
	case *System:
		switch m.Subtype {
		case "init":
			l.running, l.everRan = true, true
		default:
			return
		}
	case *CommandLifecycle:
		if m.State == "started" {
			l.running, l.everRan = true, true
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
		l.everRan = true
	default:
		return
	}
	l.derive(now)
}

func (l *liveness) answered(requestID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.awaiting[requestID]; ok {
		delete(l.awaiting, requestID)
		now := time.Now()
		l.lastEvent, l.reported = now, false
		l.derive(now)
	}
}

// prompted starts the turn that a prompt will begin.
func (l *liveness) prompted(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running, l.everRan = true, true
	l.lastEvent, l.reported = now, false
	l.derive(now)
}

func (l *liveness) exited(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	clear(l.awaiting)
	clear(l.tools)
	l.derive(now)
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
	if limit <= 0 || l.reported || l.state != StateRunning || len(l.tools) > 0 || now.Sub(l.lastEvent) < limit {
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
