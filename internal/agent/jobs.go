package agent

import (
	"context"
	"errors"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"

	"deckhand/internal/store"
)

// runJobs works on what was scheduled for later: deadlines and reminders.
func (s *Supervisor) runJobs(ctx context.Context) {
	// The queue tells much that is nobody's business, at the level of information.
	quiet, err := zapcore.NewIncreaseLevelCore(s.log.Named("jobs").Core(), zapcore.WarnLevel)
	if err != nil {
		quiet = s.log.Core() // it is quieter than that already
	}
	err = s.books.RunJobs(ctx, slog.New(zapslog.NewHandler(quiet)), store.Jobs{Deadline: s.expire, Remind: s.remind})
	if err != nil && ctx.Err() == nil {
		s.log.Error("run the job queue", zap.Error(err))
	}
}

// expire ends an approval whose time has run out, whichever replica runs its
// thread; that one is notified and answers its CLI.
func (s *Supervisor) expire(ctx context.Context, approvalID string) error {
	a, ok, err := s.books.ExpireApproval(ctx, approvalID)
	if err != nil || !ok {
		return err
	}
	s.front.ShowApproval(a)
	return nil
}

func (s *Supervisor) remind(ctx context.Context, approvalID string, stage int) error {
	a, err := s.books.ApprovalByID(ctx, approvalID)
	if errors.Is(err, store.ErrNotFound) || (err == nil && a.Status != store.ApprovalPending) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.reminder.Remind(ctx, a, stage)
}
