package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// OpenCall is a call of the model that is about to leave. It belongs to the latest turn that its lease has begun in
// the thread, running or not.
type OpenCall struct {
	ID        uuid.UUID
	Lease     threads.Lease
	SessionID string
	Epoch     int // of the session
	Model     string
	StartedAt time.Time

	// ReservedMicroUSD is the call's expected maximum cost, and counts until it is booked. BoundMicroUSD is what it
	// may be billed if nothing is received of it.
	ReservedMicroUSD int64
	BoundMicroUSD    int64
}

// CallUsage is a call's cost by the last usage from the provider, as totals. The zero value means that nothing was
// received.
type CallUsage struct {
	Model       string // the model that answered; empty if the provider did not say
	RequestID   string
	Rate        string    // what decides the price besides model and tokens; empty is the ordinary rate
	FirstByteAt time.Time // zero: none came

	Input, Output, CacheRead, CacheWrite5m, CacheWrite1h int64 // tokens
	WebSearches                                          int64

	MicroUSD         int64  // by list price
	ContractMicroUSD *int64 // by the team's own prices; nil if it has none
	// Unpriced: the list has no price for the model; MicroUSD uses its fallback.
	Unpriced bool
	// BoundMicroUSD is what the provider may bill beyond MicroUSD; 0 if the usage is complete.
	BoundMicroUSD int64
}

// EndedCall is a finished call, however it ended.
type EndedCall struct {
	OpenCall
	Usage    CallUsage
	Status   int  // of the answer; 0: there was none
	Complete bool // the usage is complete
	EndedAt  time.Time
}

// BeginCall records a call before it leaves. It fails with [threads.ErrFenced] when the lease is lost, and with
// [pg.ErrNotFound] when the lease has begun no turn that the call could belong to: such a call must not leave. The
// commit does not wait for the disk: if a crash of the database loses it, EndCalls still books the call. Beginning
// a call again only changes its reservation.
//
// The reservation counts towards the budgets until the call is booked. A call that a budget refuses gives an
// [*OverBudgetError], and is not recorded.
func (s *Store) BeginCall(ctx context.Context, c OpenCall, budgets ...CallBudget) error {
	var err error
	if len(budgets) == 0 {
		err = begun(s.db.QueryRow(ctx, beginCall, c.args()...))
	} else {
		err = s.db.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return reserve(ctx, conn, c, budgets) })
	}
	return pg.Wrap(err, "begin a call of thread %d", c.Lease.ThreadID)
}

// beginCall records a call, and returns whether its lease is held and whether there is a turn for it.
var beginCall = `
	WITH soon AS (SELECT set_config('synchronous_commit', 'off', true)),
	held AS (SELECT t.* FROM threads t, soon WHERE t.id = $2 AND t.lease_owner = $3 AND t.lease_epoch = $4),
	inserted AS (
		INSERT INTO calls (id, team_id, channel_id, thread_id, project, user_id, session_id, epoch, turn_id,
			replica, lease_epoch, model, started_at, reserved_micro_usd, bound_micro_usd)
		SELECT $1, t.team_id, t.channel_id, t.id, t.project, r.requested_by, $5, $6, r.id, $3, $4, $7, $8, $9, $10
		FROM held t CROSS JOIN LATERAL (` + turnOfCall("t.id", "$4") + `) r
		ON CONFLICT (id) DO UPDATE SET reserved_micro_usd = excluded.reserved_micro_usd
		RETURNING id)
	SELECT EXISTS (SELECT FROM held), EXISTS (SELECT FROM inserted)`

func (c OpenCall) args() []any {
	return []any{c.ID, c.Lease.ThreadID, c.Lease.Owner, c.Lease.Epoch, c.SessionID, c.Epoch, c.Model, c.StartedAt, c.ReservedMicroUSD, c.BoundMicroUSD}
}

// begun interprets the result of beginCall.
func begun(row pgx.Row) error {
	var held, inserted bool
	err := row.Scan(&held, &inserted)
	switch {
	case err != nil:
		return err
	case !held:
		return threads.ErrFenced
	case !inserted:
		return pg.ErrNotFound
	}
	return nil
}

// turnOfCall selects the turn of a thread's call, by the epoch of its lease.
func turnOfCall(threadID, leaseEpoch string) string {
	return "SELECT * FROM turns WHERE thread_id = " + threadID + " AND lease_epoch <= " + leaseEpoch + " ORDER BY id DESC LIMIT 1"
}

