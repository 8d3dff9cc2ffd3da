package mrkdwn

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// commonMark parses what models write; it is safe for concurrent use.
var commonMark = goldmark.New(goldmark.WithExtensions(
	extension.Table, extension.Strikethrough, extension.TaskList,
)).Parser()

// nestingMax is how deep quotes and lists are shown as such.
const nestingMax = 8

// Convert renders CommonMark (with tables, task lists and strikethrough) in Slack's
// own markup, for the places that do not take markdown: modals, the Home tab,
// cards, and the text of notifications. No mention in it is live, and links show
// where they lead when their text says otherwise.
func Convert(markdown string) string {
	src := []byte(plainer(Printable(markdown)))
	doc := commonMark.Parse(text.NewReader(src), parser.WithContext(parser.NewContext()))
	w := mrkdwnWriter{src: src}
	return strings.TrimRight(w.blocks(doc, 0), "\n ")
}

// mrkdwnWriter walks a document. Its methods return the mrkdwn of a node.
type mrkdwnWriter struct{ src []byte }

// blocks renders the block children of n, with blank lines as they had.
func (w mrkdwnWriter) blocks(n ast.Node, depth int) string {
	var b strings.Builder
	tight := false
	if item, ok := n.Parent().(*ast.List); ok {
		tight = item.IsTight
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		s := w.block(c, depth)
		if s == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
			if !tight {
				b.WriteByte('\n')
			}
		}
		b.WriteString(s)
	}
	return b.String()
}

func (w mrkdwnWriter) block(n ast.Node, depth int) string {
	switch n := n.(type) {
	case *ast.Heading:
		return wrap("*", strings.ReplaceAll(w.inline(n), "*", ""))
	case *ast.Paragraph, *ast.TextBlock:
		return w.inline(n)
	case *ast.ThematicBreak:
		return "———"
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		return preformatted(w.lines(n))
	case *ast.HTMLBlock:
		s := w.lines(n)
		if n.HasClosure() {
			s += string(n.ClosureLine.Value(w.src))
		}
		return Escape(strings.TrimRight(s, "\n"))
	case *ast.Blockquote:
		return w.indent(w.blocks(n, depth+1), "> ", "> ", depth)
	case *ast.List:
		return w.list(n, depth)
	case *east.Table:
		return w.table(n)
	}
	return w.blocks(n, depth)
}

// indent puts first before the first line and rest before the others; blanks not before
// those of a code block, where they would be of the code.
func (w mrkdwnWriter) indent(s, first, rest string, depth int) string {
	if depth >= nestingMax {
		return s
	}
	if strings.TrimSpace(rest) != "" {
		return first + strings.ReplaceAll(s, "\n", "\n"+rest)
	}
	var b strings.Builder
	b.WriteString(first)
	code := false
	for line := range strings.Lines(s) {
		fence := strings.TrimRight(line, "\n") == "```"
		if b.Len() > len(first) && !code && !fence && line != "\n" { // no blanks at the ends of lines
			b.WriteString(rest)
		}
		code = code != fence
		b.WriteString(line)
	}
	return b.String()
}

func (w mrkdwnWriter) list(n *ast.List, depth int) string {
	var b strings.Builder
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		marker := "• "
		if n.IsOrdered() {
			marker = strconv.Itoa(number) + ". "
			number++
		} else if hasCheckBox(c) {
			marker = ""
		}
		b.WriteString(w.indent(w.blocks(c, depth+1), marker, "    ", depth))
	}
	return b.String()
}

// hasCheckBox reports whether a list item is a task.
func hasCheckBox(item ast.Node) bool {
	first := item.FirstChild()
	if first == nil || first.FirstChild() == nil {
		return false
	}
	_, ok := first.FirstChild().(*east.TaskCheckBox)
	return ok
}

func (w mrkdwnWriter) lines(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(w.src))
	}
	return b.String()
}

// preformatted is a code block. Three backticks inside would end it.
func preformatted(s string) string {
	s = strings.ReplaceAll(strings.TrimRight(s, "\n"), "```", "`"+zwsp+"`"+zwsp+"`")
	return "```\n" + mrkdwnEscaper.Replace(s) + "\n```"
}

// inline renders the inline children of n.
func (w mrkdwnWriter) inline(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		w.span(&b, c)
	}
	return b.String()
}

func (w mrkdwnWriter) span(b *strings.Builder, n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		b.WriteString(Escape(w.textOf(n)))
		if n.SoftLineBreak() || n.HardLineBreak() {
			b.WriteByte('\n')
		}
	case *ast.String:
		b.WriteString(Escape(string(n.Value)))
	case *ast.CodeSpan:
		b.WriteString(Code(w.text(n)))
	case *ast.Emphasis:
		mark := "_"
		if n.Level > 1 {
			mark = "*"
		}
		w.marked(b, n, mark)
	case *east.Strikethrough:
		w.marked(b, n, "~")
	case *ast.Link:
		b.WriteString(slackLink(string(n.Destination), w.text(n)))
	case *ast.Image:
		b.WriteString(slackLink(string(n.Destination), w.text(n)))
	case *ast.AutoLink:
		b.WriteString(slackLink(string(n.URL(w.src)), string(n.Label(w.src))))
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			segment := n.Segments.At(i)
			b.WriteString(Escape(string(segment.Value(w.src))))
		}
	case *east.TaskCheckBox:
		if n.IsChecked {
			b.WriteString("☑ ")
		} else {
			b.WriteString("☐ ")
		}
	default:
		b.WriteString(w.inline(n))
	}
}

