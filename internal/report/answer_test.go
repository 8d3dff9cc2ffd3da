package report

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/money"
	"deckhand/internal/store/ledger"
)

func TestAnAnswerAddsUp(t *testing.T) {
	t.Parallel()
	ledger := autumn(t)
	for _, said := range []string{
		"", "last month by user", "last month by channel", "by project", "by model for sonnet", "by thread", "last week by day", "this quarter by month",
		"for <@U100> for project web", "this year", "last 10 weeks by day", "for everyone",
	} {
		o := saturday(t)
		a, err := Ask(t.Context(), ledger, mustParse(t, said, o), "T1")
		if err != nil {
			t.Fatal(err)
		}
		lines, series, shares := int64(0), int64(0), 0.0
		for _, l := range a.Lines {
			lines += l.MicroUSD
			shares += l.Share
		}
		for _, p := range a.Series.Points {
			series += p.MicroUSD
		}
		if lines+a.Rest.MicroUSD != a.Total.MicroUSD || series != a.Total.MicroUSD || a.Total.MicroUSD == 0 {
			t.Errorf("%q: total %d, lines %d, over time %d", said, a.Total.MicroUSD, lines, series)
		}
		if shares+a.Rest.Share < 0.9999 || shares+a.Rest.Share > 1.0001 {
			t.Errorf("%q: the shares come to %f", said, shares)
		}
		for n := 1; n < 20; n += 5 {
			top, others, more := a.Top(n)
			sum, before := others.MicroUSD, others.Before
			for _, l := range top {
				sum, before = sum+l.MicroUSD, before+l.Before
			}
			if len(top) > n || sum != a.Total.MicroUSD || len(top)+more != len(a.Lines)+a.More {
				t.Errorf("%q: top %d is %d lines and %d others, %d micro-USD", said, n, len(top), more, sum)
			}
		}
	}
}

