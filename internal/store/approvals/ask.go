package approvals

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Ask records a request to use a tool. If the process that this turn continues asked for the same tool with the
// same input and got no answer, the request is bound to that approval with its card and decision (see
// [turns.Store.ContinueTurn]); the returned approval may then have ended already. A pending one gets jobs for its
// deadline and reminders.
//
// For a push it records what the thread has cost so far, and what earlier turns ran since the thread changed a
// file last.
//
// From a, Ask reads ID, SessionID, TurnID, Kind, RequestID, ToolUseID, ToolName, Input, Dir, Touches, Push,
// RequestedBy, Terms, Risks, DecisionReason, ToolSHA256, ToolChange, Said, CardID (empty: its own) and ExpiresAt, whose distance from now
// counts by the database's clock; for a decision by rule or grant also Status, DecidedBy, DecidedVia, GrantID and
// Reason. A grant that is no longer valid gives [pg.ErrNotFound].
func (s *Store) Ask(ctx context.Context, l threads.Lease, a Approval) (Approval, error) {
	a.InputSHA256 = sha256.Sum256(a.Input)
	a.Status, a.CardID = cmp.Or(a.Status, Pending), cmp.Or(a.CardID, a.ID)
	var out Approval
	err := threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		if a.Status == Pending {
			bound, err := bind(ctx, tx, l, a)
			if err == nil {
				err = addCardRow(ctx, tx, &bound) // it may not have been posted
			}
			if !errors.Is(err, pg.ErrNotFound) {
				out = bound
				return err
			}
		}
		if a.GrantID != 0 {
			if err := tx.QueryRow(ctx, `
				SELECT id FROM grants WHERE id = $1 AND revoked_at IS NULL AND expires_at > now() FOR SHARE`, a.GrantID).Scan(new(int64)); err != nil {
				return pg.NotFound(err)
			}
		}
		var err error
		if a.Push != nil {
			push := *a.Push
			if err = tx.QueryRow(ctx, `SELECT ledger_sum(micro_usd) FROM ledger WHERE thread_id = $1`, l.ThreadID).Scan(&push.CostMicroUSD); err != nil {
				return err
			}
			if push.Ran, err = withEarlier(ctx, tx, l.ThreadID, a.TurnID, push.Ran); err != nil {
				return err
			}
			a.Push = &push
		}
		if out, err = insertApproval(ctx, tx, l, a); err != nil {
			return err
		}
		if out.Status != Pending {
			return audit.Append(ctx, tx, decidedEntry(out))
		}
		if err := schedule(ctx, tx, out); err != nil {
			return err
		}
		if err := addCardRow(ctx, tx, &out); err != nil {
			return err
		}
		asked := audit.Entry{
			Kind: audit.Asked, TeamID: out.TeamID, Actor: out.RequestedBy, ThreadID: out.ThreadID, TurnID: out.TurnID, ApprovalID: out.ID,
			Details: map[string]any{
				"tool": out.ToolName, "tool_use": out.ToolUseID, "input_sha256": hex.EncodeToString(out.InputSHA256[:]),
				"rule": out.Terms.Rule, "approvers": out.Terms.Approvers, "quorum": out.Terms.Quorum,
				"requester_may": out.Terms.RequesterMay, "dangerous": out.Terms.Dangerous, "risks": out.Risks, "expires_at": out.ExpiresAt.UTC(),
			},
		}
		if out.ToolChange != nil {
			asked.Details["tool_sha256"], asked.Details["tool_changed"] = hex.EncodeToString(out.ToolSHA256[:]), true
		}
		if out.Push != nil {
			asked.Details["push"] = out.Push.IDs()
		}
		return audit.Append(ctx, tx, asked)
	})
	return out, pg.Wrap(err, "record the request for %s", a.ToolName)
}

// withEarlier puts the last commands of earlier turns before those of a turn, back to the thread's last change of a
// file, to [forges.MostRan] in all.
func withEarlier(ctx context.Context, tx pg.Tx, threadID, turnID int64, ran []forges.PushRan) ([]forges.PushRan, error) {
	type use struct {
		Input  json.RawMessage
		Failed bool
	}
	uses, err := pg.Collect[use](tx.Query(ctx, `
		WITH uses AS (
			SELECT a.* FROM approvals a
			WHERE a.turn_id IN (SELECT id FROM turns WHERE thread_id = $1 ORDER BY id DESC LIMIT 20) AND a.status = 'allowed')
		SELECT CASE WHEN a.edits > 0 THEN a.edited_input ELSE a.input END AS input, COALESCE((o.details::json ->> 'error')::boolean, false) AS failed
		FROM uses a JOIN audit o ON o.kind = 'tool_result' AND o.details::json ->> 'tool_use' = a.tool_use_id AND o.thread_id = $1
		WHERE a.turn_id <> $2 AND a.tool_name = 'Bash' AND a.created_at > COALESCE(
			(SELECT max(created_at) FROM uses WHERE tool_name IN ('Edit', 'Write', 'NotebookEdit')), '-infinity')
		ORDER BY a.created_at DESC LIMIT 20`, threadID, turnID))
	for _, u := range uses {
		if r, ok := forges.RanOf(u.Input, u.Failed); ok && len(ran) < forges.MostRan {
			ran = append([]forges.PushRan{r}, ran...)
		}
	}
	return ran, err
}

