package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Job is something to do later, by any replica. It is written in the transaction that causes it, and retried until
// it succeeds. Whoever runs it checks the state first: the deadline of a decided approval does nothing.
type Job struct {
	Args JobArgs
	At   time.Time // not before this; a past time means at once
	// Once makes it the only job with these Args, however often it is scheduled and by how many replicas. It is
	// remembered for a day after it was done.
	Once bool
}

// JobArgs are a job's arguments, stored as JSON under their kind. They must stay compatible while a database may
// hold some.
type JobArgs interface{ Kind() string }

// JobInserter writes jobs in a transaction, all or none.
type JobInserter interface {
	InsertTx(ctx context.Context, tx pgx.Tx, jobs []Job) error
}

// ApprovalDeadline is the job that expires an approval.
type ApprovalDeadline struct {
	ApprovalID string `json:"approval_id"`
}

// Kind implements [JobArgs].
func (ApprovalDeadline) Kind() string { return "approval_deadline" }

// ApprovalReminder is the job that reminds people of an approval. Stage counts from 0, as in [Options].
type ApprovalReminder struct {
	ApprovalID string `json:"approval_id"`
	Stage      int    `json:"stage"`
}

// Kind implements [JobArgs].
func (ApprovalReminder) Kind() string { return "approval_reminder" }

// Schedule writes jobs in a transaction of their own.
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
	// A moment later, so that the database's clock agrees.
	jobs := []Job{{Args: ApprovalDeadline{a.ID}, At: a.ExpiresAt.Add(100 * time.Millisecond)}}
	for stage, after := range s.reminders {
		if at := a.CreatedAt.Add(after); at.Before(a.ExpiresAt) {
			jobs = append(jobs, Job{Args: ApprovalReminder{a.ID, stage}, At: at})
		}
	}
	return s.schedule(ctx, tx, jobs...)
}
