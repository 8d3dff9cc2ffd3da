package ledger

import (
	"context"
	"time"

	"deckhand/internal/store/pg"
)

// Charged is the sum of a team's entries of one UTC day and one model, in micro-USD.
type Charged struct {
	Day      string // as in 2026-10-31
	Model    string
	Entries  int64
	MicroUSD int64 // by list price
	// ContractMicroUSD is by the team's own prices, over the entries that have one; Unpriced counts those that cost
	// something but have none.
	ContractMicroUSD int64
	Unpriced         int64
	// EstimatedMicroUSD is the estimated part of MicroUSD.
	EstimatedMicroUSD int64
}

// Charged sums a team's entries in [from, to), by UTC day and model, like a provider's bill: by their instants, not
// by their booked days. It reads the ledger's own rows.
func (s *Store) Charged(ctx context.Context, teamID string, from, to time.Time) ([]Charged, error) {
	// No zone is further than 14 hours from UTC: the booked days find the rows, the instants select among them.
	out, err := pg.Collect[Charged](s.db.Query(ctx, `
		SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, model, count(*) AS entries, count(*) FILTER (WHERE contract_micro_usd IS NULL AND micro_usd <> 0) AS unpriced,
			ledger_sum(micro_usd) AS micro_usd, COALESCE(ledger_sum(contract_micro_usd), 0) AS contract_micro_usd,
			COALESCE(ledger_sum(micro_usd) FILTER (WHERE kind = 'estimate'), 0) AS estimated_micro_usd
		FROM ledger
		WHERE team_id = $1 AND booked_on >= $2::date - 1 AND booked_on <= $3::date + 1 AND at >= $4 AND at < $5
		GROUP BY 1, 2 ORDER BY 1, 2`,
		teamID, from.UTC().Format(time.DateOnly), to.UTC().Format(time.DateOnly), from, to))
	return out, pg.Wrap(err, "sum the ledger by day in UTC")
}