// textOf is what a text node reads as: its escapes and entities are resolved.
func (w mrkdwnWriter) textOf(n *ast.Text) string {
	raw := n.Value(w.src)
	if n.IsRaw() || !bytes.ContainsAny(raw, `\&`) {
		return string(raw)
	}
	var b strings.Builder
	last := 0
	upTo := func(end int) {
		b.Write(util.ResolveEntityNames(util.ResolveNumericReferences(raw[last:end])))
	}
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] == '\\' && util.IsPunct(raw[i+1]) {
			upTo(i)
			b.WriteByte(raw[i+1])
			i++
			last = i + 1
		}
	}
	upTo(len(raw))
	return Printable(b.String())
}

// text is what n reads as, without markup.
func (w mrkdwnWriter) text(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			if n.Kind() == ast.KindCodeSpan {
				b.Write(c.Value(w.src))
			} else {
				b.WriteString(w.textOf(c))
			}
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(c.Value)
		default:
			b.WriteString(w.text(c))
		}
	}
	return b.String()
}

// marked writes a span between marks, kept apart from letters beside it.
func (w mrkdwnWriter) marked(b *strings.Builder, n ast.Node, mark string) {
	s := wrap(mark, w.inline(n))
	if joined(b.String(), "") && strings.HasPrefix(s, mark) {
		b.WriteString(zwsp)
	}
	b.WriteString(s)
	if next, ok := n.NextSibling().(*ast.Text); ok && joined("", string(next.Value(w.src))) && strings.HasSuffix(s, mark) {
		b.WriteString(zwsp)
	}
}

// wrap puts marks around text, inside of blanks at its ends, since Slack does not
// take a mark beside a blank for one.
func wrap(mark, s string) string {
	trimmed := strings.TrimSpace(s)
	if trimmed == "" {
		return s
	}
	i := strings.Index(s, trimmed)
	return s[:i] + mark + trimmed + mark + s[i+len(trimmed):]
}

// slackLink is a link in mrkdwn. Where the text reads as another address than the
// target's, or the target is not of the web or mail, both are shown as text.
func slackLink(target, label string) string {
	target = strings.TrimSpace(target)
	label = strings.Join(strings.Fields(label), " ")
	if target == "" {
		return Escape(label)
	}
	scheme, rest, _ := strings.Cut(strings.ToLower(target), ":")
	web := (scheme == "http" || scheme == "https") && len(rest) > 2 && strings.HasPrefix(rest, "//")
	clickable := linkable(target) && (web || scheme == "mailto" && rest != "")
	if shown := hostOf(label); !clickable || shown != "" && shown != hostOf(strings.TrimPrefix(target, "mailto:")) {
		if label == "" || label == target {
			return Escape(target)
		}
		return Escape(label) + " (" + Escape(target) + ")"
	}
	if label == "" || label == target {
		return "<" + linkEscaper.Replace(target) + ">"
	}
	return "<" + linkEscaper.Replace(target) + "|" + strings.ReplaceAll(Escape(label), "|", "¦") + ">"
}

// Link is a link to an address of the web, for those that come from Slack itself;
// without one it is the label. The label may say what it likes.
func Link(address, label string) string {
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return Escape(label)
	}
	return "<" + linkEscaper.Replace(address) + "|" + apart(strings.ReplaceAll(Escape(label), "|", "¦")) + ">"
}

var linkEscaper = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C", " ", "%20", "\n", "", "\t", "")

// table renders a table as preformatted text with aligned columns.
func (w mrkdwnWriter) table(n *east.Table) string {
	var rows [][]string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, strings.TrimSpace(w.text(cell)))
		}
		rows = append(rows, cells)
	}
	align := make([]bool, len(n.Alignments)) // true is right
	for i, a := range n.Alignments {
		align[i] = a == east.AlignRight
	}
	return preformatted(alignColumns(rows, align))
}

// alignColumns lays cells out in columns, with a line under the first row. A
// column is at most 60 cells wide.
func alignColumns(rows [][]string, right []bool) string {
	const widest = 60
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 1)
			}
			widths[i] = min(widest, max(widths[i], displayWidth(cell)))
		}
	}
	var b strings.Builder
	for r, row := range rows {
		for i, w := range widths {
			cell := ""
			if i < len(row) {
				cell = row[i]
			}
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", max(0, w-displayWidth(cell)))
			switch {
			case i < len(right) && right[i]:
				b.WriteString(pad + cell)
			case i == len(widths)-1:
				b.WriteString(cell)
			default:
				b.WriteString(cell + pad)
			}
		}
		b.WriteByte('\n')
		if r == 0 && len(rows) > 1 {
			for i, w := range widths {
				if i > 0 {
					b.WriteString("  ")
				}
				b.WriteString(strings.Repeat("─", w))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// displayWidth is how many columns s takes in a monospace font, roughly.
func displayWidth(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 ||
			r >= 0xf900 && r <= 0xfaff || r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0x1f300 && r <= 0x1faff):
			n += 2
		case r == 0x200b || r >= 0x300 && r <= 0x36f:
		default:
			n++
		}
	}
	return n
}
