package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPeriodsAndThoseBefore(t *testing.T) {
	t.Parallel()
	type period struct{ Name, Days, Before, DaysBefore string }
	days := func(p Period) string {
		return p.From.Format(time.DateOnly) + " to " + p.LastDay().Format(time.DateOnly)
	}
	for said, want := range map[string]period{
		"today":                         {"Saturday, 21 November 2026, so far", "2026-11-21 to 2026-11-21", "Friday, 20 November 2026", "2026-11-20 to 2026-11-20"},
		"this week":                     {"16–22 November 2026, so far", "2026-11-16 to 2026-11-21", "9–14 November 2026", "2026-11-09 to 2026-11-14"},
		"last week":                     {"9–15 November 2026", "2026-11-09 to 2026-11-15", "2–8 November 2026", "2026-11-02 to 2026-11-08"},
		"this month":                    {"November 2026, so far", "2026-11-01 to 2026-11-21", "1–21 October 2026", "2026-10-01 to 2026-10-21"},
		"last month":                    {"October 2026", "2026-10-01 to 2026-10-31", "September 2026", "2026-09-01 to 2026-09-30"},
		"March":                         {"March 2026", "2026-03-01 to 2026-03-31", "February 2026", "2026-02-01 to 2026-02-28"},
		"this quarter":                  {"Q4 2026, so far", "2026-10-01 to 2026-11-21", "1 July – 21 August 2026", "2026-07-01 to 2026-08-21"},
		"Q1 2026":                       {"Q1 2026", "2026-01-01 to 2026-03-31", "Q4 2025", "2025-10-01 to 2025-12-31"},
		"this year":                     {"2026, so far", "2026-01-01 to 2026-11-21", "1 January – 21 November 2025", "2025-01-01 to 2025-11-21"},
		"2024":                          {"2024", "2024-01-01 to 2024-12-31", "2023", "2023-01-01 to 2023-12-31"},
		"last 7 days":                   {"the last 7 days (15–21 November 2026)", "2026-11-15 to 2026-11-21", "8–14 November 2026", "2026-11-08 to 2026-11-14"},
		"last 2 weeks":                  {"the last 2 weeks (8–21 November 2026)", "2026-11-08 to 2026-11-21", "25 October – 7 November 2026", "2026-10-25 to 2026-11-07"},
		"last 3 months":                 {"the last 3 months (22 August – 21 November 2026)", "2026-08-22 to 2026-11-21", "22 May – 21 August 2026", "2026-05-22 to 2026-08-21"},
		"since Monday":                  {"since 16 November 2026", "2026-11-16 to 2026-11-21", "10–15 November 2026", "2026-11-10 to 2026-11-15"},
		"from 2026-10-01 to 2026-10-15": {"1–15 October 2026", "2026-10-01 to 2026-10-15", "16–30 September 2026", "2026-09-16 to 2026-09-30"},
		"from August to October":        {"August – October 2026", "2026-08-01 to 2026-10-31", "May – July 2026", "2026-05-01 to 2026-07-31"},
		"from October to November":      {"October – November 2026, so far", "2026-10-01 to 2026-11-21", "1 August – 21 September 2026", "2026-08-01 to 2026-09-21"},
		"2025-12-30 to 2026-01-02":      {"30 December 2025 – 2 January 2026", "2025-12-30 to 2026-01-02", "26–29 December 2025", "2025-12-26 to 2025-12-29"},
	} {
		p := mustParse(t, said, saturday(t)).Period
		got := period{p.Name, days(p), p.Previous().Name, days(p.Previous())}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", said, diff)
		}
	}
}

