package report

import (
	"strings"

	"deckhand/internal/money"
	"deckhand/internal/store/ledger"
)

// Title names what an answer is about: "Costs of October 2026, Ann, project web", "Costs
// since 16 November 2026".
// Its names are foreign text.
func (a Answer) Title(names Names) string {
	title := a.Question.Period.costs()
	if scope := a.Question.scope(names); scope != "" {
		title += ", " + scope
	}
	return title
}

// Summary is what an answer comes to, a line each: the total and how it changed, and
// what it means per turn and per approved tool call.
func (a Answer) Summary() []string {
	if a.Empty() {
		out := []string{"Nothing was spent."}
		if a.Total.Before != 0 {
			out = append(out, "It was "+money.USD(a.Total.Before)+" "+a.Previous.during()+".")
		}
		return out
	}
	head := a.Total.Amount()
	switch change, _ := a.Total.Change(); {
	case a.Total.Before == 0:
		head += ", after nothing " + a.Previous.during()
	case change == 0:
		head += ", as much as " + a.Previous.during()
	default:
		sign := ""
		if change > 0 {
			sign = "+"
		}
		head += ", " + sign + money.USD(change)
		if text := a.Total.ChangeText(); text != "" {
			head += " (" + text + ")"
		}
		head += " against " + money.USD(a.Total.Before) + " " + a.Previous.during()
	}
	parts := []string{Plural(a.Total.Turns, "turn", "turns")}
	if each, ok := a.Total.PerTurn(); ok && a.Total.Turns > 1 {
		parts[0] += ", " + money.USD(each) + " each"
	}
	if each, ok := a.Total.PerApproved(); ok {
		parts = append(parts, Plural(a.Total.Approved, "approved tool call", "approved tool calls")+", one for each "+money.USD(each)+" spent")
	}
	return []string{head, strings.Join(parts, "; ")}
}

// Notes explain the marks of an answer's amounts, a sentence each.
func (a Answer) Notes() []string {
	var out []string
	if e := a.Total.EstimatedMicroUSD; e != 0 {
		out = append(out, "~ holds an estimate, "+money.USD(e)+" in all, for turns that were cut off before they were reported.")
	}
	if a.HasContract() {
		out = append(out, "Contract: by your own prices, where there are any for the model. All other amounts are list prices.")
	}
	return append(out, meterNotes(a.Meter)...)
}

// maxUnpriced is how many models without a price are named.
const maxUnpriced = 3

// meterNotes say what is not in an answer's amounts, or not for good.
func meterNotes(m ledger.MeterNotes) []string {
	var out []string
	if c := m.Cut; c.Calls > 0 && c.BoundMicroUSD > 0 {
		out = append(out, "Up to "+money.USD(c.BoundMicroUSD)+" more may have been billed for "+Plural(c.Calls, "call that was cut", "calls that were cut")+"; usually it is far less.")
	}
	for i, u := range m.Unpriced {
		if i == maxUnpriced {
			out = append(out, "And "+Plural(int64(len(m.Unpriced)-i), "more model has", "more models have")+" no list price.")
			break
		}
		out = append(out, "No list price for "+u.Model+": "+Plural(u.Calls, "call counts", "calls count")+" "+money.USD(u.MicroUSD)+
			" by another model's. Run bot report reprice with a Deckhand that knows it.")
	}
	if !m.Since.IsZero() {
		out = append(out, "Every call is metered since "+m.Since.Format("2 January 2006")+"; before, amounts are what Claude Code reported of each turn.")
	}
	return out
}

// Amount is the line's cost for people, with a ~ before it if it holds estimates.
func (l Line) Amount() string {
	if l.EstimatedMicroUSD != 0 {
		return "~" + money.USD(l.MicroUSD)
	}
	return money.USD(l.MicroUSD)
}

// ShareText is the line's share for people: "12.3%".
func (l Line) ShareText() string { return shareText(l.Share) }

// ChangeText is the line's change for people: "+12%", "−3.4%", "new", "±0%"; empty if
// there is nothing to say.
func (l Line) ChangeText() string {
	percent, ok := l.ChangePercent()
	change, compared := l.Change()
	switch {
	case !compared || (l.Before == 0 && change == 0):
		return ""
	case !ok && l.Before == 0:
		return "new"
	case !ok:
		return ""
	}
	return percentText(percent)
}
