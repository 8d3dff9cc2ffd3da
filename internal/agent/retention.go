package agent

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/jobs"
	"deckhand/internal/store/pg"
)

const (
	// forgetHour is when old transcripts and work are deleted each day, in UTC.
	forgetHour = 3
	// forgetKept is how often it is made sure that this is scheduled.
	forgetKept = time.Hour
	// forgetMost is how many threads' work is looked at in a night, and forgetAtOnce of how
	// many at once.
	forgetMost, forgetAtOnce = 500, 2
)

// forgetDue is the job that deletes transcripts that have been kept for long enough, and
// work that is somewhere else.
type forgetDue struct {
	Due time.Time `json:"due"` // in UTC
}

// Kind implements [pg.JobArgs].
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
	return s.store.Schedule(ctx, pg.Job{Args: forgetDue{Due: due}, At: due, Once: true})
}

// forget deletes the copies of transcripts of threads in which nobody has written for long.
func (s *Supervisor) forget(ctx context.Context, _ jobs.Job[forgetDue]) error {
	if s.limits.KeepTranscripts <= 0 {
		return nil
	}
	since, threads := time.Now().Add(-s.limits.KeepTranscripts), 0
	for {
		n, err := s.store.ForgetTranscripts(ctx, since)
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
	if err := s.forgetWork(ctx, since); err != nil {
		return err
	}
	return s.scheduleForget(ctx, time.Now())
}

// forgetWork deletes pieces of packs that nobody needs, and has the work that is kept of
// threads in which nobody has written since looked at, by a worker of each.
func (s *Supervisor) forgetWork(ctx context.Context, since time.Time) error {
	if s.works == nil {
		return nil
	}
	for {
		n, err := s.works.SweepPacks(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	ids, err := s.works.OldWork(ctx, since, forgetMost)
	for _, id := range ids {
		s.post(id, message{kind: messageForget, eager: true})
	}
	return err
}

// forgetWork deletes what is kept of the work of a thread that has nothing to do, if it is
// somewhere else. Else it stays, and the thread is told so once.
func (w *worker) forgetWork(ctx context.Context) error {
	return w.interruptibly(ctx, func(ctx context.Context) error {
		select {
		case w.forgetting <- struct{}{}:
			defer func() { <-w.forgetting }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		elsewhere, err := w.place.Elsewhere(ctx, w.thread, w.project)
		sentence := ""
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			w.log.Info("the work of a thread that rests stays, since it cannot be told whether it is somewhere else", zap.Error(err))
		case elsewhere:
			w.log.Info("the work of a thread that rests is somewhere else, and is not kept any more")
			return w.works.ForgetWork(ctx, w.heldLease())
		default:
			sentence = fmt.Sprintf("Nobody has written here for %d days. What this thread has made is nowhere but in the bot's keeping (commits that the project's forge does not have, or files that are not committed), so it stays there. When it has been pushed, or thrown away in this thread, it goes by itself; until then nothing deletes it.",
				int(w.limits.KeepTranscripts.Hours()/24))
		}
		rows, err := w.works.LeaveWork(ctx, w.heldLease(), sentence)
		for _, row := range rows {
			w.front.Tell(row)
		}
		return err
	})
}
