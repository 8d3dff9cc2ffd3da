package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/store/pg"
)

// sumColumns are the columns that every roll-up has besides its key, in the order of [CostLine]'s fields.
var sumColumns = []string{
	"entries", "turns", "approved", "input_tokens", "output_tokens", "cache_read_tokens",
	"cache_write_5m_tokens", "cache_write_1h_tokens", "web_searches",
	"micro_usd", "estimated_micro_usd", "contract_micro_usd",
}

// rawColumns are the same columns for a row of the ledger.
const rawColumns = `1::bigint AS entries, turns::bigint, approved::bigint, input_tokens, output_tokens, cache_read_tokens,
	cache_write_5m_tokens, cache_write_1h_tokens, web_searches, micro_usd,
	CASE WHEN kind = 'estimate' THEN micro_usd ELSE 0 END AS estimated_micro_usd, COALESCE(contract_micro_usd, 0) AS contract_micro_usd`

var (
	plainColumns  = strings.Join(sumColumns, ", ")
	summedColumns = regexp.MustCompile(`\w+`).ReplaceAllString(plainColumns, "ledger_sum($0) AS $0")
)

// groupKeys are the expressions to group by, over the ledger and over every roll-up with the column.
var groupKeys = map[CostGroup]string{
	ByNothing: "''::text",
	ByUser:    "user_id",
	ByChannel: "channel_id",
	ByProject: "project",
	ByModel:   "model",
	ByThread:  "thread_id",
	ByDay:     "booked_on",
	ByMonth:   "date_trunc('month', booked_on::timestamp)::date",
}

// Costs answers from the roll-ups, with the same result as the ledger's rows. An unknown group is an error.
func (s *Store) Costs(ctx context.Context, q CostQuery) (CostReport, error) {
	if _, ok := groupKeys[q.By]; !ok {
		return CostReport{}, fmt.Errorf("sum the ledger: no group %q", q.By)
	}
	if q.TeamID == "" {
		return CostReport{}, errors.New("sum the ledger: no team")
	}
	period, empty := bookedPeriod(q.From, q.To, s.TimeZone())
	if empty {
		return CostReport{}, nil
	}
	var out CostReport
	err := s.db.InSnapshot(ctx, func(tx pg.Tx) error {
		// The planner must see the dates. JIT costs more than it saves here, and a month's threads should stay in
		// memory.
		if _, err := tx.Exec(ctx, `
			SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true), set_config('work_mem', '64MB', true)`); err != nil {
			return err
		}
		var err error
		if !q.Raw && q.By == ByThread && q.Limit > 0 && q.ThreadID == 0 && len(q.Users) == 0 && len(q.Models) == 0 {
			out, err = costliestThreads(ctx, tx, q, period)
		} else {
			out, err = costLines(ctx, tx, q, period)
		}
		return err
	})
	return out, pg.Wrap(err, "sum the ledger")
}

// costSQL turns a query's conditions into SQL with arguments.
type costSQL struct {
	q    CostQuery
	args []any
}

func (c *costSQL) arg(v any) string {
	c.args = append(c.args, v)
	return "$" + strconv.Itoa(len(c.args))
}

// where is the query's team and filters, and further conditions.
func (c *costSQL) where(more ...string) string {
	conds := []string{"team_id = " + c.arg(c.q.TeamID)}
	for _, f := range []struct {
		column string
		values []string
	}{{"user_id", c.q.Users}, {"channel_id", c.q.Channels}, {"project", c.q.Projects}, {"model", c.q.Models}} {
		switch len(f.values) {
		case 0:
		case 1:
			conds = append(conds, f.column+" = "+c.arg(f.values[0]))
		default:
			conds = append(conds, f.column+" = ANY ("+c.arg(f.values)+")")
		}
	}
	if c.q.ThreadID != 0 {
		conds = append(conds, "thread_id = "+c.arg(c.q.ThreadID))
	}
	return strings.Join(append(conds, more...), " AND ")
}

