package render

import (
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/money"
	"deckhand/internal/plaintext"
	"deckhand/internal/report"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/ledger"
)

// costReport draws an answer about costs.
type costReport struct{ view.CostReport }

// CostSum is the id of the section with what an answer came to.
const CostSum = "costs:sum"

// CostReport renders an answer: what it came to, a chart, a table, the dearest
// threads.
func CostReport(r view.CostReport) Page {
	v := costReport{r}
	a := v.Answer
	title := plaintext.Clip(plaintext.Mute(plaintext.Printable(view.CostTitle(a, v.Names))), headerMax)
	var blocks []slack.Block
	if line := v.beside(); line != "" { // the nearest first
		blocks = append(blocks, section("costs:beside", line))
	}
	blocks = append(blocks, slack.NewHeaderBlock(plain(title, headerMax), slack.HeaderBlockOptionBlockID("costs:head")))
	if a.Empty() {
		blocks = append(blocks, section(CostSum, mrkdwn.Escape(strings.Join(a.Summary(), " "))))
	} else {
		blocks = append(blocks, costFigures(a))
	}
	if chart := costChartOf(a, v.Names); chart != nil {
		blocks = append(blocks, chart)
	}
	if len(a.Lines) > 0 {
		blocks = append(blocks, v.table())
	}
	if a.By != ledger.ByThread && len(a.Threads) > 0 {
		blocks = append(blocks, section("costs:threads", v.threads()))
	}
	if notes := append(a.Notes(), v.Notes...); len(notes) > 0 {
		blocks = append(blocks, contextBlock("costs:note", mrkdwn.Escape(strings.Join(notes, " "))))
	}
	return Page{Text: v.text(title), Blocks: blocks}
}

// text is the answer for notifications, and for where Slack takes no blocks.
func (v costReport) text(title string) string {
	a := v.Answer
	var lines []string
	if line := v.beside(); line != "" {
		lines = append(lines, line)
	}
	lines = append(lines, "*"+mrkdwn.Escape(title)+"*")
	for _, s := range a.Summary() {
		lines = append(lines, mrkdwn.Escape(s))
	}
	top, others, more := a.Top(10)
	labels := a.Labels(a.By, top, v.Names)
	if a.By == ledger.ByThread {
		labels = v.titled(top, labels)
	}
	for i, l := range top {
		lines = append(lines, "• "+mrkdwn.EscapeWithin(labels[i], 80)+": "+l.Amount())
	}
	if more > 0 {
		lines = append(lines, "• and "+plural(more, "other", "others")+": "+others.Amount())
	}
	for _, n := range v.Notes {
		lines = append(lines, mrkdwn.Escape(n))
	}
	return mrkdwn.ClipEscaped(strings.Join(lines, "\n"), fallbackMax)
}

