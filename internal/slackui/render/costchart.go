package render

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/slack-go/slack"

	"deckhand/internal/money"
	"deckhand/internal/plaintext"
	"deckhand/internal/report"
	"deckhand/internal/store/ledger"
)

// What Slack's charts hold.
const (
	chartTitle  = 50
	chartLabel  = 20
	chartPoints = 20
	// chartBars is how many lines of a grouping are drawn: their names stand below
	// the bars, and there must be room for them.
	chartBars = 8
)

// costChartOf is an answer as a native chart, or nil if there is nothing that a chart
// would show: one bar says no more than its number.
func costChartOf(a report.Answer, names report.Names) *slack.DataVisualizationBlock {
	switch {
	case a.Empty():
		return nil
	case a.OverTime():
		return costsOverTime(a)
	case len(a.Lines) < 2:
		return nil
	}
	return costsByGroup(a, names)
}

func costsOverTime(a report.Answer) *slack.DataVisualizationBlock {
	s := a.Series.AtMost(chartPoints)
	if len(s.Points) < 2 {
		return nil
	}
	labels := make([]string, len(s.Points))
	data := make([]slack.DataVisualizationDataPoint, len(s.Points))
	for i, p := range s.Points {
		labels[i] = p.Label
	}
	labels = chartLabels(labels)
	for i, p := range s.Points {
		data[i] = slack.NewDataVisualizationDataPoint(labels[i], money.Shown(p.MicroUSD))
	}
	axis := slack.NewDataVisualizationAxisConfig(labels...).WithYLabel("US dollars")
	title := "Spend over time"
	if a.Series.Unit != "" && len(s.Points) == len(a.Series.Points) { // else neighbours are joined
		title += ", by " + a.Series.Unit
	}
	return costChart(title, axis, slack.NewDataVisualizationDataSeries("Cost", data...))
}

// costsByGroup sets the dearest lines side by side, with those of the period before
// where there are any.
func costsByGroup(a report.Answer, names report.Names) *slack.DataVisualizationBlock {
	lines, others, more := a.Top(chartBars)
	labels := a.Labels(a.By, lines, names)
	if a.By == ledger.ByModel {
		for i, l := range lines {
			labels[i] = ModelName(l.Key)
		}
	}
	if more > 0 {
		lines = append(slices.Clip(lines), others)
		labels = append(labels, plural(more, "other", "others"))
	}
	labels = chartLabels(labels)
	now := make([]slack.DataVisualizationDataPoint, len(lines))
	before := make([]slack.DataVisualizationDataPoint, len(lines))
	compared := false
	for i, l := range lines {
		now[i] = slack.NewDataVisualizationDataPoint(labels[i], money.Shown(l.MicroUSD))
		before[i] = slack.NewDataVisualizationDataPoint(labels[i], 0)
		if l.Compared {
			before[i].Value = money.Shown(l.Before)
			compared = compared || l.Before != 0
		}
	}
	series := []slack.DataVisualizationDataSeries{slack.NewDataVisualizationDataSeries("This period", now...)}
	if compared {
		series = append(series, slack.NewDataVisualizationDataSeries("The period before", before...))
	}
	axis := slack.NewDataVisualizationAxisConfig(labels...).WithYLabel("US dollars")
	return costChart("Spend by "+string(a.By), axis, series...)
}

func costChart(title string, axis slack.DataVisualizationAxisConfig, series ...slack.DataVisualizationDataSeries) *slack.DataVisualizationBlock {
	b := slack.NewDataVisualizationBlock(plaintext.Clip(title, chartTitle), slack.NewDataVisualizationBarChart(axis, series...))
	b.BlockID = "costs:chart"
	return b
}

// chartLabels makes labels that Slack takes: short, clean, none empty, and no two
// the same, since points are found by them.
func chartLabels(in []string) []string {
	out := make([]string, len(in))
	seen := map[string]bool{}
	for i, s := range in {
		s = cmp.Or(plaintext.OneLine(plaintext.Mute(plaintext.Printable(s))), "(none)")
		label := plaintext.Clip(s, chartLabel)
		for n := 2; seen[label]; n++ {
			tail := " " + strconv.Itoa(n)
			label = plaintext.Clip(s, chartLabel-len(tail)) + tail
		}
		seen[label] = true
		out[i] = label
	}
	return out
}
