package mrkdwntest

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

var commonMark = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()

// Read reads a markdown block as a program does that knows CommonMark: it says which live
// mentions are in what a paragraph, a heading, a cell or a piece of code comes to when escapes
// and entities are resolved and marks are gone, which images would be fetched, and which links
// lead elsewhere than they say.
func Read(markdown string) (problems []string) {
	src := []byte(markdown)
	r := reader{src: src}
	r.blocks(commonMark.Parse(text.NewReader(src)))
	return r.problems
}

type reader struct {
	src      []byte
	problems []string
}

func (r *reader) addf(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

func (r *reader) blocks(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch {
		case c.Type() == ast.TypeInline:
			continue
		case c.Kind() == ast.KindCodeBlock, c.Kind() == ast.KindFencedCodeBlock, c.Kind() == ast.KindHTMLBlock:
			var b strings.Builder
			for i := range c.Lines().Len() {
				line := c.Lines().At(i)
				b.Write(line.Value(r.src))
			}
			r.says(b.String(), false)
		}
		if c.FirstChild() != nil && c.FirstChild().Type() == ast.TypeInline {
			var b strings.Builder
			r.inline(&b, c)
			r.says(b.String(), true)
		}
		r.blocks(c)
	}
}

// host is one that there can be.
var host = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?$`)

// mark stands in a text where a mark was, such as of emphasis.
const mark = "\x00"

// says checks what a block comes to. A name that marks take apart is none.
func (r *reader) says(said string, prose bool) {
	if m := liveToken.FindString(strings.ReplaceAll(said, mark, "")); m != "" {
		r.addf("live when it is read: %q in %.80q", m, said)
	}
	if m := bareEverybody.FindString(said); prose && m != "" && !strings.Contains(m, mark) {
		r.addf("%q is not muted when it is read: %.80q", m, said)
	}
}

func (r *reader) inline(b *strings.Builder, n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.WriteString(resolve(c.Value(r.src)))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte('\n')
			}
		case *ast.String:
			b.Write(c.Value)
		case *ast.CodeSpan:
			var code strings.Builder
			for t := c.FirstChild(); t != nil; t = t.NextSibling() {
				if t, ok := t.(*ast.Text); ok {
					code.Write(t.Value(r.src))
				}
			}
			r.says(code.String(), false)
			b.WriteString("\n") // what stands around it does not join
		case *ast.Image:
			r.addf("an image of %q", c.Destination)
		case *ast.Link:
			var label strings.Builder
			r.inline(&label, c)
			r.link(resolve(c.Destination), strings.ReplaceAll(label.String(), mark, ""))
			b.WriteString(label.String())
		case *ast.AutoLink:
			b.Write(c.Label(r.src))
		default:
			b.WriteString(mark)
			r.inline(b, c)
			b.WriteString(mark)
		}
	}
}

// link checks that a link leads to the web, mail or a path, and where its label is an address,
// to that one's host.
func (r *reader) link(target, label string) {
	u, err := url.Parse(target)
	if err != nil {
		return // nothing opens it
	}
	scheme, rest := strings.ToLower(u.Scheme), u.Opaque+" "
	line := strings.Contains(scheme, ".") && rest[0] >= '0' && rest[0] <= '9' // main.go:12
	if !line && !slices.Contains([]string{"", "http", "https", "mailto"}, scheme) {
		r.addf("a link to %q", target)
	}
	shown, err := url.Parse(strings.TrimSpace(label))
	if err != nil || !host.MatchString(shown.Host) || shown.Scheme != "http" && shown.Scheme != "https" {
		return
	}
	if !strings.EqualFold(shown.Hostname(), u.Hostname()) {
		r.addf("a link that says %q and leads to %q", label, target)
	}
}

// resolve is a text without its escapes and entities.
func resolve(raw []byte) string {
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
	return b.String()
}
