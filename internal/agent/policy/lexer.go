package policy

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Where the parser errs, Bash runs something other than what was judged. So each command line is also read by a
// lexer that knows only plain words, quotes, separators, redirections, if, and comments without quotes. No rule
// allows what the lexer does not know, or what the two read differently.

// Doubts in which Bash may run lines that the parser read as something else.
const (
	doubtComment = "the comment holds quotes, which may hide a command"
	doubtParse   = "the command cannot be read as shell"
	doubtDiffers = "the command reads differently when it is read a second time"
)

// mayHide reports whether a doubt is one of these.
func mayHide(doubt string) bool {
	return doubt == doubtComment || doubt == doubtParse || doubt == doubtDiffers
}

// doubtful says why the reading of a parsed text is uncertain; empty if it is not.
func doubtful(f *syntax.File, src string) string {
	l := lexer{src: src}
	if !l.read() {
		return l.why
	}
	var o outline
	for _, st := range f.Stmts {
		o.stmt(st)
	}
	if !o.unknown && !slices.Equal(l.tokens, o.tokens) {
		return doubtDiffers
	}
	return ""
}

// outline is a command line as a list of tokens: where each command begins, its words with positions and values,
// the redirections, operators and reserved words. It omits separators, since ; and a newline are equivalent.
type outline struct {
	tokens  []token
	unknown bool // a construct that only a rule with the whole line allows
}

// token is a word with its position and value, or something between words, without a position.
type token struct {
	text     string
	pos, end int
}

const commandBegins = "a command begins"

func (o *outline) mark(s string) { o.tokens = append(o.tokens, token{text: s}) }

func (o *outline) markWord(n syntax.Node, text string) {
	o.tokens = append(o.tokens, token{text, int(n.Pos().Offset()), int(n.End().Offset())}) //nolint:gosec // of a short text
}

func (o *outline) stmts(list []*syntax.Stmt) {
	for _, st := range list {
		o.stmt(st)
	}
}

func (o *outline) stmt(st *syntax.Stmt) {
	if st.Negated {
		o.mark("!")
	}
	switch c := st.Cmd.(type) {
	case nil, *syntax.CallExpr:
		o.call(c, st.Redirs)
	case *syntax.BinaryCmd:
		o.stmt(c.X)
		o.mark(c.Op.String())
		o.stmt(c.Y)
	case *syntax.Subshell:
		o.mark("(")
		o.stmts(c.Stmts)
		o.mark(")")
	case *syntax.Block:
		o.mark("{")
		o.stmts(c.Stmts)
		o.mark("}")
	case *syntax.TimeClause:
		o.mark("time")
		if c.PosixFormat {
			o.mark("-p")
		}
		if c.Stmt != nil {
			o.stmt(c.Stmt)
		}
	case *syntax.IfClause:
		o.mark("if")
		o.ifClause(c)
		o.mark("fi")
	default:
		o.unknown = true
	}
	if _, simple := st.Cmd.(*syntax.CallExpr); !simple && st.Cmd != nil && len(st.Redirs) > 0 {
		o.call(nil, st.Redirs)
	}
	if st.Background {
		o.mark("&")
	}
}

func (o *outline) ifClause(c *syntax.IfClause) {
	o.stmts(c.Cond)
	o.mark("then")
	o.stmts(c.Then)
	switch e := c.Else; {
	case e == nil:
	case len(e.Cond) == 0:
		o.mark("else")
		o.stmts(e.Then)
	default:
		o.mark("elif")
		o.ifClause(e)
	}
}

// call marks a simple command: its assignments, words and redirections in order.
func (o *outline) call(cmd syntax.Command, redirs []*syntax.Redirect) {
	var nodes []syntax.Node
	if c, ok := cmd.(*syntax.CallExpr); ok {
		for _, a := range c.Assigns {
			nodes = append(nodes, a)
		}
		for _, a := range c.Args {
			nodes = append(nodes, a)
		}
	}
	for _, rd := range redirs {
		nodes = append(nodes, rd)
	}
	slices.SortStableFunc(nodes, func(a, b syntax.Node) int { return cmp.Compare(a.Pos().Offset(), b.Pos().Offset()) })
	o.mark(commandBegins)
	for _, n := range nodes {
		switch n := n.(type) {
		case *syntax.Assign:
			text := ""
			if n.Value != nil {
				text = readWord(n.Value).text
			}
			o.markWord(n, n.Name.Value+"="+text)
		case *syntax.Word:
			o.markWord(n, readWord(n).text)
		case *syntax.Redirect:
			fd := ""
			if n.N != nil {
				fd = n.N.Value
			}
			o.mark(fd + n.Op.String())
			o.markWord(n.Word, readWord(n.Word).text)
		}
	}
}

