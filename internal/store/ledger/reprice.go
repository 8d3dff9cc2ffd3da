package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
)

// UnpricedCall is a call that was booked without a price for its model.
type UnpricedCall struct {
	ID      uuid.UUID
	At      time.Time // when it was booked
	Project string
	Model   string
	Rate    string // see [CallUsage]

	Input, Output, CacheRead int64 // tokens
	CacheWrite5m             int64 `db:"cache_write_5m"`
	CacheWrite1h             int64 `db:"cache_write_1h"`
	WebSearches              int64
	MicroUSD                 int64  `db:"micro_usd"` // as it was booked
	ContractMicroUSD         *int64 `db:"contract_micro_usd"`
}

// UnpricedCalls lists a team's calls booked since without a price that still have none, oldest first, with other
// corrections included.
func (s *Store) UnpricedCalls(ctx context.Context, teamID string, since time.Time) ([]UnpricedCall, error) {
	out, err := pg.Collect[UnpricedCall](s.db.Query(ctx, `
		SELECT l.call_id AS id, l.at, l.project, l.model, l.rate, l.input_tokens + COALESCE(c.input_tokens, 0) AS input, l.output_tokens + COALESCE(c.output_tokens, 0) AS output,
			l.cache_read_tokens + COALESCE(c.cache_read_tokens, 0) AS cache_read, l.cache_write_5m_tokens + COALESCE(c.cache_write_5m_tokens, 0) AS cache_write_5m,
			l.cache_write_1h_tokens + COALESCE(c.cache_write_1h_tokens, 0) AS cache_write_1h, l.web_searches + COALESCE(c.web_searches, 0) AS web_searches,
			l.micro_usd + COALESCE(c.micro_usd, 0) AS micro_usd, COALESCE(l.contract_micro_usd + c.contract_micro_usd, c.contract_micro_usd, l.contract_micro_usd) AS contract_micro_usd
		FROM ledger l LEFT JOIN ledger c ON c.corrects = l.call_id AND c.cause = 'late'
		WHERE l.team_id = $1 AND NOT l.priced AND l.at >= $2 AND NOT EXISTS (SELECT FROM ledger p WHERE p.corrects = l.call_id AND p.cause = 'price')
		ORDER BY l.id`, teamID, since))
	return out, pg.Wrap(err, "look for calls without a price")
}

// Repricing is the difference to a call's booked cost; it may be negative.
type Repricing struct {
	ID               uuid.UUID `json:"id"`
	MicroUSD         int64     `json:"micro_usd"`
	ContractMicroUSD *int64    `json:"contract"` // nil where the team has no price of its own
}

// Reprice corrects calls without a price in one transaction, and returns how many: calls priced before are skipped.
// The correcting entries are booked today.
func (s *Store) Reprice(ctx context.Context, calls []Repricing) (n int64, err error) {
	data, err := json.Marshal(calls)
	if err == nil {
		err = s.db.InTx(ctx, func(tx pg.Tx) error {
			n, err = s.reprice(ctx, tx, string(data))
			return err
		})
	}
	return n, pg.Wrap(err, "correct %d calls", len(calls))
}

func (s *Store) reprice(ctx context.Context, tx pg.Tx, calls string) (n int64, err error) {
	today, err := today(ctx, tx)
	if err != nil {
		return 0, err
	}
	paid, err := pg.Collect[paidTurn](tx.Query(ctx, `
		WITH booked AS (
			INSERT INTO ledger (booked_on, kind, team_id, channel_id, thread_id, project, user_id, session_id, epoch, turn_id, cli_version, model,
				input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, web_searches,
				micro_usd, contract_micro_usd, corrects, cause)
			SELECT $1::date, 'correction', l.team_id, l.channel_id, l.thread_id, l.project, l.user_id, l.session_id, l.epoch, l.turn_id, l.cli_version, l.model,
				0, 0, 0, 0, 0, 0, n.micro_usd, n.contract, l.call_id, 'price'
			FROM json_to_recordset($2::json) AS n (id uuid, micro_usd bigint, contract bigint)
			JOIN ledger l ON l.call_id = n.id AND NOT l.priced
			ORDER BY l.id
			ON CONFLICT DO NOTHING
			RETURNING turn_id, team_id, micro_usd),`+payTurns+`
		SELECT turn_id, thread_id, team_id, micro_usd, ended, (SELECT count(*) FROM booked) AS calls, 0 AS unbooked FROM paid ORDER BY turn_id`,
		today, calls))
	if err != nil {
		return 0, err
	}
	var late []audit.Entry
	for _, p := range paid {
		n, late = p.Calls, append(late, p.late()...)
	}
	return n, audit.Append(ctx, tx, late...)
}
