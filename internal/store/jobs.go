package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Jobs are what has to happen later, whichever replica is there then. They are
// written in the transaction of what they follow from, and an attempt that fails
// is made again. Every job looks at the state of things when it runs: that an
// approval was decided meanwhile makes its deadline a job that does nothing.
type Jobs struct {
	// Deadline ends an approval whose time has run out.
	Deadline func(ctx context.Context, approvalID string) error
	// Remind tells people that an approval waits; stage counts from 0.
	Remind func(ctx context.Context, approvalID string, stage int) error
}

type deadlineJob struct {
	ApprovalID string `json:"approval_id"`
}

// Kind implements [river.JobArgs].
func (deadlineJob) Kind() string { return "approval_deadline" }

type reminderJob struct {
	ApprovalID string `json:"approval_id"`
	Stage      int    `json:"stage"`
}

// Kind implements [river.JobArgs].
func (reminderJob) Kind() string { return "approval_reminder" }

// DigestDue is a digest that is to be sent once for its due time.
type DigestDue struct {
	Digest string    // which one; the store does not care
	Due    time.Time // to the second
	// Attempt counts from 1; only what HandleDigests is given has it.
	Attempt int
}

// ErrElsewhere is what a handler of digests returns for one that another replica may
// know: it is tried again in a moment, by whichever.
var ErrElsewhere = errors.New("not for this replica")

type digestJob struct {
	Digest string    `json:"digest"`
	Due    time.Time `json:"due"`
}

// Kind implements [river.JobArgs].
func (digestJob) Kind() string { return "digest" }

// digestAgain is when a digest that was left for another replica is tried again.
const digestAgain = 20 * time.Second

// HandleDigests says who sends digests. Call it before [Store.RunJobs]; without it,
// digests are left to other replicas.
func (s *Store) HandleDigests(send func(ctx context.Context, d DigestDue) error) { s.digests = send }

// ScheduleDigest has a digest sent at its due time, or at once if that is past. There
// is one job for a digest and a due time, however often and by how many replicas it is
// scheduled, and a day after it has run it is still known.
func (s *Store) ScheduleDigest(ctx context.Context, d DigestDue) error {
	due := d.Due.UTC().Truncate(time.Second)
	_, err := s.jobs.Insert(ctx, digestJob{Digest: d.Digest, Due: due}, &river.InsertOpts{
		ScheduledAt: due, UniqueOpts: river.UniqueOpts{ByArgs: true},
	})
	if err != nil {
		return fmt.Errorf("schedule a digest: %w", err)
	}
	return nil
}

func (s *Store) runDigest(ctx context.Context, job *river.Job[digestJob]) error {
	err := ErrElsewhere
	if s.digests != nil {
		err = s.digests(ctx, DigestDue{Digest: job.Args.Digest, Due: job.Args.Due, Attempt: job.Attempt})
	}
	if errors.Is(err, ErrElsewhere) {
		return river.JobSnooze(digestAgain)
	}
	return err
}

// SetReminders says how long after it was asked people are reminded of an
// approval. Call it before the store is used by several goroutines.
func (s *Store) SetReminders(after []time.Duration) { s.reminders = after }

// scheduleApproval writes the jobs of a new approval.
func (s *Store) scheduleApproval(ctx context.Context, tx pgx.Tx, a Approval) error {
	jobs := []river.InsertManyParams{{
		// A moment later, so that the database's clock agrees that the time is up.
		Args: deadlineJob{a.ID}, InsertOpts: &river.InsertOpts{ScheduledAt: a.ExpiresAt.Add(100 * time.Millisecond)},
	}}
	for stage, after := range s.reminders {
		if at := a.CreatedAt.Add(after); at.Before(a.ExpiresAt) {
			jobs = append(jobs, river.InsertManyParams{Args: reminderJob{a.ID, stage}, InsertOpts: &river.InsertOpts{ScheduledAt: at}})
		}
	}
	if _, err := s.jobs.InsertManyFastTx(ctx, tx, jobs); err != nil {
		return fmt.Errorf("schedule the approval's deadline: %w", err)
	}
	return nil
}

// RunJobs works on jobs until ctx ends, together with the other replicas.
func (s *Store) RunJobs(ctx context.Context, log *slog.Logger, j Jobs) error {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[deadlineJob]) error {
		err := j.Deadline(ctx, job.Args.ApprovalID)
		if errors.Is(err, ErrTooEarly) {
			return river.JobSnooze(time.Second)
		}
		return err
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[reminderJob]) error {
		return j.Remind(ctx, job.Args.ApprovalID, job.Args.Stage)
	}))
	river.AddWorker(workers, river.WorkFunc(s.runDigest))
	client, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		Logger:  log,
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
		Workers: workers,
	})
	if err != nil {
		return fmt.Errorf("prepare the job queue: %w", err)
	}
	if err := client.Start(ctx); err != nil {
		return fmt.Errorf("start the job queue: %w", err)
	}
	<-ctx.Done()
	<-client.Stopped()
	return nil
}
