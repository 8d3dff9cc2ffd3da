package publish_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"deckhand/internal/slackui/publish"
)

// TestEditsGoInTheOrderOfPatience: whatever is shown when, of the edits that wait for their rate
// the one goes first that people wait for most, and a line that is done last of all.
func TestEditsGoInTheOrderOfPatience(t *testing.T) {
	kinds := []struct {
		name     string
		priority publish.Priority
		final    bool
	}{
		{"a line that is done", publish.Normal, true},
		{"what is seen soon", publish.Normal, false},
		{"an answer", publish.Answer, true},
		{"a card", publish.Card, false},
		{"a click", publish.Click, false},
	}
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, publish.Options{}, func(h *house) {
				r := rand.New(rand.NewPCG(seed, 1))
				const each, hot = 4, 8
				for i := range hot + each*len(kinds) {
					m := live(fmt.Sprint("k", i), "posted")
					m.Channel = fmt.Sprint("C", i) // each has its own rate of posts
					h.Show(m)
				}
				h.rest()
				for i := range hot { // uses the rate up
					m := live(fmt.Sprint("k", i), "clicked")
					m.Priority = publish.Click
					h.Show(m)
				}
				synctest.Wait()
				before := len(h.slack.all())
				for _, i := range r.Perm(each * len(kinds)) {
					kind := kinds[i%len(kinds)]
					m := live(fmt.Sprint("k", hot+i), kind.name)
					m.Priority, m.Final = kind.priority, kind.final
					h.Show(m)
				}
				h.rest()
				place := func(text string) int {
					for i, kind := range kinds {
						if kind.name == text {
							return -i
						}
					}
					return 1
				}
				got := h.slack.texts()[before:]
				if len(got) != each*len(kinds) || !slices.IsSortedFunc(got, func(a, b string) int { return place(a) - place(b) }) {
					t.Errorf("the edits went in the order %q", got)
				}
			})
		})
	}
}
