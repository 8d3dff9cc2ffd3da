package report

import (
	"fmt"
	"strings"
	"time"
)

// period reads a whole period at the beginning of the words: a point, a range, or
// so many days back. It gives the number of words that it took; 0 means that the
// words are about something else.
func (a almanac) period(words []word) (Period, int, *complaint) {
	if len(words) == 0 || words[0].quoted {
		return Period{}, 0, nil
	}
	switch w := words[0].low; {
	case w == "from" || w == "between":
		return a.between(words, 1, true)
	case w == "since" || w == "starting":
		return a.since(words, 1)
	case ranges[w]:
		if s, c := a.point(words[1:]); s != nil || c != nil {
			return Period{}, 0, complain(2, "I know the end of the period, and not its beginning: write “from 2026-10-01 to 2026-10-15”.")
		}
		return Period{}, 0, nil
	case lasts[w]:
		if s, c := a.rolling(words[1:], 1); s != nil || c != nil {
			return a.make(s, c, "the ", "")
		}
	}
	if s, c := a.rolling(words, 0); s != nil || c != nil {
		return a.make(s, c, "the ", "")
	}
	s, c := a.point(words)
	switch {
	case c != nil || s == nil:
		return a.make(s, c, "", "")
	case s.n < len(words) && ranges[words[s.n].low] && !words[s.n].quoted:
		return a.between(words, 0, false)
	}
	return a.make(s, nil, "", "")
}

// make turns what the calendar found into a period, if it has begun and is not too
// long. Rolling periods are named by their words, after the prefix.
func (a almanac) make(s *span, c *complaint, prefix, name string) (Period, int, *complaint) {
	if c != nil || s == nil {
		return Period{}, 0, c
	}
	if c := a.check(s.first, s.end, s.n); c != nil {
		return Period{}, 0, c
	}
	tomorrow := a.today.AddDate(0, 0, 1)
	end := s.end
	if end.After(tomorrow) {
		end = tomorrow
	}
	switch {
	case name != "":
	case prefix != "":
		name = prefix + s.text + " (" + spanName(s.first, end) + ")"
	default:
		name = spanName(s.first, s.end)
		if s.end.After(a.today) {
			name += ", so far"
		}
	}
	return newPeriod(s.first, end, s.shift, s.text, name, a.loc), s.n, nil
}

// check refuses what cannot be asked about.
func (a almanac) check(first, end time.Time, n int) *complaint {
	switch {
	case first.After(a.today):
		return notBegun(n)
	case end.After(addMonths(first, 12*maxYears)):
		return &complaint{verdict: fmt.Sprintf("is too long: I can report on up to %d years at a time.", maxYears), n: n}
	case first.Year() < firstYear:
		return &complaint{verdict: fmt.Sprintf("is too long ago: there were no costs before %d.", firstYear), n: n}
	}
	return nil
}

func (a almanac) since(words []word, n int) (Period, int, *complaint) {
	s, c := a.point(words[n:])
	if s == nil || c != nil {
		if c != nil {
			c.n += n
		}
		return Period{}, 0, c
	}
	n += s.n
	if n < len(words) && ranges[words[n].low] {
		return a.between(words, n-s.n, true)
	}
	if c := a.check(s.first, s.first, n); c != nil {
		return Period{}, 0, c
	}
	out := &span{first: s.first, end: a.today.AddDate(0, 0, 1), text: "since " + isoDay(s.first), n: n}
	out.shift = shift{days: daysBetween(out.first, out.end)}
	return a.make(out, nil, "", "since "+s.first.Format("2 January 2006"))
}

// between reads "A to B", the first n words being read.
func (a almanac) between(words []word, n int, opened bool) (Period, int, *complaint) {
	from, c := a.point(words[n:])
	if from == nil || c != nil {
		if c != nil {
			c.n += n
		}
		return Period{}, 0, c
	}
	n += from.n
	sep := n
	for sep < len(words) && ranges[words[sep].low] { // "up to"
		sep++
	}
	if sep == n && opened && strings.EqualFold(words[0].low, "between") && sep < len(words) && words[sep].low == "and" {
		sep++
	}
	if sep == n { // from A alone
		return a.since(words, n-from.n)
	}
	to, c := a.point(words[sep:])
	if c != nil {
		c.n += sep
		return Period{}, 0, c
	}
	if to == nil {
		return Period{}, 0, complain(sep, "I do not understand where the period ends: write “from 2026-10-01 to 2026-10-15”.")
	}
	n = sep + to.n
	if from.first.After(to.first) { // from November to February
		from.first = addMonths(from.first, -from.loose.months).AddDate(0, 0, -from.loose.days)
	}
	if from.first.After(to.end.AddDate(0, 0, -1)) {
		return Period{}, 0, complain(n, "%s comes after %s: write the earlier one first.",
			spanName(from.first, from.end), spanName(to.first, to.end))
	}
	s := &span{first: from.first, end: to.end, n: n}
	s.text = "from " + isoDay(s.first) + " to " + isoDay(s.end.AddDate(0, 0, -1))
	if s.first.Day() == 1 && s.end.Day() == 1 {
		s.shift.months = 12*(s.end.Year()-s.first.Year()) + int(s.end.Month()) - int(s.first.Month())
	} else {
		end := s.end
		if tomorrow := a.today.AddDate(0, 0, 1); end.After(tomorrow) {
			end = tomorrow
		}
		s.shift.days = daysBetween(s.first, end)
	}
	return a.make(s, nil, "", "")
}
