package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
)

// AuditKind is the kind of an audit row.
type AuditKind string

// The kinds of audit rows, with the content of their details.
const (
	AuditStarted       AuditKind = "started"        // a replica: version, replica, cli_version
	AuditConfig        AuditKind = "config"         // a configuration was loaded: sha256, before (the last one's), access, policy
	AuditPrompt        AuditKind = "prompt"         // a person sent a prompt: inbox, uuid, text
	AuditRefused       AuditKind = "refused"        // a person was refused: act, channel, reason
	AuditTurnStarted   AuditKind = "turn_started"   // session, epoch, attempt, continues, prompt
	AuditTurnEnded     AuditKind = "turn_ended"     // state, problem, micro_usd of what was booked by then
	AuditCost          AuditKind = "cost"           // booked after a turn's end: micro_usd
	AuditAsked         AuditKind = "asked"          // tool, tool_use, input_sha256, rule, terms
	AuditVote          AuditKind = "vote"           // a vote that did not decide yet: allow, via
	AuditEdited        AuditKind = "edited"         // an approver changed what is to run: tool, edits, input_sha256, edited_sha256, edited_input
	AuditDecided       AuditKind = "decided"        // by a person, a grant or a rule: status, via, tool, tool_use, input_sha256, rule, reason, grant
	AuditEnded         AuditKind = "ended"          // an approval without a decision: status, tool, input_sha256
	AuditReminded      AuditKind = "reminded"       // stage, to
	AuditGranted       AuditKind = "granted"        // grant, scope, tool, pattern, expires_at
	AuditGrantRevoked  AuditKind = "grant_revoked"  // grant, scope, pattern, made_by
	AuditBudgetReached AuditKind = "budget_reached" // a share of a limit: notice, scope, key, period, from, limit_micro_usd, spent_micro_usd, share
	AuditBudgetDecided AuditKind = "budget_decided" // notice, decision, micro_usd, model
	AuditToolResult    AuditKind = "tool_result"    // tool_use, tool, error, bytes, sha256, commit
	AuditWeb           AuditKind = "web"            // what a session reached since the last such row: visits (host, up, down, connections, refused)
	AuditSteered       AuditKind = "steered"        // a person chose how a thread's work is done: what (model, effort, mode, an MCP server), value, before
	AuditForked        AuditKind = "forked"         // a person began a thread with the conversation and the files of another: from, session, parent
	AuditBound         AuditKind = "bound"          // an admin chose in Slack which project a channel works on: channel, project (empty for none), before
	AuditSetup         AuditKind = "setup"          // a project's setup has run in a thread's folder: run, status, signal, ms
	AuditGit           AuditKind = "git"            // a fetch or a push: act, repository, bytes, wanted (objects), refs (ref, old, new, refused), refused, tool_use
	AuditPull          AuditKind = "pull"           // a pull request: act (opened, pushed, merged, closed, red, review, woken), repository, number, url, head, and what belongs to the act
	AuditAccount       AuditKind = "account"        // a person's own account at a forge: act (connected, disconnected, ended), host, login
	AuditTrust         AuditKind = "trust"          // an admin decided about what a repository brings: project, kind (commands, agents, skills), sha256, status
)

// AuditEntry is a row to append. Details must marshal to a JSON object.
type AuditEntry struct {
	Kind       AuditKind
	TeamID     string
	Actor      string // a Slack user, "rule", or empty for the bot itself
	ThreadID   int64
	TurnID     int64
	ApprovalID string
	Details    map[string]any
}

// audit appends entries as the last statements of a transaction: it holds the chain's lock until the commit.
func audit(ctx context.Context, tx pgx.Tx, entries ...AuditEntry) error {
	return auditAfter(ctx, tx, &pgx.Batch{}, entries...)
}

// auditAfter is [audit] after the statements of a batch, all in one round trip.
func auditAfter(ctx context.Context, tx pgx.Tx, b *pgx.Batch, entries ...AuditEntry) error {
	for _, e := range entries {
		details := []byte("{}")
		if e.Details != nil {
			var err error
			if details, err = json.Marshal(e.Details); err != nil {
				return fmt.Errorf("audit %s: %w", e.Kind, err)
			}
		}
		b.Queue(`
			INSERT INTO audit (kind, team_id, actor, thread_id, turn_id, approval_id, details)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			e.Kind, e.TeamID, e.Actor, e.ThreadID, e.TurnID, e.ApprovalID, string(details))
	}
	if b.Len() == 0 {
		return nil
	}
	return wrap(tx.SendBatch(ctx, b).Close(), "audit")
}

// Audit appends entries that belong to no other change.
func (s *Store) Audit(ctx context.Context, entries ...AuditEntry) error {
	if len(entries) == 0 {
		return nil
	}
	return s.inTx(ctx, func(tx pgx.Tx) error { return audit(ctx, tx, entries...) })
}

// AuditConfigLoaded appends a loaded configuration, with the checksum of the one before: if the two differ, roles
// or policy have changed.
func (s *Store) AuditConfigLoaded(ctx context.Context, teamID, sum string, details map[string]any) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		var before string
		err := tx.QueryRow(ctx, `
			SELECT details::json ->> 'sha256' FROM audit WHERE kind = 'config' AND team_id = $1 ORDER BY seq DESC LIMIT 1`, teamID).Scan(&before)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read the configuration before: %w", err)
		}
		all := maps.Clone(details)
		all["sha256"], all["before"] = sum, before
		return audit(ctx, tx, AuditEntry{Kind: AuditConfig, TeamID: teamID, Details: all})
	})
}
