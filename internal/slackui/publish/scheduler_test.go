package publish_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
)

// in runs a test in synthetic time with an open scheduler.
func in(t *testing.T, o publish.Options, f func(h *house)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, o)
		f(h)
		if err := h.close(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestFirstTextGoesOutAtOnce(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.Show(live("turn/1/0", "Hel"))
		h.rest()
		calls := h.slack.all()
		if len(calls) != 1 || calls[0].at != 0 || calls[0].method != publish.PostMessage {
			t.Fatalf("calls: %v, want one post at 0s", calls)
		}
		for arg, want := range map[string]string{
			"text": "Hel", "thread_ts": "1.0", "unfurl_links": "false", "unfurl_media": "false", "parse": "none",
			"blocks": `[{"type":"markdown","text":"Hel"}]`,
		} {
			if got := calls[0].args.Get(arg); got != want {
				t.Errorf("%s = %q, want %q", arg, got, want)
			}
		}
	})
}

func TestStatesDuringThePostBecomeOneEdit(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		for i := range 10 {
			h.Show(live("turn/1/0", fmt.Sprint("text ", i)))
			time.Sleep(3 * time.Millisecond)
		}
		h.rest()
		if diff := cmp.Diff([]string{"text 0", "text 9"}, h.slack.texts()); diff != "" {
			t.Error(diff)
		}
		if edit := h.slack.all()[1]; edit.method != publish.UpdateMessage || edit.ts != "1.000001" || edit.at != 50*time.Millisecond {
			t.Errorf("edit: %v, want an update of 1.000001 as soon as it is posted", edit)
		}
	})
}

func TestUnchangedContentIsNotSentAgain(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		for range 5 {
			h.Show(live("k", "same"))
			h.rest()
			time.Sleep(time.Second)
		}
		h.Show(final("k", "same"))
		h.rest()
		if n := len(h.slack.all()); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
		if keys, _, _ := h.Now(); keys != 0 {
			t.Errorf("%d keys, want none", keys)
		}
	})
}

// TestUnchangedPagesDoNotSlowOthersDown shows a full page again at each rendering
// of the one that grows.
func TestUnchangedPagesDoNotSlowOthersDown(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		for i := range 100 {
			h.Show(live("turn/1/0", "full"))
			h.Show(live("turn/1/1", "full too"))
			h.Show(live("turn/1/2", fmt.Sprint(i)))
			time.Sleep(100 * time.Millisecond)
		}
		n := 0
		for _, c := range h.slack.all() {
			if c.method == publish.UpdateMessage {
				n++
			}
		}
		if n < 9 { // three from the burst, then one in 1.43 s
			t.Errorf("%d edits in 10s, want at least 9", n)
		}
		for i, text := range []string{"full", "full too", "the end"} {
			h.Show(final(fmt.Sprint("turn/1/", i), text))
		}
		synctest.Wait()
		if keys, _, inFlight := h.Now(); inFlight != 1 || keys != 1 {
			t.Errorf("%d in flight, %d keys, want only the page that changed to be sent", inFlight, keys)
		}
		h.rest()
	})
}

func TestEditsOfOneMessageAreSpacedAndTheLastOneWins(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		for i := range 200 { // 20 s of deltas
			h.Show(live("k", fmt.Sprint(i)))
			time.Sleep(100 * time.Millisecond)
		}
		h.Show(final("k", "the end"))
		h.rest()
		calls := h.slack.all()
		var gaps []time.Duration
		for i := 3; i < len(calls)-1; i++ { // the first edit and the final one are not paced
			gaps = append(gaps, calls[i].at-calls[i-1].at)
		}
		for i, g := range gaps {
			if g < 400*time.Millisecond {
				t.Errorf("gap %d is %v, want at least 400ms", i, g)
			}
		}
		if gaps[0] > 450*time.Millisecond {
			t.Errorf("first gap is %v, want about 400ms: the rate is untouched", gaps[0])
		}
		if last := gaps[len(gaps)-1]; last < 1300*time.Millisecond || last > 1500*time.Millisecond {
			t.Errorf("last gap is %v, want about 1.4s: what the rate gives back", last)
		}
		last := calls[len(calls)-1]
		if last.args.Get("text") != "the end" || last.at != 20*time.Second {
			t.Errorf("last call: %v, want the end at once", last)
		}
		if h.slack.mostOnTS != 1 {
			t.Errorf("%d calls were in flight for one message", h.slack.mostOnTS)
		}
	})
}