// bind moves an unanswered approval of a dead process to the process that asks the same now. A change of what the
// model is told of the tool, and that is not known by a sum, is never the same.
func bind(ctx context.Context, tx pg.Tx, l threads.Lease, a Approval) (Approval, error) {
	return pg.CollectOne[Approval](tx.Query(ctx, `
		WITH a AS (
			UPDATE approvals SET request_id = $4, tool_use_id = $5, session_id = $6
			WHERE id = (
				SELECT id FROM approvals
				WHERE turn_id = $7 AND request_id = '' AND tool_name = $2 AND input_sha256 = $3
				  AND thread_id = $1 AND delivered_at IS NULL AND status IN ('pending', 'allowed', 'denied')
				  AND (tool_sha256 = $8 OR $8::bytea IS NULL AND $9 AND tool_sha256 IS NULL AND tool_change IS NULL)
				ORDER BY created_at LIMIT 1)
			RETURNING *)
		SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`,
		l.ThreadID, a.ToolName, a.InputSHA256[:], a.RequestID, a.ToolUseID, a.SessionID, a.TurnID, a.ToolSHA256.orNull(), a.ToolChange == nil))
}

func insertApproval(ctx context.Context, tx pg.Tx, l threads.Lease, a Approval) (Approval, error) {
	return pg.CollectOne[Approval](tx.Query(ctx, `
		WITH a AS (
			INSERT INTO approvals (id, thread_id, session_id, turn_id, kind, request_id, tool_use_id, tool_name,
				input, input_sha256, requested_by, rule, because, approvers, quorum, requester_may, on_timeout,
				dangerous, grantable, risks, decision_reason, card_id, expires_at,
				status, decided_by, decided_via, grant_id, reason, dir, fixed, touches, said, push, tool_sha256, tool_change, decided_at, delivered_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, COALESCE($14::text[], '{}'), GREATEST($15, 1), $16,
				COALESCE(NULLIF($17, ''), 'pause'), $18, $19, COALESCE($20::text[], '{}'), $21, $22, now() + make_interval(secs => $23), $24, $25, $26, NULLIF($27::bigint, 0), $28, $29, $30, $31, $32, $33, $34, $35,
				CASE WHEN $24 = 'pending' THEN NULL ELSE now() END,
				CASE WHEN $24 = 'pending' THEN NULL ELSE now() END)
			RETURNING *)
		SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`,
		a.ID, l.ThreadID, a.SessionID, a.TurnID, a.Kind, a.RequestID, a.ToolUseID, a.ToolName,
		string(a.Input), a.InputSHA256[:], a.RequestedBy, a.Terms.Rule, a.Terms.Because, a.Terms.Approvers, a.Terms.Quorum,
		a.Terms.RequesterMay, a.Terms.OnTimeout, a.Terms.Dangerous, a.Terms.Grantable, a.Risks, a.DecisionReason, a.CardID,
		time.Until(a.ExpiresAt).Seconds(), a.Status, a.DecidedBy, a.DecidedVia, a.GrantID, a.Reason, a.Dir, a.Terms.Fixed, string(a.Touches), a.Said, a.Push, a.ToolSHA256.orNull(), a.ToolChange))
}

func decidedEntry(a Approval) audit.Entry {
	details := map[string]any{
		"status": a.Status, "via": a.DecidedVia, "tool": a.ToolName, "tool_use": a.ToolUseID,
		"input_sha256": hex.EncodeToString(a.InputSHA256[:]), "rule": a.Terms.Rule,
	}
	if a.Edited.Times > 0 {
		details["edits"], details["edited_sha256"], details["edited_by"] = a.Edited.Times, hex.EncodeToString(a.Edited.SHA256[:]), a.Edited.By
	}
	if a.Push != nil {
		details["push"] = a.Push.IDs()
	}
	if a.Reason != "" {
		details["reason"] = a.Reason
	}
	if a.GrantID != 0 {
		details["grant"] = a.GrantID
	}
	if a.Answer != nil {
		sum := sha256.Sum256(a.Answer)
		details["answer_sha256"] = hex.EncodeToString(sum[:])
	}
	return audit.Entry{
		Kind: audit.Decided, TeamID: a.TeamID, Actor: a.DecidedBy, ThreadID: a.ThreadID, TurnID: a.TurnID, ApprovalID: a.ID, Details: details,
	}
}

// EndedEntry is the audit entry of an approval that ended without a decision.
func EndedEntry(a Approval) audit.Entry {
	return audit.Entry{
		Kind: audit.Ended, TeamID: a.TeamID, ThreadID: a.ThreadID, TurnID: a.TurnID, ApprovalID: a.ID,
		Details: map[string]any{"status": a.Status, "tool": a.ToolName, "input_sha256": hex.EncodeToString(a.InputSHA256[:])},
	}
}
