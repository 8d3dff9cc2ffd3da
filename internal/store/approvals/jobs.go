package approvals

import (
	"context"
	"time"

	"deckhand/internal/store/pg"
)

// Deadline is the job that expires an approval.
type Deadline struct {
	ApprovalID string `json:"approval_id"`
}

// Kind implements [pg.JobArgs].
func (Deadline) Kind() string { return "approval_deadline" }

// Reminder is the job that reminds people of an approval. Stage counts from 0, as in [store.Options].
type Reminder struct {
	ApprovalID string `json:"approval_id"`
	Stage      int    `json:"stage"`
}

// Kind implements [pg.JobArgs].
func (Reminder) Kind() string { return "approval_reminder" }

// scheduleApproval writes the jobs of a new approval.
func schedule(ctx context.Context, tx pg.Tx, a Approval) error {
	// A moment later, so that the database's clock agrees.
	jobs := []pg.Job{{Args: Deadline{a.ID}, At: a.ExpiresAt.Add(100 * time.Millisecond)}}
	for stage, after := range tx.DB.Reminders {
		if at := a.CreatedAt.Add(after); at.Before(a.ExpiresAt) {
			jobs = append(jobs, pg.Job{Args: Reminder{a.ID, stage}, At: at})
		}
	}
	return pg.Schedule(ctx, tx, jobs...)
}
