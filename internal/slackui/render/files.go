package render

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/plaintext"
	"deckhand/internal/report"
	"deckhand/internal/slackui/render/mrkdwn"
)

// File is a part of a turn that its messages leave out.
type File struct {
	// Name is the file's, and no other turn's file has it.
	Name  string
	Title string // for people
	Text  string // never empty
}

// Files are what is attached to an ended turn since its pages, as [Turn] renders them, leave
// it out: all that was written where a page is Cut, and each table that is too big as CSV.
// None where files cannot be attached (Options.Files).
func Files(t agent.TurnView, o Options) []File {
	if !o.Files || !t.State.Ended() {
		return nil
	}
	var out []File
	parts := partsOf(t, o)
	if slices.ContainsFunc(Turn(t, o), func(p Page) bool { return p.Cut }) && len(parts) > 0 {
		out = append(out, File{Name: parts[0].answerName(), Title: "The whole answer", Text: FullText(t, o)})
	}
	for _, v := range parts {
		for i, table := range v.tables {
			n := v.before + i
			out = append(out, File{Name: v.tableName(n), Title: "Table " + strconv.Itoa(n+1) + " of the answer", Text: csvOf(table, o)})
		}
	}
	return out
}

// FullText is all that was written in the turn, as it was written, secrets excepted, and
// characters that would show it in another order: they are shown for what they are, as in
// messages.
func FullText(t agent.TurnView, o Options) string {
	var texts []string
	for i := range t.Content.Items {
		it := &t.Content.Items[i]
		text := it.Text
		switch {
		case it.ParentID != "" || strings.TrimSpace(text) == "":
			continue
		case it.Kind == claude.ItemText:
			text = strings.TrimSpace(text)
		case it.Kind == claude.ItemCommandOutput:
			text = mrkdwn.CodeBlock(strings.Trim(text, "\n"))
		default:
			continue
		}
		texts = append(texts, text)
	}
	return plaintext.Printable(o.redact(strings.Join(texts, "\n\n")))
}

func (v *turnWords) answerName() string { return "answer-" + strconv.FormatInt(v.t.ID, 10) + ".md" }

func (v *turnWords) tableName(n int) string {
	return "table-" + strconv.FormatInt(v.t.ID, 10) + "-" + strconv.Itoa(n+1) + ".csv"
}

// tablesMost is how many tables of a turn become files.
const tablesMost = 5

// readable is markdown with the beginnings of its big tables, if the whole can be attached.
// over says that nothing is written below it any more.
func (v *turnWords) readable(markdown string, over bool) string {
	if !v.o.Files {
		return markdown
	}
	return mrkdwn.Shorten(markdown, over, func(t mrkdwn.BigTable, rows, columns int) (note string, ok bool) {
		n := v.before + len(v.tables)
		if n >= tablesMost {
			return "", false
		}
		v.tables = append(v.tables, t)
		var more []string
		if left := len(t.Rows) - 1 - rows; left > 0 {
			more = append(more, plural(left, "more row", "more rows"))
		}
		if left := len(t.Rows[0]) - columns; left > 0 {
			more = append(more, plural(left, "more column", "more columns"))
		}
		return "✂️ **" + strings.Join(more, " and ") + "**: the whole table, " + plural(len(t.Rows)-1, "row", "rows") + " of " +
			plural(len(t.Rows[0]), "column", "columns") + ", comes as the file `" + v.tableName(n) + "`.", true
	})
}

// csvOf writes a table as comma-separated values (RFC 4180), its cells as plain text. No cell
// is a formula to a spreadsheet, and numbers stay numbers. Secrets are looked for again:
// markup that is taken away may have parted one.
func csvOf(t mrkdwn.BigTable, o Options) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	for _, row := range t.Rows {
		record := make([]string, len(row))
		for i, cell := range row {
			if record[i] = plaintext.Printable(o.redact(mrkdwn.PlainCell(cell))); !plainNumber.MatchString(record[i]) {
				record[i] = report.Inert(record[i])
			}
		}
		_ = w.Write(record) // to memory
	}
	w.Flush()
	return b.String()
}

// plainNumber is a number with a sign, as people write it.
var plainNumber = regexp.MustCompile(`^[+-]?[0-9][0-9.,]*%?$`)
