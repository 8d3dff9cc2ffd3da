package render

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

const approvalNote = "Approved and quick are shares of the decisions. Quick: within two seconds of the request, which is hardly enough to read it. Waiting: from the request to the decision; those that expired do not count."

// ApprovalReport renders how people decided over a period ("the last 30 days") in one table, as
// far as there is room.
func ApprovalReport(period string, v approvals.Report) Page {
	period = mrkdwn.EscapeWithin(period, 100)
	title := joinNonEmpty(", ", "*Approvals*", period)
	table := slack.NewTableBlock("approvals:table")
	table.ColumnSettings = []slack.ColumnSetting{{Align: slack.ColumnAlignmentLeft, IsWrapped: true}}
	for range 7 {
		table.ColumnSettings = append(table.ColumnSettings, slack.ColumnSetting{Align: slack.ColumnAlignmentRight})
	}
	table.AddRow(boldCells("", "Asked", "Approved", "Denied", "Expired", "Waiting, median", "p95", "Quick")...)
	table.AddRow(append(boldCells("All"), statCells(v.Total)...)...)
	const room = messageText - 1000
	reportPart(table, "By person", v.ByPerson, room/2, (tableRowsMax-2)/2)
	reportPart(table, "By rule", v.ByRule, room/2, (tableRowsMax-2)/2)

	t := v.Total
	text := title + "\n" + plural(int(t.Asked), "request", "requests") + ": " + count(int(t.Allowed)) + " approved, " +
		count(int(t.Denied)) + " denied, " + count(int(t.Expired)) + " expired. Half of the decisions took up to " + span(t.Median) +
		", 95 % up to " + span(t.P95) + "; " + quick(t) + " within two seconds."
	p := Page{
		Text:   mrkdwn.ClipEscaped(text, fallbackMax),
		Blocks: []slack.Block{section("approvals:head", title), table, contextBlock("approvals:note", mrkdwn.Escape(approvalNote))},
	}
	if line := feedbackLine(v.Feedback); line != "" {
		p.Blocks = append(p.Blocks, contextBlock("approvals:feedback", line))
	}
	return p
}

// reportPart adds a part of the table: at most rows rows and about room units.
func reportPart(table *slack.TableBlock, title string, list []approvals.Stats, room, rows int) {
	blank := []string{"", "", "", "", "", "", ""}
	table.AddRow(append(boldCells(title), cells(blank...)...)...)
	if len(list) == 0 {
		table.AddRow(append(cells("nobody decided anything"), cells(blank...)...)...)
		return
	}
	for i, s := range list {
		name := nameCell(s.Name)
		row := statCells(s)
		units := min(plaintext.Width(s.Name), 120) + 45
		if room -= units; room < 0 || i >= rows-3 && len(list) > rows-2 {
			table.AddRow(append(cells("… and "+count(len(list)-i)+" more"), cells(blank...)...)...)
			return
		}
		table.AddRow(append([]slack.TableCell{name}, row...)...)
	}
}

// nameCell shows a person, whose name Slack fills in, or a rule.
func nameCell(name string) slack.TableCell {
	if mrkdwn.IsID(name) && strings.ContainsAny(name[:1], "UW") {
		return slack.NewTableRichTextCell(slack.NewRichTextSection(slack.NewRichTextSectionUserElement(name, nil)))
	}
	return cells(plaintext.Clip(plaintext.Visible(plaintext.OneLine(cmp.Or(name, "(no rule)"))), 120))[0]
}

func statCells(s approvals.Stats) []slack.TableCell {
	decided := s.Allowed + s.Denied
	median, p95 := "–", "–"
	if decided > 0 {
		median, p95 = span(s.Median), span(s.P95)
	}
	return cells(count(int(s.Asked)), withShare(s.Allowed, decided), withShare(s.Denied, decided), count(int(s.Expired)), median, p95, quick(s))
}

func quick(s approvals.Stats) string { return withShare(s.Quick, s.Allowed+s.Denied) }

// withShare writes a number and its share of all.
func withShare(n, all int64) string {
	if all <= 0 || n <= 0 {
		return count(int(n))
	}
	return count(int(n)) + " (" + strconv.FormatInt((200*n+all)/(2*all), 10) + " %)"
}
