package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Job is something to do later, by whichever replica is there then. It is written in
// the transaction of what it follows from, and an attempt that fails is made again.
// Whoever does it looks at the state of things first: that an approval was decided
// meanwhile makes its deadline a job that does nothing.
type Job struct {
	Args JobArgs
	At   time.Time // not before this; the past is at once
	// Once makes it the only job with these Args, however often and by how many
	// replicas it is scheduled. A day after it was done it is still known.
	Once bool
}

// JobArgs say what a job is about. They are stored as JSON under their kind, and
// stay as they are for as long as a database may hold some.
type JobArgs interface{ Kind() string }

// JobInserter writes jobs in a transaction: all, or none and an error.
type JobInserter interface {
	InsertTx(ctx context.Context, tx pgx.Tx, jobs []Job) error
}

// ApprovalDeadline is the job that ends an approval whose time has run out.
type ApprovalDeadline struct {
	ApprovalID string `json:"approval_id"`
}

// Kind implements [JobArgs].
func (ApprovalDeadline) Kind() string { return "approval_deadline" }

// ApprovalReminder is the job that tells people that an approval waits. Stage counts
// from 0, as [Options] has them.
type ApprovalReminder struct {
	ApprovalID string `json:"approval_id"`
	Stage      int    `json:"stage"`
}

// Kind implements [JobArgs].
func (ApprovalReminder) Kind() string { return "approval_reminder" }

// Schedule writes jobs that belong to no other change.
func (s *Store) Schedule(ctx context.Context, jobs ...Job) error {
	return s.inTx(ctx, func(tx pgx.Tx) error { return s.schedule(ctx, tx, jobs...) })
}

func (s *Store) schedule(ctx context.Context, tx pgx.Tx, jobs ...Job) error {
	if s.jobs == nil {
		return errors.New("schedule jobs: the store was opened without a job inserter")
	}
	err := s.jobs.InsertTx(ctx, tx, jobs)
	return wrap(err, "schedule jobs")
}

// scheduleApproval writes the jobs of a new approval.
func (s *Store) scheduleApproval(ctx context.Context, tx pgx.Tx, a Approval) error {
	// A moment later, so that the database's clock agrees that the time is up.
	jobs := []Job{{Args: ApprovalDeadline{a.ID}, At: a.ExpiresAt.Add(100 * time.Millisecond)}}
	for stage, after := range s.reminders {
		if at := a.CreatedAt.Add(after); at.Before(a.ExpiresAt) {
			jobs = append(jobs, Job{Args: ApprovalReminder{a.ID, stage}, At: at})
		}
	}
	return s.schedule(ctx, tx, jobs...)
}
