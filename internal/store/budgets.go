package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// BudgetScope says whose spend a budget limits.
type BudgetScope string

// The scopes, and what the key of a budget is in each.
const (
	BudgetWorkspace BudgetScope = "workspace" // empty
	BudgetChannel   BudgetScope = "channel"   // a channel's id
	BudgetProject   BudgetScope = "project"   // its name
	BudgetPerson    BudgetScope = "person"    // a user's id
	BudgetThread    BudgetScope = "thread"    // its id in decimal
)

// BudgetPeriod is how long a budget lasts before it begins anew.
type BudgetPeriod string

// The periods, of the store's time zone. Weeks begin on Monday.
const (
	BudgetDaily   BudgetPeriod = "day"
	BudgetWeekly  BudgetPeriod = "week"
	BudgetMonthly BudgetPeriod = "month"
)

// Span returns the period of the kind that holds at, as [from, to) in the zone.
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

// BudgetWindow is one budget in one period.
type BudgetWindow struct {
	TeamID string
	Scope  BudgetScope
	Key    string
	Period BudgetPeriod
	From   time.Time // of the period; see [BudgetPeriod.Span]
	To     time.Time
}

// BudgetState is what was spent of a budget, and what was decided about it.
type BudgetState struct {
	SpentMicroUSD  int64
	RaisedMicroUSD int64  // what admins have added for the period
	Model          string // the cheaper model that an admin chose last; or empty
}

// BudgetState reads the state of a budget from the ledger's roll-ups and the
// decisions.
func (s *Store) BudgetState(ctx context.Context, b BudgetWindow) (BudgetState, error) {
	q := CostQuery{TeamID: b.TeamID, From: b.From, To: b.To}
	switch b.Scope {
	case BudgetChannel:
		q.Channels = []string{b.Key}
	case BudgetProject:
		q.Projects = []string{b.Key}
	case BudgetPerson:
		q.Users = []string{b.Key}
	case BudgetThread:
		if _, err := fmt.Sscan(b.Key, &q.ThreadID); err != nil {
			return BudgetState{}, fmt.Errorf("the budget of thread %q: %w", b.Key, err)
		}
	case BudgetWorkspace:
	}
	costs, err := s.Costs(ctx, q)
	if err != nil {
		return BudgetState{}, err
	}
	out := BudgetState{SpentMicroUSD: costs.Total.MicroUSD}
	err = s.pool.QueryRow(ctx, `
		SELECT COALESCE(sum(d.micro_usd), 0)::bigint,
			COALESCE((array_agg(d.model ORDER BY d.at DESC) FILTER (WHERE d.decision = 'model'))[1], '')
		FROM budget_notices n JOIN budget_decisions d ON d.notice_id = n.id
		WHERE n.team_id = $1 AND n.scope = $2 AND n.key = $3 AND n.period = $4 AND n.period_start = $5`,
		b.TeamID, b.Scope, b.Key, b.Period, b.From.Format(time.DateOnly)).Scan(&out.RaisedMicroUSD, &out.Model)
	if err != nil {
		return BudgetState{}, fmt.Errorf("read the decisions about a budget: %w", err)
	}
	return out, nil
}

// BudgetNotice is something that people are told of a budget.
type BudgetNotice struct {
	ID string // unguessable; the only thing a button carries
	BudgetWindow
	LimitMicroUSD int64
	Share         int // percent of the limit; 100: it is reached
	SpentMicroUSD int64
	ThreadID      int64 // where it was noticed
	Thread        ThreadKey
	// How an admin decided; zero values while nobody has.
	Decision  BudgetDecision
	DecidedBy string
	DecidedAt time.Time
}

// BudgetDecision is what an admin does about a limit that is reached: exactly one
// of its fields is set.
type BudgetDecision struct {
	RaiseMicroUSD int64  // raise the limit by this much, for the period
	Model         string // go on with this model until the period's end
	Leave         bool   // leave it as it is
}

type noticeRow struct {
	ID, TeamID, Key         string
	Scope                   BudgetScope
	Period                  BudgetPeriod
	PeriodStart             time.Time
	Limit, Spent            int64
	Share                   int
	ThreadID                int64
	ChannelID, ThreadTS     string
	Decision, Model, ByUser string
	MicroUSD                int64
	DecidedAt               *time.Time
}

const noticeColumns = `n.id, n.team_id, n.key, n.scope, n.period, n.period_start, n.limit_micro_usd AS "limit", n.spent_micro_usd AS spent, n.share,
	n.thread_id, t.channel_id, t.thread_ts,
	COALESCE(d.decision, '') AS decision, COALESCE(d.model, '') AS model, COALESCE(d.by_user, '') AS by_user,
	COALESCE(d.micro_usd, 0) AS micro_usd, d.at AS decided_at`

