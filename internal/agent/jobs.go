package agent

import (
	"context"
	"errors"
	"time"

	"deckhand/internal/jobs"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
)

// JobHandlers do the jobs that the store schedules with an approval, and delete old
// transcripts and work. They need no running supervisor.
func (s *Supervisor) JobHandlers() []jobs.Handler {
	handlers := []jobs.Handler{jobs.Handle(s.expire), jobs.Handle(s.remind), jobs.Handle(s.forget)}
	if s.pulls != nil {
		handlers = append(handlers, s.pulls.JobHandlers()...)
	}
	return handlers
}

// expire ends an approval whose time has run out, whichever replica runs its
// thread; that one is notified and answers its CLI.
func (s *Supervisor) expire(ctx context.Context, j jobs.Job[approvals.Deadline]) error {
	a, ok, err := s.store.ExpireApproval(ctx, j.Args.ApprovalID)
	if errors.Is(err, approvals.ErrTooEarly) {
		return jobs.Again(time.Second)
	}
	if err != nil || !ok {
		return err
	}
	s.front.ShowApproval(a)
	return nil
}

func (s *Supervisor) remind(ctx context.Context, j jobs.Job[approvals.Reminder]) error {
	a, err := s.store.ApprovalByID(ctx, j.Args.ApprovalID)
	if errors.Is(err, pg.ErrNotFound) || (err == nil && a.Status != approvals.Pending) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.reminder.Remind(ctx, a, j.Args.Stage)
}
