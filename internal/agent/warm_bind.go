package agent

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"go.uber.org/zap"

	"deckhand/internal/gateway"
	"deckhand/internal/store"
)

// ClaimSpare returns the number that a new thread may have, for which a process is ready
// here; its zero value if there is none. It is had once. What does not become a thread is
// given back by [Supervisor.ReturnSpare].
func (s *Supervisor) ClaimSpare(teamID, channelID, project string) store.Prepared {
	return s.spares.claim(spareOf{teamID, channelID, project})
}

// ReturnSpare gives a number back that no thread has, nor will have.
func (s *Supervisor) ReturnSpare(p store.Prepared) { s.spares.giveBack(p.ThreadID) }

// Spares is how many warm spares are ready.
func (s *Supervisor) Spares() int { return s.spares.ready() }

// lateMeter is the meter of a process whose thread comes later. Until then no call of the
// model leaves.
type lateMeter struct {
	mu sync.Mutex
	of gateway.Meter
}

func (m *lateMeter) bind(of gateway.Meter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of = of
}

// Begin implements [gateway.Meter].
func (m *lateMeter) Begin(ctx context.Context, c gateway.Call) (gateway.Booking, error) {
	m.mu.Lock()
	of := m.of
	m.mu.Unlock()
	if of == nil {
		return nil, &gateway.Refusal{Status: http.StatusForbidden, Sentence: "nobody has asked for anything here yet"}
	}
	return of.Begin(ctx, c)
}

// errUnfit is why a thread does not go on with its spare.
var errUnfit = errors.New("it does not fit its thread")

// bind has the thread go on with a spare that it has taken. It reports false when the
// thread has to be started as any other: the spare is gone then.
func (w *worker) bind(ctx context.Context, sp *warmSpare) (ok bool, err error) {
	told, err := w.fits(ctx, sp)
	if err == nil {
		// From here on the folder is the thread's own.
		err = w.place.Unreserve(sp.thread, sp.project, true)
	}
	if err != nil {
		w.log.Info("a warm spare is thrown away", zap.Error(err))
		w.spares.throwAway(sp)
		return false, context.Cause(ctx)
	}
	adopted := false
	defer func() {
		if !adopted {
			sp.proc.Kill()
			<-sp.proc.Done()
		}
	}()
	if err := w.store.SetWorkspace(ctx, w.heldLease(), sp.thread.Workspace); err != nil {
		return false, err
	}
	w.thread.Workspace, w.thread.WorkspaceReplica = sp.thread.Workspace, w.replica
	if err := w.store.NewSession(ctx, w.heldLease(), sp.thread.SessionID, ""); err != nil {
		return false, err
	}
	w.thread.SessionID = sp.thread.SessionID
	for _, sentence := range told {
		w.say(ctx, sentence)
	}
	w.tellPrepared(sp.prepared)
	m := w.newMeter()
	sp.calls.bind(m)
	adopted = true // or ended
	err = w.adopt(ctx, sp.proc, m, false, false)
	if _, died := errors.AsType[*startError](err); died && ctx.Err() == nil {
		w.log.Warn("a warm spare did not answer", zap.Error(err))
		return false, nil
	}
	return err == nil, err
}

// fits looks whether a spare is what the thread would be given now. told is for people.
func (w *worker) fits(ctx context.Context, sp *warmSpare) (told []string, err error) {
	t := w.thread
	if t.SessionID != "" || t.Workspace != "" || (spareOf{t.TeamID, t.ChannelID, t.Project}) != sp.of {
		return nil, errUnfit
	}
	select {
	case <-sp.proc.Done():
		return nil, sp.proc.Exit()
	default:
	}
	dir, told, err := w.place.Workspace(ctx, t, w.project)
	if err != nil {
		return nil, err
	}
	t.Workspace = dir
	from, err := w.place.StartsFrom(ctx, t, w.project)
	if err == nil && (dir != sp.thread.Workspace || from != sp.from) {
		err = errors.New("its project has changed since it was made")
	}
	return told, err
}