func (c *costSQL) within(first, end day) string {
	return "booked_on >= " + c.arg(first.String()) + "::date AND booked_on < " + c.arg(end.String()) + "::date"
}

func (c *costSQL) atEdge(e edge) string {
	cond := "booked_on = " + c.arg(e.day.String()) + "::date"
	if !e.from.IsZero() {
		cond += " AND at >= " + c.arg(e.from)
	}
	if !e.to.IsZero() {
		cond += " AND at < " + c.arg(e.to)
	}
	return cond
}

// parts are the SELECTs that together return every entry of the query once, with the group's key as k: from the
// ledger itself, or from the roll-ups with the ledger for the edges.
func (c *costSQL) parts(p booked) []string {
	key := groupKeys[c.q.By]
	var parts []string
	add := func(table string, first, end day) {
		if !first.before(end) {
			return
		}
		columns := plainColumns
		if table == "ledger" {
			columns = rawColumns
		}
		parts = append(parts, "SELECT "+key+" AS k, "+columns+" FROM "+table+" WHERE "+c.where(c.within(first, end)))
	}
	daily, monthly := "ledger_channel_daily", "ledger_channel_monthly"
	if c.q.By == ByUser || len(c.q.Users) > 0 {
		daily, monthly = "ledger_daily", "ledger_monthly"
	}
	first, end := p.months()
	switch {
	case c.q.Raw, c.q.ThreadID != 0: // a thread's rows are few, and indexed
		add("ledger", p.first, p.end)
	case c.q.By == ByThread:
		add("ledger_thread_daily", p.first, p.end)
	case c.q.By == ByDay, !first.before(end):
		add(daily, p.first, p.end)
	default:
		add(daily, p.first, first)
		add(monthly, first, end)
		add(daily, end, p.end)
	}
	return append(parts, c.edges(p)...)
}

func (c *costSQL) edges(p booked) []string {
	var parts []string
	for _, e := range p.edges {
		parts = append(parts, "SELECT "+groupKeys[c.q.By]+" AS k, "+rawColumns+" FROM ledger WHERE "+c.where(c.atEdge(e)))
	}
	return parts
}

// order sorts lines, see [CostReport].
func (c *costSQL) order() string {
	switch c.q.By {
	case ByDay, ByMonth:
		return "k"
	case ByThread:
		return "micro_usd DESC, k"
	}
	return `micro_usd DESC, k COLLATE "C"`
}

func (c *costSQL) limit() string {
	if c.q.Limit <= 0 {
		return ""
	}
	return " LIMIT " + strconv.Itoa(c.q.Limit)
}

// costRow is a line from the database; no is its position, 0 for the total, which counts the lines.
type costRow struct {
	No, Lines int64
	CostLine
}

// shown selects the lines of the CTE top, with their positions.
func (c *costSQL) shown() string {
	where, from := "'' AS team_id, '' AS channel_id, '' AS thread_ts, '' AS project", ""
	if c.q.By == ByThread {
		where, from = "t.team_id, t.channel_id, t.thread_ts, t.project", " JOIN threads t ON t.id = k"
	}
	return "SELECT row_number() OVER (ORDER BY " + c.order() + ") AS no, " + groupText(c.q.By, "k") + " AS k, " + where + ", 1 AS lines, " + plainColumns + " FROM top" + from
}

// costLines sums up the parts of a query.
func costLines(ctx context.Context, tx pg.Tx, q CostQuery, p booked) (CostReport, error) {
	c := costSQL{q: q}
	parts := c.parts(p)
	if len(parts) == 0 {
		return CostReport{}, nil
	}
	sql := `WITH lines AS MATERIALIZED (SELECT k, ` + summedColumns + ` FROM (` + strings.Join(parts, " UNION ALL ") + `) p GROUP BY k),
		top AS (SELECT * FROM lines ORDER BY ` + c.order() + c.limit() + `)
		` + c.shown() + `
		UNION ALL
		SELECT 0, '', '', '', '', '', count(*), ` + summedColumns + ` FROM lines`
	rows, err := pg.Collect[costRow](tx.Query(ctx, sql, c.args...))
	if err != nil {
		return CostReport{}, err
	}
	return reportOf(q, rows), nil
}

