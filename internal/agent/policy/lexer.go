package policy

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Where the parser errs, Bash runs something other than what was judged. So each command line is also cut into
// tokens of plain forms, which certainly mean the same to Bash and to the parser: words of known characters, simple
// quotes, separators, redirections and comments without quotes. No rule allows what holds anything else, or what the
// two read differently.

// Why the reading of a command line is uncertain.
const (
	doubtComment = "the comment holds quotes, which may hide a command"
	doubtParse   = "the command cannot be read as shell"
	doubtDiffers = "the command reads differently when it is read a second time"
	doubtPlain   = "it is not written plainly enough to be certain what Bash makes of it"
)

// mayHide reports whether Bash may run lines that the parser read as something else.
func mayHide(doubt string) bool {
	return doubt == doubtComment || doubt == doubtParse || doubt == doubtDiffers
}

// token is a word with its value, or an operator.
type token struct {
	at, end int
	text    string
	begins  bool // a command begins with it
}

// The plain forms. A $ stands only before the end of double quotes.
var (
	plainBlank    = regexp.MustCompile(`^[ \t](?:\\\n[ \t]*[^ \t\n#\\])?`)
	plainComment  = regexp.MustCompile(`^#[^\n]*`)
	plainOperator = regexp.MustCompile(`^(?:&&|\|\||[;\n|&()])`)
	plainRedirect = regexp.MustCompile(`^(?:[0-9]?(?:>>|>\||>&|<&|<<<|<|>)|&>>?)[ \t]*`)
	plainWord     = regexp.MustCompile("^(?:[A-Za-z0-9_./:=@%+,^*?\\[\\]{}!~-]|'[^']*'|\"(?:[^\"\\\\$`]|\\\\[^\\n])*\\$?\"|\\\\[!-~])+")
	// joined is a word that is one with what follows: a function, an array, or the number or name of a file descriptor.
	joined  = regexp.MustCompile(`(?s)^.*\($|^[0-9]+[<>]$|\}[<>]$`)
	quoting = regexp.MustCompile(`(?:^|[ \t\n;&|()])#[^\n]*['"` + "`" + `$\\]`)
	// In some encodings a backslash belongs to the character before it.
	doubtfulBackslash = regexp.MustCompile(`[^\x00-\x7f]\\`)
)

// reserved are the words that may stand before a command.
var reserved = words("if then elif else fi { } ! time")

// doubtful says why the reading of a parsed text is uncertain; empty if it is not.
func doubtful(f *syntax.File, src string) string {
	tokens, ok := tokensOf(src)
	switch read, known := outline(f); {
	case !ok && quoting.MatchString(src):
		return doubtComment
	case !ok || doubtfulBackslash.MatchString(src):
		return doubtPlain
	case known && !slices.Equal(tokens, read):
		return doubtDiffers
	}
	return ""
}

// tokensOf cuts a text into tokens. It omits what separates commands, since ; and a newline are equivalent, and
// reserved words. ok is false for what is not plain.
func tokensOf(src string) (out []token, ok bool) {
	begins, blank, target := true, true, false
	for at := 0; at < len(src); {
		rest := src[at:]
		find := func(re *regexp.Regexp) int { return len(re.FindString(rest)) }
		if n := find(plainBlank); n > 0 && !target {
			at, blank = at+max(n-1, 1), true // what follows a line's end is looked at again
		} else if n := find(plainComment); n > 0 && blank && !target && !quoting.MatchString(rest[:n]) {
			at += n
		} else if n := find(plainRedirect); n > 0 && !target && !begins {
			out = append(out, token{at: at, text: strings.TrimRight(rest[:n], " \t")})
			at, target = at+n, true
		} else if n := find(plainOperator); n > 0 && !target && (rest[0] != '(' || begins) {
			if op := rest[:n]; op != ";" && op != "\n" {
				out = append(out, token{at: at, text: op})
			}
			at, begins, blank = at+n, rest[0] != ')', rest[0] == '\n'
		} else if n := find(plainWord); n > 0 && !joined.MatchString(rest[:n]+rest[n:min(n+1, len(rest))]) {
			piped := len(out) > 0 && out[len(out)-1].text == "|" // there, time is a program
			if !begins || !reserved[rest[:n]] || piped {
				out = append(out, token{at, at + n, unquoted(rest[:n]), begins})
				begins, target = false, false
			}
			at, blank = at+n, false
		} else {
			return nil, false
		}
	}
	return out, !target
}

// quotes are what quotes a part of a plain word.
var quotes = regexp.MustCompile(`(?s)'[^']*'|"(?:[^"\\]|\\.)*"|\\.`)

// unquoted is the value of a plain word.
func unquoted(raw string) string {
	return quotes.ReplaceAllStringFunc(raw, func(q string) string {
		switch q[0] {
		case '\'':
			return q[1 : len(q)-1]
		case '"':
			return doubleQuoted(q[1 : len(q)-1])
		}
		return q[1:]
	})
}

// outline is the same list from the parser's tree; known is false if it holds a construct that only a rule with the
// whole line allows.
func outline(f *syntax.File) (out []token, known bool) {
	known = true
	mark := func(p syntax.Pos, text string) { out = append(out, token{at: int(p.Offset()), text: text}) } //nolint:gosec // of a short text
	word := func(n syntax.Node, text string) {
		mark(n.Pos(), text)
		out[len(out)-1].end = int(n.End().Offset()) //nolint:gosec // of a short text
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		at := len(out)
		switch n := n.(type) {
		case *syntax.Stmt:
			if n.Background {
				mark(n.Semicolon, "&")
			}
		case *syntax.CallExpr:
			for _, a := range n.Assigns {
				value := ""
				if a.Value != nil {
					value = readWord(a.Value).text
				}
				word(a, a.Name.Value+"="+value)
			}
			for _, a := range n.Args {
				word(a, readWord(a).text)
			}
			out[at].begins = true
			return false
		case *syntax.Redirect:
			fd := ""
			if n.N != nil {
				fd = n.N.Value
			}
			mark(n.Pos(), fd+n.Op.String())
			word(n.Word, readWord(n.Word).text)
			return false
		case *syntax.BinaryCmd:
			mark(n.OpPos, n.Op.String())
		case *syntax.Subshell:
			mark(n.Lparen, "(")
			mark(n.Rparen, ")")
		case nil, *syntax.File, *syntax.Block, *syntax.TimeClause, *syntax.IfClause, *syntax.Comment:
		default:
			known = false
		}
		return known
	})
	slices.SortFunc(out, func(a, b token) int { return a.at - b.at })
	return out, known
}
