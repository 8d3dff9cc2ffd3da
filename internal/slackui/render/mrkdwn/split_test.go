package mrkdwn_test

import (
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/slackui/render/mrkdwn"
)

// A text is never cut right behind a heading, however its lines lie.
func TestNoCutBehindAHeading(t *testing.T) {
	t.Parallel()
	for between, after := range map[string]string{"\n": "\n", "\n\n": "\n\n"} {
		for n := range 120 {
			var b strings.Builder
			for i := 0; b.Len() < 4000; i++ {
				b.WriteString("## Part " + strconv.Itoa(i) + between + strings.Repeat("w", n) + " some words." + after)
			}
			head, _ := mrkdwn.Cut(b.String(), 1500)
			lines := strings.Split(strings.TrimSpace(head), "\n")
			if last := lines[len(lines)-1]; strings.HasPrefix(last, "#") {
				t.Errorf("%d, %q: it ends with %q", n, between, last)
			}
		}
	}
}
