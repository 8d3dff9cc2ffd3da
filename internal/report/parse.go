package report

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/spelling"
	"deckhand/internal/store/ledger"
)

// ParseError says why a question cannot be answered.
type ParseError struct {
	// Sentence is for the person who asked: it may contain their words and must be escaped.
	Sentence string
	// Nearest are answerable questions that may have been meant, the nearest first.
	Nearest []Question
}

// Error is the sentence, with what may have been meant.
func (e *ParseError) Error() string {
	if len(e.Nearest) == 0 {
		return e.Sentence
	}
	var questions []string
	for _, q := range e.Nearest {
		questions = append(questions, "“"+q.String()+"”")
	}
	return e.Sentence + " Did you mean " + strings.Join(questions, " or ") + "?"
}

const (
	maxText    = 2000 // bytes
	maxNames   = 100  // in a question
	maxNearest = 3
)

// Parse parses a question without its first word: "last month by user", "" for the default. The error is a
// [*ParseError].
func Parse(text string, o Context) (Question, error) {
	r := read(text, o)
	if r.wrong == "" && len(r.unknown) == 0 && !r.vague {
		return r.q, nil
	}
	e := &ParseError{Sentence: r.wrong}
	switch {
	case r.wrong != "":
	case len(r.unknown) > 0:
		e.Sentence = "I don't know “" + clip(strings.Join(r.unknown, " ")) + "” in a question about costs."
		if r.named {
			e.Sentence += " For a person, write @ and choose them."
		}
	default:
		e.Sentence = "Which costs do you mean?"
	}
	add := func(text string) {
		if n := read(text, o); n.wrong == "" && len(n.unknown) == 0 && !n.vague && len(e.Nearest) < maxNearest &&
			!slices.ContainsFunc(e.Nearest, func(q Question) bool { return q.String() == n.q.String() }) {
			e.Nearest = append(e.Nearest, n.q)
		}
	}
	corrected, ok := r.corrected()
	if ok {
		add(corrected)
	}
	for _, other := range r.others {
		add(other)
	}
	if r.vague && o.ThreadID != 0 {
		add(r.q.String() + " this thread")
	}
	if len(e.Nearest) == 0 || r.vague {
		add(r.q.String())
	}
	return Question{}, e
}

// maxWords is how long a message may be that is taken for a question about costs.
const maxWords = 16

// MayAsk is a cheap first check for [Asks], by a message's length and words.
func MayAsk(text string) bool {
	if strings.ContainsRune(strings.TrimSpace(text), '\n') || len(text) > maxText {
		return false
	}
	words := split(text)
	return len(words) <= maxWords && slices.ContainsFunc(words, func(w word) bool {
		return spendWords[w.low] || moneyWords[w.low] || w.low == "much" || spelling.Slip(w.low, spendList) != ""
	})
}

// Asks reports whether a message that does not begin with "costs" is a question about
// costs: one that [Parse] understands, or that is to be asked back about. Any other is
// work. It has a word for spending, and
//
//   - no word but those of such questions, or
//   - opens as a question, and has one more word (or two, with "and" between them) where a
//     name or a time would stand; it says whose or when, or asks what somebody has spent.
func Asks(text string, o Context) bool {
	if !MayAsk(text) {
		return false
	}
	r := read(text, o)
	whose := r.whose || r.said
	opens := opening.MatchString(strings.ToLower(strings.Join(strings.Fields(text), " ")))
	switch {
	case r.mended() && opens:
		return true
	case !r.spend && !(r.money && whose):
		return false
	case len(r.unknown) == 0:
		return !r.vague || whose || o.ThreadID != 0
	}
	return r.spend && opens && len(r.unknown) == 1 && r.named && (whose || r.past)
}

// opening is how a question about an amount begins.
var opening = regexp.MustCompile(`^(?:(?:hi|hey|hello|ok|so|and|please|@?deckhand|claude)[ ,:!]+)*(?:how much|what (?:did|do|have|has|was|were|is|are)\b|what['’]s|who|which|where did|(?:my|our|the|total) )`)

// reading is what was understood of a text.
type reading struct {
	calendar
	o     Context
	words []word
	i     int
	q     Question
	// unknown are the words without a meaning; at is where they stand.
	unknown []string
	at      []int
	named   bool // the last of them stands where a name or a time would
	past    bool // after "did", "has" or "have"
	wrong   string
	others  []string // several questions, of which one can be answered at a time
	spend   bool     // it has one of spendWords
	money   bool     // or of moneyWords
	whose   bool     // it says whose costs it is about
	said    bool     // it says a period
	vague   bool     // it asks about "this"
}

const usual = "this month"

