package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/pg"
)

// Stretch is the part of a session between two running totals of its CLI, usually a turn, where calls and CLI
// differ by more than rounding.
type Stretch struct {
	ThreadID      int64
	TurnID        int64 // that ends the stretch
	At            time.Time
	CallsMicroUSD int64      // by its calls
	CLIMicroUSD   int64      // by the CLI
	Why           Difference `db:"-"`
	// Calls are those named by the reason, else all of the stretch; at most twenty, the dearest first.
	Calls []BookedCall `db:"-"`
}

// BookedCall is a call in the ledger, with its corrections.
type BookedCall struct {
	ID            uuid.UUID
	Model         string
	RequestID     string
	StartedAt     time.Time
	Status        int // of the answer; 0: none came
	Complete      bool
	MicroUSD      int64
	BoundMicroUSD int64
}

// Difference is the likely reason why calls and CLI differ.
type Difference string

// The reasons.
const (
	// An answer was cut: the CLI estimates its tokens, or has not counted it.
	DifferenceCut Difference = "cut"
	// Test calls for one token or none are not in the CLI's total.
	DifferenceProbes Difference = "probes"
	// The list has no price for a model, and the CLI uses another one.
	DifferenceUnpriced Difference = "unpriced"
	// The CLI counted less than was called: a command has called the model itself, or calls ran beside a process
	// that had already counted.
	DifferenceBeside Difference = "beside"
	// The CLI reports more than its calls: something reached the model past the gateway, or entries are missing.
	// This has no ordinary explanation.
	DifferenceMissing Difference = "missing"
)

// Explained reports whether the difference has an ordinary explanation.
func (d Difference) Explained() bool { return d != DifferenceMissing }

// CLITotals compares a team's calls, or with "" all, with the CLI's running totals since the given time. It returns
// the stretches that differ by more than rounding (half a micro-dollar per call, and one for the totals), oldest
// first. checked is the number of stretches.
func (s *Store) CLITotals(ctx context.Context, teamID string, since time.Time) (differ []Stretch, checked int64, err error) {
	rows, err := s.stretches(ctx, teamID, since)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range rows {
		if checked = r.Checked; r.SessionID == nil {
			break
		}
		r.Why = r.why()
		if r.Calls, err = s.callsInQuestion(ctx, *r.SessionID, r.Epoch, r.FirstID, r.LastID, r.Why); err != nil {
			return nil, 0, err
		}
		differ = append(differ, r.Stretch)
	}
	return differ, checked, nil
}

// MeterState is what to monitor of a team's meter.
type MeterState struct {
	// Differ counts the turns of the last hour whose CLI total differs from the calls' cost; see [Store.CLITotals].
	Differ map[Difference]int64
	// Unpriced counts the calls that still have no price, of all time.
	Unpriced int64
}

// MeterState reads the state of a team's meter.
func (s *Store) MeterState(ctx context.Context, teamID string) (MeterState, error) {
	out := MeterState{Differ: map[Difference]int64{}}
	rows, err := s.stretches(ctx, teamID, time.Now().Add(-time.Hour))
	if err != nil {
		return out, err
	}
	for _, d := range []Difference{DifferenceCut, DifferenceProbes, DifferenceUnpriced, DifferenceBeside, DifferenceMissing} {
		out.Differ[d] = 0
	}
	for _, r := range rows {
		if r.SessionID != nil {
			out.Differ[r.why()]++
		}
	}
	err = s.db.QueryRow(ctx, `
		SELECT count(*) FROM ledger l
		WHERE team_id = $1 AND NOT priced AND NOT EXISTS (SELECT FROM ledger p WHERE p.corrects = l.call_id AND p.cause = 'price')`, teamID).Scan(&out.Unpriced)
	return out, pg.Wrap(err, "count calls without a price")
}

// stretchRow is a stretch from the database.
type stretchRow struct {
	Stretch
	Checked                      int64
	Cut, Bound, Probes, Rounding int64
	Unpriced                     bool
	SessionID                    *uuid.UUID // nil: none differs
	Epoch                        int
	FirstID, LastID              int64 // of the ledger
}

