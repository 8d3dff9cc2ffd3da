package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
)

// MeterNotes are remarks on the entries of a cost query.
type MeterNotes struct {
	// Since is when the meter began to book every call, if the query includes older entries, which the CLI reported
	// per turn; else zero.
	Since time.Time
	// Unpriced are the models, by name, with booked calls that still have no price.
	Unpriced []UnpricedModel
	// Cut are the calls whose answer was cut, and CutBy the same by the query's group, without empty lines.
	Cut   CutCalls
	CutBy map[string]CutCalls
}

// UnpricedModel is what was booked for a model without a price, by the list's fallback.
type UnpricedModel struct {
	Model    string
	Calls    int64
	MicroUSD int64 `db:"micro_usd"`
}

// CutCalls are calls for which the provider may have billed up to BoundMicroUSD more than was booked.
type CutCalls struct {
	Calls         int64
	BoundMicroUSD int64 `db:"bound_micro_usd"`
}

// MeterNotes reads the remarks on a query's entries, from indexes made for them.
func (s *Store) MeterNotes(ctx context.Context, q CostQuery) (MeterNotes, error) {
	var out MeterNotes
	if q.TeamID == "" {
		return out, errors.New("read what the ledger says of calls: no team")
	}
	key, ok := groupKeys[q.By]
	if !ok {
		return out, fmt.Errorf("read what the ledger says of calls: no group %q", q.By)
	}
	period, empty := bookedPeriod(q.From, q.To, s.TimeZone())
	if empty {
		return out, nil
	}
	err := s.meterSince(ctx, q, &out)
	if err == nil {
		c := costSQL{q: q}
		out.Unpriced, err = pg.Collect[UnpricedModel](s.db.Query(ctx, `
			SELECT model, count(*) AS calls, ledger_sum(micro_usd) AS micro_usd FROM ledger l
			WHERE `+c.where("NOT priced", c.in(period))+` AND NOT EXISTS (SELECT FROM ledger p WHERE p.corrects = l.call_id AND p.cause = 'price')
			GROUP BY model ORDER BY model`, c.args...))
	}
	if err == nil {
		err = s.cutCalls(ctx, q, period, key, &out)
	}
	return out, pg.Wrap(err, "read what the ledger says of calls")
}

// meterSince finds entries from before the meter.
func (s *Store) meterSince(ctx context.Context, q CostQuery, out *MeterNotes) error {
	var began time.Time
	err := s.db.QueryRow(ctx, `
		SELECT max(tstamp) AT TIME ZONE current_setting('TimeZone') FROM goose_db_version WHERE version_id = $1 HAVING max(tstamp) IS NOT NULL`,
		meterVersion).Scan(&began)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if !q.From.IsZero() && !q.From.Before(began) {
		return nil
	}
	q.By, q.Limit = ByNothing, 0
	if q.To.IsZero() || q.To.After(began) {
		q.To = began
	}
	before, err := s.Costs(ctx, q)
	if err == nil && before.Total.Entries > 0 {
		out.Since = began
	}
	return err
}

// meterVersion is the migration that added the meter.
const meterVersion = 7

func (s *Store) cutCalls(ctx context.Context, q CostQuery, period booked, key string, out *MeterNotes) error {
	type row struct {
		K string
		CutCalls
	}
	// A correction removes the bound of a call whose end became known.
	c := costSQL{q: q}
	rows, err := pg.Collect[row](s.db.Query(ctx, `
		SELECT `+groupText(q.By, key)+` AS k, count(*) FILTER (WHERE bound_micro_usd > 0) - count(*) FILTER (WHERE bound_micro_usd < 0) AS calls,
			ledger_sum(bound_micro_usd) AS bound_micro_usd
		FROM ledger WHERE `+c.where("bound_micro_usd <> 0", c.in(period))+` GROUP BY 1`, c.args...))
	if err != nil {
		return err
	}
	out.CutBy = map[string]CutCalls{}
	for _, r := range rows {
		if r.BoundMicroUSD == 0 {
			continue
		}
		out.CutBy[r.K] = r.CutCalls
		out.Cut.Calls += r.Calls
		out.Cut.BoundMicroUSD += r.BoundMicroUSD
	}
	return nil
}

// in selects the entries of a period from the ledger's rows.
func (c *costSQL) in(p booked) string {
	conds := []string{c.within(p.first, p.end)}
	for _, e := range p.edges {
		conds = append(conds, c.atEdge(e))
	}
	return "(" + strings.Join(conds, " OR ") + ")"
}

// groupText is a group's key as a line shows it.
func groupText(by CostGroup, key string) string {
	switch by {
	case ByThread:
		return key + "::text"
	case ByDay:
		return "to_char(" + key + ", 'YYYY-MM-DD')"
	case ByMonth:
		return "to_char(" + key + ", 'YYYY-MM')"
	case ByNothing, ByUser, ByChannel, ByProject, ByModel:
	}
	return key
}
