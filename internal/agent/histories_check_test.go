package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/ledger"
)

// verdict is what the comparison of a history's ledger with its bill found.
type verdict struct {
	Turns, Calls int                       // of the bot, and of the model as its server saw them
	Kills        int                       // of processes and of connections
	Exact        int                       // calls whose entry is what was billed, to the micro-dollar
	Cut          int                       // calls whose usage nobody was told to the end
	Unbegun      int                       // calls that were never answered, and cost nothing
	Late         int                       // calls that were booked as lost, and corrected
	Entries      int                       // of the ledger
	Bill, Ledger int64                     // in micro-dollars
	Bounds       int64                     // what the entries of cut calls say may be missing, in micro-dollars
	Witness      map[ledger.Difference]int // turns of which the CLI says something else
}

func (v *verdict) add(o verdict) {
	v.Turns += o.Turns
	v.Calls += o.Calls
	v.Kills += o.Kills
	v.Exact += o.Exact
	v.Cut += o.Cut
	v.Unbegun += o.Unbegun
	v.Late += o.Late
	v.Entries += o.Entries
	v.Bill += o.Bill
	v.Ledger += o.Ledger
	v.Bounds += o.Bounds
	if v.Witness == nil {
		v.Witness = map[ledger.Difference]int{}
	}
	for why, n := range o.Witness {
		v.Witness[why] += n
	}
}

func (v verdict) String() string {
	return fmt.Sprintf("%d turns, %d calls of the model, %d kills; %d calls are booked as they were billed, %d were cut and %d never answered; "+
		"%d were booked as lost and corrected; the bill is %d µ$, the ledger %d µ$ in %d entries: %d µ$ are missing, of %d that may be; the CLI says something else of %v",
		v.Turns, v.Calls, v.Kills, v.Exact, v.Cut, v.Unbegun, v.Late, v.Bill, v.Ledger, v.Entries, v.Bill-v.Ledger, v.Bounds, v.Witness)
}

// bookedCall is a call as the ledger has it, with what was corrected.
type bookedCall struct {
	RequestID, Session, Model    string
	Turn                         int64
	Complete, Late               bool
	Micro, Bound                 int64
	Input, Output, Read, Written int64
}