// TestNoWindowExceedsSlacksLimits drives far more work than Slack takes and looks
// at every window of 60 s.
func TestNoWindowExceedsSlacksLimits(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		for round := range 1200 { // 2 minutes
			for turn := range 10 {
				h.Show(live(fmt.Sprintf("turn/%d/0", turn), fmt.Sprint(round)))
			}
			if round%5 == 0 {
				m := final(fmt.Sprintf("say/%d", round), "a sentence")
				m.Channel = "C2"
				h.Show(m)
			}
			if round%3 == 0 {
				h.Once(publish.Call{Method: publish.AddReaction, Do: func(context.Context) error { return nil }})
			}
			time.Sleep(100 * time.Millisecond)
		}
		calls := h.slack.all()
		most := map[publish.Method]int{}
		for i := range calls {
			n := map[publish.Method]int{}
			for j := i; j < len(calls) && calls[j].at < calls[i].at+time.Minute; j++ {
				what := calls[j].method
				if what == publish.PostMessage {
					what += " " + publish.Method(calls[j].args.Get("channel"))
				}
				n[what]++
				most[what] = max(most[what], n[what])
			}
		}
		if most[publish.UpdateMessage] > 50 || most["chat.postMessage C2"] > 60 {
			t.Errorf("most calls in 60s: %v, want at most 50 updates and 60 posts", most)
		}
		if most[publish.UpdateMessage] < 40 || most["chat.postMessage C2"] < 55 {
			t.Errorf("most calls in 60s: %v: the rate is not used", most)
		}
		perTurn := map[string]int{}
		for _, c := range calls {
			if c.method == publish.UpdateMessage {
				perTurn[c.ts]++
			}
		}
		for ts, n := range perTurn {
			if n < 6 || n > 12 {
				t.Errorf("message %s had %d edits, want about 8: %v", ts, n, perTurn)
			}
		}
		for i := range 10 {
			h.Show(final(fmt.Sprintf("turn/%d/0", i), "done"))
		}
		h.rest()
	})
}

func TestFinalStatesGoFirst(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		for i := range 8 {
			h.Show(live(fmt.Sprint("live", i), "start"))
			time.Sleep(time.Second)
		}
		for round := range 100 { // uses up what live edits may use
			for i := range 8 {
				h.Show(live(fmt.Sprint("live", i), fmt.Sprint(round)))
			}
			time.Sleep(100 * time.Millisecond)
		}
		before := time.Since(h.slack.start)
		for i := range 3 {
			h.Show(final(fmt.Sprint("live", i), "done"))
		}
		synctest.Wait()
		var at []time.Duration
		for _, c := range h.slack.all() {
			if c.args.Get("text") == "done" {
				at = append(at, c.at-before)
			}
		}
		if diff := cmp.Diff([]time.Duration{0, 0, 0}, at); diff != "" {
			t.Errorf("final states were held up: %s", diff)
		}
		h.rest()
	})
}

func TestGroupsShareTheRate(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		// One thread has ten messages to post, then another thread has one.
		for i := range 10 {
			m := final(fmt.Sprint("loud", i), fmt.Sprint("loud", i))
			m.Group = "loud"
			h.Show(m)
		}
		synctest.Wait()
		m := final("quiet", "quiet")
		h.Show(m)
		h.rest()
		texts := h.slack.texts()
		// The channel's burst of three is gone; the next one is the quiet thread's.
		if texts[3] != "quiet" {
			t.Errorf("order %v, want the quiet thread fourth", texts)
		}
	})
}

