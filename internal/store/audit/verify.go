package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
)

// Row is a row of the chain.
type Row struct {
	Seq        int64
	At         time.Time // microseconds
	Kind       Kind
	TeamID     string
	Actor      string
	ThreadID   int64
	TurnID     int64
	ApprovalID string
	Details    string // JSON, as it was hashed
	PrevHash   []byte
	Hash       []byte
}

// Sum is the hash that the row should have: SHA-256 over the previous hash and its own fields, with numbers as
// big-endian int64 and texts behind their length in bytes as big-endian int32. The database's trigger (audit_hash)
// computes the same.
func (r Row) Sum() [sha256.Size]byte {
	b := append([]byte(nil), r.PrevHash...)
	number := func(n int64) { b = binary.BigEndian.AppendUint64(b, uint64(n)) }
	text := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	number(r.Seq)
	number(r.At.UnixMicro())
	text(string(r.Kind))
	text(r.TeamID)
	text(r.Actor)
	number(r.ThreadID)
	number(r.TurnID)
	text(r.ApprovalID)
	text(r.Details)
	return sha256.Sum256(b)
}

// Anchor is a point of the chain that is stored elsewhere.
type Anchor struct {
	Day  string `json:"day"` // UTC, 2026-10-31
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"` // hex
}

// Report is the result of verifying the audit. Problems are sentences; there are none if the chain is whole
// and agrees with the other tables.
type Report struct {
	Rows     int64
	First    time.Time
	Last     Anchor // the chain's end, to be stored elsewhere
	Problems []string
}

// maxAuditProblems ends the search.
const maxAuditProblems = 100

// problem adds a problem and reports whether more are wanted.
func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < maxAuditProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Anchors lists the last row of every past day, oldest first.
func (s *Store) Anchors(ctx context.Context) ([]Anchor, error) {
	return anchors(ctx, s.db)
}

func anchors(ctx context.Context, db pg.Querier) ([]Anchor, error) {
	out, err := pg.Collect[Anchor](db.Query(ctx, `
		SELECT day::text AS day, seq, encode(hash, 'hex') AS hash FROM audit_anchors ORDER BY day`))
	return out, pg.Wrap(err, "read the audit's anchors")
}

// VerifyAudit reads the whole audit in one snapshot and finds rows that were changed, deleted, inserted or moved.
// It checks the chain's hashes and numbers, the anchors (the database's and the caller's), and compares decisions
// and costs with approvals, votes, grants and the ledger. A chain that is empty, or begins after work had begun,
// was truncated: turns, approvals, ledger entries and the history of migrations show that. Only an anchor kept
// elsewhere shows that the end was cut off or the whole chain replaced.
func (s *Store) VerifyAudit(ctx context.Context, kept []Anchor) (Report, error) {
	var r Report
	err := s.db.InSnapshot(ctx, func(tx pg.Tx) error {
		own, err := anchors(ctx, tx)
		if err != nil {
			return err
		}
		if err := r.chain(ctx, tx, map[string][]Anchor{"the database's anchor": own, "the anchor that was kept": kept}); err != nil {
			return err
		}
		if err := r.beginning(ctx, tx); err != nil {
			return err
		}
		for _, c := range auditChecks {
			found, err := pg.CollectColumn[string](tx.Query(ctx, c))
			if err != nil {
				return fmt.Errorf("compare the audit with what it tells of: %w", err)
			}
			for _, f := range found {
				r.problem("%s", f)
			}
		}
		return nil
	})
	return r, err
}

