package render

import (
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/agent/claude"
	"deckhand/internal/plaintext"
)

// speaks reports whether there is more than steps.
func (v *turnView) speaks() bool {
	return slices.ContainsFunc(v.segments, func(s segment) bool { return s.run == nil })
}

// waitsToPost reports whether the message of a turn that has no card is not posted yet, and
// would call people to read less than an answer.
func (v *turnView) waitsToPost() bool {
	if v.number > 0 || v.o.Posted || v.ended || v.hasNews() {
		return false
	}
	return len(v.segments) == 0 || v.begins() || v.o.Quiet && !v.t.Parked && (!v.speaks() || v.narrates())
}

// narrates reports whether what is said is what leads to the next step, as far as can be
// told: few words with steps after them, and what begins after these.
func (v *turnView) narrates() bool {
	width := 0
	for _, s := range v.segments {
		if s.line != "" {
			return false
		}
		width += plaintext.Width(s.text)
	}
	last := v.segments[len(v.segments)-1]
	return width < narrationMax && (last.run != nil || len(v.segments) > 1 && plaintext.Width(last.text) < beginMax && !lineEnd.MatchString(last.text))
}

// leadMax is how long a line is that a card has as the model's reason.
const leadMax = 160

// leads reports whether one short line is said and no more. A card behind it says why, too:
// a message of its own would call people twice at once.
func (v *turnView) leads() bool {
	var text strings.Builder
	for _, s := range v.segments {
		if s.line != "" {
			return false
		}
		text.WriteString(s.text)
	}
	said := text.String()
	return !strings.Contains(said, "\n") && plaintext.Width(said) <= leadMax
}

// narrationMax is how long a text is that may be no answer.
const narrationMax = 600

// begins reports whether the text that is being written is all that there is, and not a
// sentence yet, or not a line where work is shown otherwise: what is posted first is what a
// notification shows.
func (v *turnView) begins() bool {
	if v.t.Waiting > 0 || len(v.segments) != 1 || v.segments[0].text == "" {
		return false
	}
	items := v.t.Content.Items
	if last := &items[len(items)-1]; last.Kind != claude.ItemText || last.Final && !v.o.Quiet || !last.Final && !v.segments[0].open {
		return false // steps may follow, or nothing of it can be shown yet
	}
	ends := firstEnd
	if v.o.Quiet {
		ends = lineEnd
	}
	return plaintext.Width(v.segments[0].text) < beginMax && !ends.MatchString(items[len(items)-1].Text)
}

// sentences are a text without the one that is being written, if there is another.
func (v *turnWords) sentences(text string) string {
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
