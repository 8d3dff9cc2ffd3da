package render

import (
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/store"
)

// Spend is what was spent within a scope, as the ledger has it.
type Spend struct {
	// Scope names it for people: "This thread", "You", "The team".
	Scope string
	// Period says from when on, for people: "since it began", "this month".
	Period string
	// Models are the ledger's sums, dearest first.
	Models []store.ModelCost
}

// Total is the sum over all models, in micro-USD.
func (s Spend) Total() int64 {
	var n int64
	for _, m := range s.Models {
		n += m.MicroUSD
	}
	return n
}

// estimated is the part of Total that the CLI never reported.
func (s Spend) estimated() int64 {
	var n int64
	for _, m := range s.Models {
		n += m.Estimated
	}
	return n
}

// CostsView is the answer to "what did it cost": one Spend for each scope.
type CostsView struct{ Scopes []Spend }

// modelsMax is how many models of a scope have a row of their own.
const modelsMax = 12

const listPriceNote = "Estimates by list price, in US dollars, as Claude Code counts them. Tokens: in without cache · out · cache read · cache written."

// Costs renders what was spent, by scope and model, in one table.
func Costs(c CostsView) Page {
	table := slack.NewTableBlock("costs:table")
	table.ColumnSettings = []slack.ColumnSetting{
		{Align: slack.ColumnAlignmentLeft, IsWrapped: true},
		{Align: slack.ColumnAlignmentLeft},
		{Align: slack.ColumnAlignmentRight},
		{Align: slack.ColumnAlignmentRight},
		{Align: slack.ColumnAlignmentRight},
	}
	table.AddRow(boldCells("", "Model", "Turns", "Tokens", "Cost")...)
	var text strings.Builder
	estimated := false
	text.WriteString("What it cost:")
	for _, s := range c.Scopes {
		estimated = estimated || s.estimated() > 0
		text.WriteString("\n• " + escape(clip(s.Scope, 80)) + " (" + escape(clip(s.Period, 80)) + "): " + USD(s.Total()))
		if len(table.Rows)+modelsMax+2 > tableRowsMax {
			continue // the sum stands in the text
		}
		name := s.Scope + ", " + s.Period
		for _, m := range shownModels(s.Models) {
			table.AddRow(cells(name, ModelName(m.Model), strconv.FormatInt(m.Turns, 10), tokensOf(m), amount(m.MicroUSD, m.Estimated))...)
			name = ""
		}
		if len(s.Models) != 1 { // the one model's row is the total
			table.AddRow(boldCells(name, "Total", "", "", amount(s.Total(), s.estimated()))...)
		}
	}
	note := listPriceNote
	if estimated {
		note += " With ~: in part our own estimate, for turns that were cut off before they were reported."
	}
	return Page{
		Text:   clipEscaped(text.String()+"\n"+listPriceNote, fallbackMax),
		Blocks: []slack.Block{section("costs:head", "*What it cost*"), table, contextBlock("costs:note", escape(note))},
	}
}

// shownModels joins the cheapest models into one when there are many.
func shownModels(list []store.ModelCost) []store.ModelCost {
	if len(list) <= modelsMax {
		return list
	}
	out := append([]store.ModelCost(nil), list[:modelsMax-1]...)
	other := store.ModelCost{Model: plural(len(list)-len(out), "other model", "other models")}
	for _, m := range list[len(out):] {
		other.Turns += m.Turns
		other.Input += m.Input
		other.Output += m.Output
		other.CacheRead += m.CacheRead
		other.CacheWrite += m.CacheWrite
		other.MicroUSD += m.MicroUSD
		other.Estimated += m.Estimated
	}
	return append(out, other)
}

// amount marks what holds estimates of ours.
func amount(micro, estimated int64) string {
	if estimated != 0 {
		return "~" + USD(micro)
	}
	return USD(micro)
}

func tokensOf(m store.ModelCost) string {
	return tokens(m.Input) + " · " + tokens(m.Output) + " · " + tokens(m.CacheRead) + " · " + tokens(m.CacheWrite)
}

// cells are a row of a table. Slack refuses empty cells.
func cells(texts ...string) []slack.TableCell {
	out := make([]slack.TableCell, len(texts))
	for i, t := range texts {
		if t == "" {
			t = " "
		}
		out[i] = slack.NewTableRawTextCell(clip(oneLine(muteBare(printable(t)))+blankIfEmpty(t), 200))
	}
	return out
}

func blankIfEmpty(s string) string {
	if strings.TrimSpace(s) == "" {
		return " "
	}
	return ""
}

func boldCells(texts ...string) []slack.TableCell {
	out := make([]slack.TableCell, len(texts))
	for i, t := range texts {
		t = clip(oneLine(muteBare(printable(t)))+blankIfEmpty(t), 200)
		out[i] = slack.NewTableRichTextCell(slack.NewRichTextSection(
			slack.NewRichTextSectionTextElement(t, &slack.RichTextSectionTextStyle{Bold: true})))
	}
	return out
}
