package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// books: each call of the model is in the ledger once, in its session and for the person who asked, at what it is
// billed. Of a call that was cut, more may be billed, up to its bound. Nothing else is in the ledger.
func (e Evidence) books() (out []Violation) {
	broken := func(format string, args ...any) {
		out = append(out, Violation{Rule: Booked, What: fmt.Sprintf(format, args...)})
	}
	for _, other := range e.Rows.Estimates {
		broken("the ledger has %s", other)
	}
	booked := map[string]Entry{}
	var nameless []Entry // the bot died before it could write down that there was an answer
	for _, b := range e.Rows.Ledger {
		if _, twice := booked[b.Request]; twice {
			broken("request %s is booked twice", b.Request)
		}
		if b.Request == "" {
			nameless = append(nameless, b)
		} else {
			booked[b.Request] = b
		}
	}
	slices.SortStableFunc(nameless, func(a, b Entry) int { return cmp.Compare(a.Bound, b.Bound) })
	calls, authors := map[string]ModelCall{}, e.authors()
	for _, c := range e.Calls {
		calls[c.Request] = c
	}
	for _, id := range slices.SortedFunc(maps.Keys(e.Bill), func(a, b string) int {
		return cmp.Or(cmp.Compare(e.Bill[a], e.Bill[b]), cmp.Compare(a, b))
	}) {
		bill, c := e.Bill[id], calls[id]
		b, ok := booked[id]
		delete(booked, id)
		if !ok {
			i := slices.IndexFunc(nameless, func(b Entry) bool { return b.Session == c.Session && e.wrong(b, bill, c) == "" })
			if i < 0 {
				broken("request %s of session %s is billed %d µ$, and not in the ledger", id, c.Session, bill)
				continue
			}
			b = nameless[i]
			nameless = slices.Delete(nameless, i, i+1)
		}
		if why := e.wrong(b, bill, c); why != "" {
			broken("request %s of session %s: the bill is %d µ$, the ledger has %d and says that up to %d may be missing: %s", id, b.Session, bill, b.Micro, b.Bound, why)
		}
		if b.Session != c.Session {
			broken("request %s of session %s is booked on session %s", id, c.Session, b.Session)
		}
		if author := authors[c.asked()]; author != "" && author != b.User {
			broken("request %s for %s's %s is booked on %s", id, author, c.asked(), b.User)
		}
	}
	for _, b := range slices.Concat(nameless, slices.Collect(maps.Values(booked))) {
		if b.Micro != 0 {
			broken("request %q of session %s is booked at %d µ$, and was not billed", b.Request, b.Session, b.Micro)
		}
	}
	return out
}

// wrong is what is wrong with an entry of a call that is billed; or empty.
func (e Evidence) wrong(b Entry, bill int64, c ModelCall) string {
	cut := slices.ContainsFunc(e.Cuts, func(s Span) bool { return !c.At.After(s.To) && !c.Ended.Before(s.From) })
	switch {
	case b.Complete && bill != b.Micro:
		return "it was not cut"
	case bill < b.Micro:
		return "it is too much"
	case bill > b.Micro+b.Bound:
		return "more is missing"
	case !b.Complete && c.Told && !cut:
		return "the model had told all of it, and nothing has cut it"
	}
	return ""
}

// authors are the people who wrote each post, by its answer. Threads in which the conversation was cleared or summed up
// are left out: a turn of that kind that is taken up again shows the model somebody else's post last.
func (e Evidence) authors() map[string]string {
	out := map[string]string{}
	for _, t := range e.Threads {
		if t.anew(e.Bot, "~") != "" {
			continue
		}
		for _, p := range t.posts(e.Bot) {
			out[p.answer] = p.User
		}
	}
	return out
}

// asked is the answer that the main loop asks the model for; or empty.
func (c ModelCall) asked() string {
	if !c.Main || len(c.Seen) == 0 {
		return ""
	}
	return c.Seen[len(c.Seen)-1]
}
