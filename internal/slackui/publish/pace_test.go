package publish_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"deckhand/internal/agent/claude"
	playground "deckhand/internal/playground/slack"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
)

// pace is what people of many threads see.
type pace struct {
	gap, best     time.Duration // between visible changes of one turn, on average; and what Slack allows
	p95, worst    time.Duration // the averages of a turn that has it worse than 95 of 100, and than all
	final, card   time.Duration // 99th of 100, from when it was to be shown until it stands there
	streams, late int
	limited       int // answers with 429
	calls         map[publish.Method]int
}

// newsEvery is how often a turn has something new to show.
const newsEvery = 2 * time.Second

// lastWords are what a turn says last: where they stand all of it does.
var lastWords = regexp.MustCompile(`That was turn (\d+), all of it\.`)

// crowd has turns of two to four minutes run in n threads, one after another.
func crowd(t *testing.T, n int, long time.Duration, seed uint64) (p pace) {
	inTown(t, publish.Options{}, func(w *town) {
		r := rand.New(rand.NewPCG(uint64(n), seed))
		type at struct {
			*actor
			next, until, over time.Time
			card              bool
		}
		channels := []string{playground.ChannelEngineering, playground.ChannelGeneral, playground.ChannelPrivate}
		threads := make([]*at, n)
		for i := range threads {
			channel := channels[i%len(channels)]
			threads[i] = &at{actor: w.actor(channel, w.thread(channel))}
			time.Sleep(time.Second)
		}
		begun := time.Now()
		for _, a := range threads { // nobody begins when all others do
			a.next = begun.Add(time.Duration(r.IntN(150_000)) * time.Millisecond)
			a.until = a.next.Add(time.Duration(120+r.IntN(120)) * time.Second)
		}
		from := begun.Add(150 * time.Second)
		ended, cards := map[string]time.Time{}, map[string]time.Time{} // by turn and by text
		keys := map[string]string{}                                    // by ts
		for now := begun; now.Sub(begun) < long; now = time.Now() {
			for _, a := range threads {
				switch {
				case now.Before(a.next) || now.Before(a.over):
					continue
				case !a.over.IsZero():
					until := now.Add(time.Duration(120+r.IntN(120)) * time.Second)
					*a = at{actor: w.actor(a.turn.Thread.ChannelID, a.root), until: until}
				case now.After(a.until):
					a.over = now.Add(3 * time.Second)
					a.write(fmt.Sprintf("That was turn %d, all of it.", a.turn.ID))
					a.actor.end()
					ended[fmt.Sprint(a.turn.ID)] = now
					continue
				case !a.card && now.After(a.until.Add(-time.Minute)):
					a.card = true
					text := fmt.Sprint("card ", a.turn.ID)
					cards[text] = now
					w.Show(publish.Message{Key: text, Channel: a.turn.Thread.ChannelID, ThreadTS: a.root, Group: a.root, Page: render.Page{Text: text}, Priority: publish.High, Final: true})
				}
				switch k := r.IntN(12); k {
				case 0, 1:
					a.use(claude.ToolRunning)
				default:
					if k < 4 {
						a.use(claude.ToolDone)
					}
					a.write(sentence(r))
				}
				a.next = now.Add(newsEvery)
				for _, m := range a.messages() {
					m.OnPosted = func(ts string) {
						w.mu.Lock()
						defer w.mu.Unlock()
						keys[ts] = fmt.Sprint(m.Metadata.EventPayload["turn"])
					}
					w.Show(m)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		for _, a := range threads {
			a.actor.end()
		}
		time.Sleep(10 * time.Second)
		p = w.pace(from, begun.Add(long), keys, ended, cards)
		p.best = max(newsEvery, time.Duration(float64(n)*float64(time.Minute)/150))
		p.streams = int(w.Stats().Streams)
		time.Sleep(2 * time.Minute)
		w.rest()
	})
	return p
}

func (w *town) pace(from, to time.Time, keys map[string]string, ended, cards map[string]time.Time) (p pace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.calls = map[publish.Method]int{}
	changes := map[string][]time.Time{}
	finals, waits := map[string]time.Duration{}, []time.Duration(nil)
	for _, a := range w.answers {
		if a.status == http.StatusTooManyRequests {
			p.limited++
		}
		if a.err != "" || a.begun.Before(from) {
			continue
		}
		p.calls[a.method]++
		if shown, ok := cards[a.args.Get("text")]; ok {
			waits = append(waits, a.at.Sub(shown))
			continue
		}
		if words := lastWords.FindStringSubmatch(a.args.Get("blocks") + a.args.Get("chunks")); words != nil {
			if end, over := ended[words[1]]; over && finals[words[1]] == 0 {
				finals[words[1]] = a.at.Sub(end)
			}
		}
		turn := keys[a.ts]
		if turn == "" {
			continue
		}
		if a.method != publish.StopStream || a.args.Get("chunks") != "" {
			changes[turn] = append(changes[turn], a.at)
		}
	}
	var all, n float64
	var each []time.Duration
	for turn, at := range changes {
		end, over := ended[turn]
		if !over {
			end = to
		}
		at = slices.DeleteFunc(at, func(x time.Time) bool { return x.After(end) })
		if len(at) == 0 || end.Sub(at[0]) < 30*time.Second {
			continue
		}
		all += float64(end.Sub(at[0]))
		n += float64(len(at))
		each = append(each, end.Sub(at[0])/time.Duration(len(at)))
	}
	p.p95, p.worst = worseThan(0.95, each), worseThan(1, each)
	p.gap = time.Duration(all / n)
	for turn, at := range ended {
		switch {
		case at.Before(from) || at.After(to.Add(-30*time.Second)): // then all end at once
			delete(finals, turn)
		case finals[turn] == 0:
			p.late++
		}
	}
	var last []time.Duration
	for _, d := range finals {
		last = append(last, d)
	}
	p.final, p.card = worseThan(0.99, last), worseThan(0.99, waits)
	return p
}

// worseThan is what is not exceeded in a part of all cases.
func worseThan(part float64, d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(math.Ceil(part*float64(len(d))))-1]
}

// TestManyThreadsArePacedByBothBudgets has more threads write than edits are enough for, and
// more than streams are, too.
func TestManyThreadsArePacedByBothBudgets(t *testing.T) {
	t.Parallel()
	for n, times := range map[int]float64{12: 2, 60: 3} {
		p := crowd(t, n, 6*time.Minute, 7)
		t.Logf("%+v", p)
		if p.gap > p.best*6/5 || p.p95.Seconds() > p.best.Seconds()*times || p.final > 1200*time.Millisecond || p.card > 1200*time.Millisecond || p.limited > 0 || p.late > 0 || p.streams == 0 {
			t.Errorf("want a change in at most 1.2 times what both budgets allow, %v times that for 95 of 100, last states and cards within 1.2s, and no 429", times)
		}
	}
}

// BenchmarkThreads measures what people of many threads see, with the rates that Slack
// publishes, over three draws of what is said when: in how many times the time that both
// budgets allow at best a turn changes, on average, and the worst of how long what somebody
// waits for takes.
func BenchmarkThreads(b *testing.B) {
	const seeds = 3
	for _, n := range []int{1, 5, 10, 30, 60} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var all pace
			for b.Loop() {
				all = pace{}
				for seed := range uint64(seeds) {
					var p pace
					every := func(_, _ string) (bool, error) { return true, nil }
					if !testing.RunTests(every, []testing.InternalTest{{Name: "crowd", F: func(t *testing.T) { p = crowd(t, n, 12*time.Minute, 7+seed) }}}) {
						b.Fatal("the threads were not shown")
					}
					b.Logf("%+v", p)
					all.best = p.best
					all.gap += p.gap / seeds
					all.p95, all.worst, all.final, all.card = max(all.p95, p.p95), max(all.worst, p.worst), max(all.final, p.final), max(all.card, p.card)
					all.streams, all.limited, all.late = all.streams+p.streams, all.limited+p.limited, all.late+p.late
				}
			}
			b.ReportMetric(all.gap.Seconds(), "gap-s")
			b.ReportMetric(float64(all.gap)/float64(all.best), "gap/best")
			b.ReportMetric(float64(all.p95)/float64(all.best), "p95/best")
			b.ReportMetric(float64(all.worst)/float64(all.best), "worst/best")
			b.ReportMetric(all.final.Seconds(), "final-p99-s")
			b.ReportMetric(all.card.Seconds(), "card-p99-s")
			b.ReportMetric(float64(all.late), "unfinished")
			b.ReportMetric(float64(all.streams), "streams")
			b.ReportMetric(float64(all.limited), "429s")
		})
	}
}
