package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// statement is one that the bot has run, as PostgreSQL's log has it.
type statement struct {
	at      time.Time // when it began
	backend string
	sql     string
}

var (
	logged = regexp.MustCompile(`^(\d+)\.(\d{3}) (\d+) LOG:  (?:statement|execute [^:]+): (.*)`)
	writes = regexp.MustCompile(`(?i)\b(INSERT INTO|UPDATE [a-z_]+ |DELETE FROM)`)
)

// statementLog has the server log all statements from now on, and returns what reads them.
func (w *world) statementLog(b *testing.B) (since func(at time.Time) []statement) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), w.owner)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.WithoutCancel(b.Context())) })
	var server int
	if err := conn.QueryRow(b.Context(), "SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)::int").Scan(&server); err != nil {
		b.Fatal(err)
	}
	for _, sql := range []string{"ALTER SYSTEM SET log_line_prefix = '%n %p '", "ALTER SYSTEM SET log_statement = 'all'", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	return func(at time.Time) (out []statement) {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/fd/2", server))
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			m := logged.FindStringSubmatch(line)
			if m == nil {
				if n := len(out) - 1; n >= 0 && strings.HasPrefix(line, "\t") {
					out[n].sql += " " + strings.TrimSpace(line)
				}
				continue
			}
			s, _ := strconv.ParseInt(m[1], 10, 64)
			ms, _ := strconv.ParseInt(m[2], 10, 64)
			out = append(out, statement{time.Unix(s, ms*1e6), m[3], strings.TrimSpace(m[4])})
		}
		return slices.DeleteFunc(out, func(s statement) bool { return s.at.Before(at.Truncate(time.Millisecond)) })
	}
}

// stepsOf are the statements that were run until then, how many they are, and how many commits
// that write are among them.
func stepsOf(all []statement, until time.Time) (own []statement, trips, commits int) {
	writing := map[string]bool{}
	begun := map[string]bool{}
	for _, s := range all {
		if s.at.After(until) {
			break
		}
		own = append(own, s)
		trips++
		verb, _, _ := strings.Cut(strings.ToUpper(s.sql), " ")
		switch strings.TrimSuffix(verb, ";") {
		case "BEGIN":
			begun[s.backend], writing[s.backend] = true, false
		case "COMMIT":
			if writing[s.backend] {
				commits++
			}
			begun[s.backend] = false
		default:
			if writes.MatchString(s.sql) {
				writing[s.backend] = true
				if !begun[s.backend] {
					commits++
				}
			}
		}
	}
	return own, trips, commits
}

// asked are the statements without those of the heartbeat, which has a connection of its own.
func asked(all []statement) []statement {
	beating := map[string]bool{}
	for _, s := range all {
		if strings.Contains(s.sql, "UPDATE replicas") {
			beating[s.backend] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s statement) bool { return beating[s.backend] })
}

// steps collects, per step, the milliseconds since something began.
type steps map[string][]time.Duration

func (s steps) note(began time.Time, at map[string]time.Time) {
	for name, t := range at {
		if !t.IsZero() {
			s[name] = append(s[name], t.Sub(began))
		}
	}
}

func (s steps) report(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		b.ReportMetric(median(s[name]), name+"-ms")
	}
}

// firstOf is when the first statement with these words began.
func firstOf(all []statement, words string) time.Time {
	for _, s := range all {
		if strings.Contains(s.sql, words) {
			return s.at
		}
	}
	return time.Time{}
}

func list(b *testing.B, what string, began time.Time, own []statement) {
	b.Helper()
	var out strings.Builder
	for _, s := range own {
		sql := strings.Join(strings.Fields(s.sql), " ")
		fmt.Fprintf(&out, "%7.0f ms %s %s\n", float64(s.at.Sub(began).Microseconds())/1000, s.backend, sql[:min(len(sql), 150)])
	}
	b.Logf("%s:\n%s", what, out.String())
}

