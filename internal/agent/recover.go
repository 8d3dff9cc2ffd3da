package agent

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"deckhand/internal/agent/ask"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/turns"
)

// maxAttempts is how many processes may die over one prompt: one that kills every process
// must not do so for ever.
const maxAttempts = 3

// recover goes on with the turn that a dead process of this thread left running, or that
// was parked and is woken. One that sleeps has the worker go to sleep, too.
//
// ensureSession restores folder and conversation, [turns.Store.ContinueTurn] opens the next
// attempt, open approvals are bound again by [approvals.Store.Ask], and what the dead process
// showed is marked by slackui/left.go.
func (w *worker) recover(ctx context.Context) error {
	old, prompt, err := w.store.RunningTurn(ctx, w.threadID)
	if errors.Is(err, pg.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if by, err := w.sentNow(ctx, old); err != nil {
		return err
	} else if by != "" {
		return w.giveUp(ctx, old, TurnInterrupted, PromptStopped, "Stopped: a message that waited was sent at once.")
	}
	if old.Parking == turns.Parked {
		w.asleep = true
		return nil
	}
	if w.tooEarly(prompt) {
		return nil
	}
	w.log.Info("continue an interrupted turn", zap.Int64("turn", old.ID), zap.Int("attempt", old.Attempt))
	if _, err := w.store.EndLostCalls(ctx); err != nil {
		return err
	}
	note, below := "[Deckhand was restarted while you worked on the message below. Look at what you have done already, then go on with it. A tool call that was not answered may be made again.]\n\n", "Deckhand restarted here; the work goes on below."
	if old.Parking == turns.Unparked {
		answers, err := w.store.Unanswered(ctx, old.ID)
		if err != nil {
			return err
		}
		var paused bool
		if note, paused = ask.WakeNote(answers, func(a approvals.Approval) { ask.SayExpired(ctx, w.say, a) }); paused {
			return w.giveUp(ctx, old, TurnInterrupted, PromptPaused, whyPaused)
		}
		below = "The work goes on below."
	} else if err := w.parkLeft(ctx, old.ID); err != nil || w.asleep {
		return err
	} else if n := old.Attempt - old.Rests; n >= maxAttempts {
		return w.giveUp(ctx, old, TurnFailed, PromptFailed, fmt.Sprintf("This was interrupted %d times and is given up. Send it again to try once more.", n))
	}
	// At once: its process may wait for a slot.
	left, err := w.store.LeaveTurn(ctx, w.heldLease(), old.ID, below)
	if err != nil {
		return err
	}
	w.front.Tell(left)
	w.worksFor(prompt.UserID)
	defer w.actsInTurns()
	if err := w.ensureSession(ctx); err != nil {
		return w.startFailed(ctx, prompt, err, w.stopCold, func(ctx context.Context, sentence string) error {
			return w.giveUp(ctx, old, TurnFailed, PromptFailed, sentence)
		})
	}
	if err := w.session.steer(ctx, ""); err != nil {
		if _, ok := errors.AsType[*steerError](err); !ok {
			return err
		}
		w.log.Error("have the session go on as people want it", zap.Error(err)) // it goes on as it is
	}
	row, err := w.store.ContinueTurn(ctx, w.heldLease(), old, w.session.id, w.session.epoch)
	if err != nil {
		return err
	}
	shown := old.Parking == turns.Unparked && w.session.recalls == ""
	_, err = w.beginWithFiles(ctx, row, prompt, turns.AttemptUUID(prompt.UUID, row.Attempt), note+prompt.Text, shown)
	return err
}

// giveUp ends a turn that no process works on: it has failed, people have stopped it, or
// it is paused.
func (w *worker) giveUp(ctx context.Context, old turns.Turn, state TurnState, mark PromptMark, problem string) error {
	status := approvals.Cancelled
	if state == TurnFailed {
		status = approvals.Interrupted
	}
	ended, rows, err := w.store.FinishTurn(ctx, w.heldLease(), store.FinishedTurn{
		ID: old.ID, State: string(state), Problem: problem, Approvals: status, Mark: string(mark),
	})
	if err != nil {
		return err
	}
	for _, a := range ended {
		w.front.ShowApproval(a)
	}
	w.front.Tell(rows...)
	return nil
}
