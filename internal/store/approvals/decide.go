package approvals

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Decision is a person's answer to an approval.
type Decision struct {
	ApprovalID string
	Status     Status // allowed or denied
	By         string // Slack user id; authorised by the caller
	Via        string // button, modal or command
	Reason     string
	// Answer is the input to run instead, for a question; nil for anything else.
	Answer json.RawMessage
	// Seen is how often the input had been changed when the person saw it (Edited.Times): an allow is for what they
	// saw.
	Seen int
	// Edit, if not nil, changes the input of a tool call and allows it.
	Edit *Edit
	// Confirmed says that the person confirmed a dangerous call (Terms.Dangerous).
	Confirmed bool
	// Grants are created if this decision alone allows a grantable approval (Terms.Grantable).
	Grants []NewGrant
	// DeliverOn, if not empty, names the replica that answers the CLI right after the commit: if it holds the
	// thread's lease and the turn is not parked, the decision counts as delivered (see Deliver).
	DeliverOn string
}

// Edit is a changed input, with what is known of it.
type Edit struct {
	Input   json.RawMessage
	Risks   []string
	Touches json.RawMessage
}

// Decide adds a person's vote to a pending approval, and ends it on a denial or when its quorum has allowed it. The
// first decision wins: a later one gets the approval as it stands and [pg.ErrEnded]. A repeated vote gets [ErrVoted];
// an allow of an input that was changed meanwhile gets [ErrChanged]. A changed input is voted on anew: its author
// allows it, or only proposes it if they are the requester and may not decide. An approval that is returned as
// pending needs more votes. Unless the decision is delivered with the commit, the thread's replica is notified; a
// parked turn is woken.
func (s *Store) Decide(ctx context.Context, d Decision) (Approval, error) {
	var out Approval
	err := s.db.InTx(ctx, func(tx pg.Tx) error {
		decides, err := vote(ctx, tx, d)
		if err != nil {
			return err
		}
		if !decides {
			if out, err = pg.CollectOne[Approval](tx.Query(ctx, `
				SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id WHERE a.id = $1`, d.ApprovalID)); err != nil {
				return err
			}
			if err := addCardRow(ctx, tx, &out); err != nil {
				return err
			}
			if err := pg.Notify(ctx, tx, pg.Notice{Kind: pg.NoticeVote, ThreadID: out.ThreadID, ID: out.CardID}); err != nil {
				return err
			}
			if d.Edit != nil && len(out.Votes) == 0 {
				return audit.Append(ctx, tx, editedEntry(out))
			}
			return audit.Append(ctx, tx, append(editedEntries(d, out), audit.Entry{
				Kind: audit.Vote, TeamID: out.TeamID, Actor: d.By, ThreadID: out.ThreadID, TurnID: out.TurnID, ApprovalID: out.ID,
				Details: map[string]any{"allow": true, "via": d.Via, "votes": len(out.Votes), "quorum": out.Terms.Quorum, "edits": out.Edited.Times},
			})...)
		}
		out, err = pg.CollectOne[Approval](tx.Query(ctx, `
			WITH a AS (
				UPDATE approvals
				SET status = $2, decided_by = $3, decided_via = $4, reason = $5, answer = $6, decided_at = now(),
					delivered_at = CASE WHEN EXISTS (
						SELECT FROM threads h WHERE h.id = thread_id AND h.lease_owner = $7
					) AND NOT EXISTS (
						SELECT FROM turn_rests s WHERE s.turn_id = approvals.turn_id AND s.asleep
					) THEN now() END
				WHERE id = $1 AND status = 'pending' AND expires_at > now()
				RETURNING *)
			SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`,
			d.ApprovalID, d.Status, d.By, d.Via, d.Reason, string(d.Answer), d.DeliverOn))
		if err != nil {
			return err
		}
		var b pgx.Batch
		queueCardRow(s.db, &b, &out)
		entries := append(editedEntries(d, out), decidedEntry(out))
		for _, g := range d.Grants {
			granted, err := grantOf(ctx, tx, out, g)
			if err != nil {
				return err
			}
			entries = append(entries, granted)
		}
		wakeTurn(&b, out)
		acceptTool(&b, out)
		planAccepted(&b, out)
		if !out.Delivered {
			b.Queue(pg.SendNotice, pg.Channel, pg.Notice{Kind: pg.NoticeApproval, ThreadID: out.ThreadID, ID: out.ID}.Body())
		}
		return audit.AppendAfter(ctx, tx, &b, entries...)
	})
	if errors.Is(err, pg.ErrNotFound) || errors.Is(err, ErrVoted) || errors.Is(err, ErrChanged) {
		ended := err
		if errors.Is(err, pg.ErrNotFound) {
			ended = pg.ErrEnded
		}
		out, err = s.ApprovalByID(ctx, d.ApprovalID)
		if err != nil {
			return Approval{}, err
		}
		return out, ended
	}
	if err != nil {
		return Approval{}, fmt.Errorf("decide approval: %w", err)
	}
	return out, nil
}