// SeenCall records what is known of a running call. It does nothing for a finished one, and does not wait for the
// disk.
func (s *Store) SeenCall(ctx context.Context, id uuid.UUID, u CallUsage) error {
	_, err := s.db.Exec(ctx, `
		WITH soon AS (SELECT set_config('synchronous_commit', 'off', true))
		UPDATE calls SET model = COALESCE(NULLIF($2, ''), model), request_id = $3, rate = $4, first_byte_at = $5,
			input_tokens = $6, output_tokens = $7, cache_read_tokens = $8, cache_write_5m_tokens = $9, cache_write_1h_tokens = $10,
			web_searches = $11, micro_usd = $12, contract_micro_usd = $13, priced = $14, bound_micro_usd = $15
		FROM soon WHERE id = $1`,
		id, u.Model, u.RequestID, u.Rate, pg.Instant(u.FirstByteAt), u.Input, u.Output, u.CacheRead, u.CacheWrite5m, u.CacheWrite1h,
		u.WebSearches, u.MicroUSD, u.ContractMicroUSD, !u.Unpriced, u.BoundMicroUSD)
	return pg.Wrap(err, "record what is known of call %s", id)
}

// EndCalls books finished calls in one transaction. Each is booked once, however often it is reported: a call that
// was meanwhile booked as lost is corrected. Spent money is booked whoever holds the lease. If it fails, nothing
// was booked.
//
// Bookings share rows of the roll-ups and wait for each other. A replica should book from one goroutine that takes
// all calls that ended during the previous booking: for sixty threads that is eight times as many as booking each
// separately.
func (s *Store) EndCalls(ctx context.Context, calls []EndedCall) error {
	if len(calls) == 0 {
		return nil
	}
	rows := make([]callRow, len(calls))
	for i, c := range calls {
		rows[i] = c.row(i)
	}
	data, err := json.Marshal(rows)
	if err == nil {
		err = s.db.InTx(ctx, func(tx pg.Tx) error {
			_, err := s.book(ctx, tx, endedCalls, string(data))
			return err
		})
	}
	return pg.Wrap(err, "book %d calls", len(calls))
}

