package policy

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a simple command.
type word struct {
	text string // what the program gets; for a dynamic word, the known part
	// dynamic says what makes the word unknown until it runs; empty for a static one.
	dynamic string
	// odd says why a known word is not allowed: people could not read it.
	odd string
	// glob: the shell replaces the word by file names; brace: by several words. It is not expanded yet (see
	// reader.expand).
	glob, brace bool
	// source is set for words from a wildcard.
	source bool
}

func (w word) known() bool { return w.dynamic == "" && !w.glob && !w.brace }

// hidden says why a word is unknown.
func (w word) hidden() string {
	switch {
	case w.dynamic != "":
		return w.dynamic
	case w.brace:
		return "the braces {…} are expanded when it runs"
	}
	return "the wildcard " + w.text + " is expanded when it runs"
}

// why says why the word is not plain.
func (w word) why() string {
	if w.dynamic != "" {
		return w.dynamic
	}
	return w.odd
}

// readWord evaluates a word without context.
func readWord(w *syntax.Word) word {
	var out word
	if len(w.Parts) == 1 { // most words are one plain literal
		if l, ok := w.Parts[0].(*syntax.Lit); ok && plain(l.Value) {
			out.text = l.Value
			return out
		}
	}
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			out.unquoted(&b, p.Value, len(w.Parts) == 1)
		case *syntax.SglQuoted:
			if p.Dollar {
				out.odd = "the quoting $'…' hides what it says"
				// A configuration of its own: that of nil is shared, and written to.
				s, err := expand.Literal(&expand.Config{}, &syntax.Word{Parts: []syntax.WordPart{p}})
				if err != nil {
					out.dynamic = out.odd
				}
				b.WriteString(s)
				break
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				out.odd = `the quoting $"…" is translated when it runs`
			}
			for _, q := range p.Parts {
				if l, ok := q.(*syntax.Lit); ok {
					b.WriteString(doubleQuoted(l.Value))
				} else {
					out.dynamic = expansion(q)
				}
			}
		default:
			out.dynamic = expansion(part)
		}
	}
	out.text = b.String()
	return out
}

var plainLiteral = regexp.MustCompile(`^[A-Za-z0-9./_,%@+:=-]*$`)

// plain reports whether an unquoted literal stands for itself.
func plain(s string) bool { return plainLiteral.MatchString(s) }

// unquoted adds an unquoted literal, in which backslashes quote.
func (w *word) unquoted(b *strings.Builder, s string, alone bool) {
	if s == "{}" && alone { // find and xargs; literal
		b.WriteString(s)
		return
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch c {
		case '\\':
			i++
			if i < len(s) && s[i] != '\n' {
				b.WriteByte(s[i])
			}
			continue
		case '*', '?', '[':
			w.glob = w.glob || s != "[" || !alone // the command
		case '{', '}':
			if n := len(plainBraces.FindString(s[i:])); n > 0 { // HEAD@{1}
				b.WriteString(s[i : i+n])
				i += n - 1
				continue
			}
			w.brace = true
		case '~':
			if b.Len() == 0 || strings.HasSuffix(b.String(), "=") || strings.HasSuffix(b.String(), ":") {
				w.dynamic = "~ is a home folder that only the shell knows"
			}
		}
		b.WriteByte(c)
	}
}

// plainBraces are literal braces without a choice: {1}, {upstream}.
var plainBraces = regexp.MustCompile(`^\{[a-z0-9-]+\}`)

// escaped is a character whose backslash double quotes remove.
var escaped = regexp.MustCompile("(?s)\\\\(?:([$`\"\\\\])|\n)")

func doubleQuoted(s string) string { return escaped.ReplaceAllString(s, "$1") }

// expansion describes what a part of a word stands for.
func expansion(p syntax.WordPart) string {
	switch p := p.(type) {
	case *syntax.CmdSubst:
		return "the command substitution $(…) can run anything"
	case *syntax.ProcSubst:
		return "the process substitution <(…) can run anything"
	case *syntax.ParamExp:
		if p.Param != nil && len(p.Param.Value) <= 40 {
			return "the variable $" + p.Param.Value + " is known only when it runs"
		}
	}
	return "a part of it is known only when it runs"
}

// unreadable names characters that people cannot see as they are: control characters, and those that reverse, hide
// or imitate others.
func unreadable(s string) string {
	for _, r := range s {
		switch {
		case r >= ' ' && r < 0x7f, r == '\n', r == '\t':
		case r == utf8.RuneError:
			return "it holds bytes that are not valid text"
		case unicode.IsControl(r):
			return "it holds a control character"
		case deceptive(r):
			return "it holds a character that people cannot see as it is"
		}
	}
	return ""
}

func deceptive(r rune) bool {
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0: // blank by design
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Zs, unicode.Co, unicode.Variation_Selector) ||
		r >= 0xfff0 && r <= 0xffff
}