// lexer splits a plain command line as Bash does.
type lexer struct {
	outline

	src string
	at  int
	why string // the construct that is not plain

	inCommand bool // a command has begun, with a word or a redirection
	named     bool // its program has been read
	ended     bool // a compound command has ended; only redirections may follow
	target    bool // the next word is a redirection's target
	body      int  // length of the here-document after this line
}

// reserved are the words that may stand before a command.
var reserved = words("if then elif else fi { } ! time")

// Characters after a literal dollar.
const (
	afterDollar       = " \t\n|;&)/.,"
	afterQuotedDollar = " \"|)/.,:%^+=;&<>~]}\n\t"
)

func (l *lexer) read() bool {
	for l.at < len(l.src) && l.why == "" {
		switch c := l.src[l.at]; c {
		case ' ', '\t':
			l.at++
		case '\n':
			l.at++
			l.end()
			l.at += l.body
			l.body = 0
		case '#':
			l.comment()
		case ';', '&', '|', '(', ')':
			l.operator()
		case '<', '>':
			l.redirection("")
		case '\\':
			if strings.HasPrefix(l.src[l.at:], "\\\n") {
				l.continuation()
				continue
			}
			l.word()
		default:
			l.word()
		}
	}
	if l.body > 0 || l.target {
		l.refuse(doubtDiffers)
	}
	return l.why == ""
}

func (l *lexer) refuse(why string) {
	if l.why == "" {
		l.why = why
	}
}

// end is the end of a command.
func (l *lexer) end() {
	if l.target {
		l.refuse("a redirection names no file")
	}
	l.inCommand, l.named, l.ended = false, false, false
}

// next is the character at a place; a newline after the last.
func (l *lexer) next(at int) byte {
	if at < len(l.src) {
		return l.src[at]
	}
	return '\n'
}

// comment skips a comment: after a blank or at the beginning of a line, without anything that quotes.
func (l *lexer) comment() {
	if l.at > 0 && strings.IndexByte(" \t\n", l.src[l.at-1]) < 0 || l.target {
		l.refuse(doubtComment)
		return
	}
	text, _, _ := strings.Cut(l.src[l.at:], "\n")
	if strings.ContainsAny(text, "'\"`$\\") || l.body > 0 {
		l.refuse(doubtComment)
	}
	l.at += len(text)
}

// continuation skips an escaped newline between two words.
func (l *lexer) continuation() {
	before := byte('\n')
	if l.at > 0 {
		before = l.src[l.at-1]
	}
	rest := strings.TrimLeft(l.src[l.at+2:], " \t")
	if strings.IndexByte(" \t", before) < 0 || l.body > 0 || l.target || rest == "" || strings.IndexByte("#\n\\", rest[0]) >= 0 {
		l.refuse("a line ends in a backslash where it does not stand between two words")
	}
	l.at = len(l.src) - len(rest)
}

func (l *lexer) operator() {
	for _, op := range []string{"&>>", "&>", "&&", "||", "|&", ";;", ";&"} {
		if strings.HasPrefix(l.src[l.at:], op) {
			l.at += len(op)
			switch op {
			case "&>>", "&>":
				l.redirect(op)
			case ";;", ";&":
				l.mark(op)
				l.end()
			default:
				l.end()
				l.mark(op)
			}
			return
		}
	}
	op := l.src[l.at : l.at+1]
	l.at++
	l.end()
	if op != ";" {
		l.mark(op)
	}
	l.ended = op == ")"
}

// redirection reads the operator of a redirection; fd is the digits before it.
func (l *lexer) redirection(fd string) {
	for _, op := range []string{"<<<", "<<", "<>", "<&", "<", ">>", ">|", ">&", ">"} {
		if !strings.HasPrefix(l.src[l.at:], op) {
			continue
		}
		l.at += len(op)
		if c := l.next(l.at); c == '(' || c == '#' || c == '<' || c == '>' {
			l.refuse("the redirection is not one that is judged")
			return
		}
		if op == "<<" {
			l.hereDocument(fd)
			return
		}
		l.redirect(fd + op)
		return
	}
}

func (l *lexer) redirect(op string) {
	l.begin()
	l.mark(op)
	l.target = true
}

func (l *lexer) begin() {
	if l.target {
		l.refuse("a redirection names no file")
	}
	if !l.inCommand {
		l.inCommand = true
		l.mark(commandBegins)
	}
}

// hereDocument reads the delimiter of the only here-document.
func (l *lexer) hereDocument(fd string) {
	text, ok := plainHereDocument(l.src)
	if !ok || fd != "" {
		l.refuse(doubtHere)
		return
	}
	l.redirect("<<")
	l.target = false
	line, _, _ := strings.Cut(l.src[l.at:], "\n")
	name, rest := hereEnd(line)
	end := l.at + len(line) - len(rest)
	l.tokens = append(l.tokens, token{name, end - len(strings.TrimLeft(l.src[l.at:end], " ")), end})
	l.at, l.body = end, len(text)+len(name)
}