func TestAnAnswerIsComparedWithThePeriodBefore(t *testing.T) {
	t.Parallel()
	at := func(day string) time.Time {
		d, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		return d.Add(12 * time.Hour)
	}
	entry := func(day, user string, micro int64) booked {
		return booked{at: at(day), user: user, line: ledger.CostLine{Turns: 2, Entries: 1, MicroUSD: micro}}
	}
	ledger := books{
		entry("2026-10-05", "U1", 100), entry("2026-09-05", "U1", 80),
		entry("2026-10-06", "U2", 50),
		entry("2026-10-07", "U3", 10), entry("2026-09-07", "U3", 10),
		entry("2026-10-08", "U4", 1), entry("2026-09-07", "U4", 0),
	}
	a := mustAsk(t, ledger, "last month by user")
	var got []string
	for _, l := range append(a.Lines, a.Total) {
		change, _ := l.Change()
		got = append(got, strings.Join([]string{l.Key, money.USD(change), l.ChangeText()}, " "))
	}
	want := []string{"U1 $0.00002 +25%", "U2 $0.0001 new", "U3 $0.00 ±0%", "U4 $0.000001 new", " $0.0001 +79%"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, ok := a.Lines[1].ChangePercent(); ok {
		t.Error("there is a percentage against nothing")
	}
	if per, ok := a.Total.PerTurn(); per != 20 || !ok {
		t.Errorf("a turn cost %d, %v", per, ok)
	}
	if _, ok := a.Total.PerApproved(); ok {
		t.Error("there is a cost per approved tool call without any")
	}
	days := mustAsk(t, ledger, "last month by day")
	if l := days.Lines[0]; l.Compared || l.ChangeText() != "" {
		t.Errorf("a day is compared: %+v", l)
	}
}

func TestTheMostTellingGroupingIsChosen(t *testing.T) {
	t.Parallel()
	book := autumn(t)
	moved := slices.Clone(book)
	for i := range moved {
		if moved[i].at.Month() == time.November && i%2 == 0 {
			moved[i].project = "moon"
		}
	}
	one := books{book[0]}
	one[0].at = saturday(t).Now
	for _, c := range []struct {
		ledger books
		said   string
		want   ledger.CostGroup
	}{
		{book, "", ledger.ByUser},
		{book, "for <@U100>", ledger.ByModel}, // always in one project and channel
		{book, "for <@U100>, <@U101>", ledger.ByUser},
		{moved, "for <@U100>", ledger.ByProject},
		{book, "for project web", ledger.ByUser},
		{book, "for project web, api", ledger.ByProject},
		{book, "for opus", ledger.ByUser},
		{book, "by thread for <@U100>", ledger.ByThread},
		{one, "", ledger.ByModel},
		{book, "for project shop-floor", ledger.ByUser},
	} {
		if a := mustAsk(t, c.ledger, c.said); a.By != c.want {
			t.Errorf("%q is by %s, want %s", c.said, a.By, c.want)
		}
	}
}

func TestNothingSpent(t *testing.T) {
	t.Parallel()
	a := mustAsk(t, books{}, "last month by user")
	if !a.Empty() || len(a.Lines) != 0 || len(a.Threads) != 0 || len(a.Series.Points) != 31 {
		t.Errorf("the answer is %+v", a)
	}
	if got := a.Summary(); !cmp.Equal(got, []string{"Nothing was spent."}) {
		t.Errorf("it says %q", got)
	}
	ledger := autumn(t)
	a = mustAsk(t, ledger[:len(ledger)/2], "last month")
	if got := strings.Join(a.Summary(), " "); !strings.HasPrefix(got, "Nothing was spent. It was $") || !strings.HasSuffix(got, " during September 2026.") {
		t.Errorf("it says %q", got)
	}
}

func TestAThreadHasNoTopThreads(t *testing.T) {
	t.Parallel()
	book := autumn(t)
	o := saturday(t)
	o.ThreadID = book[len(book)-1].thread
	a, err := Ask(t.Context(), book, mustParse(t, "this thread", o), "T1")
	if err != nil {
		t.Fatal(err)
	}
	if a.Empty() || len(a.Threads) != 0 || a.By != ledger.ByUser {
		t.Errorf("by %s with %d threads", a.By, len(a.Threads))
	}
}

// broken fails for one grouping.
type broken struct {
	books
	by ledger.CostGroup
}

var errBroken = errors.New("the ledger is broken")

func (b broken) Costs(ctx context.Context, q ledger.CostQuery) (ledger.CostReport, error) {
	if q.By == b.by {
		return ledger.CostReport{}, errBroken
	}
	return b.books.Costs(ctx, q)
}

func TestALedgerThatFails(t *testing.T) {
	t.Parallel()
	for _, by := range []ledger.CostGroup{ledger.ByUser, ledger.ByDay, ledger.ByThread} {
		_, err := Ask(t.Context(), broken{autumn(t), by}, mustParse(t, "by user", saturday(t)), "T1")
		if !errors.Is(err, errBroken) {
			t.Errorf("failing by %s gave %v", by, err)
		}
	}
	if _, err := Ask(t.Context(), broken{autumn(t), ledger.ByNothing}, mustParse(t, "by day", saturday(t)), "T1"); !errors.Is(err, errBroken) {
		t.Errorf("failing for the period before gave %v", err)
	}
}

func TestAQuestionWithoutAPeriodIsNotAsked(t *testing.T) {
	t.Parallel()
	if a, err := Ask(t.Context(), autumn(t), Question{}, "T1"); err == nil {
		t.Errorf("it came to %s", a.Total.Amount())
	}
}

func TestDaysOfAnotherZoneAreNotLost(t *testing.T) {
	t.Parallel()
	p := mustParse(t, "last week", saturday(t)).Period
	s := newSeries(p, "day", []ledger.CostLine{
		{Key: "2026-11-08", MicroUSD: 1}, {Key: "2026-11-09", MicroUSD: 2}, {Key: "2026-11-15", MicroUSD: 4}, {Key: "2026-11-16", MicroUSD: 8},
	})
	if first, last := s.Points[0].MicroUSD, s.Points[6].MicroUSD; first != 3 || last != 12 {
		t.Errorf("the first day has %d, the last %d", first, last)
	}
}

func TestThousandsOfPeople(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	var book books
	for i := range 6000 {
		book = append(book, booked{at: at, user: "U" + string(rune('A'+i%26)) + time.Duration(i).String(), line: ledger.CostLine{Turns: 1, Entries: 1, MicroUSD: int64(1000 + i)}})
	}
	a := mustAsk(t, book, "last month by user")
	if len(a.Lines) != maxLines || a.More != 1000 || a.Rest.Turns != 1000 || a.Rest.Compared {
		t.Errorf("%d lines, %d more, rest %+v", len(a.Lines), a.More, a.Rest)
	}
	if _, others, more := a.Top(10); more != 5990 || others.Compared {
		t.Errorf("%d others: %+v", more, others)
	}
}

// TestOnlyWhatIsShownIsNamed: the ids of a table, dearest first, or of a whole file.
func TestOnlyWhatIsShownIsNamed(t *testing.T) {
	t.Parallel()
	a := Answer{By: ledger.ByUser, Question: Question{Users: []string{"U9"}, Channels: []string{"C9"}}}
	for i := range 100 {
		a.Lines = append(a.Lines, Line{CostLine: ledger.CostLine{Key: "U" + strconv.Itoa(i), MicroUSD: int64(100 - i)}})
	}
	thread := Line{}
	thread.ThreadKey.ChannelID = "C1"
	a.Threads = []Line{thread, thread}
	people, channels := a.IDs(2)
	if diff := cmp.Diff([][]string{{"U9", "U0", "U1"}, {"C9", "C1"}}, [][]string{people, channels}); diff != "" {
		t.Errorf("a table (-want +got):\n%s", diff)
	}
	if people, _ := a.IDs(0); len(people) != 100 {
		t.Errorf("a file names %d people", len(people))
	}
}

// TestSumUp: what may not stand alone is among the others, and nothing is lost.
func TestSumUp(t *testing.T) {
	t.Parallel()
	line := func(key string, micro int64) Line {
		l := Line{CostLine: ledger.CostLine{Key: key, MicroUSD: micro, Turns: 1, Entries: 1}, Share: float64(micro) / 100, Before: 1, Compared: true}
		l.ThreadKey.ChannelID = key
		return l
	}
	a := Answer{
		By: ledger.ByChannel, Lines: []Line{line("C0WEB", 40), line("D0OTHER", 30), line("C0OPS", 20), line("D0USER", 10)},
		Threads: []Line{line("D0OTHER", 30), line("C0WEB", 5)},
	}
	a.SumUp(func(channel string) bool { return channel == "C0WEB" || channel == "D0USER" })
	var kept []string
	for _, l := range a.Lines {
		kept = append(kept, l.Key)
	}
	if diff := cmp.Diff([]string{"C0WEB", "D0USER"}, kept); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if a.More != 2 || a.Rest.MicroUSD != 50 || a.Rest.Turns != 2 || a.Rest.Before != 2 || !a.Rest.Compared {
		t.Errorf("others: %d, %+v", a.More, a.Rest)
	}
	if len(a.Threads) != 1 || a.Threads[0].Key != "C0WEB" {
		t.Errorf("threads: %+v", a.Threads)
	}
}