func TestPagesArePostedInOrder(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.slack.answer = func(n int, _ call) error {
			if n == 1 {
				return slack.StatusCodeError{Code: 503, Status: "503"}
			}
			return nil
		}
		first, second := live("turn/1/0", "one"), live("turn/1/1", "two")
		second.After = first.Key
		h.Show(first)
		h.Show(second)
		h.rest()
		if diff := cmp.Diff([]string{"one", "one", "two"}, h.slack.texts()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOnPostedComesBeforeAnyEdit(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		var posted atomic.Int32
		m := live("k", "one")
		m.OnPosted = func(ts string) {
			time.Sleep(time.Second)
			if ts != "1.000001" || len(h.slack.all()) != 1 {
				t.Errorf("ts %s, calls %v", ts, h.slack.all())
			}
			posted.Add(1)
		}
		h.Show(m)
		time.Sleep(100 * time.Millisecond)
		m.Page = page("two")
		h.Show(m)
		h.rest()
		if posted.Load() != 1 || len(h.slack.all()) != 2 {
			t.Errorf("posted %d times, calls %v", posted.Load(), h.slack.all())
		}
	})
}

// TestAMessageThatIsNotWanted is not posted; while nobody can tell, it is asked again.
func TestAMessageThatIsNotWanted(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		tries := 0
		by := func(key string, wanted func(context.Context) (bool, error)) publish.Message {
			m := final(key, key)
			m.Wanted = wanted
			m.OnEnd = func(err error) {
				if err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
			return m
		}
		h.Show(by("held up", func(context.Context) (bool, error) {
			if tries++; tries < 3 {
				return false, errors.New("the database cannot be reached")
			}
			return true, nil
		}))
		h.Show(by("not wanted", func(context.Context) (bool, error) { return false, nil }))
		h.rest()
		h.Show(final("not wanted", "again"))
		h.rest()
		if diff := cmp.Diff([]string{"held up"}, h.slack.texts()); diff != "" || tries != 3 {
			t.Errorf("after %d tries (-want +got):\n%s", tries, diff)
		}
		if n := h.Remembered(); n != 0 {
			t.Errorf("%d jobs are remembered", n)
		}
	})
}

func TestNothingIsAcceptedAfterTheFinalState(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.Show(live("k", "one"))
		h.Show(final("k", "two"))
		h.Show(live("k", "three"))
		h.rest()
		h.Show(live("k", "four"))
		h.Show(final("k", "five"))
		h.rest()
		if diff := cmp.Diff([]string{"two"}, h.slack.texts()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMemoryIsFreed(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		for i := range 500 {
			m := final(fmt.Sprint("k", i), "text")
			m.Channel = fmt.Sprint("C", i)
			h.Show(m)
			h.Once(publish.Call{Key: fmt.Sprint(i), Method: publish.PostEphemeral, Do: func(context.Context) error { return nil }})
		}
		h.rest()
		if got := h.Remembered(); got != 0 {
			t.Errorf("%d messages, calls and groups in use are still remembered", got)
		}
	})
}

func TestStopDrainsFinalStatesOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, publish.Options{})
		h.slack.latency = 300 * time.Millisecond
		h.Show(live("a", "a1"))
		h.Show(live("b", "b1"))
		h.rest()
		h.Show(live("a", "a2"))
		h.Show(live("b", "b2"))
		time.Sleep(10 * time.Millisecond)
		h.Show(live("a", "a3")) // will be dropped
		h.Show(live("b", "b3")) // replaced by a final state in the drain
		h.Once(publish.Call{Method: publish.AddReaction, Do: func(context.Context) error {
			time.Sleep(time.Second)
			return nil
		}})
		h.cancel()
		synctest.Wait()
		h.Show(live("b", "b4"))
		h.Show(final("b", "b5"))
		h.Show(live("c", "c1"))
		if err := <-h.done; err != nil {
			t.Error(err)
		}
		got := strings.Join(h.slack.texts()[2:], " ")
		if got != "a2 b2 b5" && got != "b2 a2 b5" {
			t.Errorf("sent %q, want a2, b2 (in flight) and b5", got)
		}
		h.Show(final("d", "d1")) // ignored
		if h.Pending() != 0 {
			t.Errorf("%d pending after the stop", h.Pending())
		}
	})
}

