package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// BudgetScope is what a budget limits.
type BudgetScope string

// The scopes, with the content of a budget's key.
const (
	BudgetWorkspace BudgetScope = "workspace" // empty
	BudgetChannel   BudgetScope = "channel"   // a channel's id
	BudgetProject   BudgetScope = "project"   // its name
	BudgetPerson    BudgetScope = "person"    // a user's id
	BudgetThread    BudgetScope = "thread"    // its id in decimal
)

// BudgetPeriod is a budget's period.
type BudgetPeriod string

// The periods, in the store's time zone. Weeks begin on Monday.
const (
	BudgetDaily   BudgetPeriod = "day"
	BudgetWeekly  BudgetPeriod = "week"
	BudgetMonthly BudgetPeriod = "month"
)

// Span returns the period that contains at, as [from, to) in the zone.
func (p BudgetPeriod) Span(at time.Time, zone *time.Location) (from, to time.Time) {
	at = at.In(zone)
	y, m, d := at.Date()
	switch p {
	case BudgetWeekly:
		monday := d - (int(at.Weekday())+6)%7
		return time.Date(y, m, monday, 0, 0, 0, 0, zone), time.Date(y, m, monday+7, 0, 0, 0, 0, zone)
	case BudgetMonthly:
		return time.Date(y, m, 1, 0, 0, 0, 0, zone), time.Date(y, m+1, 1, 0, 0, 0, 0, zone)
	default:
		return time.Date(y, m, d, 0, 0, 0, 0, zone), time.Date(y, m, d+1, 0, 0, 0, 0, zone)
	}
}

// BudgetWindow is a budget in one period.
type BudgetWindow struct {
	TeamID string
	Scope  BudgetScope
	Key    string
	Period BudgetPeriod
	From   time.Time `db:"period_start"` // of the period; see [BudgetPeriod.Span]
	To     time.Time `db:"-"`
}

// BudgetState is the spend of a budget, and the decisions about it.
type BudgetState struct {
	SpentMicroUSD    int64
	ReservedMicroUSD int64  // by running calls
	RaisedMicroUSD   int64  // added by admins for the period
	Model            string // the cheaper model chosen last by an admin; or empty
	Decisions        int    // how many there are in the period
}

// BudgetStates reads the state of a team's budgets, in their order, from the ledger's roll-ups and the decisions.
func (s *Store) BudgetStates(ctx context.Context, windows []BudgetWindow) ([]BudgetState, error) {
	if len(windows) == 0 {
		return nil, nil
	}
	sql, args := budgetQuery(windows, uuid.Nil)
	out, err := pg.Collect[BudgetState](s.db.Query(ctx, sql, args...))
	return out, pg.Wrap(err, "read the state of budgets")
}

// budgetQuery reads a [BudgetState] for each window in one statement: the spend from the roll-up with the fewest
// rows, and the reservations from the running calls except one.
func budgetQuery(windows []BudgetWindow, but uuid.UUID) (sql string, args []any) {
	arg := func(v any) string { args = append(args, v); return fmt.Sprintf("$%d", len(args)) }
	team, own := arg(windows[0].TeamID), arg(but)
	rows := make([]string, len(windows))
	for i, w := range windows {
		from, to, key := arg(w.From.Format(time.DateOnly))+"::date", arg(w.To.Format(time.DateOnly))+"::date", arg(w.Key)
		rows[i] = fmt.Sprintf(`SELECT %d AS no,
			(SELECT COALESCE(ledger_sum(micro_usd), 0) FROM %s AND booked_on >= %s AND booked_on < %s) AS spent_micro_usd,
			(SELECT COALESCE(ledger_sum(GREATEST(reserved_micro_usd, micro_usd)), 0) FROM calls WHERE team_id = %s AND id <> %s AND %s) AS reserved_micro_usd, d.*
			FROM (%s) d`, i, spentIn(w, team, key), from, to, team, own, countsIn(w, key), decisionsIn(w, team, key, from, arg))
	}
	return `SELECT spent_micro_usd, reserved_micro_usd, raised_micro_usd, model, decisions FROM (` + strings.Join(rows, "\nUNION ALL\n") + `) b ORDER BY no`, args
}

// spentIn is the roll-up for a budget's spend, up to the day.
func spentIn(w BudgetWindow, team, key string) string {
	by := "daily"
	if w.Period == BudgetMonthly {
		by = "monthly"
	}
	switch w.Scope {
	case BudgetThread:
		return "ledger_thread_daily WHERE thread_id = " + key + "::text::bigint"
	case BudgetPerson:
		return "ledger_" + by + " WHERE team_id = " + team + " AND user_id = " + key
	case BudgetChannel:
		return "ledger_channel_" + by + " WHERE team_id = " + team + " AND channel_id = " + key
	case BudgetProject:
		return "ledger_channel_" + by + " WHERE team_id = " + team + " AND project = " + key
	}
	return "ledger_channel_" + by + " WHERE team_id = " + team + " AND " + key + "::text = ''"
}

