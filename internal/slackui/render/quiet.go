package render

import (
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/slackui/render/mrkdwn"
)

// Joins are the breaks of a turn at which no message begins, where steps alone are held
// back: those of o.Joined, and those before which nothing was said and nothing stands.
// It is asked when a break is new, and what it said then is kept in o.Joined.
func Joins(t agent.TurnView, o Options) []int {
	joined := slices.Clip(o.Joined)
	from, number := 0, 0
	for _, to := range t.Breaks {
		if to > len(t.Content.Items) || slices.Contains(joined, to) {
			continue
		}
		v := viewOf(t, o, t.Content.Items[from:max(from, to)], 0)
		switch {
		case len(v.segments) == 0:
		case number >= o.Shown && !v.speaks():
			joined = append(joined, to)
		default:
			from, number = to, number+pagesPerPart
		}
	}
	return joined
}

// Rises are the breaks to add to o.Joined so that what is below the last card, and is not
// posted yet, stands above it, in the message that is there: an edit calls nobody.
func Rises(t agent.TurnView, o Options) (breaks []int) {
	parts := partsOf(t, o)
	number := (len(parts) - 1) * pagesPerPart
	if number <= 0 || number < o.Shown || number-pagesPerPart >= o.Shown {
		return nil
	}
	for _, b := range t.Breaks {
		if b >= parts[len(parts)-1].from && b < len(t.Content.Items) {
			breaks = append(breaks, b)
		}
	}
	return breaks
}

// speaks reports whether there is more than steps.
func (v *view) speaks() bool {
	return slices.ContainsFunc(v.segments, func(s segment) bool { return s.run == nil })
}

// silent reports whether a message, by the number of its first page, is not posted yet, and
// would call people to read that work goes on.
func (v *view) silent(number int, continued bool) bool {
	return v.o.Quiet && number >= v.o.Shown && !v.ended && !v.t.Aside && !v.hasNews() && (!v.speaks() || !continued && v.narrates(number))
}

// narrates reports whether what is said is what leads to the next step, as far as can be
// told: few words with steps after them, and what begins after these, or, below a card, few words.
func (v *view) narrates(number int) bool {
	if v.o.AtOnce && number == 0 {
		return false
	}
	width := 0
	for _, s := range v.segments {
		if s.line != "" {
			return false
		}
		width += mrkdwn.Width(s.text)
	}
	last := v.segments[len(v.segments)-1]
	return width < narrationMax && (number > 0 || last.run != nil || len(v.segments) > 1 && mrkdwn.Width(last.text) < beginMax && !lineEnd.MatchString(last.text))
}

// narrationMax is how long a text is that may be no answer.
const narrationMax = 600

// begins reports whether the text that is being written is all that there is, and not a
// sentence yet, or not a line where work is shown otherwise: what is posted first is what a
// notification shows.
func (v *view) begins() bool {
	if v.o.AtOnce || v.ended || v.t.Waiting > 0 || v.hasNews() || len(v.segments) != 1 || v.segments[0].text == "" {
		return false
	}
	items := v.t.Content.Items
	if last := &items[len(items)-1]; last.Kind != claude.ItemText || last.Final && !v.o.Quiet { // steps may follow
		return false
	} else if !last.Final && !v.segments[0].open { // nothing of it can be shown yet
		return false
	}
	ends := firstEnd
	if v.o.Quiet {
		ends = lineEnd
	}
	return mrkdwn.Width(v.segments[0].text) < beginMax && !ends.MatchString(items[len(items)-1].Text)
}

// sentences are a text without the one that is being written, if there is another.
func (v *view) sentences(text string) string {
	items := v.t.Content.Items
	if last := len(items) - 1; last < 0 || items[last].Kind != claude.ItemText || items[last].Final {
		return text
	}
	text = strings.TrimSuffix(text, "\n\n") // that is ours, and ends no sentence
	ends := sentenceEnd.FindAllStringIndex(text, -1)
	if len(ends) == 0 {
		return text
	}
	whole := text[:ends[len(ends)-1][1]]
	if strings.HasSuffix(strings.TrimRight(whole, "*_ \n"), ":") { // what it announces has begun
		return text
	}
	return whole
}

// beginMax is how long a text is waited for, which takes a second or two.
const beginMax = 200

// sentenceEnd is where a sentence or a line ends and something follows, or is about to.
// firstEnd and lineEnd are those that say something by themselves: what ends with a colon
// waits for what it announces.
var (
	sentenceEnd = regexp.MustCompile(`[.!?:…][*_)"”’]*\s|[。！？]|\S[^\n]*\n`)
	firstEnd    = regexp.MustCompile(`[.!?…][*_)"”’]*\s|[。！？]|` + lineEnd.String())
	lineEnd     = regexp.MustCompile(`[^\s:：*_][*_]*[ \t]*\n`)
)