// reportOf orders the total and the lines.
func reportOf(q CostQuery, rows []costRow) CostReport {
	slices.SortFunc(rows, func(a, b costRow) int { return cmp.Compare(a.No, b.No) })
	out := CostReport{Total: rows[0].CostLine}
	if q.By == ByNothing {
		return out
	}
	out.Rest = out.Total
	for _, r := range rows[1:] {
		out.Lines = append(out.Lines, r.CostLine)
		out.Rest.add(r.CostLine, -1)
	}
	out.More = int(rows[0].Lines) - len(out.Lines)
	return out
}

// costliestThreads finds the dearest threads of a period without summing up all of them. The cost of a thread that
// lies entirely within the whole days is its indexed total; only threads that cross the period's ends, or lie at
// its edges, are summed by day. Their number follows from how many threads were opened.
func costliestThreads(ctx context.Context, tx pg.Tx, q CostQuery, p booked) (CostReport, error) {
	total := q
	total.By = ByNothing
	sum, err := costLines(ctx, tx, total, p)
	if err != nil {
		return CostReport{}, err
	}
	c := costSQL{q: q}
	first, end := c.arg(p.first.String())+"::date", c.arg(p.end.String())+"::date"
	var crossing []string
	for _, bound := range []string{first, end} {
		crossing = append(crossing, "SELECT thread_id FROM ledger_threads WHERE "+c.where(
			"last_on > first_on", "daterange(first_on, last_on, '[]') @> "+bound, "first_on < "+bound))
	}
	for _, e := range p.edges {
		crossing = append(crossing, "SELECT thread_id FROM ledger WHERE "+c.where(c.atEdge(e)))
	}
	// The planner overestimates these threads; OFFSET 0 keeps it from scanning all threads' days for the join.
	parts := append(c.edges(p), "SELECT d.* FROM crossing, LATERAL (SELECT thread_id AS k, "+plainColumns+
		" FROM ledger_thread_daily WHERE thread_id = crossing.thread_id AND "+c.within(p.first, p.end)+" OFFSET 0) d")
	dearest := " ORDER BY " + c.order() + c.limit()
	sql := `WITH crossing AS MATERIALIZED (` + strings.Join(crossing, " UNION ") + `),
		crossed AS MATERIALIZED (SELECT k, ` + summedColumns + ` FROM (` + strings.Join(parts, " UNION ALL ") + `) p GROUP BY k),
		top AS (
			SELECT * FROM (
				(SELECT thread_id AS k, ` + plainColumns + ` FROM ledger_threads WHERE ` + c.where("first_on >= "+first, "last_on < "+end) + `
					ORDER BY micro_usd DESC, thread_id` + c.limit() + `)
				UNION ALL
				(SELECT * FROM crossed` + dearest + `)) both_kinds` + dearest + `)
		` + c.shown() + `
		UNION ALL
		SELECT 0, '', '', '', '', '',
			(SELECT COALESCE(sum(threads), 0)::bigint FROM ledger_openings WHERE ` + c.where("opened_on >= "+first, "opened_on < "+end) + `) +
			(SELECT count(*) FROM crossed WHERE (SELECT NOT (opened_on >= ` + first + ` AND opened_on < ` + end + `) FROM ledger_threads WHERE thread_id = k)),
			` + strings.Repeat("0, ", len(sumColumns)-1) + `0`
	rows, err := pg.Collect[costRow](tx.Query(ctx, sql, c.args...))
	if err != nil {
		return CostReport{}, err
	}
	out := reportOf(q, rows)
	out.Total, out.Rest = sum.Total, sum.Total
	for _, l := range out.Lines {
		out.Rest.add(l, -1)
	}
	return out, nil
}