func (v costReport) beside() string {
	var lines []string
	for _, b := range v.Beside {
		text := "*" + mrkdwn.EscapeWithin(b.Name, 80) + "* " + mrkdwn.EscapeWithin(b.Says, 80) + ": " + b.Sum.Amount()
		if b.Sum.Turns > 0 {
			text += ", " + plural(int(b.Sum.Turns), "turn", "turns")
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// costFigures are the sums that people look at first.
func costFigures(a report.Answer) *slack.SectionBlock {
	var fields []*slack.TextBlockObject
	add := func(name, value string) {
		fields = append(fields, markup("*"+mrkdwn.Escape(name)+"*\n"+mrkdwn.Escape(value)))
	}
	t := a.Total
	add("Total", t.Amount())
	change, _ := t.Change()
	against := "Against " + a.Previous.Name
	switch text := t.ChangeText(); {
	case t.Before == 0:
		add(against, "nothing was spent then")
	case change == 0:
		add(against, "as much")
	case change > 0:
		add(against, joinNonEmpty(" · ", text, money.USD(change)+" more than "+money.USD(t.Before)))
	default:
		add(against, joinNonEmpty(" · ", text, money.USD(-change)+" less than "+money.USD(t.Before)))
	}
	if each, ok := t.PerTurn(); ok {
		add("Per turn", money.USD(each)+" · "+plural(int(t.Turns), "turn", "turns"))
	}
	if each, ok := t.PerApproved(); ok {
		add("Approved tool calls", count(int(t.Approved))+" · one for each "+money.USD(each)+" spent")
	}
	if a.HasContract() {
		add("By your own prices", money.USD(t.ContractMicroUSD))
	}
	if t.EstimatedMicroUSD != 0 {
		add("Of that estimated", money.USD(t.EstimatedMicroUSD))
	}
	b := slack.NewSectionBlock(nil, fields, nil)
	b.BlockID = CostSum
	return b
}

// costColumn is one column of the table.
type costColumn struct {
	head string
	cell func(report.Line) string
}

// costColumns are those that say something of this answer.
func costColumns(a report.Answer) []costColumn {
	cols := []costColumn{{"Cost", func(l report.Line) string { return l.Amount() }}}
	if a.HasContract() {
		cols = append(cols, costColumn{"Your prices", func(l report.Line) string { return money.USD(l.ContractMicroUSD) }})
	}
	cols = append(cols, costColumn{"Share", func(l report.Line) string { return l.ShareText() }})
	switch a.By {
	case ledger.ByUser, ledger.ByChannel, ledger.ByProject, ledger.ByModel, report.ByTeam:
		cols = append(cols, costColumn{"Change", func(l report.Line) string { return l.ChangeText() }})
	}
	cols = append(
		cols,
		costColumn{"Turns", func(l report.Line) string { return count(int(l.Turns)) }},
		costColumn{"Per" + nbsp + "turn", func(l report.Line) string {
			if each, ok := l.PerTurn(); ok {
				return money.USD(each)
			}
			return "–"
		}},
	)
	if a.By == ledger.ByModel {
		return append(
			cols,
			costColumn{"In", func(l report.Line) string { return report.Tokens(l.Input) }},
			costColumn{"Out", func(l report.Line) string { return report.Tokens(l.Output) }},
			costColumn{"Cached", func(l report.Line) string { return report.Tokens(l.CacheRead + l.CacheWrite5m + l.CacheWrite1h) }},
		)
	}
	return append(cols, costColumn{"Approved calls", func(l report.Line) string { return count(int(l.Approved)) }})
}

func (v costReport) table() *slack.TableBlock {
	a := v.Answer
	table := slack.NewTableBlock("costs:table")
	cols := costColumns(a)
	head := []string{capital(string(a.By))}
	names := a.By == ledger.ByUser || a.By == ledger.ByChannel || a.By == ledger.ByThread // which can be long
	table.ColumnSettings = []slack.ColumnSetting{{Align: slack.ColumnAlignmentLeft, IsWrapped: names}}
	for _, c := range cols {
		head = append(head, c.head)
		table.ColumnSettings = append(table.ColumnSettings, slack.ColumnSetting{Align: slack.ColumnAlignmentRight})
	}
	table.AddRow(boldCells(head...)...)
	values := func(l report.Line) []string {
		out := make([]string, len(cols))
		for i, c := range cols {
			out[i] = c.cell(l)
		}
		return out
	}
	lines, others, more := a.Top(view.CostRows(a.By))
	labels := v.labels(lines)
	for i, l := range lines {
		name := cells(plaintext.Clip(labels[i], 60))[0]
		if a.By == ledger.ByThread {
			name = v.linkCell(l, labels[i])
		}
		table.AddRow(append([]slack.TableCell{name}, cells(values(l)...)...)...)
	}
	if more > 0 {
		table.AddRow(cells(append([]string{"and " + plural(more, "other", "others")}, values(others)...)...)...)
	}
	if len(lines)+more > 1 {
		table.AddRow(boldCells(append([]string{"Total"}, values(a.Total)...)...)...)
	}
	return table
}

// labels are the names of lines, as short as they are clear: a day's year is that of
// the title, and models go by their names.
func (v costReport) labels(lines []report.Line) []string {
	a := v.Answer
	labels := a.Labels(a.By, lines, v.Names)
	p := a.Question.Period
	switch {
	case a.By == ledger.ByThread:
		labels = v.titled(lines, labels)
	case a.By == ledger.ByDay && p.From.Year() == p.LastDay().Year():
		for i, l := range lines {
			if day, err := time.Parse(time.DateOnly, l.Key); err == nil {
				labels[i] = strings.ReplaceAll(day.Format("Mon 2 Jan"), " ", nbsp)
			}
		}
	case a.By == ledger.ByModel:
		seen := map[string]int{}
		for _, l := range lines {
			seen[ModelName(l.Key)]++
		}
		for i, l := range lines {
			if name := ModelName(l.Key); seen[name] == 1 && l.Key != "" {
				labels[i] = strings.ReplaceAll(name, " ", nbsp)
			}
		}
	}
	return labels
}

// titled are the labels of threads, with the titles of those that have one in their places.
func (v costReport) titled(lines []report.Line, labels []string) []string {
	for i, l := range lines {
		if title := v.Titles[l.ThreadKey]; title != "" {
			labels[i] = plaintext.Clip(plaintext.OneLine(title), 60)
		}
	}
	return labels
}

// nbsp keeps words in one line.
const nbsp = "\u00a0"

// address is where a line's thread is; empty if it is about none.
func (v costReport) address(l report.Line) string {
	if v.Link == nil || l.ThreadKey.ThreadTS == "" {
		return ""
	}
	return v.Link(l.ThreadKey)
}

// linkCell leads to a thread.
func (v costReport) linkCell(l report.Line, label string) slack.TableCell {
	address := v.address(l)
	label = plaintext.Clip(plaintext.OneLine(plaintext.Mute(plaintext.Printable(label))), 60)
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return cells(label)[0]
	}
	return slack.NewTableRichTextCell(slack.NewRichTextSection(slack.NewRichTextSectionLinkElement(address, label, nil)))
}

func (v costReport) threads() string {
	a := v.Answer
	lines := []string{"*Most expensive threads*"}
	labels := v.titled(a.Threads, a.Labels(ledger.ByThread, a.Threads, v.Names))
	for i, l := range a.Threads {
		lines = append(lines, strconv.Itoa(i+1)+". "+linkTo(v.address(l), labels[i])+" · "+l.Amount()+" · "+turnsOf(l))
	}
	return strings.Join(lines, "\n")
}
