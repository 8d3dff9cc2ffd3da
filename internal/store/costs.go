package store

import (
	"context"
	"time"
)

// CostGroup is what a cost report has a line for.
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
// Days are days as they were booked: those of the store's time zone when the
// entry was written (see [Options]). A whole day of the store's zone
// that lies in [From, To) stands for all that was booked on it; of the days that
// From and To cut through, entries count by their instant. Queries over adjacent
// periods therefore never count an entry twice or leave one out, also across a
// change of the zone.
type CostQuery struct {
	TeamID string // required
	// From and To are the period [From, To), to the microsecond. Zero means since
	// ever and until ever. To may lie in the future, and the end of a day is cheaper
	// than the present moment.
	From, To time.Time
	// The filters; an empty one lets everything through.
	Users, Channels, Projects, Models []string
	ThreadID                          int64
	By                                CostGroup
	// Limit is how many lines are wanted, 0 for all; the others are summed up in Rest.
	Limit int
}

// CostLine is a sum of ledger entries. Amounts are micro-USD.
type CostLine struct {
	// Key is a user id, a channel id, a project, a model, a thread's id in decimal, a
	// day (2026-10-31) or a month (2026-10); empty for a total.
	Key string `db:"k"`
	// ThreadKey and Project say where a thread is; empty in all other groups.
	ThreadKey
	Project string

	// Turns counts a turn once, on the line of its dearest entry, when it has ended
	// and cost something. Approved counts the tool calls of those turns that a person
	// or a grant, not a rule, allowed.
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
	EstimatedMicroUSD int64 // the part of MicroUSD that is estimates
	ContractMicroUSD  int64 // by the team's own prices, over the entries that have one
}

// Add adds the figures of another line. What the line is of stays as it is.
func (l *CostLine) Add(m CostLine) { l.add(m, 1) }

// add adds the figures of another line so many times.
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
	// Lines are dearest first, and equally dear ones by key; days and months are in
	// their order. A line has at least one entry: a day without any has no line.
	Lines []CostLine
	Rest  CostLine // what Limit left out
	More  int      // how many lines that is
}

// Costs answers from the roll-ups, exactly as the ledger's own rows would. An unknown
// group is an error.
func (s *Store) Costs(ctx context.Context, q CostQuery) (CostReport, error) {
	return s.costs(ctx, q, false)
}
