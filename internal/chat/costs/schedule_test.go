package costs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDigestsAreDueByTheClockOnTheWall: also where clocks are put forward and back.
func TestDigestsAreDueByTheClockOnTheWall(t *testing.T) {
	t.Parallel()
	daily := func(h, m int) Digest { return Digest{Every: Daily, Hour: h, Minute: m} }
	tests := []struct {
		name, zone, from string
		digest           Digest
		want             []string
	}{
		{"every day", "Europe/Berlin", "2026-03-27T12:00:00Z", daily(9, 0), []string{
			"2026-03-28T09:00:00+01:00", "2026-03-29T09:00:00+02:00", "2026-03-30T09:00:00+02:00",
		}},
		{"in the hour that is skipped", "Europe/Berlin", "2026-03-27T12:00:00Z", daily(2, 30), []string{
			"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00",
		}},
		{"in the hour that comes twice", "Europe/Berlin", "2026-10-23T12:00:00Z", daily(2, 30), []string{
			"2026-10-24T02:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00",
		}},
		{"where midnight is skipped", "America/Santiago", "2026-09-04T12:00:00Z", daily(0, 0), []string{
			"2026-09-05T00:00:00-04:00", "2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00",
		}},
		{"on Mondays", "America/New_York", "2026-11-02T14:00:00Z", Digest{Every: Weekly, Hour: 9}, []string{
			"2026-11-09T09:00:00-05:00", "2026-11-16T09:00:00-05:00",
		}},
		{"on the first", "Asia/Kolkata", "2026-12-01T03:30:00Z", Digest{Every: Monthly, Hour: 9}, []string{
			"2027-01-01T09:00:00+05:30", "2027-02-01T09:00:00+05:30", "2027-03-01T09:00:00+05:30",
		}},
		{"a moment before", "UTC", "2026-11-21T08:59:59Z", daily(9, 0), []string{"2026-11-21T09:00:00Z"}},
	}
	for _, tt := range tests {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, tt.from)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range tt.want {
			due := tt.digest.next(at, zone)
			if last := tt.digest.last(due, zone); !last.Equal(due) {
				t.Errorf("%s: the last one at %s is %s", tt.name, due, last)
			}
			if last := tt.digest.last(due.Add(-time.Second), zone); !last.Before(due) {
				t.Errorf("%s: the last one before %s is %s", tt.name, due, last)
			}
			got = append(got, due.Format(time.RFC3339))
			at = due
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestDueTimesOfYears: one for each day, never twice the same, in zones with all
// sorts of changes.
func TestDueTimesOfYears(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "Africa/Cairo", "Pacific/Apia", "UTC"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, minutes := range []int{0, 30, 90, 125, 150, 23*60 + 59} {
			d := Digest{Every: Daily, Hour: minutes / 60, Minute: minutes % 60}
			at := time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)
			for range 800 {
				due := d.next(at, zone)
				if gap := due.Sub(at); gap <= 0 || gap > 50*time.Hour {
					t.Fatalf("%s %02d:%02d: from %s to %s", name, d.Hour, d.Minute, at, due)
				}
				at = due
			}
			if days := at.Sub(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)).Hours() / 24; days < 799 || days > 802 {
				t.Errorf("%s %02d:%02d: 800 digests in %.1f days", name, d.Hour, d.Minute, days)
			}
		}
	}
}