// vote records the vote and any change under a lock on the pending approval, and reports whether it decides. An
// approval that has ended gives ErrNotFound.
func vote(ctx context.Context, tx pg.Tx, d Decision) (decides bool, err error) {
	var quorum, edits int
	var requesterMay, editable, dangerous bool
	err = tx.QueryRow(ctx, `
		SELECT quorum, edits, requester_may, kind = 'tool' AND NOT fixed AND NOT dangerous, dangerous
		FROM approvals WHERE id = $1 AND status = 'pending' AND expires_at > now() FOR UPDATE`, d.ApprovalID).Scan(&quorum, &edits, &requesterMay, &editable, &dangerous)
	if err != nil {
		return false, pg.NotFound(err)
	}
	allow := d.Status == Allowed
	if allow && d.Seen != edits {
		return false, ErrChanged
	}
	if allow && dangerous && (!d.Confirmed || len(d.Grants) > 0) {
		return false, fmt.Errorf("approval %s is dangerous: it is confirmed, each time, or not allowed", d.ApprovalID)
	}
	if d.Edit != nil {
		if !allow || !editable || len(d.Grants) > 0 {
			return false, fmt.Errorf("the input of approval %s may not be changed", d.ApprovalID)
		}
		edits++
		sum := sha256.Sum256(d.Edit.Input)
		if _, err := tx.Exec(ctx, `
			UPDATE approvals SET edits = $2, edited_input = $3, edited_sha256 = $4, edited_by = $5, risks = COALESCE($6::text[], '{}'), touches = $7
			WHERE id = $1`, d.ApprovalID, edits, string(d.Edit.Input), sum[:], d.By, d.Edit.Risks, string(d.Edit.Touches)); err != nil {
			return false, err
		}
		if !requesterMay {
			return false, nil // its author may not decide about it
		}
	}
	var allows int
	err = tx.QueryRow(ctx, `
		WITH v AS (
			INSERT INTO votes (approval_id, user_id, allow, via, edit) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT DO NOTHING RETURNING allow)
		SELECT (SELECT count(*) FROM votes WHERE approval_id = $1 AND allow AND edit = $5) + (SELECT count(*) FROM v WHERE allow)
		WHERE EXISTS (SELECT FROM v)`,
		d.ApprovalID, d.By, allow, d.Via, edits).Scan(&allows)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, ErrVoted
	}
	if err != nil {
		return false, err
	}
	return !allow || allows >= quorum, nil
}

// editedEntries are the audit entries of a decision's change.
func editedEntries(d Decision, a Approval) []audit.Entry {
	if d.Edit == nil {
		return nil
	}
	return []audit.Entry{editedEntry(a)}
}

func editedEntry(a Approval) audit.Entry {
	return audit.Entry{
		Kind: audit.Edited, TeamID: a.TeamID, Actor: a.Edited.By, ThreadID: a.ThreadID, TurnID: a.TurnID, ApprovalID: a.ID,
		Details: map[string]any{
			"tool": a.ToolName, "edits": a.Edited.Times, "input_sha256": hex.EncodeToString(a.InputSHA256[:]),
			"edited_sha256": hex.EncodeToString(a.Edited.SHA256[:]), "edited_input": string(a.Edited.Input), "risks": a.Risks,
		},
	}
}

// grantOf makes a grant from an allowed approval and returns its audit entry.
func grantOf(ctx context.Context, tx pg.Tx, a Approval, n NewGrant) (audit.Entry, error) {
	if a.Status != Allowed || !a.Terms.Grantable || a.Terms.Quorum > 1 || a.Edited.Times > 0 {
		return audit.Entry{}, fmt.Errorf("approval %s cannot become a grant", a.ID)
	}
	id, err := insertGrant(ctx, tx, a, n)
	if err != nil {
		return audit.Entry{}, err
	}
	return audit.Entry{
		Kind: audit.Granted, TeamID: a.TeamID, Actor: a.DecidedBy, ThreadID: a.ThreadID, TurnID: a.TurnID, ApprovalID: a.ID,
		Details: map[string]any{"grant": id, "scope": n.Scope, "tool": a.ToolName, "pattern": n.Pattern, "seconds": int64(n.For.Seconds())},
	}, nil
}

