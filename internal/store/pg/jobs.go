package pg

import (
	"context"
	"errors"
	"time"
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

// Schedule writes jobs in a transaction of their own.
func (s *Store) Schedule(ctx context.Context, jobs ...Job) error {
	return s.db.InTx(ctx, func(tx Tx) error { return Schedule(ctx, tx, jobs...) })
}

// Schedule writes jobs in the transaction that causes them.
func Schedule(ctx context.Context, tx Tx, jobs ...Job) error {
	if tx.DB.Jobs == nil {
		return errors.New("schedule jobs: the store was opened without a job inserter")
	}
	err := tx.DB.Jobs.InsertTx(ctx, tx, jobs)
	return Wrap(err, "schedule jobs")
}