// TestHeadingsReadAsEnglish: all forms of a period, as a heading and within a sentence.
func TestHeadingsReadAsEnglish(t *testing.T) {
	t.Parallel()
	for said, want := range map[string][2]string{
		"today":                           {"Costs of Saturday, 21 November 2026, so far", "on Friday, 20 November 2026"},
		"yesterday":                       {"Costs of Friday, 20 November 2026", "on Thursday, 19 November 2026"},
		"3 October":                       {"Costs of Saturday, 3 October 2026", "on Friday, 2 October 2026"},
		"Monday":                          {"Costs of Monday, 16 November 2026", "on Sunday, 15 November 2026"},
		"this week":                       {"Costs of 16–22 November 2026, so far", "during 9–14 November 2026"},
		"last week":                       {"Costs of 9–15 November 2026", "during 2–8 November 2026"},
		"this month":                      {"Costs of November 2026, so far", "during 1–21 October 2026"},
		"last month":                      {"Costs of October 2026", "during September 2026"},
		"Q3":                              {"Costs of Q3 2026", "during Q2 2026"},
		"this year":                       {"Costs of 2026, so far", "during 1 January – 21 November 2025"},
		"2025":                            {"Costs of 2025", "during 2024"},
		"last 1 day":                      {"Costs of the last day (Saturday, 21 November 2026)", "on Friday, 20 November 2026"},
		"last 7 days":                     {"Costs of the last 7 days (15–21 November 2026)", "during 8–14 November 2026"},
		"last 1 month":                    {"Costs of the last month (22 October – 21 November 2026)", "during 22 September – 21 October 2026"},
		"since Monday":                    {"Costs since 16 November 2026", "during 10–15 November 2026"},
		"since today":                     {"Costs since 21 November 2026", "on Friday, 20 November 2026"},
		"from October":                    {"Costs since 1 October 2026", "during 10 August – 30 September 2026"},
		"since 2025":                      {"Costs since 1 January 2025", "during 11 February 2023 – 31 December 2024"},
		"1-5 november":                    {"Costs of 1–5 November 2026", "during 27–31 October 2026"},
		"20-25 november":                  {"Costs of 20–25 November 2026, so far", "during 18–19 November 2026"},
		"5 november to 5 november":        {"Costs of Thursday, 5 November 2026", "on Wednesday, 4 November 2026"},
		"from August to October":          {"Costs of August – October 2026", "during May – July 2026"},
		"from December to February":       {"Costs of December 2025 – February 2026", "during September – November 2025"},
		"2025-12-30 to 2026-01-02":        {"Costs of 30 December 2025 – 2 January 2026", "during 26–29 December 2025"},
		"2026-10-01 to 2026-10-31":        {"Costs of October 2026", "during September 2026"},
		"from 30 October to 1 November":   {"Costs of 30 October – 1 November 2026", "during 27–29 October 2026"},
		"this month for everyone":         {"Costs of November 2026, so far", "during 1–21 October 2026"},
		"since Monday for project web":    {"Costs since 16 November 2026, project web", "during 10–15 November 2026"},
		"since Monday for me, model opus": {"Costs since 16 November 2026, U0ANN, claude-opus-4-5-20251101", "during 10–15 November 2026"},
	} {
		a := Answer{Question: mustParse(t, said, saturday(t))}
		got := [2]string{a.Title(nil), a.Question.Period.Previous().during()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", said, diff)
		}
	}
}

func TestAMonthThatRunsIsSetAgainstDaysThatThereWere(t *testing.T) {
	t.Parallel()
	o := Context{Now: time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC)}
	before := mustParse(t, "this month", o).Period.Previous()
	if before.Name != "February 2026" {
		t.Errorf("1–30 March is set against %s", before.Name)
	}
	o.Now = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	if before := mustParse(t, "last 1 month", o).Period.Previous(); before.To.After(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the month before overlaps: %s", before.Name)
	}
}