// chain follows the chain from its first row to its last.
func (r *Report) chain(ctx context.Context, tx pg.Tx, anchors map[string][]Anchor) error {
	type want struct{ whose, day, hash string }
	wanted := map[int64][]want{}
	for whose, list := range anchors {
		for _, a := range list {
			wanted[a.Seq] = append(wanted[a.Seq], want{whose, a.Day, a.Hash})
		}
	}
	previous := Row{Hash: make([]byte, sha256.Size)}
	rows, err := tx.Query(ctx, `
		SELECT seq, at, kind, team_id, actor, thread_id, turn_id, approval_id, details, prev_hash, hash FROM audit ORDER BY seq`)
	err = stream(rows, err, "read the audit", func(row Row) error {
		if r.Rows == 0 {
			r.First = row.At
		}
		r.Rows++
		if sum := row.Sum(); !bytes.Equal(sum[:], row.Hash) {
			r.problem("row %d (%s, %s) was changed: its hash does not fit its content", row.Seq, row.Kind, row.At.UTC().Format(time.RFC3339))
		}
		switch {
		case row.Seq != previous.Seq+1:
			r.problem("rows %d to %d are missing", previous.Seq+1, row.Seq-1)
		case !bytes.Equal(row.PrevHash, previous.Hash):
			r.problem("row %d does not follow row %d: one of them was changed or moved", row.Seq, previous.Seq)
		case row.At.Before(previous.At):
			r.problem("row %d is older than the one before it", row.Seq)
		}
		for _, a := range wanted[row.Seq] {
			if a.hash != hex.EncodeToString(row.Hash) {
				r.problem("row %d is not the one of %s for %s", row.Seq, a.whose, a.day)
			}
		}
		delete(wanted, row.Seq)
		previous = row
		return nil
	})
	if err != nil {
		return err
	}
	for seq, list := range wanted {
		for _, a := range list {
			r.problem("row %d of %s for %s is not there: the chain was cut off", seq, a.whose, a.day)
		}
	}
	r.Last = Anchor{Day: previous.At.UTC().Format(time.DateOnly), Seq: previous.Seq, Hash: hex.EncodeToString(previous.Hash)}
	return nil
}

