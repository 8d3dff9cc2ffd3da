package ledger

import (
	"context"
	"time"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// CostGroup is the grouping of a cost report's lines.
type CostGroup string

// The groups.
const (
	ByNothing CostGroup = "" // the total only
	ByUser    CostGroup = "user"
	ByChannel CostGroup = "channel"
	ByProject CostGroup = "project"
	ByModel   CostGroup = "model"
	ByThread  CostGroup = "thread"
	ByDay     CostGroup = "day"
	ByMonth   CostGroup = "month"
)

// CostQuery chooses ledger entries of one team and how to sum them.
//
// Days are booked days: those of the store's time zone when the entry was written (see [store.Options]). A whole day of
// the store's zone in [From, To) includes everything booked on it; on the partial days at From and To, entries
// count by their instant. Queries over adjacent periods therefore count every entry exactly once, even across a
// change of the zone.
type CostQuery struct {
	TeamID string // required
	// From and To are the period [From, To), to the microsecond. Zero is unbounded. To may lie in the future, and
	// the end of a day is cheaper than the present moment.
	From, To time.Time
	// The filters; an empty one admits everything.
	Users, Channels, Projects, Models []string
	ThreadID                          int64
	By                                CostGroup
	// Limit is the number of lines, 0 for all; Rest sums up the others.
	Limit int
	// Raw sums the entries one by one, instead of their roll-ups.
	Raw bool
}

// CostLine is a sum of ledger entries. Amounts are micro-USD.
type CostLine struct {
	// Key is a user id, a channel id, a project, a model, a thread's id in decimal, a
	// day (2026-10-31) or a month (2026-10); empty for a total.
	Key string `db:"k"`
	// ThreadKey and Project are a thread's; empty in other groups.
	threads.ThreadKey
	Project string

	// Turns counts ended turns with a cost, each once, on the line of its dearest entry. Approved counts their tool
	// calls that a person or a grant, not a rule, allowed.
	Turns, Approved int64
	Entries         int64 // of the ledger
	// Tokens, and web searches.
	Input        int64 `db:"input_tokens"`
	Output       int64 `db:"output_tokens"`
	CacheRead    int64 `db:"cache_read_tokens"`
	CacheWrite5m int64 `db:"cache_write_5m_tokens"`
	CacheWrite1h int64 `db:"cache_write_1h_tokens"`
	WebSearches  int64

	MicroUSD          int64 // by list price, as the CLI counts
	EstimatedMicroUSD int64 // the estimated part of MicroUSD
	ContractMicroUSD  int64 // by the team's own prices, over the entries that have one
}

// Add adds the figures of another line, and keeps its own key.
func (l *CostLine) Add(m CostLine) { l.add(m, 1) }

// add adds the figures of another line, multiplied by times.
func (l *CostLine) add(m CostLine, times int64) {
	l.Turns += times * m.Turns
	l.Approved += times * m.Approved
	l.Entries += times * m.Entries
	l.Input += times * m.Input
	l.Output += times * m.Output
	l.CacheRead += times * m.CacheRead
	l.CacheWrite5m += times * m.CacheWrite5m
	l.CacheWrite1h += times * m.CacheWrite1h
	l.WebSearches += times * m.WebSearches
	l.MicroUSD += times * m.MicroUSD
	l.EstimatedMicroUSD += times * m.EstimatedMicroUSD
	l.ContractMicroUSD += times * m.ContractMicroUSD
}

// CostReport is the answer to a [CostQuery]: Total = the sum of Lines + Rest.
type CostReport struct {
	Total CostLine
	// Lines are sorted by cost, highest first, then by key; days and months by date. A day without entries has no
	// line.
	Lines []CostLine
	Rest  CostLine // the sum of what Limit left out
	More  int      // how many lines these are
}

// Spend is a project's total cost on a model, in micro-USD.
type Spend struct {
	Project, Model   string
	MicroUSD         int64 // by list price
	ContractMicroUSD int64 // by the team's own prices, over the entries that have one
}

// Spend sums up the ledger by project and model, from the monthly roll-ups.
func (s *Store) Spend(ctx context.Context, teamID string) ([]Spend, error) {
	out, err := pg.Collect[Spend](s.db.Query(ctx, `
		SELECT project, model, ledger_sum(micro_usd) AS micro_usd, ledger_sum(contract_micro_usd) AS contract_micro_usd
		FROM ledger_channel_monthly WHERE team_id = $1 GROUP BY project, model ORDER BY project, model`, teamID))
	return out, pg.Wrap(err, "sum the ledger by project and model")
}
