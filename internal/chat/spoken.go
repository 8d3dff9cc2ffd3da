package chat

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"deckhand/internal/plaintext"
	"deckhand/internal/report"
	"deckhand/internal/spelling"
)

// spoken is a text that is a command, or nearly one. Only its words and its
// length decide which, so that a person can know it:
//
//   - A text that means stop, see stopwords.go, or that has a command's form is the command.
//   - Any other that begins with a noun of ours (grants, approvals) is nearly one, and so is
//     one that begins with a verb (approve, deny, feedback, help) and has three words at most,
//     or a card's code after the name, and one that would be a command but for a slip of the
//     finger. It is asked back, with what may have been meant as buttons.
//   - What steers a session is a command in its exact form alone: “plan the release” is work. Of
//     mcp, mode, rewind and effort, with which no work begins, three words are asked back, too.
//   - Everything else is work, but for questions about costs; see [report.Asks].
type spoken struct {
	*command
	// rest is what the command's form takes of it.
	rest string
	// nearly is true of what is no command, and no work either.
	nearly bool
	// meant is then the command that may have been meant, or empty.
	meant string
	// guessed is true of what does not begin with the command's name. People who talk to
	// each other say such things, too.
	guessed bool
}

// asksHelp are other ways to say help.
var asksHelp = folded("what can you do", "what can I say", "hilfe", "aide", "ayuda", "aiuto", "ajuda", "помощь", "допомога", "pomoc", "yardım", "hjälp", "hjelp", "ヘルプ", "도움말", "帮助", "幫助")

// longestNearly is how many words a text that begins with a verb of ours may have and be
// no work.
const longestNearly = 3

// find reads a text as a command or nearly one; nil: it is neither. A noun of ours is
// found behind quotes, bullets and the like, too; a verb is not, as in such a text
// somebody else may be quoted.
func (list commands) find(text string) *spoken {
	whole := text
	text = bared(text)
	if saysStop(whole) || saysStop(text) { // ":stop_sign:" loses its first mark
		name, _ := headOf(text)
		return &spoken{command: list.named("stop"), guessed: !strings.EqualFold(name, "stop")}
	}
	if asksHelp[strings.Join(stopWord.FindAllString(fold(text), -1), " ")] {
		return &spoken{command: list.named("help"), guessed: true}
	}
	if s := list.read(text); s != nil {
		return s
	}
	s := list.read(strings.TrimLeftFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
	if s == nil || !s.noun {
		return list.misspelt(text)
	}
	return s
}

// named is the command of a name that there is.
func (list commands) named(name string) *command {
	return &list[slices.IndexFunc(list, func(c command) bool { return c.name == name })]
}

// read reads a text that begins with a command's name and has, or nearly has, its form.
func (list commands) read(text string) *spoken {
	name, rest := headOf(text)
	i := slices.IndexFunc(list, func(c command) bool { return c.form != nil && slices.Contains(c.names(), strings.ToLower(name)) })
	if name == "" || i < 0 {
		return nil
	}
	c := &list[i]
	first, _ := headOf(rest)
	coded := c.byCode && isCode(first)
	if m := c.form.FindStringSubmatch(rest); m != nil && coded == c.byCode {
		return &spoken{command: c, rest: m[1]}
	}
	if c.steers && !c.asksBack {
		return nil
	}
	if c.noun || coded || len(strings.Fields(rest)) < longestNearly {
		s := &spoken{command: c, nearly: true}
		if !c.byCode {
			s.meant = c.help.Say[0]
		}
		return s
	}
	return nil
}

// misspelt reads a text that is a command but for a slip in its first word: csots, hlep.
func (list commands) misspelt(text string) *spoken {
	first, rest := headOf(text)
	var names []string
	for _, c := range list {
		names = append(names, c.name)
	}
	name := spelling.Slip(first, names)
	if name == "" {
		return nil
	}
	meant := strings.TrimSpace(name + " " + rest)
	s := list.find(meant)
	if s == nil || s.nearly {
		return nil
	}
	if _, err := report.Parse(rest, report.Context{Now: time.Now(), Asker: "U0"}); s.name == "costs" && err != nil {
		return nil
	}
	return &spoken{command: s.command, nearly: true, meant: meant, guessed: true}
}

// names are the ways to write its name: people leave the s of a noun away.
func (c *command) names() []string {
	if c.noun {
		return []string{c.name, strings.TrimSuffix(c.name, "s")}
	}
	return []string{c.name}
}

// complaint is for a person who said nearly this command.
func (s *spoken) complaint(text string) string {
	if s.meant != "" {
		return "Did you mean “" + quoted(s.meant) + "”?"
	}
	if s.byCode {
		return "I find no code in “" + quoted(text) + "”. The code stands on the request's card. Write “" + s.help.Say[0] + "”."
	}
	return "I do not understand “" + quoted(text) + "”. Write “" + s.help.Say[0] + "”: " + s.help.Means + "."
}

// quoted is a text as a sentence quotes it.
func quoted(text string) string { return plaintext.Clip(plaintext.OneLine(text), 100) }

// isCode tells a card's code from a word: it has a digit (see agent.newApprovalID).
func isCode(word string) bool {
	return len(word) >= 5 && len(word) <= 26 && isASCII(word) && strings.ContainsAny(word, "0123456789")
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// bared is a text without what people put around words: marks after a mention (“@deckhand:
// stop”), emphasis, code marks around all of it, and blanks that nobody sees. All blanks
// but line feeds become spaces.
func bared(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text)
	unseen := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar
	}
	text = strings.TrimFunc(text, unseen)
	if inner := strings.Trim(text, "`"); len(text)-len(inner) >= 2 && text[0] == '`' && text[len(text)-1] == '`' {
		text = inner
	}
	return strings.TrimFunc(strings.TrimLeftFunc(text, func(r rune) bool { return unseen(r) || strings.ContainsRune(",:;*_~", r) }), unseen)
}

// headOf is the word that a text begins with, and what follows it without the marks
// between. There is none where the word goes on as names in code and compounds do:
// costs.go, stop(), cost-benefit.
func headOf(text string) (word, rest string) {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if end < 0 {
		return text, ""
	}
	word, rest = text[:end], text[end:]
	mark, size := utf8.DecodeRuneInString(rest)
	next, _ := utf8.DecodeRuneInString(rest[size:])
	switch {
	case unicode.IsSpace(mark) || unicode.Is(unicode.Cf, mark) || strings.ContainsRune(",:;!?…<>/@&)'\"`“”„‘’«»", mark):
	case strings.ContainsRune(".-–—*_~", mark) && !unicode.IsLetter(next) && !unicode.IsDigit(next):
	default:
		return "", ""
	}
	return word, strings.TrimLeft(rest, " \n,:;.!?…*_~-–—)\"”’»`")
}
