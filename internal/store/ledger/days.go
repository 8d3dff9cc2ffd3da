package ledger

import (
	"context"
	"fmt"
	"time"

	"deckhand/internal/store/pg"
)

// TimeZone is the zone in which the store counts days: see [store.Options].
func (s *Store) TimeZone() *time.Location { return s.db.TimeZone }

// day is a day of the calendar, whatever its zone; comparable with ==.
type day struct {
	year  int
	month time.Month
	day   int
}

// Outside these days PostgreSQL's dates and ours may differ. Nothing is booked there.
var (
	firstDay = day{1, time.January, 1}
	lastDay  = day{9999, time.December, 1}
)

// today is the transaction's booking day, as PostgreSQL reads it.
func today(ctx context.Context, tx pg.Tx) (string, error) {
	var now time.Time
	err := tx.QueryRow(ctx, `SELECT now()`).Scan(&now)
	return dayIn(now, tx.DB.TimeZone).String(), err
}

func dayIn(t time.Time, zone *time.Location) day {
	year, month, d := t.In(zone).Date()
	switch {
	case year < firstDay.year:
		return firstDay
	case year > lastDay.year:
		return lastDay
	}
	return day{year, month, d}
}

// String returns the day as PostgreSQL reads it, as in 2026-10-31.
func (d day) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.year, d.month, d.day) }

func (d day) add(days int) day {
	year, month, dd := time.Date(d.year, d.month, d.day+days, 0, 0, 0, 0, time.UTC).Date()
	return day{year, month, dd}
}

func (d day) before(o day) bool { return d.sinceEpoch() < o.sinceEpoch() }

// firstOfMonth returns the first day of d's month, or of the n-th one after it.
func (d day) firstOfMonth(n int) day {
	year, month, dd := time.Date(d.year, d.month+time.Month(n), 1, 0, 0, 0, 0, time.UTC).Date()
	return day{year, month, dd}
}

func (d day) sinceEpoch() int64 {
	return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60)
}

// booked is a period in booked days: the whole days from first to before end, and up to two partial days at its
// edges.
type booked struct {
	first, end day // none when end is not after first
	edges      []edge
}

// edge is a partial day, bounded by instants; a zero instant is no bound.
type edge struct {
	day      day
	from, to time.Time
}

// bookedPeriod resolves [from, to) in a zone. A zero instant is no bound. empty says that nothing can lie in the
// period.
func bookedPeriod(from, to time.Time, zone *time.Location) (b booked, empty bool) {
	from, to = from.Truncate(time.Microsecond), to.Truncate(time.Microsecond)
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return booked{first: firstDay, end: firstDay}, true
	}
	b = booked{first: firstDay, end: lastDay}
	if !from.IsZero() {
		if b.first = dayIn(from, zone); !beginsDay(from, zone) {
			b.edges = append(b.edges, edge{day: b.first, from: from})
			b.first = b.first.add(1)
		}
	}
	if !to.IsZero() {
		if b.end = dayIn(to, zone); !beginsDay(to, zone) {
			if n := len(b.edges); n > 0 && b.edges[n-1].day == b.end {
				b.edges[n-1].to = to
			} else {
				b.edges = append(b.edges, edge{day: b.end, to: to})
			}
		}
	}
	return b, false
}

// beginsDay reports whether t is the first instant of its day, which need not be midnight: some clocks skip that
// hour when summer begins.
func beginsDay(t time.Time, zone *time.Location) bool {
	return dayIn(t, zone) != dayIn(t.Add(-time.Microsecond), zone)
}

// months returns the whole months in b, from first to before end; first is not before end when there are none.
func (b booked) months() (first, end day) {
	first, end = b.first.firstOfMonth(0), b.end.firstOfMonth(0)
	if first != b.first {
		first = b.first.firstOfMonth(1)
	}
	return first, end
}
