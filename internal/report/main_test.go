package report

import (
	"cmp"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
	_ "time/tzdata" // the tests' zones, wherever they run

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"deckhand/internal/store/ledger"
	"deckhand/internal/store/threads"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if diff := gocmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s has changed (-want +got); if that is right, run the test with -update\n%s", file, diff)
	}
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// saturday is a question asked on Saturday, 21 November 2026, in Berlin.
func saturday(t testing.TB) Context {
	t.Helper()
	loc := zone(t, "Europe/Berlin")
	return Context{
		Now: time.Date(2026, 11, 21, 15, 4, 5, 0, loc), Location: loc, Asker: "U0ANN", ThreadID: 7,
		Projects: []string{"web", "api", "shop-floor", "today"},
		Models:   []string{"claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-sonnet-4-20250514", "claude-haiku-4-5"},
	}
}

func mustParse(t testing.TB, text string, o Context) Question {
	t.Helper()
	q, err := Parse(text, o)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return q
}

func mustAsk(t testing.TB, ledger Ledger, text string) Answer {
	t.Helper()
	a, err := Ask(t.Context(), ledger, mustParse(t, text, saturday(t)), "T1")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// booked is one entry of a ledger in memory.
type booked struct {
	at                            time.Time
	user, channel, project, model string
	thread                        int64
	line                          ledger.CostLine
}

// books are a ledger in memory. Its days are those of the period that is asked about.
type books []booked

func (b books) Costs(ctx context.Context, q ledger.CostQuery) (ledger.CostReport, error) {
	if err := ctx.Err(); err != nil {
		return ledger.CostReport{}, err
	}
	in := func(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }
	sums := map[string]*Line{}
	var keys []string
	var total Line
	for _, e := range b {
		if e.at.Before(q.From) || !e.at.Before(q.To) || !in(q.Users, e.user) || !in(q.Channels, e.channel) ||
			!in(q.Projects, e.project) || !in(q.Models, e.model) || (q.ThreadID != 0 && q.ThreadID != e.thread) {
			continue
		}
		key := map[ledger.CostGroup]string{
			ledger.ByUser: e.user, ledger.ByChannel: e.channel, ledger.ByProject: e.project, ledger.ByModel: e.model,
			ledger.ByThread: strconv.FormatInt(e.thread, 10),
			ledger.ByDay:    e.at.In(q.From.Location()).Format(time.DateOnly), ledger.ByMonth: e.at.In(q.From.Location()).Format("2006-01"),
		}[q.By]
		if sums[key] == nil {
			sums[key] = &Line{CostLine: ledger.CostLine{Key: key}}
			if q.By == ledger.ByThread {
				ts := strconv.FormatInt(1_767_254_400+e.thread/3*86_400+e.thread%3*600, 10) + ".000100"
				sums[key].ThreadKey, sums[key].Project = threads.ThreadKey{TeamID: "T1", ChannelID: e.channel, ThreadTS: ts}, e.project
			}
			keys = append(keys, key)
		}
		sums[key].Add(e.line)
		total.Add(e.line)
	}
	slices.SortFunc(keys, func(x, y string) int {
		if c := cmp.Compare(sums[y].MicroUSD, sums[x].MicroUSD); c != 0 && q.By != ledger.ByDay && q.By != ledger.ByMonth {
			return c
		}
		return cmp.Compare(x, y)
	})
	out := ledger.CostReport{Total: total.CostLine}
	var rest Line
	for i, key := range keys {
		switch {
		case q.By == ledger.ByNothing:
		case q.Limit > 0 && i >= q.Limit:
			rest.Add(sums[key].CostLine)
			out.More++
		default:
			out.Lines = append(out.Lines, sums[key].CostLine)
		}
	}
	out.Rest = rest.CostLine
	return out, nil
}

// MeterNotes tells nothing: tests say themselves what there is to note.
func (b books) MeterNotes(ctx context.Context, _ ledger.CostQuery) (ledger.MeterNotes, error) {
	return ledger.MeterNotes{}, ctx.Err()
}

// autumn is a ledger of some months before the Saturday: steady growth, quiet
// weekends, people of very different habits.
func autumn(t testing.TB) books {
	t.Helper()
	loc := zone(t, "Europe/Berlin")
	models := []string{"claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5"}
	var b books
	for day := time.Date(2026, 8, 1, 11, 0, 0, 0, loc); day.Before(time.Date(2026, 11, 22, 0, 0, 0, 0, loc)); day = day.AddDate(0, 0, 1) {
		if d := day.Weekday(); d == time.Saturday || d == time.Sunday {
			continue
		}
		n := day.YearDay()
		for u := range 17 {
			if (n+u)%(u/3+1) != 0 {
				continue
			}
			cost := int64((n*n*7919+u*104_729)%90_000+n*40) * 100 / int64(u+1)
			e := booked{
				at: day.Add(time.Duration(u) * time.Minute), user: "U" + strconv.Itoa(100+u), channel: "C" + strconv.Itoa(1+u%3),
				project: []string{"web", "api"}[u%2], model: models[(n+u)%3], thread: int64(n*3 + u%2),
				line: ledger.CostLine{
					Turns: 1, Approved: int64(u % 2), Entries: 1, Input: cost / 9, Output: cost / 40, CacheRead: cost * 3,
					CacheWrite5m: cost / 7, WebSearches: int64(n % 2), MicroUSD: cost,
				},
			}
			if (n+u)%23 == 0 {
				e.line.EstimatedMicroUSD = cost
			}
			b = append(b, e)
		}
	}
	return b
}

// directory knows some people and channels.
type directory struct{}

func (directory) UserName(id string) (name string, deleted bool) {
	return map[string]string{
		"U100": "Ann Example", "U101": "Борис Петров", "U102": "山田太郎", "U103": "=HYPERLINK(\"http://x\")", "U104": "Ann Example",
		"U105": "Zoë 🚀 Müller-Lüdenscheidt von und zu Hohenzollern-Sigmaringen", "U106": "esc\x1b[31m \u202eape,\n\"x\"",
	}[id], id == "U101"
}

func (directory) ChannelName(id string) string {
	return map[string]string{"C1": "general", "C2": "shop"}[id]
}
