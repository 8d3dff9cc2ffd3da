package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/place"
	"deckhand/internal/gateway"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/store/work"
	"deckhand/internal/transcript"
	"deckhand/internal/workspace"
)

// playedMachine starts processes, when it is let.
type playedMachine struct {
	stage *stage

	mu        sync.Mutex
	processes []*playedProcess
	gate      chan struct{}              // nil: starts are not held
	tried     map[string]place.MCPServer // of the last start
	fail      []error                    // what becomes of the next starts; nil is a process
	noFolder  error
	full      error // of the disk
	noSave    error // why nothing can be saved
	saves     int
	slow      time.Duration // what a save takes
	holdStop  bool          // processes take for ever to end in good order
	deaf      bool          // they acknowledge an interrupt and go on
	lost      map[int64]bool
	made      []workspace.Folder // the threads'
	pushed    map[int64]bool     // the threads whose work is somewhere else
	stays     map[int64]string   // why a thread's folder is not put away
}

func (m *playedMachine) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate = make(chan struct{})
}

// failNext has the next starts end like this.
func (m *playedMachine) failNext(errs ...error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = append(m.fail, errs...)
}

// release lets starts go on, and processes end.
func (m *playedMachine) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gate != nil {
		close(m.gate)
		m.gate = nil
	}
	m.holdStop = false
	for _, p := range m.processes {
		p.letStop()
	}
}

// letGo is release at the end: processes hear again, too.
func (m *playedMachine) letGo() {
	m.release()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deaf = false
}

// knowsLoss reports whether the worker has been told that the thread's lease is lost.
func (m *playedMachine) knowsLoss(threadID int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost[threadID]
}

func (m *playedMachine) loss(threadID int64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost == nil {
		m.lost = map[int64]bool{}
	}
	m.lost[threadID] = known
}

func (m *playedMachine) Workspace(context.Context, threads.Thread, place.Project) (string, []string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return "/ws", nil, m.noFolder
}

// Uptime is that of the bubble's clock.
func (*playedMachine) Uptime() time.Duration { return time.Since(time.Unix(0, 0)) }

func (*playedMachine) Kernel() string { return "k" }

func (*playedMachine) LiveFor(time.Duration) {}

func (m *playedMachine) Takes(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.full
}

func (*playedMachine) Prepare(context.Context, threads.Thread, place.Project, func()) (place.Prepared, error) {
	return place.Prepared{}, nil
}

func (m *playedMachine) Folders(context.Context) ([]workspace.Folder, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.made), nil
}

func (m *playedMachine) PutAway(_ context.Context, t threads.Thread, _ place.Project) (string, []string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why := m.stays[t.ID]; why != "" {
		return why, nil, nil
	}
	m.made = slices.DeleteFunc(m.made, func(f workspace.Folder) bool { return f.Thread == t.ID })
	return "", []string{"some of it stays"}, nil
}

func (m *playedMachine) Elsewhere(_ context.Context, t threads.Thread, _ place.Project) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pushed[t.ID], nil
}

func (*playedMachine) Missing(string) bool { return false }

func (*playedMachine) Differs(context.Context, threads.Thread, place.Project, map[string]work.State, map[string]work.State) ([]place.Differs, error) {
	return nil, nil
}

func (*playedMachine) Rewind(context.Context, threads.Thread, place.Project, map[string]work.State, map[string]work.State, string) (string, error) {
	return "", nil
}

func (m *playedMachine) Save(_ context.Context, _ threads.Thread, _ place.Project, within time.Duration, _ *workspace.End) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saves++
	if within < m.slow {
		return "", errors.New("no end")
	}
	return "", m.noSave
}

func (m *playedMachine) Publish(context.Context, threads.Thread, place.Project, time.Duration) error {
	return nil
}

func (*playedMachine) Home(int64) string { return "" }

func (*playedMachine) Restore(context.Context, threads.Thread, []transcripts.Transcript, transcript.ReadCopy) (bool, error) {
	return false, nil
}

func (m *playedMachine) AskedBy(context.Context, threads.Thread, place.Project, string) error {
	return nil
}

func (*playedMachine) Heads(threads.Thread, place.Project) []string { return nil }

func (*playedMachine) Repositories(threads.Thread, place.Project) []string { return nil }

func (m *playedMachine) Start(ctx context.Context, t threads.Thread, project place.Project, resume bool, _ int, calls gateway.Meter, _ *zap.Logger) (place.Process, error) {
	m.mu.Lock()
	gate := m.gate
	m.tried = project.MCPServers
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.fail) > 0 {
		err := m.fail[0]
		if m.fail = m.fail[1:]; err != nil {
			return nil, err
		}
	}
	for _, p := range m.processes {
		if p.SessionID() == t.SessionID && !p.over() {
			m.stage.breach("two processes on one session")
		}
	}
	if m.lost[t.ID] && m.stage.isElsewhere(t.ID) {
		m.stage.breach("a process was started after the lease was lost")
	}
	p := &playedProcess{
		stage: m.stage, machine: m, name: fmt.Sprint("p", len(m.processes)+1), calls: calls, thread: t.ID, session: t.SessionID,
		pending: map[string]string{}, wake: make(chan struct{}, 1), ended: make(chan struct{}), stop: make(chan struct{}),
	}
	if !m.holdStop {
		close(p.stop)
	}
	m.processes = append(m.processes, p)
	m.stage.say(p.name, "started, resume %t", resume)
	return p, nil
}
