package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
)

// RollupDifference is a disagreement between the database and the ledger's own rows.
type RollupDifference struct {
	// Check says what was compared: a roll-up's table (ledger_daily, ledger_monthly, ledger_channel_daily,
	// ledger_channel_monthly, ledger_thread_daily, ledger_threads, ledger_openings), "chain" (the running totals of
	// a model in an epoch), "baseline" (an epoch's start), "cli totals" (consecutive totals of the CLI), "turns" (a
	// turn's own cost, and that it counts once) or "audit" (a turn's cost in the audit).
	Check string
	Key   string // which row, as a JSON object
	// Want follows from the ledger's rows and Got is stored, as JSON objects of the differing columns; null for a
	// missing row.
	Want, Got string
}

// maxDifferences bounds the differences reported by one check.
const maxDifferences = 1000

// VerifyRollups recomputes everything that follows from the ledger's rows, of one team or with "" of all, and
// returns the differences. It compares every row of every roll-up; it follows the running totals of each model
// through each epoch, which must have no gap; and it compares every turn's cost with its entries and with the
// audit. Each check reports at most 1000 differences. It reads one snapshot, so it can run while the bot works, and
// the whole ledger: for millions of rows that takes minutes.
func (s *Store) VerifyRollups(ctx context.Context, teamID string) ([]RollupDifference, error) {
	var out []RollupDifference
	err := s.db.InSnapshot(ctx, func(tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('jit', 'off', true), set_config('work_mem', '128MB', true)`); err != nil {
			return err
		}
		for _, check := range ledgerChecks() {
			sql := check.sql + fmt.Sprintf(" LIMIT %d", maxDifferences)
			rows, err := pg.Collect[differenceRow](tx.Query(ctx, sql, teamID))
			if err != nil {
				return fmt.Errorf("check %s: %w", check.name, err)
			}
			for _, r := range rows {
				d, err := r.difference(check.name)
				if err != nil {
					return fmt.Errorf("check %s: %w", check.name, err)
				}
				out = append(out, d)
			}
		}
		return nil
	})
	return out, pg.Wrap(err, "verify the ledger")
}

// ledgerCheck selects the differing rows, as key, want and got in JSON. $1 is a team, or empty.
type ledgerCheck struct{ name, sql string }

func ledgerChecks() []ledgerCheck {
	return []ledgerCheck{
		rollupCheck("ledger_daily", "team_id, booked_on, project, channel_id, user_id, model", "booked_on"),
		rollupCheck("ledger_monthly", "team_id, booked_on, project, channel_id, user_id, model", "date_trunc('month', booked_on::timestamp)::date"),
		rollupCheck("ledger_channel_daily", "team_id, booked_on, project, channel_id, model", "booked_on"),
		rollupCheck("ledger_channel_monthly", "team_id, booked_on, project, channel_id, model", "date_trunc('month', booked_on::timestamp)::date"),
		rollupCheck("ledger_thread_daily", "thread_id, booked_on, user_id, model, team_id, project, channel_id", "booked_on"),
		rollupCheck("ledger_threads", "thread_id, team_id, project, channel_id", "", "min(booked_on) AS first_on", "max(booked_on) AS last_on"),
		{"ledger_openings", `
			SELECT jsonb_build_object('team_id', team_id, 'opened_on', opened_on, 'project', project, 'channel_id', channel_id) AS key,
				jsonb_build_object('threads', COALESCE(w.threads, 0)) AS want, jsonb_build_object('threads', COALESCE(g.threads, 0)) AS got
			FROM (
				SELECT team_id, opened_on, project, channel_id, count(*) AS threads
				FROM ledger_threads t
				WHERE ($1 = '' OR team_id = $1) AND EXISTS (SELECT FROM ledger_thread_daily d WHERE d.thread_id = t.thread_id AND d.booked_on = t.opened_on)
				GROUP BY team_id, opened_on, project, channel_id) w
			FULL JOIN (SELECT * FROM ledger_openings WHERE $1 = '' OR team_id = $1) g USING (team_id, opened_on, project, channel_id)
			WHERE w.threads IS DISTINCT FROM g.threads`},
		{"chain", `
			SELECT jsonb_build_object('session_id', session_id, 'epoch', epoch, 'model', model, 'ledger', id) AS key,
				jsonb_build_object('total_before', COALESCE(last, total_before), 'micro_usd', total_after - total_before) AS want,
				jsonb_build_object('total_before', total_before, 'micro_usd', micro_usd) AS got
			FROM (
				SELECT *, lag(total_after) OVER (PARTITION BY session_id, epoch, model ORDER BY id) AS last
				FROM ledger WHERE kind = 'turn' AND ($1 = '' OR team_id = $1)) l
			WHERE total_before <> last OR micro_usd <> total_after - total_before`},
		{"baseline", `
			SELECT jsonb_build_object('session_id', session_id, 'epoch', epoch) AS key,
				jsonb_build_object('at_most', e.baseline_micro_usd) AS want, jsonb_build_object('at_most', sum(total_before)) AS got
			FROM (
				SELECT DISTINCT ON (session_id, epoch, model) session_id, epoch, total_before
				FROM ledger WHERE kind = 'turn' AND ($1 = '' OR team_id = $1)
				ORDER BY session_id, epoch, model, id) l
			JOIN epochs e USING (session_id, epoch)
			GROUP BY session_id, epoch, e.baseline_micro_usd
			HAVING sum(total_before) > e.baseline_micro_usd`},
		{"cli totals", `
			SELECT jsonb_build_object('session_id', session_id, 'epoch', epoch, 'ledger', id) AS key,
				jsonb_build_object('total_before', expected) AS want, jsonb_build_object('total_before', total_before) AS got
			FROM (
				SELECT l.*, COALESCE(lag(total_after) OVER (PARTITION BY session_id, epoch ORDER BY id), LEAST(total_before, e.baseline_micro_usd)) AS expected
				FROM ledger l JOIN epochs e USING (session_id, epoch)
				WHERE kind = 'end' AND total_after IS NOT NULL AND ($1 = '' OR team_id = $1)) l
			WHERE total_before <> expected`},
		{"turns", `
			SELECT jsonb_build_object('turn', t.id) AS key,
				jsonb_build_object('cost_micro_usd', COALESCE(l.micro_usd, 0), 'counted', LEAST(COALESCE(l.counted, 0), 1)) AS want,
				jsonb_build_object('cost_micro_usd', t.cost_micro_usd, 'counted', COALESCE(l.counted, 0)) AS got
			FROM turns t
			LEFT JOIN (SELECT turn_id, ` + audit.PaidByTurns + `, sum(turns) AS counted FROM ledger GROUP BY turn_id) l ON l.turn_id = t.id
			WHERE (t.cost_micro_usd <> COALESCE(l.micro_usd, 0) OR l.counted > 1)
			  AND ($1 = '' OR EXISTS (SELECT FROM threads h WHERE h.id = t.thread_id AND h.team_id = $1))`},
		{"audit", `
			SELECT jsonb_build_object('turn', turn_id) AS key, jsonb_build_object('micro_usd', COALESCE(l.micro_usd, 0)) AS want,
				CASE WHEN a.micro_usd IS NOT NULL THEN jsonb_build_object('micro_usd', a.micro_usd) END AS got
			FROM (
				SELECT turn_id, COALESCE(sum((details::json->>'micro_usd')::bigint), 0)::bigint AS micro_usd
				FROM audit WHERE kind IN ('` + string(audit.TurnEnded) + `', '` + string(audit.Cost) + `') AND turn_id <> 0 AND ($1 = '' OR team_id = $1)
				GROUP BY turn_id) a
			FULL JOIN (
				SELECT turn_id, ` + audit.PaidByTurns + ` FROM ledger WHERE $1 = '' OR team_id = $1 GROUP BY turn_id) l USING (turn_id)
			WHERE COALESCE(a.micro_usd, 0) <> COALESCE(l.micro_usd, 0) AND NOT ` + turnRuns + `
			ORDER BY turn_id`},
	}
}

// turnRuns is true if the turn of turn_id has not ended: its cost is not in the audit yet.
const turnRuns = `EXISTS (SELECT FROM turns r WHERE r.id = turn_id AND r.state = 'running')`

// rollupCheck compares a roll-up with the ledger. key are its grouping columns, bookedOn the ledger's expression
// for booked_on, more the further aggregates.
func rollupCheck(table, key, bookedOn string, more ...string) ledgerCheck {
	group := strings.ReplaceAll(key, "booked_on", bookedOn)
	sums := append(append([]string{"count(*) AS entries"}, more...), "ledger_sum(micro_usd) FILTER (WHERE kind = 'estimate') AS estimated_micro_usd")
	for _, c := range sumColumns {
		if c != "entries" && c != "estimated_micro_usd" {
			sums = append(sums, "ledger_sum("+c+") AS "+c)
		}
	}
	var compared, named []string
	for c := range strings.SplitSeq("first_on last_on "+strings.Join(sumColumns, " "), " ") {
		if strings.HasSuffix(c, "_on") && len(more) == 0 {
			continue
		}
		compared = append(compared, "w."+c+" IS DISTINCT FROM g."+c)
	}
	for c := range strings.SplitSeq(key, ", ") {
		named = append(named, "'"+c+"', "+c)
	}
	return ledgerCheck{table, `
		SELECT jsonb_build_object(` + strings.Join(named, ", ") + `) AS key, to_jsonb(w) AS want, to_jsonb(g) AS got
		FROM (
			SELECT ` + strings.ReplaceAll(key, "booked_on", bookedOn+" AS booked_on") + `, ` + strings.Join(sums, ", ") + `
			FROM ledger WHERE $1 = '' OR team_id = $1
			GROUP BY ` + group + `) w
		FULL JOIN (SELECT * FROM ` + table + ` WHERE $1 = '' OR team_id = $1) g USING (` + key + `)
		WHERE ` + strings.Join(compared, " OR ")}
}

type differenceRow struct {
	Key       string
	Want, Got *string
}

// difference omits the key's columns and the equal ones.
func (r differenceRow) difference(check string) (RollupDifference, error) {
	d := RollupDifference{Check: check, Key: r.Key, Want: "null", Got: "null"}
	var key, want, got map[string]any
	for _, side := range []struct {
		text *string
		into *map[string]any
	}{{&r.Key, &key}, {r.Want, &want}, {r.Got, &got}} {
		if side.text == nil {
			continue
		}
		dec := json.NewDecoder(strings.NewReader(*side.text))
		dec.UseNumber() // amounts are 64 bits wide
		if err := dec.Decode(side.into); err != nil {
			return d, err
		}
	}
	for k := range key {
		delete(want, k)
		delete(got, k)
	}
	for k, v := range want {
		if g, ok := got[k]; ok && reflect.DeepEqual(v, g) {
			delete(want, k)
			delete(got, k)
		}
	}
	for _, side := range []struct {
		columns map[string]any
		into    *string
	}{{want, &d.Want}, {got, &d.Got}} {
		if side.columns == nil {
			continue
		}
		text, err := json.Marshal(side.columns)
		if err != nil {
			return d, err
		}
		*side.into = string(text)
	}
	return d, nil
}

// Checks is the number of checks by [Store.VerifyRollups].
func Checks() int { return len(ledgerChecks()) }
