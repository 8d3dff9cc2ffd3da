package report

import (
	"time"

	"deckhand/internal/store/ledger"
)

// Series is spend over time: one point for each day, week or month of a period, also
// for those in which nothing was spent.
type Series struct {
	// Unit is "day", "week" or "month". Weeks are counted from the period's first
	// day, so that only the last can be short.
	Unit   string
	Points []Point
}

// Point is the spend from From up to To.
type Point struct {
	From, To time.Time
	// Label is short enough for an axis: "3 Oct", "1–2 Oct", "Oct 2026".
	Label                       string
	Turns                       int64
	MicroUSD, EstimatedMicroUSD int64

	first, end time.Time // civil
}

// Of how many days a series is by day, or by week; longer ones are by month.
const (
	maxByDay  = 31
	maxByWeek = 20 * 7
)

func unitFor(p Period) (unit string, by ledger.CostGroup) {
	switch days := p.Days(); {
	case days <= maxByDay:
		return "day", ledger.ByDay
	case days <= maxByWeek:
		return "week", ledger.ByDay
	}
	return "month", ledger.ByMonth
}

func newSeries(p Period, unit string, lines []ledger.CostLine) Series {
	s := Series{Unit: unit}
	if p.loc == nil {
		return s
	}
	for at := p.first; at.Before(p.end); {
		var next time.Time
		switch unit {
		case "day":
			next = at.AddDate(0, 0, 1)
		case "week":
			next = at.AddDate(0, 0, 7)
		default:
			next = civil(at.Year(), at.Month()+1, 1)
		}
		if next.After(p.end) {
			next = p.end
		}
		s.Points = append(s.Points, newPoint(at, next, p.loc))
		at = next
	}
	for _, l := range lines {
		day, err := time.Parse(time.DateOnly, l.Key)
		if err != nil {
			if day, err = time.Parse("2006-01", l.Key); err != nil {
				continue
			}
		}
		// The ledger's days can be of another time zone than the period's: what lies
		// outside belongs to the day at the edge.
		i := 0
		for i < len(s.Points)-1 && !day.Before(s.Points[i].end) {
			i++
		}
		s.Points[i].add(l)
	}
	return s
}

func newPoint(first, end time.Time, loc *time.Location) Point {
	return Point{From: startOfDay(first, loc), To: startOfDay(end, loc), Label: shortSpan(first, end), first: first, end: end}
}

func (p *Point) add(l ledger.CostLine) {
	p.Turns += l.Turns
	p.MicroUSD += l.MicroUSD
	p.EstimatedMicroUSD += l.EstimatedMicroUSD
}

// AtMost is the series with neighbours joined so that at most n points are left,
// n > 0, for charts that take no more.
func (s Series) AtMost(n int) Series {
	if len(s.Points) <= n {
		return s
	}
	step := (len(s.Points) + n - 1) / n
	out := Series{Unit: s.Unit}
	for i := 0; i < len(s.Points); i += step {
		group := s.Points[i:min(i+step, len(s.Points))]
		last := group[len(group)-1]
		p := Point{From: group[0].From, To: last.To, first: group[0].first, end: last.end, Label: shortSpan(group[0].first, last.end)}
		for _, g := range group {
			p.Turns += g.Turns
			p.MicroUSD += g.MicroUSD
			p.EstimatedMicroUSD += g.EstimatedMicroUSD
		}
		out.Points = append(out.Points, p)
	}
	return out
}

// shortSpan names days in at most twenty letters.
func shortSpan(first, end time.Time) string {
	last := end.AddDate(0, 0, -1)
	switch {
	case !last.After(first):
		return first.Format("2 Jan")
	case first.Day() == 1 && addMonths(first, 1).Equal(end):
		return first.Format("Jan 2006")
	case first.Year() == last.Year() && first.Month() == last.Month():
		return first.Format("2–") + last.Format("2 Jan")
	case first.Day() == 1 && end.Day() == 1 && first.Year() == last.Year():
		return first.Format("Jan – ") + last.Format("Jan 2006")
	case first.Day() == 1 && end.Day() == 1:
		return first.Format("Jan ’06 – ") + last.Format("Jan ’06")
	}
	return first.Format("2 Jan – ") + last.Format("2 Jan")
}
