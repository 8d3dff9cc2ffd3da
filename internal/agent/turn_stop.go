package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// onStop interrupts the turn and drops what is queued behind it.
func (w *worker) onStop(ctx context.Context, by string) error {
	w.stopBy = by
	if w.turn == nil {
		return w.dropStopped(ctx)
	}
	if w.turn.stoppedBy != "" {
		return nil
	}
	w.turn.stoppedBy = by
	if err := w.dropStopped(ctx); err != nil {
		return err
	}
	w.interrupt(ctx)
	return nil
}

// makeWay interrupts the turn if somebody has sent a prompt that waits behind it at once.
// If the database cannot say it goes on: polling wakes it again.
func (w *worker) makeWay(ctx context.Context) {
	if w.turn.stopping() {
		return
	}
	by, err := w.sentNow(ctx, w.turn.row)
	if err != nil {
		w.log.Warn("read what waits behind a turn", zap.Error(err))
	}
	if by == "" {
		return
	}
	w.turn.stoppedBy = by
	w.cutCalls()
	w.interrupt(ctx)
}

// sentNow is who has sent the thread's next prompt at once, since the turn began; empty
// for nobody.
func (w *worker) sentNow(ctx context.Context, running turns.Turn) (by string, err error) {
	next, err := w.store.NextPrompt(ctx, w.threadID)
	if errors.Is(err, pg.ErrNotFound) {
		return "", nil
	}
	if err != nil || !next.UrgentAt.After(running.StartedAt) {
		return "", err
	}
	return next.UrgentBy, nil
}

// interrupt asks the CLI to end the turn and kills it when it does not.
func (w *worker) interrupt(ctx context.Context) {
	s, limit := w.session, w.limits.StopTimeout
	if !w.mustStop() {
		return
	}
	s.request(ctx, w.log, "interrupt the turn", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("interrupt: no end of the turn in %s", limit))
		defer cancel()
		if err := s.proc.Interrupt(ctx); err != nil {
			s.proc.Kill()
			return err
		}
		return nil
	})
}

// mustStop gives the CLI a time in which the turn has to end, and refuses what waits in
// it. It reports false when that time runs already: an interrupt that is acknowledged
// and never followed by a result must not hold the thread.
func (w *worker) mustStop() bool {
	w.turn.desk.Refuse(ask.Stopped)
	w.session.meter.Cut()
	if w.turn.stopLimit != nil {
		return false
	}
	w.turn.stopLimit = time.AfterFunc(w.limits.StopTimeout, w.session.proc.Kill)
	return true
}

// abandonTurn leaves a running turn to whoever continues it: on shutdown it is
// interrupted, so that its process can end in good order, and stays running in the
// database. One that waits for people is parked. One that was being stopped ends: nobody
// is to go on with it.
func (w *worker) abandonTurn(ctx context.Context, fenced bool, cause error) {
	t := w.turn
	defer func() { w.turn = nil }()
	waits, _ := w.waitsFor()
	w.letGo(t)
	if fenced {
		t.desk.Gone()
		w.front.Leave(t.row.ID)
		return
	}
	if len(waits) > 0 && !t.parked && errors.Is(cause, errShutdown) {
		if _, err := w.park(ctx, waits); err != nil {
			w.log.Error("park a turn that waits for people", zap.Error(err))
		}
	}
	t.desk.Refuse(ask.Stopped)
	if t.parked {
		w.leaveParked(ctx)
		return
	}
	var told []ledger.CLITotal
	if w.session != nil {
		told = w.session.interruptInOrder(ctx, t)
	}
	if t.stopping() {
		err := w.finish(ctx, TurnInterrupted, t.whyStopped(), 0, told...)
		if err == nil {
			return
		}
		w.log.Error("end a turn that was being stopped", zap.Error(err))
		if errors.Is(err, threads.ErrFenced) {
			w.front.Leave(t.row.ID)
			return
		}
		if t.stoppedBy != "" {
			w.front.Abandon(t.row.ID, "Stopped. Deckhand has trouble with its database, and writes that down when that is over.")
			return
		}
	} else if len(told) > 0 {
		if err := w.addCLITotals(ctx, told); err != nil {
			w.log.Error("write what the CLI says that an interrupted turn cost", zap.Error(err))
		}
	}
	sentence := "Deckhand is stopping; the work goes on when it is back."
	if !errors.Is(cause, errShutdown) {
		sentence = "Deckhand has trouble with its database; the work goes on when that is over."
		if len(waits) > 0 {
			sentence = "Deckhand has trouble with its database; decide when that is over."
		}
	}
	w.front.Abandon(t.row.ID, sentence)
}

// interruptLimit bounds how long a turn that is left behind may take to end.
const interruptLimit = 5 * time.Second

// interruptInOrder ends what the process does, and returns what it says that it has spent.
func (s *session) interruptInOrder(ctx context.Context, t *turn) []ledger.CLITotal {
	ctx, cancel := context.WithTimeout(ctx, interruptLimit)
	defer cancel()
	s.request(ctx, s.log, "interrupt the turn", s.proc.Interrupt)
	for {
		select {
		case m, ok := <-s.messages:
			if !ok {
				return nil
			}
			switch m := m.(type) {
			case *claude.Result:
				t.meter.Settle(ctx, cutTime)
				told, err := s.cliTotals(ctx, m.Running)
				if err != nil {
					s.log.Error("read what an interrupted turn cost", zap.Error(err))
				}
				return told
			case *claude.ConversationReset:
				s.onReset()
			case *claude.HookCallback:
				_ = s.reply(ask.RefuseHook(s.proc, m, ask.Stopped))
			case *claude.CanUseTool:
				_ = s.reply(s.proc.Deny(m.RequestID, ask.Stopped, true))
			}
			t.content = t.content.Fold(m)
		case <-ctx.Done():
			s.proc.Kill()
			<-s.proc.Done()
			return nil
		}
	}
}