// EndLostCalls books the running calls of leases that nobody holds any more, as cut at the last usage seen, and
// returns their number. Concurrent replicas book different ones. A call that was recorded only after it had been
// booked gets no other entry: its beginning was delayed by the network.
func (s *Store) EndLostCalls(ctx context.Context) (n int, err error) {
	// Usually there are none, and a query is cheaper than a transaction.
	var some bool
	if err = s.db.QueryRow(ctx, `SELECT EXISTS (`+lostCalls+`)`).Scan(&some); err == nil && some {
		err = s.db.InTx(ctx, func(tx pg.Tx) error {
			n, err = s.book(ctx, tx, `
				ended AS (
					DELETE FROM calls WHERE id IN (`+lostCalls+` FOR UPDATE OF c SKIP LOCKED)
					RETURNING 0 AS no, id, turn_id, session_id, epoch, `+callFigures+`, NULL::timestamptz AS ended_at, 0 AS status, false AS complete)`)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("book lost calls: %w", err)
	}
	return n, nil
}

// lostCalls selects the calls whose lease nobody holds, and those already booked.
const lostCalls = `SELECT c.id FROM calls c JOIN threads t ON t.id = c.thread_id
	WHERE t.lease_epoch <> c.lease_epoch OR t.lease_owner IS NULL
		OR EXISTS (SELECT FROM ledger l WHERE l.call_id = c.id)`

// callFigures are the columns shared by running calls and the ledger.
const callFigures = "model, rate, request_id, started_at, first_byte_at, input_tokens, output_tokens, cache_read_tokens, " +
	"cache_write_5m_tokens, cache_write_1h_tokens, web_searches, micro_usd, contract_micro_usd, priced, bound_micro_usd"

// endedCalls is the relation ended, of the calls in $2.
var endedCalls = `
	given AS (
		SELECT * FROM json_to_recordset($2::json) AS n (no int, id uuid, thread_id bigint, lease_epoch bigint, session_id uuid, epoch int,
			model text, rate text, request_id text, started_at timestamptz, first_byte_at timestamptz, input_tokens bigint, output_tokens bigint,
			cache_read_tokens bigint, cache_write_5m_tokens bigint, cache_write_1h_tokens bigint, web_searches bigint, micro_usd bigint,
			contract_micro_usd bigint, priced boolean, bound_micro_usd bigint, ended_at timestamptz, status int, complete boolean)),
	gone AS (DELETE FROM calls c USING given g WHERE c.id = g.id RETURNING c.id, c.turn_id),
	ended AS (
		SELECT g.*, COALESCE(o.turn_id, (SELECT id FROM (` + turnOfCall("g.thread_id", "g.lease_epoch") + `) r)) AS turn_id
		FROM given g LEFT JOIN gone o USING (id))`

// bookCalls writes the calls of the relation ended into the ledger, with what they add to their turns' costs. $1 is
// the day. A call that was booked without its end gets a correction. It returns the turns that cost more now and,
// as a row without a turn, the number of calls and of those not booked: they belong to no turn, or another replica
// is booking them.
var bookCalls = `,
	late AS (
		SELECT e.*, l.turn_id AS of_turn, l.session_id AS of_session, l.epoch AS of_epoch, l.model AS of_model,
			l.input_tokens AS input, l.output_tokens AS output, l.cache_read_tokens AS cache_read,
			l.cache_write_5m_tokens AS cache_write_5m, l.cache_write_1h_tokens AS cache_write_1h, l.web_searches AS searches,
			l.micro_usd AS micro, l.contract_micro_usd AS contract, l.bound_micro_usd AS bound
		FROM ended e JOIN ledger l ON l.call_id = e.id AND l.ended_at IS NULL
		WHERE e.ended_at IS NOT NULL AND NOT EXISTS (SELECT FROM ledger c WHERE c.corrects = e.id AND c.cause = 'late')),
	booked AS (
		INSERT INTO ledger (booked_on, kind, team_id, channel_id, thread_id, project, user_id, session_id, epoch, turn_id, cli_version,
			call_id, ended_at, status, complete, corrects, cause, ` + callFigures + `)
		SELECT $1::date, n.kind, t.team_id, t.channel_id, t.id, t.project, r.requested_by, n.session_id, n.epoch, r.id, p.cli_version,
			n.call_id, n.ended_at, n.status, n.complete, n.corrects, n.cause, n.` + strings.ReplaceAll(callFigures, ", ", ", n.") + `
		FROM (
			SELECT no, 'call' AS kind, turn_id, session_id, epoch, id AS call_id, ended_at, status, complete, NULL::uuid AS corrects, NULL::text AS cause, ` + callFigures + `
			FROM ended
			UNION ALL
			SELECT no, 'correction', of_turn, of_session, of_epoch, NULL, NULL, NULL, NULL, id, 'late', of_model, NULL, NULL, NULL, NULL,
				input_tokens - input, output_tokens - output, cache_read_tokens - cache_read, cache_write_5m_tokens - cache_write_5m,
				cache_write_1h_tokens - cache_write_1h, web_searches - searches, micro_usd - micro, contract_micro_usd - COALESCE(contract, 0), NULL,
				bound_micro_usd - bound
			FROM late) n
		JOIN turns r ON r.id = n.turn_id
		JOIN threads t ON t.id = r.thread_id
		JOIN epochs p ON p.session_id = n.session_id AND p.epoch = n.epoch
		ORDER BY n.no
		ON CONFLICT DO NOTHING
		RETURNING turn_id, call_id, team_id, micro_usd),` + payTurns + `
	SELECT turn_id, thread_id, team_id, micro_usd, ended, 0 AS calls, 0 AS unbooked FROM paid
	UNION ALL
	SELECT 0, 0, '', 0, false, count(*), count(*) FILTER (
		WHERE NOT EXISTS (SELECT FROM booked b WHERE b.call_id = e.id) AND NOT EXISTS (SELECT FROM ledger l WHERE l.call_id = e.id))
	FROM ended e`

// payTurns adds the booked costs to the turns.
const payTurns = `
	paid AS (
		UPDATE turns r SET cost_micro_usd = cost_micro_usd + b.micro_usd
		FROM (SELECT turn_id, team_id, ledger_sum(micro_usd) AS micro_usd FROM booked GROUP BY turn_id, team_id ORDER BY turn_id) b
		WHERE r.id = b.turn_id
		RETURNING r.id AS turn_id, r.thread_id, b.team_id, b.micro_usd, r.state <> 'running' AS ended)`

// paidTurn is a turn whose cost has grown.
type paidTurn struct {
	TurnID, ThreadID int64
	TeamID           string
	MicroUSD         int64 `db:"micro_usd"`
	Ended            bool  // the audit already has its cost
	Calls, Unbooked  int64
}

// late is the audit's entry for a cost after the turn's end.
func (p paidTurn) late() []audit.Entry {
	if !p.Ended || p.MicroUSD == 0 {
		return nil
	}
	return []audit.Entry{costEntry(p.TeamID, p.ThreadID, p.TurnID, p.MicroUSD)}
}

// costEntry is the audit entry of a cost that came after its turn's end.
func costEntry(team string, threadID, turnID, microUSD int64) audit.Entry {
	return audit.Entry{Kind: audit.Cost, TeamID: team, ThreadID: threadID, TurnID: turnID, Details: map[string]any{"micro_usd": microUSD}}
}

// book books the calls of the relation ended, and returns their number.
func (s *Store) book(ctx context.Context, tx pg.Tx, ended string, args ...any) (calls int, err error) {
	today, err := today(ctx, tx)
	if err != nil {
		return 0, err
	}
	args = append([]any{today}, args...)
	var late []audit.Entry
	for again := range 2 {
		paid, err := pg.Collect[paidTurn](tx.Query(ctx, "WITH "+ended+bookCalls, args...))
		if err != nil {
			return 0, err
		}
		unbooked := int64(0)
		for _, p := range paid {
			calls, unbooked = max(calls, int(p.Calls)), unbooked+p.Unbooked
			late = append(late, p.late()...)
		}
		if unbooked == 0 {
			break
		}
		// The second attempt sees what another replica booked during the first.
		if again > 0 {
			return 0, fmt.Errorf("%d of them have no turn or epoch to belong to", unbooked)
		}
	}
	return calls, audit.Append(ctx, tx, late...)
}

// callRow is an ended call as database parameters.
type callRow struct {
	No           int        `json:"no"`
	ID           uuid.UUID  `json:"id"`
	ThreadID     int64      `json:"thread_id"`
	LeaseEpoch   int64      `json:"lease_epoch"`
	SessionID    string     `json:"session_id"`
	Epoch        int        `json:"epoch"`
	Model        string     `json:"model"`
	Rate         string     `json:"rate"`
	RequestID    string     `json:"request_id"`
	StartedAt    time.Time  `json:"started_at"`
	FirstByteAt  *time.Time `json:"first_byte_at"`
	Input        int64      `json:"input_tokens"`
	Output       int64      `json:"output_tokens"`
	CacheRead    int64      `json:"cache_read_tokens"`
	CacheWrite5m int64      `json:"cache_write_5m_tokens"`
	CacheWrite1h int64      `json:"cache_write_1h_tokens"`
	WebSearches  int64      `json:"web_searches"`
	MicroUSD     int64      `json:"micro_usd"`
	Contract     *int64     `json:"contract_micro_usd"`
	Priced       bool       `json:"priced"`
	Bound        int64      `json:"bound_micro_usd"`
	EndedAt      time.Time  `json:"ended_at"`
	Status       int        `json:"status"`
	Complete     bool       `json:"complete"`
}

func (c EndedCall) row(no int) callRow {
	u := c.Usage
	return callRow{
		No: no, ID: c.ID, ThreadID: c.Lease.ThreadID, LeaseEpoch: c.Lease.Epoch, SessionID: c.SessionID, Epoch: c.Epoch,
		Model: cmp.Or(u.Model, c.Model), Rate: u.Rate, RequestID: u.RequestID, StartedAt: c.StartedAt, FirstByteAt: pg.Instant(u.FirstByteAt),
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite5m: u.CacheWrite5m, CacheWrite1h: u.CacheWrite1h,
		WebSearches: u.WebSearches, MicroUSD: u.MicroUSD, Contract: u.ContractMicroUSD, Priced: !u.Unpriced, Bound: u.BoundMicroUSD,
		EndedAt: c.EndedAt, Status: c.Status, Complete: c.Complete,
	}
}
