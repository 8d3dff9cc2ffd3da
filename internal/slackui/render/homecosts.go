package render

import (
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/report"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/ledger"
)

// modelsMax is how many models of a scope are named.
const modelsMax = 12

const listPriceNote = "List prices in US dollars, from the figures that the model's provider reports. ~ means partly our own estimate, from before calls were metered."

// shownModels joins the cheapest models into one when there are many.
func shownModels(list []ledger.CostLine) []ledger.CostLine {
	if len(list) <= modelsMax {
		return list
	}
	out := append([]ledger.CostLine(nil), list[:modelsMax-1]...)
	other := ledger.CostLine{Key: plural(len(list)-len(out), "other model", "other models")}
	for _, m := range list[len(out):] {
		other.Add(m)
	}
	return append(out, other)
}

// spendSection sets periods side by side.
func spendSection(spends []view.Spend) *slack.SectionBlock {
	var fields []*slack.TextBlockObject
	for _, s := range spends {
		fields = append(fields, markup("*"+mrkdwn.Escape(plaintext.Clip(capital(s.Period), 100))+"*\n"+s.Total.Amount()))
	}
	return slack.NewSectionBlock(nil, fields, nil)
}

// modelsContext says on which models the money of a period went.
func modelsContext(s view.Spend) *slack.ContextBlock {
	period := mrkdwn.Escape(plaintext.Clip(capital(s.Period), 100))
	var parts []string
	for _, m := range shownModels(s.Models) {
		all := m.Input + m.Output + m.CacheRead + m.CacheWrite5m + m.CacheWrite1h
		parts = append(parts, mrkdwn.Escape(plaintext.Clip(ModelName(m.Key), 60))+" "+report.Line{CostLine: m}.Amount()+" ("+report.Tokens(all)+" tokens)")
	}
	if len(parts) == 0 {
		return contextBlock("", period+": nothing")
	}
	return contextBlock("", period+": "+strings.Join(parts, " · "))
}

// projectsText lists the dearest projects with how they changed.
func projectsText(a report.Answer) string {
	lines, others, more := a.Top(homeProjects)
	var out []string
	add := func(name string, l report.Line) {
		out = append(out, joinNonEmpty(" · ", "*"+mrkdwn.EscapeWithin(name, 80)+"* "+l.Amount(), l.ChangeText(), turnsOf(l)))
	}
	for i, name := range a.Labels(a.By, lines, nil) {
		add(name, lines[i])
	}
	if more > 0 {
		add(plural(more, "other", "others"), others)
	}
	return strings.Join(out, "\n")
}

// turnsOf counts the turns of a line. Those that have cost something and not ended are not
// counted, and said instead of none.
func turnsOf(l report.Line) string {
	if l.Turns == 0 && l.MicroUSD > 0 {
		return "no turn has ended yet"
	}
	return plural(int(l.Turns), "turn", "turns")
}

// homeProjects is how many projects the Home tab lists.
const homeProjects = 10
