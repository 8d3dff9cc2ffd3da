package render

import (
	"slices"
	"strings"
	"unicode/utf8"

	"deckhand/internal/slackui/render/mrkdwn"
)

// sheet is what stands on one page.
type sheet struct {
	segments []segment
	before   string // a sentence in front, mrkdwn
	folded   bool   // it leaves out what is in a file
}

// layout distributes segments over pages. What stands on a page that is not the
// last depends only on what is in front of it, see placeToCut and run.cost.
func (v *turnView) layout(segments []segment) (sheets []sheet, cut bool) {
	sheets = []sheet{{}}
	used := 0
	next := func() {
		sheets = append(sheets, sheet{})
		used = 0
	}
	lastAt := 0 // the segment that the last page allowed begins with …
	lastText := ""
	for i, s := range segments {
		for {
			page := &sheets[len(sheets)-1]
			room := pageText - used
			cost := s.cost()
			switch {
			case len(page.segments) >= pageBlocks:
			case v.folds(s, room):
				page.segments = append(page.segments, v.fold(s, room)...)
				page.folded = page.folded || !s.open
				used = pageText
				goto placed
			case cost <= room:
				page.segments = append(page.segments, s)
				used += cost
				goto placed
			case s.text != "" && room >= 1000+mrkdwn.Lookahead:
				head, tail := mrkdwn.Cut(s.text, room-mrkdwn.Lookahead)
				page.segments = append(page.segments, segment{text: head})
				s.text = tail
			}
			if len(sheets) == v.most {
				rest := append([]segment{{text: lastText}}, segments[lastAt+1:]...)
				if lastText == "" {
					rest[0] = segments[lastAt]
				}
				sheets[len(sheets)-1] = ending(rest)
				return sheets, true
			}
			next()
			if len(sheets) == v.most {
				lastAt, lastText = i, s.text
			}
		}
	placed:
	}
	return sheets, false
}

// ending is a last page that cannot hold what is left: the end of it, and a
// sentence for the rest.
func ending(rest []segment) sheet {
	const room = pageText - 500
	var kept []segment
	used, left := 0, 0
	var about []string // the headings of what is left out
	for _, s := range slices.Backward(rest) {
		cost := s.cost()
		switch {
		case used+cost <= room && len(kept) < pageBlocks && left == 0:
			kept = append(kept, s)
			used += cost
		case s.text == "":
		case left == 0 && room-used >= 1000 && len(kept) < pageBlocks:
			tail := mrkdwn.Tail(s.text, room-used)
			kept = append(kept, segment{text: tail})
			left = max(1, utf8.RuneCountInString(s.text)-utf8.RuneCountInString(tail))
			about = mrkdwn.Headings(strings.TrimSuffix(s.text, tail))
		default:
			left += utf8.RuneCountInString(s.text)
			about = append(mrkdwn.Headings(s.text), about...)
		}
	}
	slices.Reverse(kept)
	return sheet{segments: kept, before: "✂️ *" + count(left) + " characters* are left out here" + contents(about) + "."}
}

// aboutMax is how many headings of what is left out are named.
const aboutMax = 8

// contents say which headings something has, in about 600 units.
func contents(headings []string) string {
	if len(headings) == 0 {
		return ""
	}
	var names []string
	for _, h := range headings {
		names = append(names, "“"+mrkdwn.EscapeWithin(h, 60)+"”")
	}
	return ", under the headings " + strings.Join(firstOf(names, aboutMax, ""), ", ")
}
