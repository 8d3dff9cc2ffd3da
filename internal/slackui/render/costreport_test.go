package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/report"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/threads"
)

// costAnswer is an answer to a question asked on 21 November 2026, with lines of the
// keys and made-up figures.
func costAnswer(t *testing.T, words string, by ledger.CostGroup, keys ...string) report.Answer {
	t.Helper()
	q, err := report.Parse(words, report.Context{Now: time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC), Asker: asker})
	if err != nil {
		t.Fatal(err)
	}
	a := report.Answer{Question: q, By: by, Previous: q.Period.Previous()}
	for i, key := range keys {
		n := int64(len(keys) - i)
		l := report.Line{Before: n * 900_000, Compared: by != ledger.ByDay && by != ledger.ByThread}
		l.CostLine = ledger.CostLine{
			Key: key, Turns: 3 * n, Approved: n, Entries: n, Input: 1200 * n, Output: 34_000 * n, CacheRead: 5_600_000 * n, MicroUSD: n * 1_234_567,
		}
		if i == 1 {
			l.EstimatedMicroUSD = 1000
		}
		if by == ledger.ByThread {
			l.ThreadKey, l.Project = threads.ThreadKey{TeamID: "T1", ChannelID: "C0DEV", ThreadTS: fmt.Sprintf("17955%05d.000100", i*60)}, "web"
		}
		a.Lines = append(a.Lines, l)
		a.Total.Turns += l.Turns
		a.Total.Approved += l.Approved
		a.Total.Entries += l.Entries
		a.Total.MicroUSD += l.MicroUSD
		a.Total.EstimatedMicroUSD += l.EstimatedMicroUSD
		a.Total.Before += l.Before
	}
	a.Total.Compared = true
	for i := range a.Lines {
		a.Lines[i].Share = float64(a.Lines[i].MicroUSD) / float64(a.Total.MicroUSD)
	}
	return a
}

// called are the names of the tests.
type called map[string]string

func (c called) UserName(id string) (string, bool) { return c[id], id == "U0LEFT" }
func (c called) ChannelName(id string) string      { return c[id] }

func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%03d", prefix, i)
	}
	return out
}

func TestCostReport(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	names := called{asker: "ada", "U0LEFT": "bob", "C0DEV": "dev", "U0EVIL": "<!channel> @here *x*"}
	link := func(k threads.ThreadKey) string {
		return "https://example.slack.com/archives/" + k.ChannelID + "/p" + strings.ReplaceAll(k.ThreadTS, ".", "")
	}
	threads := costAnswer(t, "last week by thread", ledger.ByThread, numbered("", 40)...)
	full := costAnswer(t, "last month by user", ledger.ByUser, asker, "U0LEFT", "U0EVIL", "U0UNKNOWN")
	full.Threads = threads.Lines[:3]
	full.Total.ContractMicroUSD = 2_000_000
	days := costAnswer(t, "this month by day", ledger.ByDay, "2026-11-01", "2026-11-02", "2026-11-20")
	for i := range 21 {
		days.Series.Points = append(days.Series.Points, report.Point{Label: fmt.Sprintf("%d Nov", i+1), MicroUSD: int64(i) * 1_000_000})
	}
	days.Series.Unit = "day"
	for name, v := range map[string]view.CostReport{
		"by user":   {Answer: full},
		"by thread": {Answer: threads},
		"by model":  {Answer: costAnswer(t, "today by model", ledger.ByModel, "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001")},
		"by day":    {Answer: days, Notes: []string{"Days are those of Europe/Berlin."}},
		"many":      {Answer: costAnswer(t, "2026 by user", ledger.ByUser, numbered("U0LONG", 3000)...)},
		"nothing":   {Answer: costAnswer(t, "yesterday", ledger.ByProject)},
		"for one":   {Answer: costAnswer(t, "today for me", ledger.ByProject, "web"), Beside: []view.CostBeside{{Name: "This thread", Says: "since it began", Sum: full.Lines[0]}}},
	} {
		v.Names, v.Link = names, link
		p := render.CostReport(v)
		golden(t, "view/costs_"+strings.ReplaceAll(name, " ", "_"), p)
		for _, problem := range checkPage(p) {
			t.Errorf("%s: %s", name, problem)
		}
		for _, b := range p.Blocks {
			if chart, ok := b.(*slack.DataVisualizationBlock); ok {
				if err := chart.Validate(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if has := strings.Contains(string(asJSON(t, p)), "data_visualization"); has != (name != "nothing" && name != "for one") {
			t.Errorf("%s: a chart: %v", name, has)
		}
		j.page(t, p)
	}
}

// TestChartLabels: points are found by their labels, so no two may be the same.
func TestChartLabels(t *testing.T) {
	t.Parallel()
	names := called{}
	var keys []string
	for i := range 7 {
		keys = append(keys, fmt.Sprintf("U0%d", i))
		names[keys[i]] = "somebody with a rather long name"
	}
	var chart *slack.DataVisualizationBlock
	for _, b := range render.CostReport(view.CostReport{Answer: costAnswer(t, "today by user", ledger.ByUser, keys...), Names: names}).Blocks {
		if c, ok := b.(*slack.DataVisualizationBlock); ok {
			chart = c
		}
	}
	if err := chart.Validate(); err != nil {
		t.Error(err)
	}
	raw, err := json.Marshal(chart)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "somebody with a ra 2") && !strings.Contains(string(raw), "somebody with a r… 2") {
		t.Errorf("labels: %s", raw)
	}
}
