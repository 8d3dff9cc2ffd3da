package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
)

// Kind is the kind of an audit row.
type Kind string

// The kinds of audit rows, with the content of their details.
const (
	Started       Kind = "started"        // a replica: version, replica, cli_version
	Config        Kind = "config"         // a configuration was loaded: sha256, before (the last one's), access, policy
	Prompt        Kind = "prompt"         // a person sent a prompt: inbox, uuid, text
	Refused       Kind = "refused"        // a person was refused: act, channel, reason
	TurnStarted   Kind = "turn_started"   // session, epoch, attempt, continues, prompt
	TurnEnded     Kind = "turn_ended"     // state, problem, micro_usd of what was booked by then
	Cost          Kind = "cost"           // booked after a turn's end: micro_usd
	Asked         Kind = "asked"          // tool, tool_use, input_sha256, rule, terms
	Vote          Kind = "vote"           // a vote that did not decide yet: allow, via
	Edited        Kind = "edited"         // an approver changed what is to run: tool, edits, input_sha256, edited_sha256, edited_input
	Decided       Kind = "decided"        // by a person, a grant or a rule: status, via, tool, tool_use, input_sha256, rule, reason, grant
	Ended         Kind = "ended"          // an approval without a decision: status, tool, input_sha256
	Reminded      Kind = "reminded"       // stage, to
	Granted       Kind = "granted"        // grant, scope, tool, pattern, expires_at
	GrantRevoked  Kind = "grant_revoked"  // grant, scope, pattern, made_by
	BudgetReached Kind = "budget_reached" // a share of a limit: notice, scope, key, period, from, limit_micro_usd, spent_micro_usd, share
	BudgetDecided Kind = "budget_decided" // notice, decision, micro_usd, model
	ToolResult    Kind = "tool_result"    // tool_use, tool, error, bytes, sha256, commit
	Web           Kind = "web"            // what a session reached since the last such row: visits (host, up, down, connections, refused)
	Steered       Kind = "steered"        // a person chose how a thread's work is done: what (model, effort, mode, an MCP server), value, before
	Forked        Kind = "forked"         // a person began a thread with the conversation and the files of another: from, session, parent
	Rewound       Kind = "rewound"        // a person took a thread back to the end of a turn: to, from (turns), session, before, states (commits of each repository)
	Bound         Kind = "bound"          // an admin chose in Slack which project a channel works on: channel, project (empty for none), before
	Setup         Kind = "setup"          // a project's setup has run in a thread's folder: run, status, signal, ms
	Git           Kind = "git"            // a fetch or a push: act, repository, bytes, wanted (objects), refs (ref, old, new, refused), refused, tool_use
	Pull          Kind = "pull"           // a pull request: act (opened, pushed, merged, closed, red, review, woken), repository, number, url, head, and what belongs to the act
	Account       Kind = "account"        // a person's own account at a forge: act (connected, disconnected, ended), host, login
	Trust         Kind = "trust"          // an admin decided about what a repository brings: project, kind (commands, agents, skills), sha256, status
)

// Entry is a row to append. Details must marshal to a JSON object.
type Entry struct {
	Kind       Kind
	TeamID     string
	Actor      string // a Slack user, "rule", or empty for the bot itself
	ThreadID   int64
	TurnID     int64
	ApprovalID string
	Details    map[string]any
}

// Append appends entries as the last statements of a transaction: it holds the chain's lock until the commit.
func Append(ctx context.Context, tx pg.Tx, entries ...Entry) error {
	return AppendAfter(ctx, tx, &pgx.Batch{}, entries...)
}

// AppendAfter is [audit] after the statements of a batch, all in one round trip.
func AppendAfter(ctx context.Context, tx pg.Tx, b *pgx.Batch, entries ...Entry) error {
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
	return pg.Wrap(tx.SendBatch(ctx, b).Close(), "audit")
}

// Audit appends entries that belong to no other change.
func (s *Store) Audit(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	return s.db.InTx(ctx, func(tx pg.Tx) error { return Append(ctx, tx, entries...) })
}

// AuditConfigLoaded appends a loaded configuration, with the checksum of the one before: if the two differ, roles
// or policy have changed.
func (s *Store) AuditConfigLoaded(ctx context.Context, teamID, sum string, details map[string]any) error {
	return s.db.InTx(ctx, func(tx pg.Tx) error {
		var before string
		err := tx.QueryRow(ctx, `
			SELECT details::json ->> 'sha256' FROM audit WHERE kind = 'config' AND team_id = $1 ORDER BY seq DESC LIMIT 1`, teamID).Scan(&before)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read the configuration before: %w", err)
		}
		all := maps.Clone(details)
		all["sha256"], all["before"] = sum, before
		return Append(ctx, tx, Entry{Kind: Config, TeamID: teamID, Details: all})
	})
}
