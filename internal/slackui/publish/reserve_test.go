package publish_test

import (
	"fmt"
	"testing"
	"time"

	"deckhand/internal/slackui/publish"
)

// TestLastStatesWaitForNothingOfLessUse: what a last state needs of a rate is left free by
// changes, by first pages whose turn has ended below, and by what is shown soon.
func TestLastStatesWaitForNothingOfLessUse(t *testing.T) {
	for name, less := range map[string]func(m *publish.Message){
		"changes":           func(*publish.Message) {},
		"earlier pages":     func(m *publish.Message) { m.Final = true },
		"what is seen soon": func(m *publish.Message) { m.Priority = publish.Normal },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, publish.Options{}, func(h *house) {
				const many, ending = 60, 3
				for i := range many + ending {
					m := live(fmt.Sprint("k", i), "")
					m.Channel = fmt.Sprint("C", i) // each has its own rate of posts
					h.Show(m)
				}
				h.rest()
				for i := range many {
					m := live(fmt.Sprint("k", i), "less")
					less(&m)
					h.Show(m)
				}
				time.Sleep(20 * time.Second)
				if h.Pending() == 0 {
					t.Fatal("nothing waits")
				}
				before := len(h.slack.all())
				for i := range ending {
					h.Show(final(fmt.Sprint("k", many+i), "the last words"))
				}
				time.Sleep(100 * time.Millisecond)
				said := 0
				for _, c := range h.slack.all()[before:] {
					if c.args.Get("text") == "the last words" {
						said++
					}
				}
				if said != ending {
					t.Errorf("%d of %d last states were sent at once", said, ending)
				}
				h.rest()
				h.told(t, many+ending)
			})
		})
	}
}

// told reports messages whose last state was not sent.
func (h *house) told(t *testing.T, want int) {
	t.Helper()
	last := map[string]string{}
	for _, c := range h.slack.all() {
		last[c.ts] = c.args.Get("text")
	}
	got := 0
	for _, text := range last {
		if text == "less" || text == "the last words" {
			got++
		}
	}
	if got != want {
		t.Errorf("%d of %d messages show their last state", got, want)
	}
}
