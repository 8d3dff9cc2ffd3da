package render

import (
	"strings"
	"unicode/utf8"

	"deckhand/internal/slackui/render/mrkdwn"
)

const (
	// foldLeast is the least room on a page in which a text is folded: what has less is
	// continued on the next one.
	foldLeast = 3900
	// foldLast is how much of a folded text's end is shown, and foldKept the room for that
	// and for what is said between.
	foldLast = 900
	foldKept = 1500
)

// goesOn stands below a text that is being written and shown no further.
const goesOn = "✂️ _The rest comes as a file when all of it is written._"

// folds reports whether a text that is to stand in so much room is folded: it fills more than
// a page, or it is being written and may. What is shown of it meanwhile is shown when it is
// whole, too.
func (v *turnWords) folds(s segment, room int) bool {
	switch {
	case !v.o.Files || s.text == "" || room < foldLeast:
		return false
	case s.open:
		return s.cost() > room-foldKept
	}
	return s.cost() > pageText
}

// fold is a text of which not all is shown.
func (v *turnView) fold(s segment, room int) []segment {
	at := mrkdwn.PlaceToCut(s.text, room-foldKept)
	head := segment{text: s.text[:at.At] + at.Closing, open: s.open}
	if s.open {
		return []segment{head, {line: goesOn, fold: true}}
	}
	rest := s.text[at.At:]
	last := mrkdwn.Last(at.Reopening+rest, foldLast)
	left := strings.TrimSuffix(rest, last)
	line := "✂️ *" + count(utf8.RuneCountInString(left)) + " more characters*"
	if about := contents(mrkdwn.Headings(at.Reopening + left)); about != "" {
		line += about + ","
	}
	if v.ended {
		line += " are in the file " + mrkdwn.Code(v.answerName()) + " below, which has all that was written."
	} else {
		line += " come in the file " + mrkdwn.Code(v.answerName()) + " when the turn ends."
	}
	out := []segment{head, {line: line, fold: true}}
	if last != "" {
		out = append(out, segment{text: last})
	}
	return out
}
