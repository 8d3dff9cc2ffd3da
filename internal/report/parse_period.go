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
		return a.between(words, 1)
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
	at := 0
	if s != nil {
		at = s.n
	} else if c == nil {
		_, at = bareDay(words)
	}
	if c == nil && at > 0 && at < len(words) && ranges[words[at].low] && !words[at].quoted {
		return a.between(words, 0)
	}
	return a.make(s, c, "", "")
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
		name = prefix + strings.Replace(s.text, "last 1 ", "last ", 1) + " (" + spanName(s.first, end) + ")"
	default:
		name = spanName(s.first, s.end)
		if s.end.After(a.today) {
			name += ", so far"
		}
	}
	p := newPeriod(s.first, end, s.shift, s.text, name, a.loc)
	p.open = s.open
	return p, s.n, nil
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
		return a.between(words, n-s.n)
	}
	if c := a.check(s.first, s.first, n); c != nil {
		return Period{}, 0, c
	}
	out := &span{open: true, first: s.first, end: a.today.AddDate(0, 0, 1), text: "since " + isoDay(s.first), n: n}
	out.shift = shift{days: daysBetween(out.first, out.end)}
	return a.make(out, nil, "", "since "+s.first.Format("2 January 2006"))
}