// countsIn is true of a team's calls that count towards a budget.
func countsIn(w BudgetWindow, key string) string {
	switch w.Scope {
	case BudgetThread:
		return "thread_id = " + key + "::text::bigint"
	case BudgetPerson:
		return "user_id = " + key
	case BudgetChannel:
		return "channel_id = " + key
	case BudgetProject:
		return "project = " + key
	}
	return "true"
}

// decisionsIn selects the decisions about a budget in its period.
func decisionsIn(w BudgetWindow, team, key, from string, arg func(any) string) string {
	return fmt.Sprintf(`
		SELECT COALESCE(sum(d.micro_usd), 0)::bigint AS raised_micro_usd,
			COALESCE((array_agg(d.model ORDER BY d.at DESC) FILTER (WHERE d.decision = 'model'))[1], '') AS model,
			count(*)::int AS decisions
		FROM budget_notices n JOIN budget_decisions d ON d.notice_id = n.id
		WHERE n.team_id = %s AND n.scope = %s AND n.key = %s AND n.period = %s AND n.period_start = %s`,
		team, arg(w.Scope), key, arg(w.Period), from)
}

// BudgetNotice is a notice about a budget.
type BudgetNotice struct {
	ID string // unguessable; the only thing a button carries
	BudgetWindow
	LimitMicroUSD int64
	Share         int // percent of the limit; 100: it is reached
	SpentMicroUSD int64
	ThreadID      int64             // where it was noticed
	Thread        threads.ThreadKey `db:"-"`
	Project       string            // the thread's
	// The admin's decision; zero values while there is none.
	Decision  BudgetDecision `db:"-"`
	DecidedBy string
	DecidedAt time.Time
	OutboxID  int64 // the last outbox row about it, or 0
}

// BudgetDecision is an admin's decision about a reached limit: exactly one of its fields is set.
type BudgetDecision struct {
	RaiseMicroUSD int64  // raise the limit by this much, for the period
	Model         string // go on with this model until the period's end
	Leave         bool   // leave it as it is
}

type noticeRow struct {
	BudgetNotice
	BudgetDecision
	ChannelID, ThreadTS string
}

const selectNotices = `SELECT n.id, n.team_id, n.key, n.scope, n.period, n.period_start, n.limit_micro_usd, n.spent_micro_usd, n.share,
	n.thread_id, t.channel_id, t.thread_ts, t.project,
	COALESCE(d.decision = 'leave', false) AS leave, COALESCE(d.model, '') AS model, COALESCE(d.by_user, '') AS decided_by,
	COALESCE(d.micro_usd, 0) AS raise_micro_usd, COALESCE(d.at, '0001-01-01T00:00:00Z') AS decided_at,
	COALESCE((SELECT max(o.id) FROM outbox o WHERE o.notice_id = n.id), 0) AS outbox_id
	FROM budget_notices n JOIN threads t ON t.id = n.thread_id LEFT JOIN budget_decisions d ON d.notice_id = n.id`

func (r noticeRow) notice(zone *time.Location) BudgetNotice {
	n := r.BudgetNotice
	y, m, d := n.From.Date()
	n.From, n.To = n.Period.Span(time.Date(y, m, d, 12, 0, 0, 0, zone), zone)
	n.Thread = threads.ThreadKey{TeamID: n.TeamID, ChannelID: r.ChannelID, ThreadTS: r.ThreadTS}
	n.Decision = r.BudgetDecision
	return n
}

