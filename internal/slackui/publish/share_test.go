package publish_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/slackui/publish"
)

// TestReplicasShareSlacksLimits has three schedulers drive more work than Slack takes from
// all of them: first on all of them, then on one, to which the others leave their shares.
func TestReplicasShareSlacksLimits(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		others := []*house{open(h.t, publish.Options{}), open(h.t, publish.Options{})}
		all := append([]*house{h}, others...)
		drive := func(busy int, turns, rest float64, long time.Duration) {
			for i, o := range all {
				o.SetShare(publish.Share{Anywhere: 1.0 / 3, Turns: rest})
				if i < busy {
					o.SetShare(publish.Share{Anywhere: 1.0 / 3, Turns: turns})
				}
			}
			for round := range int(long / (100 * time.Millisecond)) {
				for i, o := range all[:busy] {
					for turn := range 4 {
						o.Show(live(fmt.Sprintf("turn/%d/%d", i, turn), fmt.Sprint(busy, round)))
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		// Their first states, and what a new life begins with.
		drive(3, 1.0/3, 1.0/3, 2*time.Minute)
		drive(1, 1.0/12+3.0/4, 1.0/12, 3*time.Minute)
		drive(3, 1.0/3, 1.0/3, 2*time.Minute)
		var at []time.Duration
		for _, o := range all {
			for _, c := range o.slack.all() {
				if c.method == publish.UpdateMessage {
					at = append(at, c.at)
				}
			}
		}
		slices.Sort(at)
		most, least := 0, len(at)
		for i, from := range at {
			n := 0
			for _, other := range at[i:] {
				if other < from+time.Minute {
					n++
				}
			}
			most = max(most, n)
			if from < 6*time.Minute {
				least = min(least, n)
			}
		}
		t.Logf("%d to %d updates in 60s", least, most)
		if most > 50 || least < 30 {
			t.Errorf("%d to %d updates in 60s, want at most 50 and no fewer than 30", least, most)
		}
		// Of the smallest share there is enough for what somebody waits for.
		few := others[0]
		few.SetShare(publish.Share{Anywhere: 0.2, Turns: 0.05})
		time.Sleep(2 * time.Minute)
		for round := range 600 {
			few.Show(live("turn/1/0", fmt.Sprint("last", round)))
			time.Sleep(100 * time.Millisecond)
		}
		before := len(few.slack.all())
		few.Show(final("turn/1/0", "done"))
		synctest.Wait()
		if len(few.slack.all()) != before+1 {
			t.Error("a final state waits for live edits of a small share")
		}
		for _, o := range others {
			if err := o.close(); err != nil {
				t.Error(err)
			}
		}
	})
}
