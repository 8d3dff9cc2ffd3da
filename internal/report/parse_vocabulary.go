package report

import (
	"slices"
	"strings"
	"time"

	"deckhand/internal/store"
)

// groupings are the words after "by".
var groupings = map[string]store.CostGroup{
	"user": store.ByUser, "users": store.ByUser, "person": store.ByUser, "persons": store.ByUser, "people": store.ByUser, "member": store.ByUser, "members": store.ByUser,
	"channel": store.ByChannel, "channels": store.ByChannel,
	"project": store.ByProject, "projects": store.ByProject, "repo": store.ByProject, "repos": store.ByProject, "repository": store.ByProject,
	"model": store.ByModel, "models": store.ByModel,
	"thread": store.ByThread, "threads": store.ByThread, "session": store.ByThread, "sessions": store.ByThread, "conversation": store.ByThread,
	"day": store.ByDay, "days": store.ByDay, "date": store.ByDay,
	"month": store.ByMonth, "months": store.ByMonth,
}

const groupingWords = "user, channel, project, model, thread, day or month"

// adverbs are groupings in one word.
var adverbs = map[string]store.CostGroup{"daily": store.ByDay, "monthly": store.ByMonth}

// fillers may stand anywhere and mean nothing.
var fillers = wordSet(`a an the and also please just only cost costs costing report reports spend spending spent expense expenses
	bill in on of at during over within our total totals show give see grouped group split broken down`)

var (
	selves    = wordSet("me my mine myself")
	everybody = wordSet("everyone everybody all team anyone anybody whole workspace company")
	connects  = wordSet("by per each")
	ranges    = wordSet("to until till through up")
	numbers   = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve")
	monthOf   = monthNames()
	weekdayOf = weekdayNames()
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

func monthNames() map[string]time.Month {
	names := map[string]time.Month{"sept": time.September}
	for m := time.January; m <= time.December; m++ {
		low := strings.ToLower(m.String())
		names[low], names[low[:3]] = m, m
	}
	return names
}

func weekdayNames() map[string]time.Weekday {
	names := map[string]time.Weekday{"tues": time.Tuesday, "thur": time.Thursday, "thurs": time.Thursday}
	for d := time.Sunday; d <= time.Saturday; d++ {
		low := strings.ToLower(d.String())
		names[low], names[low[:3]] = d, d
	}
	return names
}

// phrase is something that could have been meant.
type phrase struct{ text, kind string }

// phrases are what the grammar knows, for guessing what was meant.
var phrases = knownPhrases()

func knownPhrases() []phrase {
	var out []phrase
	add := func(kind string, texts ...string) {
		for _, t := range texts {
			out = append(out, phrase{t, kind})
		}
	}
	add("period", "today", "yesterday")
	for _, unit := range []string{"week", "month", "quarter", "year"} {
		add("period", "this "+unit, "last "+unit)
	}
	for m := time.January; m <= time.December; m++ {
		add("period", m.String(), "last "+m.String())
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		add("period", d.String(), "since "+d.String(), "last "+d.String())
	}
	for _, g := range []string{"user", "channel", "project", "model", "thread", "day", "month"} {
		add("grouping", "by "+g)
	}
	add("word", "for me", "me", "for this thread", "this thread", "for everyone", "everyone", "with csv", "as csv", "csv", "since", "project", "model", "from")
	return out
}

// meant is the known phrase that the words come nearest to, and how many of the
// words it stands for.
func meant(words []word) (p phrase, n int, ok bool) {
	best := 1.0
	for k := min(3, len(words)); k >= 1; k-- {
		lows := make([]string, k)
		for i, w := range words[:k] {
			lows[i] = w.low
		}
		said := strings.Join(lows, " ")
		for _, known := range phrases {
			low := strings.ToLower(known.text)
			// A word in two is too much; of short words half a letter is.
			d := editDistance(said, low)
			if ratio := float64(d) / float64(len(low)); d <= 3 && ratio <= 0.34 && ratio < best {
				best, p, n, ok = ratio, known, k, true
			}
		}
	}
	return p, n, ok
}

// nearest is the name that comes nearest to what was said.
func nearest(said string, names []string) (string, bool) {
	best, found := len(said)/2+1, ""
	for _, name := range slices.Sorted(slices.Values(names)) {
		if d := editDistance(strings.ToLower(said), strings.ToLower(name)); d < best && d <= 3 {
			best, found = d, name
		}
	}
	return found, found != ""
}

// editDistance counts the letters that have to be put in, taken out, changed, or
// swapped with their neighbour.
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	if len(s) > 64 || len(t) > 64 {
		return 64
	}
	before, last, row := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := range s {
		row[0] = i + 1
		for j := range t {
			change := last[j]
			if s[i] != t[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(t)]
}