// word reads a word.
func (l *lexer) word() {
	start := l.at
	var b strings.Builder
	for l.at < len(l.src) && l.why == "" {
		switch c := l.src[l.at]; {
		case strings.IndexByte(" \t\n;&|)", c) >= 0:
			l.endWord(start, b.String())
			return
		case c == '<' || c == '>':
			if raw := l.src[start:l.at]; len(raw) == 1 && '0' <= raw[0] && raw[0] <= '9' {
				l.redirection(raw)
				return
			} else if strings.Trim(raw, "0123456789") == "" {
				l.refuse("the redirection is not one that is judged")
			}
			l.endWord(start, b.String())
			return
		case c == '\'':
			n := strings.IndexByte(l.src[l.at+1:], '\'')
			if n < 0 {
				l.refuse(doubtParse)
				return
			}
			b.WriteString(l.src[l.at+1 : l.at+1+n])
			l.at += n + 2
		case c == '"':
			l.doubleQuoted(&b)
		case c == '\\':
			l.at++
			q := l.next(l.at)
			if q < ' ' || q >= 0x7f {
				l.refuse("a backslash stands where it quotes nothing")
				return
			}
			b.WriteByte(q)
			l.at++
		case c == '$' && strings.IndexByte(afterDollar, l.next(l.at+1)) < 0, c == '`', c == '(':
			l.refuse("a part of it is known only when it runs")
		case c == '[' && l.at > start && !l.named && !l.target: // of an array
			l.refuse("an array's index can run commands")
		case c >= 0x80:
			l.refuse("a character outside quotes is not ASCII, and may be a blank to the shell")
		default:
			b.WriteByte(c)
			l.at++
		}
	}
	l.endWord(start, b.String())
}

// endWord ends a word, which may be a reserved one.
func (l *lexer) endWord(start int, text string) {
	raw := l.src[start:l.at]
	switch {
	case l.target:
		l.target = false
		l.tokens = append(l.tokens, token{text, start, l.at})
		return
	case l.ended:
		l.mark("nothing may stand here")
	case !l.inCommand && reserved[raw] && (raw != "time" || !l.piped()):
		l.mark(raw)
		l.ended = raw == "}" || raw == "fi"
		return
	case !l.inCommand && raw == "-p" && len(l.tokens) > 0 && l.tokens[len(l.tokens)-1].text == "time":
		l.mark(raw)
		return
	}
	l.begin()
	if !assignment(raw) {
		l.named = true
	}
	l.tokens = append(l.tokens, token{text, start, l.at})
}

// piped reports whether the next command reads the previous one's output: there, time is a program.
func (l *lexer) piped() bool {
	n := len(l.tokens)
	return n > 0 && (l.tokens[n-1].text == "|" || l.tokens[n-1].text == "|&") && l.tokens[n-1].end == 0
}

// assignment reports whether a word before a command's name sets a variable.
func assignment(raw string) bool {
	name, _, ok := strings.Cut(raw, "=")
	return ok && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && (name[0] < '0' || name[0] > '9')
}

// doubleQuoted reads the content of double quotes.
func (l *lexer) doubleQuoted(b *strings.Builder) {
	for l.at++; l.at < len(l.src); l.at++ {
		switch c := l.src[l.at]; {
		case c == '"':
			l.at++
			return
		case c == '\\':
			q := l.next(l.at + 1)
			if q == '\n' || l.src[l.at-1] >= 0x80 { // in some encodings it belongs to the previous character
				l.refuse("a backslash stands where it quotes nothing")
			}
			if strings.IndexByte("$`\"\\", q) >= 0 {
				l.at++
			} else {
				b.WriteByte(c)
				continue
			}
			b.WriteByte(q)
		case c == '$' && strings.HasPrefix(l.src[l.at:], "$(cat <<"):
			if !l.spoken(b) {
				return
			}
		case c == '$' && strings.IndexByte(afterQuotedDollar, l.next(l.at+1)) < 0, c == '`':
			l.refuse("a part of it is known only when it runs")
			return
		default:
			b.WriteByte(c)
		}
	}
	l.refuse(doubtParse)
}

// spoken reads $(cat <<'EOF' …), to its last character.
func (l *lexer) spoken(b *strings.Builder) bool {
	text, ok := plainHereDocument(l.src)
	line, after, _ := strings.Cut(l.src[l.at+len("$(cat <<"):], "\n")
	name, rest := hereEnd(line)
	if tail, found := strings.CutPrefix(after, text+name+"\n)"); ok && found && rest == "" {
		b.WriteString(strings.TrimRight(text, "\n"))
		l.at = len(l.src) - len(tail) - 1
		return true
	}
	l.refuse(doubtHere)
	return false
}