func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, publish.Options{})
		h.slack.latency = time.Hour
		h.Show(final("a", "a1"))
		h.Show(final("b", "b1"))
		time.Sleep(time.Second)
		start := time.Now()
		err := h.close()
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("the stop took %v, want 5s", took)
		}
		if err == nil || !strings.Contains(err.Error(), "2 messages or calls were not sent") {
			t.Errorf("Run: %v, want it to say that 2 were not sent", err)
		}
	})
}

func TestIdleSchedulerSleeps(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.Show(final("k", "one"))
		h.rest()
		before := h.Rounds()
		time.Sleep(24 * time.Hour)
		if after := h.Rounds(); after != before {
			t.Errorf("the scheduler woke %d times in an idle day", after-before)
		}
	})
}

func TestPageWithoutBlocksAndText(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.Show(publish.Message{Key: "k", Channel: "C1", Page: render.Page{}, Final: true})
		h.rest()
		if c := h.slack.all(); len(c) != 1 || c[0].args.Get("text") == "" || c[0].args.Has("blocks") || c[0].args.Has("thread_ts") {
			t.Errorf("calls %v", c)
		}
	})
}

// Whoever waits for a state is told once, when it or a newer one is in Slack, and never
// that it is when it is not.
func TestTheEndOfAStateIsTold(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		var ends []string
		note := func(which string) func(error) {
			return func(err error) { ends = append(ends, fmt.Sprint(which, " ", err)) }
		}
		show := func(m publish.Message, which string) {
			m.OnEnd = note(which)
			h.Show(m)
		}
		show(live("k", "one"), "one")
		show(live("k", "two"), "two")
		if len(ends) != 0 {
			t.Errorf("told before it was sent: %v", ends)
		}
		h.rest()
		show(live("k", "two"), "the same")
		show(final("k", "three"), "three")
		h.rest()
		show(final("k", "four"), "late")
		if diff := cmp.Diff([]string{"one <nil>", "two <nil>", "the same <nil>", "three <nil>", "late <nil>"}, ends); diff != "" {
			t.Error(diff)
		}
	})
}

// A post whose answer was lost is looked for, and edited where it stands.
func TestAPostThatMayHaveComeThroughIsLookedFor(t *testing.T) {
	for name, stands := range map[string]string{"it stands": "9.000001", "it does not": ""} {
		t.Run(name, func(t *testing.T) {
			in(t, publish.Options{}, func(h *house) {
				looked := 0
				m := final("k", "text")
				m.Doubtful = true
				m.Find = func(context.Context) (string, error) {
					if looked++; looked == 1 {
						return "", errors.New("no answer")
					}
					return stands, nil
				}
				h.Show(m)
				h.rest()
				calls := h.slack.all()
				if len(calls) != 1 || looked != 2 || stands != "" && (calls[0].method != publish.UpdateMessage || calls[0].ts != stands) || stands == "" && calls[0].method != publish.PostMessage {
					t.Errorf("%d looks, then %v", looked, calls)
				}
			})
		})
	}
}

// What may be another process's message is left alone, but for its end.
func TestWhatIsHeldIsNotSent(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		var held atomic.Bool
		show := func(m publish.Message) {
			m.Hold = held.Load
			h.Show(m)
			time.Sleep(time.Minute)
		}
		show(live("k", "first"))
		held.Store(true)
		show(live("k", "second"))
		show(live("other", "not even posted"))
		if diff := cmp.Diff([]string{"first"}, h.slack.texts()); diff != "" {
			t.Error(diff)
		}
		show(final("k", "the end"))
		h.Forget("other")
		held.Store(false)
		show(live("new", "another"))
		if diff := cmp.Diff([]string{"first", "the end", "another"}, h.slack.texts()); diff != "" {
			t.Error(diff)
		}
	})
}
