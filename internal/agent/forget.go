package agent

import (
	"context"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/jobs"
	"deckhand/internal/store"
)

const (
	// forgetHour is when old transcripts are deleted each day, in UTC.
	forgetHour = 3
	// forgetKept is how often it is made sure that this is scheduled.
	forgetKept = time.Hour
)

// forgetDue is the job that deletes transcripts that have been kept for long enough.
type forgetDue struct {
	Due time.Time `json:"due"` // in UTC
}

// Kind implements [store.JobArgs].
func (forgetDue) Kind() string { return "forget_transcripts" }

// keepForgetting makes sure that the next day's job is scheduled, until ctx ends. All
// replicas do; it is there once.
func (s *Supervisor) keepForgetting(ctx context.Context) {
	for s.limits.KeepTranscripts > 0 {
		if err := s.scheduleForget(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.log.Error("schedule the deletion of old transcripts", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(forgetKept):
		}
	}
}

func (s *Supervisor) scheduleForget(ctx context.Context, after time.Time) error {
	due := after.UTC().Truncate(24 * time.Hour).Add(forgetHour * time.Hour)
	if !due.After(after) {
		due = due.Add(24 * time.Hour)
	}
	return s.books.Schedule(ctx, store.Job{Args: forgetDue{Due: due}, At: due, Once: true})
}

// forget deletes the copies of transcripts of threads in which nobody has written for long.
func (s *Supervisor) forget(ctx context.Context, _ jobs.Job[forgetDue]) error {
	if s.limits.KeepTranscripts <= 0 {
		return nil
	}
	since, threads := time.Now().Add(-s.limits.KeepTranscripts), 0
	for {
		n, err := s.books.ForgetTranscripts(ctx, since)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		threads += n
	}
	if threads > 0 {
		s.log.Info("transcripts of threads in which nobody writes any more were deleted", zap.Int("threads", threads), zap.Time("since", since))
	}
	return s.scheduleForget(ctx, time.Now())
}
