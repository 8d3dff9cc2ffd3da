package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// verdict is what the comparison of a history's ledger with its bill found.
type verdict struct {
	Sessions, Clean int   // sessions, and those in which nothing was in flight at a kill
	Exact           int   // those of the clean ones whose ledger is the rounded bill
	Turns, Calls    int   // of the bot, and of the model
	Entries         int   // of the ledger
	Estimates       int   // of them
	Kills           int   // in mid-turn or between two
	MicroUSD        int64 // the bill
	Rounding        int64 // the greatest difference where nothing was in flight, in billionths of a dollar
	Unbooked        int64 // what was billed and is not in the ledger, in micro-dollars
	InFlight        int64 // what of the bill was in flight at a kill, in micro-dollars
}

func (v *verdict) add(o verdict) {
	v.Sessions += o.Sessions
	v.Clean += o.Clean
	v.Exact += o.Exact
	v.Turns += o.Turns
	v.Calls += o.Calls
	v.Entries += o.Entries
	v.Estimates += o.Estimates
	v.Kills += o.Kills
	v.MicroUSD += o.MicroUSD
	v.Rounding = max(v.Rounding, o.Rounding)
	v.Unbooked += o.Unbooked
	v.InFlight += o.InFlight
}

func (v verdict) String() string {
	return fmt.Sprintf("%d turns, %d calls of the model, %d µ$ in %d sessions; %d kills; %d ledger entries, %d of them estimates; "+
		"of %d sessions with nothing in flight at a kill %d equal the bill, and none is off by more than %d n$, of rounding; "+
		"of %d µ$ in flight at kills %d µ$ are not in the ledger",
		v.Turns, v.Calls, v.MicroUSD, v.Sessions, v.Kills, v.Entries, v.Estimates, v.Clean, v.Exact, v.Rounding, v.InFlight, v.Unbooked)
}

// account is what the model billed, or the ledger has, for one key.
type account struct {
	nano, allowed             int64    // allowed may be missing in the ledger
	tokens                    [4]int64 // input, output, read from the cache, written to it
	broken                    bool     // an answer broke off, whose tokens are a guess
	epochs, estimates, models int64
	calls                     int64
}

// verify compares the ledger with the model's bill.
//
// Let D be the bill less the ledger, of a session or of one model in it. Then
//
//	−R ≤ D ≤ A + R
//
// where A is what the calls cost that were in flight when a process was killed in
// mid-turn: those without their final usage, and those that the CLI had not written to
// its transcript yet (see lost); 0 without such a kill. It is also what had been
// sent of answers that broke off beyond the last usage. R is rounding: the CLI's totals are
// rounded to micro-dollars where they are read, at the beginning and the end of an
// epoch, and an estimate is rounded once. That the ledger is never above the bill
// means that nothing is counted twice.
func (w *world) verify() (v verdict) {
	w.t.Helper()
	w.await("the model's calls to end", func() bool {
		return !slices.ContainsFunc(w.model.all(), func(c countedCall) bool { return !c.Ended })
	})
	v.Kills = w.crashes
	billed := map[[2]string]*account{}
	byMarker := map[string]*account{}
	at := func(m map[[2]string]*account, session, model string) *account {
		key := [2]string{session, model}
		if m[key] == nil {
			m[key] = &account{}
		}
		return m[key]
	}
	for i, c := range w.model.all() {
		nano := c.nano(w.t)
		if byMarker[c.Marker] == nil {
			byMarker[c.Marker] = &account{}
		}
		v.Calls++
		for _, a := range []*account{at(billed, c.Session, c.Model), at(billed, c.Session, ""), byMarker[c.Marker]} {
			a.nano += nano
			a.calls++
			switch {
			case w.inFlight[i]:
				a.allowed += nano
			case !c.Whole:
				a.allowed += nano - c.cost(w.t, false)
			}
			if c.Begun && !c.Whole {
				a.broken = true
			}
			if c.Whole {
				for i, n := range []int64{c.Usage.Input, c.Usage.Output, c.Usage.CacheRead, c.Usage.CacheWrite} {
					a.tokens[i] += n
				}
			}
		}
		if w.inFlight[i] {
			v.InFlight += nano / 1000
		}
	}
	// The note of the calls is the model's own bill, but for probes: the model was asked
	// for one token, which is paid like any other, and nobody notes them.
	probes := map[string]int64{}
	for _, s := range w.model.Bill().Sessions {
		probes[s.SessionID], probes[""] = s.Probes.NanoUSD+500*s.Probes.Calls, probes[""]+s.Probes.NanoUSD+500*s.Probes.Calls
		for _, m := range s.Models {
			if got := at(billed, s.SessionID, m.Model).nano; got != m.NanoUSD {
				w.t.Errorf("session %s, %s: the bill is %d n$, its calls are %d", s.SessionID, m.Model, m.NanoUSD, got)
			}
		}
		v.MicroUSD += s.Total.MicroUSD
	}
	booked := w.booked(&v)
	for key := range booked {
		if billed[key] == nil {
			w.t.Errorf("session %s, model %q is in the ledger and not on the bill", key[0], key[1])
			at(billed, key[0], key[1])
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(billed), func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) }) {
		bill, got := billed[key], booked[key]
		if got == nil {
			got = &account{}
		}
		of := booked[[2]string{key[0], ""}]
		if of == nil {
			of = &account{}
		}
		d, r := bill.nano-got.nano, w.rounding(of)+500*bill.calls+probes[key[0]] // each call is rounded
		if key[1] != "" {
			// What rounding leaves between the models and the sum is put on one of them.
			r += 500 * (of.models + 1) * max(of.epochs, 1)
		}
		if d < -r || d > bill.allowed+r {
			w.t.Errorf("session %s, model %q: the bill is %d n$, the ledger %d n$: the difference is %d and not within −%d and %d + %d",
				key[0], key[1], bill.nano, got.nano, d, r, bill.allowed, r)
		}
		if w.crashes == 0 && !bill.broken && probes[key[0]] == 0 && got.tokens != bill.tokens {
			w.t.Errorf("session %s, model %q: the tokens are %v, in the ledger %v", key[0], key[1], bill.tokens, got.tokens)
		}
		if w.crashes == 0 && got.estimates > 0 && w.version == pinnedCLI {
			w.t.Errorf("session %s, model %q: an estimate, and nothing was killed", key[0], key[1])
		}
		if key[1] == "" {
			v.Sessions++
			if bill.allowed == 0 {
				v.Clean++
				if max(d, -d) <= 500 {
					v.Exact++
				}
				v.Rounding = max(v.Rounding, d, -d)
			} else {
				v.Unbooked += max(0, d) / 1000
			}
		}
	}
	w.verifyTurns(byMarker, probes[""])
	w.verifyBooks()
	return v
}