// Deliver claims the right to answer the CLI for a decided approval; it succeeds once. Call it before writing the
// answer: a crash in between then leads to a new question, never to a second run.
func (s *Store) Deliver(ctx context.Context, l threads.Lease, id string) (Approval, error) {
	a, err := pg.CollectOne[Approval](s.db.Query(ctx, `
		WITH a AS (
			UPDATE approvals SET delivered_at = now()
			WHERE id = $4 AND thread_id = $1 AND status IN ('allowed', 'denied') AND delivered_at IS NULL
			  AND EXISTS (SELECT FROM threads WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3)
			RETURNING *)
		SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`,
		l.ThreadID, l.Owner, l.Epoch, id))
	return a, pg.Wrap(err, "deliver approval")
}

// CancelApproval ends a pending approval because its process no longer asks. ok is false when it had already ended.
func (s *Store) CancelApproval(ctx context.Context, l threads.Lease, id string) (a Approval, ok bool, err error) {
	a, ok, err = s.endApproval(ctx, `
		UPDATE approvals SET status = 'cancelled', decided_at = now()
		WHERE id = $4 AND thread_id = $1 AND status = 'pending'
		  AND EXISTS (SELECT FROM threads WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3)
		RETURNING *`, l.ThreadID, l.Owner, l.Epoch, id)
	if err != nil {
		return Approval{}, false, fmt.Errorf("cancel approval: %w", err)
	}
	return a, ok, nil
}

// ExpireApproval ends a pending approval that has expired by the database's clock, and notifies the thread's
// replica. ok is false when it has already ended; [ErrTooEarly] says that it still has time.
func (s *Store) ExpireApproval(ctx context.Context, id string) (a Approval, ok bool, err error) {
	a, ok, err = s.endApproval(ctx, `
		UPDATE approvals SET status = 'expired', decided_at = now()
		WHERE id = $1 AND status = 'pending' AND expires_at <= now()
		RETURNING *`, id)
	if err != nil {
		return Approval{}, false, fmt.Errorf("expire approval: %w", err)
	}
	if ok {
		return a, true, pg.Notify(ctx, s.db, pg.Notice{Kind: pg.NoticeApproval, ThreadID: a.ThreadID, ID: a.ID})
	}
	if a, err = s.ApprovalByID(ctx, id); err == nil && a.Status == Pending {
		err = ErrTooEarly
	}
	return a, false, err
}

func (s *Store) endApproval(ctx context.Context, update string, args ...any) (a Approval, ok bool, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		var err error
		a, err = pg.CollectOne[Approval](tx.Query(ctx, `WITH a AS (`+update+`)
			SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`, args...))
		if errors.Is(err, pg.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		ok = true
		var b pgx.Batch
		queueCardRow(s.db, &b, &a)
		wakeTurn(&b, a)
		return audit.AppendAfter(ctx, tx, &b, EndedEntry(a))
	})
	return a, ok, err
}

// End adds to a batch that the pending approvals of a turn end: with status, or as interrupted if no process
// has asked for them since a restart (request_id is empty). The caller audits them.
func End(b *pgx.Batch, turnID int64, status Status, ended *[]Approval) {
	b.Queue(`
		WITH a AS (
			UPDATE approvals
			SET status = CASE WHEN request_id = '' THEN 'interrupted' ELSE $2 END, decided_at = now()
			WHERE turn_id = $1 AND status = 'pending'
			RETURNING *)
		SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`, turnID, cmp.Or(status, Cancelled)).Query(func(rows pgx.Rows) (err error) {
		*ended, err = pg.Collect[Approval](rows, nil)
		return err
	})
}

// wakeTurn unparks the turn of an approval that has ended.
func wakeTurn(b *pgx.Batch, a Approval) {
	b.Queue(`
		WITH woken AS (UPDATE turn_rests SET asleep = false WHERE turn_id = $3 AND asleep RETURNING turn_id)
		SELECT pg_notify($1, $2) FROM woken`, pg.Channel, pg.Notice{Kind: pg.NoticePrompt, ThreadID: a.ThreadID}.Body(), a.TurnID)
}

// planAccepted ends plan mode in a thread once a plan of it is approved.
func planAccepted(b *pgx.Batch, a Approval) {
	if a.Kind == Plan && a.Status == Allowed {
		b.Queue(`UPDATE threads SET mode = '' WHERE id = $1 AND mode = 'plan'`, a.ThreadID)
	}
}