// NoticeBudget records that a share of a limit is reached, and returns its notice. fresh is false when a replica
// gave notice before. A warning is too late, and gives [pg.ErrEnded], once notice was given of a higher share of the
// limit, or that any limit of the period is reached.
func (s *Store) NoticeBudget(ctx context.Context, n BudgetNotice) (noted BudgetNotice, fresh bool, err error) {
	start := n.From.Format(time.DateOnly)
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		if err := lockBudget(ctx, tx, n.BudgetWindow); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO budget_notices (id, team_id, scope, key, period, period_start, limit_micro_usd, share, spent_micro_usd, thread_id)
			SELECT $1, $2, $3, $4, $5, $6::date, $7, $8, $9, $10
			WHERE $8 = 100 OR NOT EXISTS (
				SELECT FROM budget_notices WHERE team_id = $2 AND scope = $3 AND key = $4 AND period = $5 AND period_start = $6::date
					AND (share = 100 OR limit_micro_usd = $7 AND share > $8))
			ON CONFLICT DO NOTHING`,
			n.ID, n.TeamID, n.Scope, n.Key, n.Period, start, n.LimitMicroUSD, n.Share, n.SpentMicroUSD, n.ThreadID)
		if err != nil {
			return err
		}
		fresh = tag.RowsAffected() > 0
		r, err := pg.CollectOne[noticeRow](tx.Query(ctx, selectNotices+`
			WHERE n.team_id = $1 AND n.scope = $2 AND n.key = $3 AND n.period = $4 AND n.period_start = $5::date AND n.limit_micro_usd = $6 AND n.share = $7`,
			n.TeamID, n.Scope, n.Key, n.Period, start, n.LimitMicroUSD, n.Share))
		if errors.Is(err, pg.ErrNotFound) {
			return pg.ErrEnded
		}
		if err != nil {
			return err
		}
		if noted = r.notice(s.TimeZone()); !fresh {
			return nil
		}
		rows, err := outbox.Add(ctx, tx, n.ThreadID, outbox.NewRow{Kind: outbox.Budget, Notice: noted.ID})
		if err != nil {
			return err
		}
		noted.OutboxID = rows[0].ID
		return audit.Append(ctx, tx, audit.Entry{Kind: audit.BudgetReached, TeamID: n.TeamID, ThreadID: n.ThreadID, Details: n.details()})
	})
	return noted, fresh, pg.Wrap(err, "notice a budget")
}

// BudgetNoticeStands reports whether a notice is still to be shown: a warning is not once more was noticed, see
// [Store.NoticeBudget].
func (s *Store) BudgetNoticeStands(ctx context.Context, id string) (stands bool, err error) {
	err = s.db.QueryRow(ctx, `
		SELECT NOT EXISTS (
			SELECT FROM budget_notices n JOIN budget_notices h USING (team_id, scope, key, period, period_start)
			WHERE n.id = $1 AND n.share < 100 AND (h.share = 100 OR h.limit_micro_usd = n.limit_micro_usd AND h.share > n.share))`,
		id).Scan(&stands)
	return stands, pg.Wrap(err, "look whether to tell of a budget")
}

// lockBudget serialises decisions, notices and waits of a budget until the end of the transaction.
func lockBudget(ctx context.Context, tx pg.Tx, w BudgetWindow) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`,
		strings.Join([]string{"decisions about a budget", w.TeamID, string(w.Scope), w.Key, string(w.Period)}, "/"))
	return err
}

func (n BudgetNotice) details() map[string]any {
	return map[string]any{
		"notice": n.ID, "scope": n.Scope, "key": n.Key, "period": n.Period, "from": n.From.Format(time.DateOnly),
		"limit_micro_usd": n.LimitMicroUSD, "spent_micro_usd": n.SpentMicroUSD, "share": n.Share,
	}
}

// BudgetNoticeByID returns the notice, or [pg.ErrNotFound].
func (s *Store) BudgetNoticeByID(ctx context.Context, id string) (BudgetNotice, error) {
	r, err := pg.CollectOne[noticeRow](s.db.Query(ctx, selectNotices+` WHERE n.id = $1`, id))
	if err != nil {
		return BudgetNotice{}, fmt.Errorf("read a budget's notice: %w", err)
	}
	return r.notice(s.TimeZone()), nil
}

// DecideBudget records the decision of an admin, whom the caller has authorised, and wakes what waits for it. The
// first decision wins: a later one gets the notice as it was decided and [pg.ErrEnded].
func (s *Store) DecideBudget(ctx context.Context, id string, d BudgetDecision, by string) (BudgetNotice, error) {
	n, err := s.BudgetNoticeByID(ctx, id)
	if err != nil {
		return BudgetNotice{}, err
	}
	ended := false
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		if err := lockBudget(ctx, tx, n.BudgetWindow); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO budget_decisions (notice_id, decision, micro_usd, model, by_user, at)
			VALUES ($1, $2, $3, $4, $5, clock_timestamp()) ON CONFLICT DO NOTHING`, id, d.kind(), d.RaiseMicroUSD, d.Model, by)
		if err != nil {
			return err
		}
		if ended = tag.RowsAffected() == 0; ended {
			return nil
		}
		if err := wakeWaits(ctx, tx, n.BudgetWindow); err != nil {
			return err
		}
		if _, err := outbox.Add(ctx, tx, n.ThreadID, outbox.NewRow{Kind: outbox.Budget, Notice: id}); err != nil {
			return err
		}
		return audit.Append(ctx, tx, audit.Entry{Kind: audit.BudgetDecided, TeamID: n.TeamID, Actor: by, ThreadID: n.ThreadID, Details: map[string]any{
			"notice": id, "decision": d.kind(), "micro_usd": d.RaiseMicroUSD, "model": d.Model,
		}})
	})
	if err != nil {
		return BudgetNotice{}, fmt.Errorf("decide about a budget: %w", err)
	}
	n, err = s.BudgetNoticeByID(ctx, id)
	if err == nil && ended {
		err = pg.ErrEnded
	}
	return n, err
}

func (d BudgetDecision) kind() string {
	switch {
	case d.RaiseMicroUSD > 0:
		return "raise"
	case d.Model != "":
		return "model"
	}
	return "leave"
}