// read finds period, grouping and filters among the words, wherever they stand.
func read(text string, o Context) *reading {
	r := &reading{o: o, calendar: calendar{today: civilDay(o.Now, o.location()), loc: o.location()}}
	if len(text) > maxText {
		r.wrong = "That is too long for a question about costs."
		text = ""
	}
	r.words = split(text)
	for r.i < len(r.words) {
		if n := r.part(); n > 0 {
			r.i += n
			continue
		}
		said, last := r.words[r.i].raw, len(r.at)-1
		if last >= 0 && r.named && r.at[last] == r.i-2 && low(r.words, r.i-1) == "and" { // "linus and grace"
			r.unknown[last], r.at[last] = r.unknown[last]+" and "+said, r.i
			r.i++
			continue
		}
		r.named, r.past = r.standsForAName()
		if before := low(r.words, r.i-1); before == "by" || before == "per" {
			said = before + " " + said
		}
		if next := r.words[r.i+1:]; lasts[low(r.words, r.i)] && len(next) > 0 && !r.means(next) { // "last summer"
			r.named = true
			r.i++
			said += " " + next[0].raw
		}
		r.unknown, r.at = append(r.unknown, said), append(r.at, r.i)
		r.i++
	}
	if r.q.Period.text == "" {
		period := usual
		if r.q.By == ledger.ByMonth {
			period = "this year"
		}
		r.q.Period, _, _ = r.period(split(period))
	}
	switch {
	case len(r.q.Users) > 0 && r.q.Everyone:
		r.complain("Everybody's costs and those of one person are two questions.")
	case len(r.q.Users)+len(r.q.Channels)+len(r.q.Projects)+len(r.q.Models) > maxNames:
		r.complain("That is too many names for one question.")
	}
	r.q.normal()
	r.q.teams = o.Teams
	return r
}

// complain keeps the first reason why a question cannot be answered.
func (r *reading) complain(sentence string) {
	r.wrong = cmp.Or(r.wrong, sentence)
}

// standsForAName reports whether the current word follows one that introduces a name or a time; past: whoever has
// done something.
func (r *reading) standsForAName() (named, past bool) {
	before := r.i - 1
	for low(r.words, before) == "the" {
		before--
	}
	w := low(r.words, before)
	return nameFollows[w], w == "did" || w == "has" || w == "have"
}

var nameFollows = wordSet("on for in by from since last this past previous did has have does during over per at each until")

// part reads what begins at the next word, and returns its number of words; 0: it has no meaning.
func (r *reading) part() int {
	words := r.words[r.i:]
	w, next, before := low(words, 0), low(words, 1), low(r.words, r.i-1)
	switch {
	case entity.MatchString(w):
		m := entity.FindStringSubmatch(w)
		r.whose = true
		if m[1] == "@" {
			r.q.Users = append(r.q.Users, m[2])
		} else {
			r.q.Channels = append(r.q.Channels, m[2])
		}
		return 1
	case w == "all" && next == "time" || w == "ever" || w == "always":
		r.complain("A report is of 5 years at most.")
		r.q.Period, _, _ = r.period(split("last 5 years"))
		if w == "all" {
			return 2
		}
		return 1
	}
	if n := r.csv(words); n > 0 {
		return n
	}
	if n := r.name(words, before); n > 0 {
		return n
	}
	if n := r.grouping(words, before); n > 0 {
		r.spend = r.spend || w == "spenders" || next == "spenders"
		return n
	}
	if n := r.when(words); n > 0 {
		return n
	}
	switch {
	case w == "":
	case selves[w] && !(w == "me" && giving[before]) && !(w == "i" && !r.spends(before, next)):
		r.whose = true
		if r.o.Asker == "" {
			r.complain("I do not know who “" + w + "” is here: name the person, as in “for <@U012AB3CD>”.")
		} else {
			r.q.Users = append(r.q.Users, r.o.Asker)
		}
		return 1
	case ours[w]:
		r.whose = true
		return 1
	case everybody[w], w == "whole" && everybody[next]:
		r.q.Everyone, r.whose = true, true
		return 1
	case vague[w]:
		r.vague, r.whose = true, r.whose || w == "left" || w == "remaining" // of a budget
		return 1
	case whole.MatchString(w) && before == "top":
		return 1
	case spendWords[w]:
		r.spend = true
		return 1
	case moneyWords[w], uses[w] && slices.ContainsFunc(r.words[:r.i], func(w word) bool { return w.low == "much" }):
		r.money = true
		return 1
	}
	if n := r.bare(words); n > 0 {
		return n
	}
	if fillers[w] {
		return 1
	}
	return 0
}

// spends reports whether "I" between these words is who spends, not who wants to see.
func (r *reading) spends(before, next string) bool {
	return !asking[before] && (wordSet("did do have am has")[before] || spendWords[next] || moneyWords[next] || next == "have" || next == "ve")
}

// csv reads "as a CSV file", "with the csv attached".
func (r *reading) csv(words []word) int {
	n := 0
	if w := low(words, 0); w == "as" || w == "with" {
		n++
	}
	for w := low(words, n); n > 0 && (w == "a" || w == "the"); w = low(words, n) {
		n++
	}
	if w := low(words, n); w != "csv" && w != "spreadsheet" {
		return 0
	}
	r.q.CSV = true
	for n++; wordSet("file attached attachment")[low(words, n)]; {
		n++
	}
	return n
}

