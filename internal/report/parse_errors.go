package report

import (
	"strings"
	"unicode/utf8"
)

const examples = "For example: “last month by user”, “since 2026-10-01 by model with csv”, "

// fail says what is wrong, what was understood, and what would be.
func (p *parser) fail(sentence string) *ParseError {
	var parts []string
	if p.q.Period.text != "" {
		parts = append(parts, p.q.Period.text)
	}
	if p.q.By != "" {
		parts = append(parts, "by "+string(p.q.By))
	}
	understood := strings.Join(append(parts, p.q.filters()...), " ")
	if understood != "" {
		sentence += " I understood “" + clipAt(understood, 120) + "”."
	}
	third := "“this week for me”."
	if p.o.Asker == "" {
		third = "“last 7 days by day”."
	}
	return &ParseError{Sentence: sentence + " " + examples + third}
}

// unknown is about the words from here on.
func (p *parser) unknown() error {
	rest := p.words[p.i:]
	w := rest[0]
	if w.quoted {
		return p.fail("I don't know what “" + clip(w.raw) + "” is. Say it with the word before it, as in “project " + quote(clip(w.raw)) + "”.")
	}
	if units[w.low] != "" {
		return p.fail("Which " + units[w.low] + "? Write “this " + units[w.low] + "” or “last " + units[w.low] + "”.")
	}
	opens := w.low == "since" || w.low == "from" || w.low == "between" || w.low == "starting"
	switch {
	case len(rest) == 1 && opens:
		return p.fail("“" + upperFirst(w.low) + "” when? Write a day, as in “" + w.low + " 2026-10-01”.")
	case len(rest) == 1 && (thises[w.low] || lasts[w.low]):
		return p.fail("“" + upperFirst(w.low) + "” what? Write “" + w.low + " week” or “" + w.low + " month”.")
	case opens:
		return p.fail("I don't know the time “" + said(rest[1:2]) + "” after “" + w.low + "”. Write a day, as in “" + w.low + " 2026-10-01”.")
	}
	if guess, n, ok := meant(rest); ok {
		return p.fail("I don't know the " + guess.kind + " “" + said(rest[:n]) + "”. Did you mean “" + guess.text + "”?")
	}
	if name, ok := nearest(w.bare(), p.o.Projects); ok {
		return p.fail("I don't know “" + clip(w.raw) + "”. Did you mean the project “" + name + "”?")
	}
	first := w.low
	switch {
	case strings.HasPrefix(w.raw, "@") || strings.HasPrefix(w.raw, "#"):
		return p.noDirectory(w)
	case startsWithDigit(first):
		return p.fail("I don't know the time “" + clip(w.raw) + "”. Write days as 2026-10-03, months as 2026-10, years as 2026.")
	case (thises[first] || lasts[first]) && len(rest) > 1:
		return p.fail("I don't know the period “" + said(rest[:2]) + "”. I know weeks, months, quarters and years, the names of months and days, and “last 7 days”.")
	case p.i > 0 && p.words[p.i-1].low == "for":
		return p.fail("I don't know whom or what “" + clip(w.raw) + "” is. " + forWhat)
	}
	return p.fail("I don't know the word “" + clip(w.raw) + "”.")
}

func (p *parser) unknownGrouping(n int) error {
	if p.i+n >= len(p.words) {
		return p.fail("By what? I can group by " + groupingWords + ".")
	}
	w := p.words[p.i+n]
	if units[w.low] == "week" {
		return p.fail("I can group by " + groupingWords + ", and not by week.")
	}
	if guess, _, ok := meant([]word{{low: "by"}, w}); ok && guess.kind == "grouping" {
		return p.fail("I don't know the grouping “" + said(p.words[p.i:p.i+n+1]) + "”. Did you mean “" + guess.text + "”?")
	}
	return p.fail("I don't know the grouping “" + said(p.words[p.i:p.i+n+1]) + "”. I can group by " + groupingWords + ".")
}

func (p *parser) noSuch(noun string, w word, names []string) error {
	sentence := "There is no " + noun + " “" + clip(w.raw) + "”."
	if name, ok := nearest(w.bare(), names); ok {
		return p.fail(sentence + " Did you mean “" + name + "”?")
	}
	switch {
	case len(names) == 0:
	case len(names) <= 8:
		sentence += " There is " + strings.Join(names, ", ") + "."
	default:
		sentence += " There is " + strings.Join(names[:8], ", ") + " and more."
	}
	return p.fail(sentence)
}

// noDirectory is about a person or a channel that is named as people do.
func (p *parser) noDirectory(w word) error {
	return p.fail("I cannot find “" + clip(w.raw) + "” by name: mention the person or the channel so that Slack makes a link of it, or give the id, as in “for <@U012AB3CD>” or “for <#C012AB3CD>”.")
}

func said(words []word) string {
	raw := make([]string, len(words))
	for i, w := range words {
		raw[i] = w.raw
	}
	return clip(strings.Trim(strings.Join(raw, " "), punctuation))
}

// clip keeps what is quoted from a question short.
func clip(s string) string { return clipAt(s, 40) }

func clipAt(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