// BenchmarkSteps is where the time of a follow-up and of an approval goes, by PostgreSQL's log:
// the milliseconds from the message, or the click, to each step; and how many statements and
// commits that write lie between the message and the first post, and between the click and the
// answer to Claude Code. With -v it lists the statements of the last round.
func BenchmarkSteps(b *testing.B) {
	w := newWorld(b)
	thread := w.post(linus, eng, "", "@deckhand say: warm")
	w.done(eng, thread, thread)
	read := w.statementLog(b)
	follow, approve := steps{}, steps{}
	counts := map[string][]time.Duration{}
	count := func(name string, n int) { counts[name] = append(counts[name], time.Duration(n)*time.Millisecond) }
	for i := range rounds {
		rest()
		began := time.Now()
		text := fmt.Sprintf("answer %d", i)
		ts := w.post(linus, eng, thread, fmt.Sprintf(twoLines, "answer", i))
		posted := w.postedAt(text, ts)
		w.done(eng, thread, ts)
		all := read(began)
		own, trips, commits := stepsOf(asked(all), posted)
		follow.note(began, map[string]time.Time{
			"f1-ack": firstOf(all, "INSERT INTO inbox"), "f2-accept": firstOf(all, "state = 'accepted', thread_id"), "f3-begin": firstOf(all, "INSERT INTO turns"),
			"f4-call": firstOf(all, "INSERT INTO calls"), "f5-first-byte": w.firstByte(b, began), "f6-post": posted,
		})
		count("follow-statements", trips)
		count("follow-commits", commits)
		if i == rounds-1 {
			list(b, "a follow-up", began, own)
		}

		note := filepath.Join(w.Workspace, fmt.Sprintf("ran-%d", i))
		ts = w.post(linus, eng, thread, fmt.Sprintf("tool: Bash {\"command\":\"date +%%s%%N > %s\"}\nsay: noted", note))
		card := w.card(eng, thread)
		time.Sleep(deliberation)
		began = time.Now()
		w.click(grace, eng, card.TS, "approve")
		w.done(eng, thread, ts)
		all = read(began)
		ran := noted(b, note)
		own, trips, commits = stepsOf(asked(all), ran)
		approve.note(began, map[string]time.Time{
			"a1-ack": firstOf(all, "INSERT INTO inbox"), "a2-decided": firstOf(all, "UPDATE approvals"), "a3-committed": committed(all, "UPDATE approvals"), "a4-ran": ran,
		})
		count("approve-statements", trips)
		count("approve-commits", commits)
		if i == rounds-1 {
			list(b, "an approval", began, own)
		}
	}
	follow.report(b)
	approve.report(b)
	for name, n := range counts {
		b.ReportMetric(median(n), name)
	}
	b.ReportMetric(0, "ns/op")
}

// committed is when the transaction of the first statement with these words was committed.
func committed(all []statement, words string) time.Time {
	backend := ""
	for _, s := range all {
		switch {
		case backend == "" && strings.Contains(s.sql, words):
			backend = s.backend
		case s.backend == backend && strings.EqualFold(s.sql, "commit"):
			return s.at
		}
	}
	return time.Time{}
}

// firstByte is when the first byte of the model's first answer since began came.
func (w *world) firstByte(b *testing.B, began time.Time) (at time.Time) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), w.owner)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context()) //nolint:errcheck // it was read from
	if err := conn.QueryRow(b.Context(), `SELECT min(first_byte_at) FROM ledger WHERE started_at >= $1`, began).Scan(&at); err != nil {
		b.Fatal(err)
	}
	return at
}

// BenchmarkSilence is what a bot without sessions takes a minute that nobody uses: statements,
// transactions with some that write if there is something to write, and the share of a core.
func BenchmarkSilence(b *testing.B) {
	const silence = time.Minute
	w := unstartedWorld(b)
	w.program = builtBot(b)
	w.start()
	time.Sleep(15 * time.Second) // what follows a start is over
	read := w.statementLog(b)
	time.Sleep(2 * time.Second)
	began, before := time.Now(), processorTime(b, w.PIDs["bot"])
	time.Sleep(silence)
	took := processorTime(b, w.PIDs["bot"]) - before
	own, trips, commits := stepsOf(read(began), began.Add(silence))
	kinds := map[string]int{}
	for _, s := range own {
		sql := strings.Join(strings.Fields(s.sql), " ")
		kinds[sql[:min(len(sql), 150)]]++
	}
	var out strings.Builder
	for _, sql := range slices.SortedFunc(maps.Keys(kinds), func(a, b string) int { return kinds[b] - kinds[a] }) {
		fmt.Fprintf(&out, "%4d %s\n", kinds[sql], sql)
	}
	b.Logf("in %s of silence:\n%s", silence, out.String())
	perMinute := float64(time.Minute) / float64(silence)
	b.ReportMetric(float64(trips)*perMinute, "statements/min")
	b.ReportMetric(float64(commits)*perMinute, "commits/min")
	b.ReportMetric(100*float64(took)/float64(silence), "%core")
	b.ReportMetric(0, "ns/op")
}
