package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/store/turns"
)

// FinishedTurn is the end of a turn.
type FinishedTurn struct {
	ID         int64
	State      string // done, interrupted or failed
	Problem    string // a sentence for people, or empty
	AgentTurns int
	// CLITotals are the CLI's running totals since they were last read: one per epoch of the turn, in order. None
	// if the process had gone.
	CLITotals []ledger.CLITotal
	// OverBudget: a budget stopped it, so that somebody may continue it later.
	OverBudget bool
	// Again is a prompt in the place of the turn's own, which a budget stopped before anything was done: it is next, and
	// waits for the budget: its UUID and Text. Nil for none.
	Again *inbox.NewPrompt
	// Approvals is the final status of approvals that are still pending.
	Approvals approvals.Status
	// View is the turn's final view for an [outbox.Turn]; empty if its content is unknown: then people get Problem
	// as [outbox.GivenUp].
	View []byte
	// Mark is how its prompt is marked, for an [outbox.Mark]; empty for no mark.
	Mark string
	// Answer is the beginning of the last text.
	Answer string
	// Transcripts are the parts that are not copied yet. One that does not continue its copy is skipped without an
	// error.
	Transcripts []transcripts.Part
}

// FinishTurn ends the turn, records the CLI's totals, finishes its prompts and ends its open approvals, all or
// nothing. It returns those approvals, for their cards, and the outbox rows: the turn, then its prompts' marks.
func (s *Store) FinishTurn(ctx context.Context, l threads.Lease, f FinishedTurn) (ended []approvals.Approval, rows []outbox.Row, err error) {
	copies := transcripts.Pack(f.Transcripts)
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		var team string
		var finished []int64
		var spent int64
		var end, show pgx.Batch
		threads.QueueHold(&end, l, &team)
		end.Queue(`
			UPDATE turns SET state = $2, problem = $3, agent_turns = $4, over_budget = $5, answer = $6, ended_at = now()
			WHERE id = $1 AND state = 'running'`, f.ID, f.State, f.Problem, f.AgentTurns, f.OverBudget, f.Answer).Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return fmt.Errorf("turn %d has ended already: %w", f.ID, threads.ErrFenced)
			}
			return nil
		})
		turns.SumCalls(&end, l.ThreadID, f.ID, &spent)
		end.Queue(`
			UPDATE inbox SET state = 'done', outcome = $2, done_at = now()
			WHERE turn_id = $1 AND state = 'running' RETURNING id`, f.ID, f.State).Query(func(rows pgx.Rows) (err error) {
			finished, err = pg.CollectColumn[int64](rows, nil)
			return err
		})
		var again inbox.Envelope
		if f.Again != nil {
			end.Queue(`
				INSERT INTO inbox (event_id, kind, team_id, channel_id, ts, thread_ts, user_id, payload, state, thread_id, prompt_uuid, prompt)
				SELECT 'again/' || $1::bigint, 'event', team_id, channel_id, ts, thread_ts, user_id, '{}', 'accepted', thread_id, $2, $3
				FROM inbox WHERE turn_id = $1 ORDER BY ts, id LIMIT 1 RETURNING id, user_id`, f.ID, f.Again.UUID, f.Again.Text).QueryRow(func(row pgx.Row) error {
				return row.Scan(&again.ID, &again.UserID)
			})
		}
		if err := tx.Send(ctx, &end); err != nil {
			return err
		}
		if _, err := transcripts.Save(ctx, tx, l, copies); err != nil {
			return err
		}
		outbox.AddTo(s.db, &show, l.ThreadID, func(w outbox.Row) { rows = append(rows, w) }, f.outboxRows(finished)...)
		approvals.End(&show, f.ID, f.Approvals, &ended)
		outbox.CloseCards(s.db, &show, f.ID, outbox.Hold)
		if err := tx.Send(ctx, &show); err != nil {
			return err
		}
		var entries []audit.Entry
		if f.Again != nil {
			entries = append(entries, audit.Entry{Kind: audit.Prompt, TeamID: team, Actor: again.UserID, ThreadID: l.ThreadID, Details: map[string]any{
				"inbox": again.ID, "uuid": f.Again.UUID, "text": f.Again.Text,
			}})
		}
		for _, a := range ended {
			entries = append(entries, approvals.EndedEntry(a))
		}
		// Last, because concurrent turns share rows of the roll-ups, locked from here on.
		if err := ledger.InsertEnd(ctx, tx, f.ID, f.CLITotals, true); err != nil {
			return err
		}
		return audit.Append(ctx, tx, append(entries, turns.EndedEntry(team, l.ThreadID, f.ID, f.State, f.Problem, spent))...)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("finish turn %d: %w", f.ID, err)
	}
	return ended, rows, nil
}

// outboxRows are the rows for the turn and the prompts that it finished.
func (f FinishedTurn) outboxRows(prompts []int64) []outbox.NewRow {
	out := []outbox.NewRow{{Kind: outbox.Turn, Turn: f.ID, Body: string(f.View)}}
	if len(f.View) == 0 {
		out[0].Kind, out[0].Body = outbox.GivenUp, f.Problem
	}
	if f.Mark == "" {
		return out
	}
	for _, id := range prompts {
		out = append(out, outbox.NewRow{Kind: outbox.Mark, Inbox: id, Body: f.Mark})
	}
	return out
}