// beginning finds rows older than the chain: a table that was emptied, or dropped and made again, is a whole chain
// by itself.
func (r *Report) beginning(ctx context.Context, tx pg.Tx) error {
	var first *time.Time // nil for an empty chain
	if r.Rows > 0 {
		first = &r.First
	}
	var turns, approvals, entries int64
	err := tx.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM turns WHERE $1::timestamptz IS NULL OR started_at < $1),
			(SELECT count(*) FROM approvals WHERE $1::timestamptz IS NULL OR created_at < $1),
			(SELECT count(*) FROM ledger WHERE $1::timestamptz IS NULL OR at < $1)`, first).Scan(&turns, &approvals, &entries)
	if err != nil {
		return fmt.Errorf("look for what is older than the audit: %w", err)
	}
	switch older := turns+approvals+entries > 0; {
	case older && r.Rows == 0:
		r.problem("the audit is empty, and there are %d turns, %d approvals and %d ledger entries: its rows were deleted", turns, approvals, entries)
	case older:
		r.problem("%d turns, %d approvals and %d ledger entries are older than the audit's first row: the rows before it were deleted", turns, approvals, entries)
	}
	if r.Rows > 0 {
		return nil
	}
	// goose numbers the steps as they are applied, and removes reverted ones.
	var again *time.Time
	err = tx.QueryRow(ctx, `
		SELECT max(tstamp) FROM goose_db_version
		WHERE version_id <= $1 HAVING max(id) - min(id) >= count(*)`, auditVersion).Scan(&again)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("read the history of migrations: %w", err)
	}
	if again != nil {
		r.problem("the audit is empty, and its table was made again at %s UTC: the one before was dropped (bot migrate down)", again.Format(time.DateTime))
	}
	return nil
}

// auditVersion is the migration that made the audit.
const auditVersion = 3

// auditChecks find rows of other tables that disagree with the audit. Each returns sentences.
var auditChecks = []string{
	// Every ended approval has exactly one audit row with its outcome, decider and input; an open one has none.
	`WITH told AS (
		SELECT approval_id, count(*) AS times, min(details::json ->> 'status') AS status, min(actor) AS actor,
			min(details::json ->> 'input_sha256') AS sha, min(details::json ->> 'tool') AS tool
		FROM audit WHERE kind IN ('decided', 'ended') GROUP BY approval_id)
	SELECT format('approval %s is %s by %s, and the audit says %s by %s', a.id, a.status, quote_literal(a.decided_by),
		COALESCE(t.status, 'nothing'), quote_literal(COALESCE(t.actor, '')))
	FROM approvals a FULL JOIN told t ON t.approval_id = a.id
	WHERE a.id IS NULL OR COALESCE(t.times, 0) <> (a.status <> 'pending')::int
	   OR (t.times = 1 AND (t.status, t.actor, t.sha, t.tool) IS DISTINCT FROM (a.status, a.decided_by, encode(a.input_sha256, 'hex'), a.tool_name))
	LIMIT 20`,
	`SELECT format('the input of approval %s is not the one that was decided about', id)
	FROM approvals WHERE sha256(convert_to(input, 'UTF8')) <> input_sha256 LIMIT 20`,
	// The changed input and its author match the audit.
	`SELECT format('the changed input of approval %s is not the one that the audit tells of', a.id)
	FROM approvals a
	WHERE a.edits > 0 AND (sha256(convert_to(a.edited_input, 'UTF8')) <> a.edited_sha256 OR NOT EXISTS (
		SELECT FROM audit e WHERE e.kind = 'edited' AND e.approval_id = a.id AND e.actor = a.edited_by
		  AND (e.details::json ->> 'edits')::int = a.edits AND e.details::json ->> 'edited_sha256' = encode(a.edited_sha256, 'hex'))) LIMIT 20`,
	// An approval that people allowed has as many votes as it needs.
	`SELECT format('approval %s was allowed with %s of %s votes', a.id, count(v.*), a.quorum)
	FROM approvals a LEFT JOIN votes v ON v.approval_id = a.id AND v.allow AND v.edit = a.edits
	WHERE a.status = 'allowed' AND a.decided_via NOT IN ('rule', 'grant')
	GROUP BY a.id HAVING count(v.*) < a.quorum LIMIT 20`,
	// Every grant was given, with what it allows, and revoked only as the audit says.
	`WITH given AS (
		SELECT (details::json ->> 'grant')::bigint AS id, min(actor) AS actor, min(details::json ->> 'pattern') AS pattern, min(details::json ->> 'scope') AS scope
		FROM audit WHERE kind = 'granted' GROUP BY 1
	), revoked AS (
		SELECT (details::json ->> 'grant')::bigint AS id, min(actor) AS actor FROM audit WHERE kind = 'grant_revoked' GROUP BY 1)
	SELECT format('grant %s does not agree with the audit', COALESCE(g.id, a.id))
	FROM grants g FULL JOIN given a ON a.id = g.id LEFT JOIN revoked r ON r.id = g.id
	WHERE (g.created_by, g.pattern, g.scope, g.revoked_by) IS DISTINCT FROM (a.actor, a.pattern, a.scope, COALESCE(r.actor, '')) LIMIT 20`,
	`WITH told AS (
		SELECT turn_id, sum((details::json ->> 'micro_usd')::bigint) AS micro_usd FROM audit WHERE kind IN ('turn_ended', 'cost') GROUP BY turn_id
	), booked AS (SELECT turn_id, ` + PaidByTurns + ` FROM ledger GROUP BY turn_id)
	SELECT format('turn %s cost %s micro-USD by the ledger, and %s by the audit', COALESCE(t.turn_id, b.turn_id), COALESCE(b.micro_usd, 0), COALESCE(t.micro_usd, 0))
	FROM told t FULL JOIN booked b ON b.turn_id = t.turn_id
	CROSS JOIN LATERAL (SELECT COALESCE(t.turn_id, b.turn_id) AS turn_id) of
	WHERE COALESCE(t.micro_usd, 0) <> COALESCE(b.micro_usd, 0) AND NOT EXISTS (SELECT FROM turns r WHERE r.id = of.turn_id AND r.state = 'running') LIMIT 20`,
}

// PaidByTurns sums a turn's entries, without corrections made by hand, which belong to no turn.
const PaidByTurns = `COALESCE(sum(micro_usd) FILTER (WHERE kind <> 'correction' OR corrects IS NOT NULL), 0)::bigint AS micro_usd`
