package mrkdwn

import (
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

// Convert renders cleaned CommonMark in Slack's own markup, for the text of notifications and
// where Slack takes no markdown block. No mention in it is live, and links show where they
// lead when their text says otherwise. It is plainer than a markdown block: a table's columns
// are not aligned, and a mark beside a letter is Slack's to take for a sign.
func Convert(markdown string) string {
	src := []byte(Printable(markdown))
	doc := commonMark.Parse(text.NewReader(src), parser.WithContext(parser.NewContext()))
	return strings.TrimRight(mrkdwnWriter{src}.blocks(doc, 0), "\n ")
}

// mrkdwnWriter walks a document. Its methods return the mrkdwn of a node.
type mrkdwnWriter struct{ src []byte }

// blocks renders the block children of n, with blank lines as they had.
func (w mrkdwnWriter) blocks(n ast.Node, depth int) string {
	between := "\n\n"
	if list, ok := n.Parent().(*ast.List); ok && list.IsTight {
		between = "\n"
	}
	var parts []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if s := w.block(c, depth); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, between)
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
		return preformatted(string(n.Lines().Value(w.src)))
	case *ast.HTMLBlock:
		s := string(n.Lines().Value(w.src))
		if n.HasClosure() {
			s += string(n.ClosureLine.Value(w.src))
		}
		return Escape(strings.TrimRight(s, "\n"))
	case *ast.Blockquote:
		return indent(w.blocks(n, depth+1), "> ", "> ", depth)
	case *ast.List:
		return w.list(n, depth)
	case *east.Table:
		return w.table(n)
	}
	return w.blocks(n, depth)
}

// indent puts first before the first line and rest before the others.
func indent(s, first, rest string, depth int) string {
	if depth >= nestingMax {
		return s
	}
	return first + strings.ReplaceAll(s, "\n", "\n"+rest)
}

func (w mrkdwnWriter) list(n *ast.List, depth int) string {
	var items []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		marker, item := "• ", w.blocks(c, depth+1)
		switch {
		case n.IsOrdered():
			marker = strconv.Itoa(n.Start+len(items)) + ". "
		case strings.HasPrefix(item, "☐ "), strings.HasPrefix(item, "☑ "):
			marker = "" // a task has a box
		}
		items = append(items, indent(item, marker, "    ", depth))
	}
	return strings.ReplaceAll(strings.Join(items, "\n"), "\n    \n", "\n\n")
}

// preformatted is a code block. Three backticks inside would end it.
func preformatted(s string) string {
	s = strings.ReplaceAll(strings.TrimRight(s, "\n"), "```", "`"+zwsp+"`"+zwsp+"`")
	return "```\n" + mrkdwnEscaper.Replace(s) + "\n```"
}

// table renders a table as preformatted text, a row on each line.
func (w mrkdwnWriter) table(n *east.Table) string {
	var rows []string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, strings.TrimSpace(w.text(cell)))
		}
		rows = append(rows, strings.Join(cells, " | "))
	}
	return preformatted(strings.Join(rows, "\n"))
}

// inline renders the inline children of n.
func (w mrkdwnWriter) inline(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		b.WriteString(w.span(c))
	}
	return b.String()
}

func (w mrkdwnWriter) span(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Text:
		s := Escape(w.textOf(n))
		if n.SoftLineBreak() || n.HardLineBreak() {
			s += "\n"
		}
		return s
	case *ast.CodeSpan:
		return Code(w.text(n))
	case *ast.Emphasis:
		if n.Level > 1 {
			return wrap("*", w.inline(n))
		}
		return wrap("_", w.inline(n))
	case *east.Strikethrough:
		return wrap("~", w.inline(n))
	case *ast.Link:
		return slackLink(string(n.Destination), w.text(n))
	case *ast.Image:
		return slackLink(string(n.Destination), w.text(n))
	case *ast.AutoLink:
		return slackLink(string(n.URL(w.src)), string(n.Label(w.src)))
	case *ast.RawHTML:
		return Escape(string(n.Segments.Value(w.src)))
	case *east.TaskCheckBox:
		if n.IsChecked {
			return "☑ "
		}
		return "☐ "
	}
	return w.inline(n)
}

// textOf is what a text node reads as: its escapes and entities are resolved, but in code.
func (w mrkdwnWriter) textOf(n *ast.Text) string {
	raw := n.Value(w.src)
	if n.IsRaw() || n.Parent().Kind() == ast.KindCodeSpan {
		return string(raw)
	}
	return Printable(string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(raw)))))
}

// text is what n reads as, without markup.
func (w mrkdwnWriter) text(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		t, ok := c.(*ast.Text)
		if !ok {
			b.WriteString(w.text(c))
			continue
		}
		b.WriteString(w.textOf(t))
		if t.SoftLineBreak() || t.HardLineBreak() {
			b.WriteByte(' ')
		}
	}
	return b.String()
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