func (r noticeRow) notice(zone *time.Location) BudgetNotice {
	y, m, d := r.PeriodStart.Date()
	from, to := r.Period.Span(time.Date(y, m, d, 12, 0, 0, 0, zone), zone)
	n := BudgetNotice{
		ID: r.ID, BudgetWindow: BudgetWindow{TeamID: r.TeamID, Scope: r.Scope, Key: r.Key, Period: r.Period, From: from, To: to},
		LimitMicroUSD: r.Limit, Share: r.Share, SpentMicroUSD: r.Spent, ThreadID: r.ThreadID,
		Thread:   ThreadKey{TeamID: r.TeamID, ChannelID: r.ChannelID, ThreadTS: r.ThreadTS},
		Decision: BudgetDecision{RaiseMicroUSD: r.MicroUSD, Model: r.Model, Leave: r.Decision == "leave"}, DecidedBy: r.ByUser,
	}
	if r.DecidedAt != nil {
		n.DecidedAt = *r.DecidedAt
	}
	return n
}

// NoticeBudget records that a share of a limit is reached. fresh is false when
// people were told of it before, whichever replica told them.
func (s *Store) NoticeBudget(ctx context.Context, n BudgetNotice) (fresh bool, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			INSERT INTO budget_notices (id, team_id, scope, key, period, period_start, limit_micro_usd, share, spent_micro_usd, thread_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
			n.ID, n.TeamID, n.Scope, n.Key, n.Period, n.From.Format(time.DateOnly), n.LimitMicroUSD, n.Share, n.SpentMicroUSD, n.ThreadID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		fresh = true
		return audit(ctx, tx, AuditEntry{Kind: AuditBudgetReached, TeamID: n.TeamID, ThreadID: n.ThreadID, Details: n.details()})
	})
	if err != nil {
		return false, fmt.Errorf("notice a budget: %w", err)
	}
	return fresh, nil
}

func (n BudgetNotice) details() map[string]any {
	return map[string]any{
		"notice": n.ID, "scope": n.Scope, "key": n.Key, "period": n.Period, "from": n.From.Format(time.DateOnly),
		"limit_micro_usd": n.LimitMicroUSD, "spent_micro_usd": n.SpentMicroUSD, "share": n.Share,
	}
}

// BudgetNoticeByID returns the notice, or [ErrNotFound].
func (s *Store) BudgetNoticeByID(ctx context.Context, id string) (BudgetNotice, error) {
	r, err := collectOne[noticeRow](s.pool.Query(ctx, `
		SELECT `+noticeColumns+` FROM budget_notices n JOIN threads t ON t.id = n.thread_id
		LEFT JOIN budget_decisions d ON d.notice_id = n.id WHERE n.id = $1`, id))
	if err != nil {
		return BudgetNotice{}, fmt.Errorf("read a budget's notice: %w", err)
	}
	return r.notice(s.TimeZone()), nil
}

// DecideBudget records what an admin, whom the caller has authorised, does about a
// notice. The first decision wins: a later one gets the notice as it was decided
// and [ErrEnded].
func (s *Store) DecideBudget(ctx context.Context, id string, d BudgetDecision, by string) (BudgetNotice, error) {
	kind := "leave"
	switch {
	case d.RaiseMicroUSD > 0:
		kind = "raise"
	case d.Model != "":
		kind = "model"
	}
	ended := false
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			INSERT INTO budget_decisions (notice_id, decision, micro_usd, model, by_user)
			VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`, id, kind, d.RaiseMicroUSD, d.Model, by)
		if err != nil {
			return err
		}
		if ended = tag.RowsAffected() == 0; ended {
			return nil
		}
		var team string
		var thread int64
		if err := tx.QueryRow(ctx, `SELECT team_id, thread_id FROM budget_notices WHERE id = $1`, id).Scan(&team, &thread); err != nil {
			return notFound(err)
		}
		return audit(ctx, tx, AuditEntry{Kind: AuditBudgetDecided, TeamID: team, Actor: by, ThreadID: thread, Details: map[string]any{
			"notice": id, "decision": kind, "micro_usd": d.RaiseMicroUSD, "model": d.Model,
		}})
	})
	if err != nil {
		return BudgetNotice{}, fmt.Errorf("decide about a budget: %w", err)
	}
	n, err := s.BudgetNoticeByID(ctx, id)
	if err == nil && ended {
		err = ErrEnded
	}
	return n, err
}

// NextPrompt returns the prompt that the thread's next turn is for, or [ErrNotFound].
func (s *Store) NextPrompt(ctx context.Context, threadID int64) (Prompt, error) {
	r, err := collectOne[promptRow](s.pool.Query(ctx, `
		SELECT `+promptColumns+` FROM inbox i WHERE thread_id = $1 AND state = 'accepted' ORDER BY ts, id LIMIT 1`, threadID))
	if errors.Is(err, ErrNotFound) {
		return Prompt{}, err
	}
	if err != nil {
		return Prompt{}, fmt.Errorf("look for prompts of thread %d: %w", threadID, err)
	}
	return r.prompt(), nil
}

// DropPrompt finishes one prompt that has no turn.
func (s *Store) DropPrompt(ctx context.Context, l Lease, inboxID int64, outcome string) error {
	return s.fenced(ctx, l, "drop a prompt", `
		UPDATE inbox i SET state = 'done', outcome = $5, done_at = now()
		FROM threads t
		WHERE i.id = $4 AND i.thread_id = $1 AND i.state = 'accepted'
		  AND t.id = i.thread_id AND t.lease_owner = $2 AND t.lease_epoch = $3`, inboxID, outcome)
}