// means reports whether the words begin with one of the vocabulary, which is no name.
func (r *reading) means(words []word) bool {
	w := low(words, 0)
	if _, n, _ := r.period(words); n > 0 {
		return true
	}
	return fillers[w] || spendWords[w] || moneyWords[w] || selves[w] || ours[w] || everybody[w] || vague[w] || versus[w] || thises[w] || lasts[w] ||
		nouns[w] != "" || groupings[w] != "" || oneWord[w] != "" || entity.MatchString(w)
}

// grouping reads "by user", "which projects", "daily".
func (r *reading) grouping(words []word, before string) int {
	n, by := 1, oneWord[low(words, 0)]
	if byWords[low(words, 0)] {
		for skip := low(words, n); skip == "the" || skip == "each" || skip == "expensive" || skip == "most"; skip = low(words, n) {
			n++
		}
		if found := groupings[low(words, n)]; found != "" {
			n, by = n+1, found
		}
		if w := low(words, n); by == "" && low(words, 0) == "by" && (units[w] == "week" || units[w] == "quarter" || units[w] == "year") {
			r.complain("Costs can be grouped by team, user, channel, project, model, thread, day or month, and not by " + w + ".")
			return n + 1
		}
	}
	if low(words, 1) == "by" && groupings[low(words, 0)] != "" && groupings[low(words, 0)] == groupings[low(words, 2)] {
		n, by = 3, groupings[low(words, 0)] // "day by day"
	}
	if low(words, 0) == "and" && groupings[low(words, 1)] != "" && r.q.By != "" && groupings[before] != "" && len(words) == 2 {
		n, by = 2, groupings[low(words, 1)] // "by user and model"
	}
	if by == "" {
		return 0
	}
	if by == ByTeam && r.o.Teams != nil && len(r.o.Teams) == 0 {
		r.complain("No project has a team: write team: under projects in deckhand.yaml, or ask by project.")
		other := r.q
		other.By = ledger.ByProject
		r.others = append(r.others, other.String())
		return n
	}
	if r.q.By != "" && r.q.By != by {
		r.complain("Costs can be grouped by one thing at a time: by " + string(r.q.By) + " or by " + string(by) + ".")
		other := r.q
		other.By = by
		r.others = append(r.others, r.q.String(), other.String())
		return n
	}
	r.q.By = by
	return n
}

// when reads a period. It skips one to compare with: a report always compares with the previous period.
func (r *reading) when(words []word) int {
	if versus[low(words, 0)] {
		skip := 1
		for w := low(words, skip); w == "to" || w == "with" || w == "in"; w = low(words, skip) {
			skip++
		}
		if _, n, wrong := r.period(words[skip:]); n > 0 && wrong == "" {
			return skip + n
		}
		return 1
	}
	p, n, wrong := r.period(words)
	switch {
	case n == 0:
		return 0
	case wrong != "":
		r.complain(wrong)
	case r.q.Period.text != "" && r.q.Period.text != p.text:
		r.complain("A report is of one period: " + r.q.Period.text + " or " + p.text + ".")
		other := r.q
		other.Period = p
		r.others = append(r.others, r.q.String(), other.String())
	default:
		r.q.Period, r.said = p, true
	}
	return n
}

// corrected replaces unknown words by the nearest known ones; ok is false if there is none for one of them.
func (r *reading) corrected() (text string, ok bool) {
	known := slices.Concat(periodList, slices.Sorted(maps.Keys(groupings)), spendList, []string{"csv", "everyone", "since", "from", "yesterday"}, r.o.Projects, r.o.Models)
	raw := make([]string, len(r.words))
	for i, w := range r.words {
		if raw[i] = w.raw; w.low == "" {
			raw[i] = quote(w.raw)
		}
	}
	for _, at := range r.at {
		said := raw[at]
		if raw[at] = cmp.Or(spelling.Slip(said, known), spelling.Nearest(said, known)); raw[at] == "" {
			return "", false
		}
	}
	return strings.Join(raw, " "), len(r.at) > 0
}

// mended reports whether all unknown words are misspelt, and the text is a question about costs without them.
func (r *reading) mended() bool {
	if len(r.unknown) == 0 || len(r.unknown) > 2 {
		return false
	}
	known := slices.Concat(spendList, periodList, slices.Sorted(maps.Keys(oneWord)))
	spends := r.spend
	for _, at := range r.at {
		meant := spelling.Slip(r.words[at].low, known)
		if meant == "" && !slices.Contains(known, r.words[at].low) {
			return false
		}
		spends = spends || spendWords[meant]
	}
	return spends
}

var (
	spendList  = slices.Sorted(maps.Keys(spendWords))
	periodList = slices.Concat([]string{"today", "yesterday", "last", "this"}, slices.Sorted(maps.Keys(units)), longNames(monthOf), longNames(weekdayOf))
)

// longNames are the names of times that are written out.
func longNames[T any](names map[string]T) (long []string) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if len(name) > 5 || name == "june" || name == "july" || name == "march" || name == "april" {
			long = append(long, name)
		}
	}
	return long
}

// clip keeps what is quoted from a question short.
func clip(s string) string {
	const most = 40
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
