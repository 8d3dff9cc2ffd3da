package report

// ParseError says what of a question was not understood. Its text is for the person
// who asked: it can hold words of theirs and must be escaped like those.
type ParseError struct {
	// Sentence says it all: what was not understood, what was, and what would be.
	Sentence string
}

// Error is the sentence.
func (e *ParseError) Error() string { return e.Sentence }

const (
	maxText  = 2000 // bytes
	maxNames = 100  // in a question
)

// Parse understands a question, without the word that it begins with: "last month by
// user", "" for all that is usual. The error is a [*ParseError].
func Parse(text string, o Context) (Question, error) {
	p := parser{o: o, almanac: almanac{today: civilDay(o.Now, o.location()), loc: o.location(), sundayFirst: o.SundayFirst}}
	if len(text) > maxText {
		return Question{}, p.fail("That is too long for a question about costs.")
	}
	p.words = split(text)
	for p.i < len(p.words) {
		if err := p.part(); err != nil {
			return Question{}, err
		}
	}
	if len(p.q.Users) > 0 && p.q.Everyone {
		return Question{}, p.fail("“For everyone” and “for <@" + p.q.Users[0] + ">” contradict each other: ask for one of them.")
	}
	if len(p.q.Users)+len(p.q.Channels)+len(p.q.Projects)+len(p.q.Models) > maxNames {
		return Question{}, p.fail("That is too many names for one question.")
	}
	if p.q.Period.text == "" {
		usual, _, _ := p.period([]word{{low: "this"}, {low: "month"}})
		p.q.Period = usual
	}
	p.q.normal()
	return p.q, nil
}

type parser struct {
	almanac
	o     Context
	words []word
	i     int
	q     Question
}

// word is the word that many after the current one in small letters, or empty.
func (p *parser) word(n int) string {
	if p.i+n < len(p.words) && !p.words[p.i+n].quoted {
		return p.words[p.i+n].low
	}
	return ""
}

// part reads the next part of the question.
func (p *parser) part() error {
	w, next := p.words[p.i], p.word(1)
	switch {
	case w.quoted:
		return p.bare()
	case entity.MatchString(w.raw):
		return p.entity()
	case connects[w.low] || adverbs[w.low] != "":
		return p.grouping()
	case p.csvWords() > 0:
		p.q.CSV = true
		p.i += p.csvWords()
		return nil
	case (w.low == "show" || w.low == "give" || w.low == "tell") && selves[next]:
		p.i += 2
		return nil
	case w.low == "for":
		return p.forWhat()
	case selves[w.low]:
		return p.self()
	case (w.low == "this" || w.low == "the") && (next == "thread" || next == "conversation"):
		return p.thisThread()
	case w.low == "ever" || w.low == "always" || (w.low == "all" && next == "time"):
		return p.fail("I can report on up to 5 years at a time: write “last 5 years”.")
	case everybody[w.low]:
		p.q.Everyone = true
		for everybody[p.word(0)] { // "the whole team"
			p.i++
		}
		return nil
	case nouns[w.low] != "":
		return p.named(nouns[w.low])
	case fillers[w.low]:
		p.i++
		return nil
	}
	return p.when()
}

// starts reports whether the words begin a part of a question, and not a name.
func (p *parser) starts(words []word) bool {
	w := words[0]
	if w.quoted {
		return false
	}
	if entity.MatchString(w.raw) || connects[w.low] || adverbs[w.low] != "" || w.low == "csv" || w.low == "as" || w.low == "with" ||
		w.low == "for" || selves[w.low] || everybody[w.low] || nouns[w.low] != "" || fillers[w.low] {
		return true
	}
	_, n, c := p.period(words)
	return n > 0 || c != nil || (thises[w.low] && len(words) > 1 && words[1].low == "thread")
}

// csvWords is how many words from here on ask for a file.
func (p *parser) csvWords() int {
	n := 0
	if w := p.word(0); w == "as" || w == "with" {
		n++
	}
	for w := p.word(n); n > 0 && (w == "a" || w == "the"); w = p.word(n) {
		n++
	}
	if p.word(n) != "csv" {
		return 0
	}
	n++
	for w := p.word(n); w == "file" || w == "attached" || w == "attachment"; w = p.word(n) {
		n++
	}
	return n
}

func (p *parser) grouping() error {
	said, by := 1, adverbs[p.word(0)]
	if by == "" {
		if p.word(1) == "the" {
			said++
		}
		if by = groupings[p.word(said)]; by == "" {
			return p.unknownGrouping(said)
		}
		said++
	}
	if p.q.By != "" && p.q.By != by {
		return p.fail("I can group by one thing at a time: by " + string(p.q.By) + " or by " + string(by) + ".")
	}
	p.q.By = by
	p.i += said
	and := 0
	if p.word(0) == "and" {
		and++
	}
	if other := groupings[p.word(and)]; other != "" && (and > 0 || p.words[p.i-1].comma) &&
		(p.i+and+1 >= len(p.words) || p.starts(p.words[p.i+and+1:])) {
		return p.fail("I can group by one thing at a time: by " + string(by) + " or by " + string(other) + ".")
	}
	return nil
}

// forWhat passes over a "for"; something that it can be for has to follow.
func (p *parser) forWhat() error {
	p.i++
	for w := p.word(0); w == "the" && p.word(1) != "thread"; w = p.word(0) {
		p.i++
	}
	if p.i >= len(p.words) {
		return p.fail("“For” whom or what? " + forWhat)
	}
	if p.starts(p.words[p.i:]) && p.word(0) != "for" {
		return p.part()
	}
	return p.bare()
}

const forWhat = "I know: for @somebody, for #a-channel, for project NAME, for model NAME, for me, for this thread, for everyone."

// when reads a period, or else whatever a bare word can be.
func (p *parser) when() error {
	period, n, c := p.period(p.words[p.i:])
	switch {
	case c != nil:
		sentence := c.sentence
		if c.verdict != "" {
			sentence = "“" + said(p.words[p.i:min(p.i+c.n, len(p.words))]) + "” " + c.verdict
		}
		return p.fail(sentence)
	case n == 0:
		return p.bare()
	case p.q.Period.text != "" && p.q.Period.text != period.text:
		return p.fail("I can report on one period at a time: " + p.q.Period.text + " or " + period.text + ".")
	}
	p.q.Period = period
	p.i += n
	return nil
}