func TestDaysAreThoseOfTheAsker(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{"America/New_York": "2026-10-31", "UTC": "2026-11-01", "Asia/Tokyo": "2026-11-01", "Pacific/Honolulu": "2026-10-31"} {
		p := mustParse(t, "today", Context{Now: now, Location: zone(t, name)}).Period
		if got := p.From.Format(time.DateOnly); got != want {
			t.Errorf("today in %s is %s, want %s", name, got, want)
		}
	}
	// A day with a change of the clock has 23 or 25 hours.
	o := Context{Now: now, Location: zone(t, "Europe/Berlin")}
	if p := mustParse(t, "2026-10-25", o).Period; p.To.Sub(p.From) != 25*time.Hour || p.Days() != 1 {
		t.Errorf("25 October has %v and %d days", p.To.Sub(p.From), p.Days())
	}
	// Lebanon had no midnight on 26 March 2023; Cuba had two on 2 November 2025.
	o.Location = zone(t, "Asia/Beirut")
	if p := mustParse(t, "2021-03-28", o).Period; p.From.Hour() != 1 || p.To.Sub(p.From) != 23*time.Hour {
		t.Errorf("the day without a midnight is %v to %v", p.From, p.To)
	}
	o.Location = zone(t, "America/Havana")
	if p := mustParse(t, "2025-11-02", o).Period; p.To.Sub(p.From) != 25*time.Hour {
		t.Errorf("the day with two midnights is %v to %v", p.From, p.To)
	}
}

func TestDaysMeetWithoutAGap(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Europe/Berlin", "America/Havana", "Asia/Beirut", "America/Santiago", "Australia/Lord_Howe", "Africa/Cairo", "Pacific/Apia"}
	rapid.Check(t, func(rt *rapid.T) {
		loc := zone(t, rapid.SampledFrom(zones).Draw(rt, "zone"))
		day := civil(2005, 1, 1).AddDate(0, 0, rapid.IntRange(0, 365*30).Draw(rt, "day"))
		at := startOfDay(day, loc)
		if civilDay(at.Add(-time.Nanosecond), loc).Equal(day) || civilDay(at, loc).Before(day) {
			rt.Fatalf("%s starts at %v", isoDay(day), at)
		}
	})
}

func TestSeriesHaveAPointForEveryStep(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]struct {
		unit        string
		n           int
		first, last string
	}{
		"last month":     {"day", 31, "1 Oct", "31 Oct"},
		"last 10 weeks":  {"week", 10, "13–19 Sep", "15–21 Nov"},
		"Q3":             {"week", 14, "1–7 Jul", "30 Sep"},
		"last 140 days":  {"week", 20, "5–11 Jul", "15–21 Nov"},
		"this year":      {"month", 11, "Jan 2026", "1–21 Nov"},
		"last 5 years":   {"month", 61, "22–30 Nov", "1–21 Nov"},
		"today":          {"day", 1, "21 Nov", "21 Nov"},
		"since 20 March": {"month", 9, "20–31 Mar", "1–21 Nov"},
	} {
		p := mustParse(t, said, saturday(t)).Period
		unit, _ := unitFor(p)
		s := newSeries(p, unit, nil)
		got := s.Points
		if s.Unit != want.unit || len(got) != want.n || got[0].Label != want.first || got[len(got)-1].Label != want.last {
			t.Errorf("%s: %d points by %s from %s to %s, want %+v", said, len(got), s.Unit, got[0].Label, got[len(got)-1].Label, want)
		}
		at := p.From
		for _, pt := range got {
			if !pt.From.Equal(at) || !pt.To.After(at) || len([]rune(pt.Label)) > 20 {
				t.Errorf("%s: the point %q is from %v to %v, want it from %v", said, pt.Label, pt.From, pt.To, at)
			}
			at = pt.To
		}
		if !at.Equal(p.To) {
			t.Errorf("%s: the points end at %v, want %v", said, at, p.To)
		}
	}
}

func TestASeriesCanBeCoarser(t *testing.T) {
	t.Parallel()
	a := mustAsk(t, autumn(t), "last month")
	for _, n := range []int{1, 2, 7, 20, 31, 100} {
		s := a.Series.AtMost(n)
		sum, turns := int64(0), int64(0)
		for _, p := range s.Points {
			sum, turns = sum+p.MicroUSD, turns+p.Turns
		}
		if len(s.Points) > n || sum != a.Total.MicroUSD || turns != a.Total.Turns {
			t.Errorf("at most %d: %d points with %d micro-USD of %d", n, len(s.Points), sum, a.Total.MicroUSD)
		}
	}
	if got := a.Series.AtMost(20).Points[0].Label; got != "1–2 Oct" {
		t.Errorf("the first of 20 is %s", got)
	}
}