// verify compares the ledger with the model's bill, call by call.
//
// A call whose usage the model told to the end is in the ledger once, at what it is
// billed, and with its tokens, whatever happened around it. So is every call that the
// session itself has left, by whatever killed it. Only a call that the model did not tell
// to its end, that a person stopped, or that was under way when the bot stopped or was
// killed may have been cut: of it the ledger has what was told; the bill may be higher, by
// the entry's bound at most. A call that was never answered costs nothing. There is nothing
// else in the ledger.
func (w *world) verify() (v verdict) {
	w.t.Helper()
	w.await("the model's calls to end", w.model.idle)
	if _, err := w.store.EndLostCalls(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	v.Kills = w.crashes
	booked, nameless := w.booked(&v)
	turns := w.turnsOfPrompts()
	bySession := map[string]int64{}
	for i, c := range w.model.all() {
		bill := c.micro(w.t)
		v.Calls, v.Bill = v.Calls+1, v.Bill+bill
		bySession[c.Session] += bill
		b, ok := booked[c.RequestID]
		delete(booked, c.RequestID)
		switch {
		case !c.Begun:
			v.Unbegun++
			if ok && b.Micro != 0 {
				w.t.Errorf("call %d was not answered, and is booked at %d µ$", i, b.Micro)
			}
			continue
		case !ok:
			// The bot died, or lost its lease, before it could write down that there was an
			// answer. A correction has no request's id.
			n := slices.IndexFunc(nameless, func(b bookedCall) bool {
				known := b.Late && b.Micro == bill || c.excused && b.Bound >= bill
				return b.Session == c.Session && b.Model == c.Model && known && slices.Contains(turns[c.Marker], b.Turn)
			})
			if n < 0 {
				w.t.Errorf("call %d (%s, %s of %s) is billed %d µ$ and not in the ledger", i, c.RequestID, c.Marker, c.Session, bill)
				continue
			}
			b = nameless[n]
			nameless = slices.Delete(nameless, n, n+1)
		}
		w.compare(i, c, b, bill, &v)
		if of := turns[c.Marker]; of != nil && !slices.Contains(of, b.Turn) {
			w.t.Errorf("call %d for %s is booked on turn %d, and its turns are %v", i, c.Marker, b.Turn, of)
		}
	}
	for id, b := range booked {
		w.t.Errorf("request %q of %s is in the ledger with %d µ$, and was never made", id, b.Session, b.Micro)
	}
	if d := v.Bill - v.Ledger; d < 0 || d > v.Bounds {
		w.t.Errorf("the bill is %d µ$ and the ledger %d µ$: %d are missing, and at most %d may be", v.Bill, v.Ledger, d, v.Bounds)
	}
	w.verifyBill(bySession)
	w.verifyStore(&v)
	return v
}

// compare holds that a call which was answered is booked as it must be.
func (w *world) compare(i int, c countedCall, b bookedCall, bill int64, v *verdict) {
	w.t.Helper()
	missing := bill - b.Micro
	told := fmt.Sprintf("call %d (%s, %s of %s): billed %d µ$, %d of them missing, bound %d", i, c.RequestID, c.Marker, c.Session, bill, missing, b.Bound)
	switch {
	case b.Session != c.Session || b.Model != c.Model:
		w.t.Errorf("%s: booked as %s of %s", told, b.Model, b.Session)
	case b.Complete && !c.Whole && !c.Mute:
		w.t.Errorf("%s: booked as whole, and it was cut", told)
	case !b.Complete && !c.excused && !c.Mute && !c.Broken:
		w.t.Errorf("%s: it was cut, and nobody may have", told)
	case !b.Complete:
		v.Cut++
		w.t.Logf("%s", told)
		if missing < 0 || missing > b.Bound {
			w.t.Errorf("%s", told)
		}
	case missing != 0 || [4]int64{b.Input, b.Output, b.Read, b.Written} != [4]int64{c.Usage.Input, c.Usage.Output, c.Usage.CacheRead, c.Usage.CacheWrite}:
		w.t.Errorf("%s: tokens %+v, booked %+v", told, c.Usage, b)
	default:
		v.Exact++
	}
	if b.Late {
		v.Late++
	}
}

// verifyBill holds that the playground's own bill is what its calls come to.
func (w *world) verifyBill(calls map[string]int64) {
	w.t.Helper()
	for _, s := range w.model.Bill().Sessions {
		if bill := s.Total.MeteredMicroUSD + s.Probes.MeteredMicroUSD; bill != calls[s.SessionID] {
			w.t.Errorf("session %s: the model's bill is %d µ$, and its calls are %d", s.SessionID, bill, calls[s.SessionID])
		}
	}
}

// query reads rows of the history's database.
func query[T any](w *world, sql string, args ...any) []T {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.config.Database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(w.t.Context()) //nolint:errcheck // it only reads
	rows, err := conn.Query(w.t.Context(), sql, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// booked reads the ledger's calls by the server's id of the request, and those of which
// no answer was written down, which must have cost nothing.
func (w *world) booked(v *verdict) (out map[string]bookedCall, nameless []bookedCall) {
	w.t.Helper()
	type sums struct {
		Turns, Entries, Others, Open int
		Micro                        int64
	}
	s := query[sums](w, `
		SELECT (SELECT count(*) FROM turns) AS turns, count(*) AS entries, count(*) FILTER (WHERE kind NOT IN ('call', 'end') AND cause IS DISTINCT FROM 'late') AS others,
			(SELECT count(*) FROM calls) AS open, COALESCE(sum(micro_usd), 0)::bigint AS micro FROM ledger`)[0]
	v.Turns, v.Entries, v.Ledger = s.Turns, s.Entries, s.Micro
	if s.Others > 0 || s.Open > 0 {
		w.t.Errorf("%d entries are estimates or the like, and %d calls are under way after the end", s.Others, s.Open)
	}
	out = map[string]bookedCall{}
	for _, b := range query[bookedCall](w, `
		SELECT l.request_id, l.session_id::text AS session, l.model, l.turn_id AS turn, l.complete OR COALESCE(c.bound_micro_usd = -l.bound_micro_usd, false) AS complete, c.id IS NOT NULL AS late,
			l.micro_usd + COALESCE(c.micro_usd, 0) AS micro, l.bound_micro_usd + COALESCE(c.bound_micro_usd, 0) AS bound,
			l.input_tokens + COALESCE(c.input_tokens, 0) AS input, l.output_tokens + COALESCE(c.output_tokens, 0) AS output,
			l.cache_read_tokens + COALESCE(c.cache_read_tokens, 0) AS read,
			l.cache_write_5m_tokens + l.cache_write_1h_tokens + COALESCE(c.cache_write_5m_tokens + c.cache_write_1h_tokens, 0) AS written
		FROM ledger l LEFT JOIN ledger c ON c.corrects = l.call_id AND c.cause = 'late'
		WHERE l.kind = 'call'`) {
		v.Bounds += b.Bound
		switch {
		case b.RequestID != "":
			if old, twice := out[b.RequestID]; twice {
				w.t.Errorf("request %s is booked twice: %+v and %+v", b.RequestID, old, b)
			}
			out[b.RequestID] = b
		case b.Micro != 0 && !b.Late:
			w.t.Errorf("a call that nobody answered cost %d µ$: %+v", b.Micro, b)
		default:
			nameless = append(nameless, b)
		}
	}
	return out, nameless
}

// turnsOfPrompts are the turns of each prompt, all attempts at it, by its marker.
func (w *world) turnsOfPrompts() map[string][]int64 {
	w.t.Helper()
	out := map[string][]int64{}
	type row struct {
		ID   int64
		User string
	}
	for _, p := range w.prompts {
		for _, r := range query[row](w, `
			WITH RECURSIVE attempts AS (
				SELECT t.id, t.continues, t.requested_by FROM turns t JOIN inbox i ON i.turn_id = t.id WHERE i.prompt_uuid = $1
				UNION ALL
				SELECT t.id, t.continues, t.requested_by FROM attempts a JOIN turns t ON t.id = a.continues)
			SELECT id, requested_by AS user FROM attempts`, p.uuid) {
			if out[p.marker] = append(out[p.marker], r.ID); r.User != p.user {
				w.t.Errorf("turn %d is %s's, and its prompt %s's", r.ID, r.User, p.user)
			}
		}
	}
	return out
}

// verifyBooks has the store verify itself, and ask its second witness.
func (w *world) verifyStore(v *verdict) {
	w.t.Helper()
	differences, err := w.store.VerifyRollups(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range differences {
		w.t.Errorf("the books differ: %+v", d)
	}
	report, err := w.store.VerifyAudit(w.t.Context(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range report.Problems {
		w.t.Errorf("the audit: %v", p)
	}
	stretches, _, err := w.store.CLITotals(w.t.Context(), "", time.Time{})
	if err != nil {
		w.t.Fatal(err)
	}
	v.Witness = map[ledger.Difference]int{}
	for _, s := range stretches {
		v.Witness[s.Why]++
		if !s.Why.Explained() {
			w.t.Errorf("the CLI says that turn %d cost %d µ$, and its calls come to %d µ$: %s", s.TurnID, s.CLIMicroUSD, s.CallsMicroUSD, s.Why)
		}
	}
}

// tellBooks is the history as the database has it, for failures.
func (w *world) tellStore() string {
	type line struct{ Line string }
	lines := query[line](w, `
		SELECT line FROM (
			SELECT started_at AS at, format('epoch %s of %s from %s µ$', epoch, session_id, baseline_micro_usd) AS line FROM epochs
			UNION ALL
			SELECT started_at, format('turn %s in epoch %s of %s for %s, attempt %s: %s %s', id, epoch, session_id, requested_by, attempt, state, problem) FROM turns
			UNION ALL
			SELECT at, format('ledger %s: %s of turn %s in epoch %s of %s: %s %s µ$ (%s to %s), tokens %s %s %s %s %s, request %s, status %s, complete %s, bound %s', id, kind, turn_id, epoch, session_id,
				model, micro_usd, total_before, total_after, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens,
				request_id, status, complete, bound_micro_usd) FROM ledger) l
		ORDER BY at, line`)
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.Line
	}
	return strings.Join(out, "\n")
}