// stretches returns the differing stretches, or if there are none a row with the number checked.
func (s *Store) stretches(ctx context.Context, teamID string, since time.Time) ([]stretchRow, error) {
	rows, err := pg.Collect[stretchRow](s.db.Query(ctx, `
		WITH told AS (
			SELECT DISTINCT session_id, epoch FROM ledger
			WHERE kind = 'end' AND total_after IS NOT NULL AND at >= $2 AND booked_on >= $2::date - 1 AND ($1 = '' OR team_id = $1)),
		marked AS (
			SELECT l.*, count(*) FILTER (WHERE kind = 'end' AND total_after IS NOT NULL) OVER (PARTITION BY session_id, epoch ORDER BY id DESC) AS stretch
			FROM ledger l JOIN told USING (session_id, epoch)
			WHERE kind IN ('call', 'end') OR cause = 'late'),
		stretches AS (
			SELECT session_id, epoch, min(id) AS first_id, max(id) AS last_id, min(thread_id) AS thread_id,
				max(turn_id) FILTER (WHERE total_after IS NOT NULL) AS turn_id, max(at) AS at,
				sum(micro_usd)::bigint AS paid, max(total_after - total_before) AS told,
				COALESCE(sum(micro_usd) FILTER (WHERE NOT complete), 0)::bigint AS cut, COALESCE(sum(bound_micro_usd), 0)::bigint AS bound,
				COALESCE(sum(micro_usd) FILTER (WHERE complete AND output_tokens <= 1), 0)::bigint AS probes,
				count(*) FILTER (WHERE kind = 'call') / 2 + 1 AS rounding, COALESCE(bool_or(NOT priced), false) AS unpriced
			FROM marked WHERE stretch > 0 GROUP BY session_id, epoch, stretch
			HAVING max(at) >= $2)
		SELECT n.checked, s.session_id, COALESCE(s.epoch, 0) AS epoch, COALESCE(s.first_id, 0) AS first_id, COALESCE(s.last_id, 0) AS last_id,
			COALESCE(s.thread_id, 0) AS thread_id, COALESCE(s.turn_id, 0) AS turn_id, COALESCE(s.at, now()) AS at,
			COALESCE(s.paid, 0) AS calls_micro_usd, COALESCE(s.told, 0) AS cli_micro_usd, COALESCE(s.cut, 0) AS cut, COALESCE(s.bound, 0) AS bound,
			COALESCE(s.probes, 0) AS probes, COALESCE(s.rounding, 0) AS rounding, COALESCE(s.unpriced, false) AS unpriced
		FROM (SELECT count(*) AS checked FROM stretches) n
		LEFT JOIN stretches s ON abs(s.paid - s.told) > s.rounding
		ORDER BY s.at LIMIT `+fmt.Sprint(maxDifferences), teamID, since))
	return rows, pg.Wrap(err, "compare the calls with what the CLI says")
}

// why explains the difference. The CLI may have counted a cut call up to its bound, or not at all.
func (r stretchRow) why() Difference {
	more := r.CallsMicroUSD - r.CLIMicroUSD
	within := func(least, most int64) bool { return more >= least-r.Rounding && more <= most+r.Rounding }
	switch {
	case r.Unpriced:
		return DifferenceUnpriced
	case r.Probes > 0 && within(r.Probes, r.Probes):
		return DifferenceProbes
	case r.Cut+r.Bound > 0 && within(-r.Bound, r.Cut+r.Probes):
		return DifferenceCut
	case more > 0:
		return DifferenceBeside
	}
	return DifferenceMissing
}

func (s *Store) callsInQuestion(ctx context.Context, session uuid.UUID, epoch int, first, last int64, d Difference) ([]BookedCall, error) {
	out, err := pg.Collect[BookedCall](s.db.Query(ctx, `
		SELECT l.call_id AS id, l.model, l.request_id, l.started_at, l.status, l.complete,
			l.micro_usd + COALESCE(c.micro_usd, 0) AS micro_usd, l.bound_micro_usd + COALESCE(c.bound_micro_usd, 0) AS bound_micro_usd
		FROM ledger l LEFT JOIN ledger c ON c.corrects = l.call_id AND c.cause = 'late'
		WHERE l.session_id = $1 AND l.epoch = $2 AND l.id BETWEEN $3 AND $4 AND l.kind = 'call'
		  AND CASE $5 WHEN 'cut' THEN NOT l.complete WHEN 'probes' THEN l.complete AND l.output_tokens <= 1 WHEN 'unpriced' THEN NOT l.priced ELSE true END
		ORDER BY 7 DESC, l.id LIMIT 20`, session, epoch, first, last, d))
	return out, pg.Wrap(err, "read the calls in question")
}

// CorrectionsByHand counts and sums the corrections of a team, or with "" of all, that were written by hand. They
// are in no turn and no audit row.
func (s *Store) CorrectionsByHand(ctx context.Context, teamID string) (entries, microUSD int64, err error) {
	err = s.db.QueryRow(ctx, `
		SELECT count(*), COALESCE(ledger_sum(micro_usd), 0) FROM ledger
		WHERE kind = 'correction' AND corrects IS NULL AND ($1 = '' OR team_id = $1)`, teamID).Scan(&entries, &microUSD)
	return entries, microUSD, pg.Wrap(err, "count corrections by hand")
}
