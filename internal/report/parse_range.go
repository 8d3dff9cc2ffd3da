package report

import "strconv"

// between reads "A to B", the first at words being read.
func (a almanac) between(words []word, at int) (Period, int, *complaint) {
	from, to, c := a.ends(words, at)
	switch {
	case c != nil:
		return Period{}, 0, c
	case from == nil:
		return Period{}, 0, nil
	case to == nil: // from A alone
		return a.since(words, at)
	}
	settle(from, to)
	n := to.n
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

// ends reads the two ends of a range from the word at on; to counts the words of both.
// There is no from where the words are about something else, and no to where nothing
// leads to one. One end can be a day of the other's month: "1 to 5 November 2026",
// "November 1–5, 2026".
func (a almanac) ends(words []word, at int) (from, to *span, c *complaint) {
	from, c = a.point(words[at:])
	if c != nil {
		c.n += at
		return nil, nil, c
	}
	day, end := bareDay(words[at:])
	if from != nil {
		end = from.n
	} else if end == 0 {
		return nil, nil, nil
	}
	end += at
	sep := separator(words, end, at > 0 && words[0].low == "between")
	if sep == end {
		return from, nil, nil // which is none without a month
	}
	to, c = a.point(words[sep:])
	switch {
	case c != nil:
		c.n += sep
		return nil, nil, c
	case from == nil && (to == nil || !to.dated):
		return nil, nil, nil
	case from == nil:
		to.n += sep
		return a.sharedByFirst(day, to)
	case to != nil:
		to.n += sep
		return from, to, nil
	}
	if day, n := bareDay(words[sep:]); n > 0 && from.dated {
		year := ""
		if sep+n < len(words) && !words[sep+n].quoted && yearOnly.MatchString(words[sep+n].low) {
			year = words[sep+n].low
			n++
		}
		return a.sharedBySecond(from, day, year, sep+n)
	}
	return nil, nil, complain(sep, "I do not understand where the period ends: write “from 2026-10-01 to 2026-10-15”.")
}

// separator is where the second end begins, if a word that leads to it stands at i, and
// else i.
func separator(words []word, i int, and bool) int {
	sep := i
	for sep < len(words) && ranges[words[sep].low] && !words[sep].quoted { // "up to"
		sep++
	}
	if sep == i && and && i < len(words) && words[i].low == "and" {
		sep++
	}
	return sep
}

// sharedByFirst are the ends of "1 to 5 November": the first is a day of the second's
// month. Without a year the range is the latest that has begun.
func (a almanac) sharedByFirst(day string, to *span) (*span, *span, *complaint) {
	year := ""
	if to.loose.months == 0 {
		year = strconv.Itoa(to.first.Year())
	}
	from, c := a.monthDay(to.first.Month(), day, year, to.n)
	if c != nil {
		return nil, nil, &complaint{sentence: c.sentence, n: to.n}
	}
	return a.sharedBySecond(from, strconv.Itoa(to.first.Day()), "", to.n)
}

// sharedBySecond are the ends of "November 1 to 5 2026": the second is a day of the
// first's month, and may bring the year of both. n words were read.
func (a almanac) sharedBySecond(from *span, day, year string, n int) (*span, *span, *complaint) {
	month := from.first.Month()
	var c *complaint
	if year != "" && from.loose.months != 0 {
		if from, c = a.monthDay(month, strconv.Itoa(from.first.Day()), year, n); c != nil {
			return nil, nil, &complaint{sentence: c.sentence, n: n}
		}
	}
	if year == "" {
		year = strconv.Itoa(from.first.Year())
	}
	to, c := a.monthDay(month, day, year, n)
	if c != nil {
		return nil, nil, &complaint{sentence: c.sentence, n: n}
	}
	from.loose, to.n = shift{}, n
	return from, to, nil
}

// settle chooses among the times that an end without its year can mean. If neither has
// one, the range is the latest that has begun; else the loose end is the nearest to the
// other. Of weekdays it is the latest that is over.
func settle(from, to *span) {
	for to.loose.months != 0 && (from.loose == shift{} || from.loose.months != 0) && !from.first.Before(to.end) {
		to.first, to.end = addMonths(to.first, to.loose.months), addMonths(to.end, to.loose.months)
	}
	for to.loose.days != 0 && from.loose == (shift{}) && !from.first.Before(to.end) {
		to.first, to.end = to.first.AddDate(0, 0, to.loose.days), to.end.AddDate(0, 0, to.loose.days)
	}
	for from.loose != (shift{}) && !from.first.Before(to.end) {
		from.first = addMonths(from.first, -from.loose.months).AddDate(0, 0, -from.loose.days)
	}
}
