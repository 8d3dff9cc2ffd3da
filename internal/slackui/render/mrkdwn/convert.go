package mrkdwn

import (
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/plaintext"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// commonMark parses models' texts; HTML is plain text to it. It is safe for concurrent use.
var commonMark = parser.NewParser(
	parser.WithBlockParsers(blockParsers(parser.NewFencedCodeBlockParser())...),
	parser.WithInlineParsers(slices.DeleteFunc(parser.DefaultInlineParsers(), func(v util.PrioritizedValue) bool {
		return v.Value == parser.NewRawHTMLParser()
	})...),
	parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
)

// nestingMax is the depth up to which quotes and lists are rendered.
const nestingMax = 8

// Convert renders cleaned CommonMark as mrkdwn, for notifications and where Slack accepts no markdown block. No
// mention in it is live, and links are text with their target. It is plainer than a markdown block: tables, tasks
// and strikethrough stay as written, and Slack may interpret a mark beside a letter.
func Convert(markdown string) string {
	src := []byte(plaintext.Printable(markdown))
	doc := commonMark.Parse(text.NewReader(src), parser.WithContext(parser.NewContext()))
	return strings.TrimRight(mrkdwnWriter{src}.blocks(doc, "\n\n", 0), "\n ")
}

// mrkdwnWriter walks a document. Its methods return the mrkdwn of a node.
type mrkdwnWriter struct{ src []byte }

// blocks renders the block children of n.
func (w mrkdwnWriter) blocks(n ast.Node, between string, depth int) string {
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
	case *ast.ThematicBreak:
		return "———"
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		return preformatted(string(n.Lines().Value(w.src)))
	case *ast.Blockquote:
		return indent(w.blocks(n, "\n\n", depth+1), "> ", "> ", depth)
	case *ast.List:
		var items []string
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			marker := "• "
			if n.IsOrdered() {
				marker = strconv.Itoa(n.Start+len(items)) + ". "
			}
			items = append(items, indent(w.blocks(c, "\n", depth+1), marker, "    ", depth))
		}
		return strings.Join(items, "\n")
	}
	return w.inline(n)
}

// indent puts first before the first line and rest before the others.
func indent(s, first, rest string, depth int) string {
	if depth >= nestingMax {
		return s
	}
	return first + strings.ReplaceAll(s, "\n", "\n"+rest)
}

// preformatted is a code block. Three backticks inside would end it.
func preformatted(s string) string {
	s = strings.ReplaceAll(strings.TrimRight(s, "\n"), "```", "`"+plaintext.Zwsp+"`"+plaintext.Zwsp+"`")
	return "```\n" + mrkdwnEscaper.Replace(s) + "\n```"
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
		return wrap([...]string{"_", "*"}[min(n.Level, 2)-1], w.inline(n))
	case *ast.Link:
		return w.leadsTo(n, n.Destination)
	case *ast.Image:
		return w.leadsTo(n, n.Destination)
	case *ast.AutoLink:
		return Escape(string(n.Label(w.src)))
	}
	return w.inline(n)
}

// leadsTo renders a link as text.
func (w mrkdwnWriter) leadsTo(n ast.Node, target []byte) string {
	label, to := plaintext.OneLine(w.text(n)), string(target)
	switch {
	case to == "":
		return Escape(label)
	case label == "" || label == to:
		return Escape(to)
	}
	return Escape(label) + " (" + Escape(to) + ")"
}

// textOf is a text node's content, with escapes and entities resolved except in code.
func (w mrkdwnWriter) textOf(n *ast.Text) string {
	raw := n.Value(w.src)
	if n.IsRaw() || n.Parent().Kind() == ast.KindCodeSpan {
		return string(raw)
	}
	return plaintext.Printable(string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(raw)))))
}

// text is n without markup.
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

// wrap puts marks around text, inside its outer spaces, since Slack ignores a mark beside a space.
func wrap(mark, s string) string {
	trimmed := strings.TrimSpace(s)
	if trimmed == "" {
		return s
	}
	i := strings.Index(s, trimmed)
	return s[:i] + mark + trimmed + mark + s[i+len(trimmed):]
}

// Link links to a web address that comes from Slack itself; other addresses give only the label, which may be
// anything.
func Link(address, label string) string {
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return Escape(label)
	}
	return "<" + linkEscaper.Replace(address) + "|" + apart(strings.ReplaceAll(Escape(label), "|", "¦")) + ">"
}

var linkEscaper = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C", " ", "%20", "\n", "", "\t", "")