// rounding is the most that rounding may make of a session's sum, in billionths of a
// dollar: half a micro-dollar where a total is read. The pinned CLI goes on with its
// total, so that the end of an epoch is the beginning of the next; after a kill it goes
// on from an earlier one, and older CLIs begin anew.
func (w *world) rounding(a *account) int64 {
	ends := a.epochs
	if w.version == pinnedCLI {
		ends = 1 + 2*int64(w.crashes)
	}
	return 500*(ends+a.estimates) + 1 // 1 for halves that floats round either way
}

// booked reads the ledger by session and model, and by session with the model "".
func (w *world) booked(v *verdict) map[[2]string]*account {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.config.Database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(w.t.Context()) //nolint:errcheck // it only reads
	if err := conn.QueryRow(w.t.Context(), `SELECT (SELECT count(*) FROM turns), count(*), count(*) FILTER (WHERE kind = 'estimate') FROM ledger`).
		Scan(&v.Turns, &v.Entries, &v.Estimates); err != nil {
		w.t.Fatal(err)
	}
	rows, err := conn.Query(w.t.Context(), `
		SELECT session_id::text, COALESCE(model, ''), 1000 * sum(micro_usd)::bigint, sum(input_tokens)::bigint, sum(output_tokens)::bigint, sum(cache_read_tokens)::bigint,
			sum(cache_write_5m_tokens + cache_write_1h_tokens)::bigint, count(DISTINCT epoch), count(*) FILTER (WHERE kind = 'estimate'), count(DISTINCT model)
		FROM ledger GROUP BY GROUPING SETS ((session_id, model), (session_id))`)
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[[2]string]*account{}
	var session, model string
	var a account
	if _, err := pgx.ForEachRow(rows, []any{&session, &model, &a.nano, &a.tokens[0], &a.tokens[1], &a.tokens[2], &a.tokens[3], &a.epochs, &a.estimates, &a.models}, func() error {
		fresh := a
		out[[2]string{session, model}] = &fresh
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// tellBooks is the history as the database has it, for failures.
func (w *world) tellBooks() string {
	conn, err := pgx.Connect(w.t.Context(), w.config.Database)
	if err != nil {
		return err.Error()
	}
	defer conn.Close(w.t.Context()) //nolint:errcheck // it only reads
	var out string
	err = conn.QueryRow(w.t.Context(), `
		SELECT string_agg(line, E'\n' ORDER BY at, line) FROM (
			SELECT started_at AS at, format('epoch %s of %s from %s µ$', epoch, session_id, baseline_micro_usd) AS line FROM epochs
			UNION ALL
			SELECT started_at, format('turn %s in epoch %s of %s for %s, attempt %s: %s %s', id, epoch, session_id, requested_by, attempt, state, problem) FROM turns
			UNION ALL
			SELECT at, format('ledger %s: %s of turn %s in epoch %s: %s %s µ$ (%s to %s), tokens %s %s %s %s %s', id, kind, turn_id, epoch, model, micro_usd,
				total_before, total_after, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens) FROM ledger) l`).Scan(&out)
	if err != nil {
		return err.Error()
	}
	return out
}

// verifyTurns compares what the turns of each prompt have cost, all attempts at it
// together, with the calls that the model got for it.
func (w *world) verifyTurns(byMarker map[string]*account, probes int64) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.config.Database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(w.t.Context()) //nolint:errcheck // it only reads
	for _, p := range w.prompts {
		var got, entries int64
		var user string
		if err := conn.QueryRow(w.t.Context(), `
			WITH RECURSIVE attempts AS (
				SELECT t.id, t.continues FROM turns t JOIN inbox i ON i.turn_id = t.id WHERE i.prompt_uuid = $1
				UNION ALL
				SELECT t.id, t.continues FROM attempts a JOIN turns t ON t.id = a.continues)
			SELECT COALESCE(1000 * sum(l.micro_usd), 0)::bigint, count(l.id), COALESCE(min(l.user_id), $2)
			FROM attempts a LEFT JOIN ledger l ON l.turn_id = a.id`, p.uuid, p.user).Scan(&got, &entries, &user); err != nil {
			w.t.Fatal(err)
		}
		bill := byMarker[p.marker]
		if bill == nil {
			bill = &account{}
		}
		if d, r := bill.nano-got, 1000*max(entries, 1)+probes; d < -r || d > bill.allowed+r || user != p.user {
			w.t.Errorf("prompt %s of %s: billed %d n$, its turns have %d n$ of %s: the difference is %d and not within −%d and %d + %d",
				p.marker, p.user, bill.nano, got, user, d, r, bill.allowed, r)
		}
	}
}

// verifyBooks has the store verify itself.
func (w *world) verifyBooks() {
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
}
