package slackui

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"deckhand/internal/slackui/render/mrkdwn"
)

// spoken is a text that begins with a command's name. What it is decided by that and by
// its length alone, so that a person can know it:
//
//   - A text that has the command's form is the command.
//   - Any other that begins with a noun of ours (costs, grants, approvals) is nearly one:
//     it is answered with what to write, and never work for the model.
//   - One that begins with a verb (stop, approve, deny, feedback, help) is nearly one if it has
//     three words at most, or a card's code after the name. Longer ones are sentences:
//     “stop using tabs in main.go” is work.
type spoken struct {
	*command
	// rest is what the command's form takes of it.
	rest string
	// nearly is true of what is no command, and no work either.
	nearly bool
}

// longestNearly is how many words a text that begins with a verb of ours may have and be
// no work.
const longestNearly = 3

// find reads a text as a command or nearly one; nil: it is neither. A noun of ours is
// found behind quotes, bullets and the like, too; a verb is not, as in such a text
// somebody else may be quoted.
func (list commands) find(text string) *spoken {
	text = bared(text)
	if s := list.read(text); s != nil {
		return s
	}
	s := list.read(strings.TrimLeftFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
	if s == nil || !s.noun {
		return nil
	}
	return s
}

// read reads a text that begins with a word.
func (list commands) read(text string) *spoken {
	name, rest := headOf(text)
	i := slices.IndexFunc(list, func(c command) bool { return slices.Contains(c.names(), strings.ToLower(name)) })
	if name == "" || i < 0 {
		return nil
	}
	c := &list[i]
	first, _ := headOf(rest)
	coded := c.byCode && isCode(first)
	if m := c.form.FindStringSubmatch(rest); m != nil && coded == c.byCode {
		return &spoken{command: c, rest: m[1]}
	}
	if c.noun || coded || len(strings.Fields(rest)) < longestNearly {
		return &spoken{command: c, nearly: true}
	}
	return nil
}

// names are the ways to write its name: people leave the s of a noun away.
func (c *command) names() []string {
	if c.noun {
		return []string{c.name, strings.TrimSuffix(c.name, "s")}
	}
	return []string{c.name}
}

// complaint is for a person who said nearly this command: what to write, and how to say
// it to the model.
func (c *command) complaint(text string) string {
	return "I do not understand “" + quoted(text) + "”. Write “" + c.help.Say[0] + "”: " + c.help.Means + ". " + c.otherwise()
}

// otherwise is how what begins with the command's name reaches the model.
func (c *command) otherwise() string {
	if c.noun {
		return "If it is work for the model, begin it with another word."
	}
	return "If it is work for the model, say it in more than three words, or begin it with another one."
}

// quoted is a text as a sentence quotes it.
func quoted(text string) string { return mrkdwn.Clip(mrkdwn.OneLine(text), 100) }

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
