package policy

import (
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A here-document with a known text is a string, as after <<<: git commit -F - <<'EOF'. So is "$(cat <<'EOF' …
// EOF)", by which agents write long messages. Only the plainest form, whose end is unambiguous, is read; others are
// asked.

// olderBash reports whether the shell may find the end of $(…) without reading here-documents, like Bash 3.2 on
// macOS.
const olderBash = runtime.GOOS == "darwin"

// plainHereDocument reports whether a command line holds exactly one here-document, whose text is the lines after
// its own up to the first line that is its end, with no earlier line that could be taken for the end.
func plainHereDocument(src string) (text string, ok bool) {
	before, after, found := strings.Cut(src, "<<")
	if !found || strings.Contains(after, "<<") || strings.HasPrefix(after, "-") || strings.HasSuffix(before, "<") {
		return "", false
	}
	line, rest, found := strings.Cut(after, "\n")
	end, line := hereEnd(line)
	if !found || end == "" || strings.Trim(line, hereLine) != "" {
		return "", false
	}
	for {
		l, more, found := strings.Cut(rest, "\n")
		switch {
		case l == end:
			return text, true
		case !found || strings.HasPrefix(strings.TrimSpace(l), end): // in $(…), EOF) is an end to Bash
			return "", false
		}
		text, rest = text+l+"\n", more
	}
}

const doubtHere = "the text of the here-document is not plain: it needs an end in quotes, such as <<'EOF', and no other one beside it"

// hereLine may follow the end's name on its line: other words, redirections, pipes.
const hereLine = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ./-_=,:@%+>|&;"

// hereEnd splits off the word that ends a here-document, which must be a plain
// name in quotes or not.
func hereEnd(s string) (name, rest string) {
	s = strings.TrimLeft(s, " ")
	quote := ""
	if s != "" && strings.ContainsRune(`'"`, rune(s[0])) {
		quote, s = s[:1], s[1:]
	}
	n := len(s) - len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"))
	name, rest = s[:n], s[n:]
	rest, ok := strings.CutPrefix(rest, quote)
	if !ok || rest != "" && rest[0] != ' ' {
		return "", ""
	}
	return name, rest
}

// hereText is the text of a here-document; ok is false if it is known only at run time.
func hereText(rd *syntax.Redirect) (text string, ok bool) {
	if rd.Op != syntax.Hdoc || rd.N != nil || len(rd.Word.Parts) != 1 {
		return "", false
	}
	_, bare := rd.Word.Parts[0].(*syntax.Lit)
	if rd.Hdoc == nil {
		return "", true
	}
	for _, p := range rd.Hdoc.Parts {
		l, isLit := p.(*syntax.Lit)
		if !isLit || bare && strings.ContainsAny(l.Value, "$`\\") {
			return "", false
		}
		text += l.Value
	}
	return text, true
}

// spoken is the text of $(cat <<'EOF' …); ok is false for any other part.
func spoken(p syntax.WordPart) (text string, ok bool) {
	c, ok := p.(*syntax.CmdSubst)
	if !ok || olderBash || c.Backquotes || c.TempFile || c.ReplyVar || len(c.Stmts) != 1 || len(c.Last) > 0 {
		return "", false
	}
	st := c.Stmts[0]
	call, isCall := st.Cmd.(*syntax.CallExpr)
	if !isCall || st.Negated || st.Background || st.Coprocess || st.Disown || len(st.Redirs) != 1 || len(call.Assigns) > 0 || len(call.Args) != 1 || call.Args[0].Lit() != "cat" {
		return "", false
	}
	text, ok = hereText(st.Redirs[0])
	return strings.TrimRight(text, "\n"), ok
}

// hereDocument judges a here-document. Its text is not a file; a program that would run it, such as a shell, is
// asked.
func (r *reader) hereDocument(rd *syntax.Redirect) {
	text, known := hereText(rd)
	if plain, ok := plainHereDocument(r.script.src); !known || !ok || plain != text {
		r.script.setHard(doubtHere)
	}
	if rd.Hdoc != nil {
		r.substitutions(rd.Hdoc)
	}
}

// obeysInput reports whether a word of a command is a program that may run its input.
func obeysInput(cmd syntax.Command) bool {
	call, ok := cmd.(*syntax.CallExpr)
	if !ok {
		return true
	}
	for i, a := range call.Args {
		w := readWord(a)
		if i > 0 && w.text == "-" { // as an operand, what is read: git commit -F -
			continue
		}
		base := baseName(w.text)
		if w.dynamic != "" || isInterpreter(base) || isOpaque(base) {
			return true
		}
	}
	return len(call.Args) == 0
}
