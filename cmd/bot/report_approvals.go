package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"deckhand/internal/report"
	"deckhand/internal/store"
)

// approvalLine is a line of the report on approving, in JSON and CSV. New fields go to
// the end.
type approvalLine struct {
	Group     string `json:"group"` // total, person or rule
	ID        string `json:"id"`
	Name      string `json:"name"`
	Decisions int64  `json:"decisions"`
	Allowed   int64  `json:"allowed"`
	Denied    int64  `json:"denied"`
	Expired   int64  `json:"expired"`
	// Share is what part of the decisions was to allow, from 0 to 1.
	Share  float64 `json:"allowed_share"`
	Median float64 `json:"median_seconds"`
	P95    float64 `json:"p95_seconds"`
	Quick  int64   `json:"within_2_seconds"`
}

func newApprovalLine(group string, s store.ApprovalStats) approvalLine {
	l := approvalLine{
		Group: group, ID: s.Name, Decisions: s.Allowed + s.Denied, Allowed: s.Allowed, Denied: s.Denied, Expired: s.Expired,
		Median: s.Median.Round(time.Millisecond).Seconds(), P95: s.P95.Round(time.Millisecond).Seconds(), Quick: s.Quick,
	}
	if l.Decisions > 0 {
		l.Share = float64(int64(float64(l.Allowed)/float64(l.Decisions)*1e6+0.5)) / 1e6
	}
	return l
}

// reportApprovals says who approves, how fast and how often.
func reportApprovals(ctx context.Context, out io.Writer, o reportFlags) error {
	since, err := parseTime("--since", cmp.Or(o.since, "30d"))
	if err != nil {
		return err
	}
	s, team, err := o.openLedger(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	until := time.Now()
	if !since.Before(until) {
		return fmt.Errorf("--since: %s has not begun yet: %w", since.Format(time.DateOnly), errUsage)
	}
	a, err := s.ApprovalsReport(ctx, team, since, until)
	if err != nil {
		return err
	}
	ids := nameIDs{users: map[string]bool{}}
	for _, p := range a.ByPerson {
		ids.add(ids.users, p.Name)
	}
	names := lookUpNames(ctx, ids)
	lines := approvalLines(a, names)
	return o.write(out, func(w io.Writer) error {
		switch o.format {
		case "json":
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			enc.SetEscapeHTML(false)
			return enc.Encode(struct {
				Since time.Time      `json:"since"`
				Until time.Time      `json:"until"`
				Team  string         `json:"team"`
				Lines []approvalLine `json:"lines"`
			}{since.UTC().Truncate(time.Second), until.UTC().Truncate(time.Second), team, lines})
		case "csv":
			rows, err := newRowWriter(w, "csv")
			if err != nil {
				return err
			}
			for _, l := range lines {
				err = errors.Join(err, rows.write(l))
			}
			return errors.Join(err, rows.close())
		}
		return approvalsTable(w, lines, since)
	})
}

func approvalLines(a store.ApprovalsReport, names report.Names) []approvalLine {
	lines := []approvalLine{newApprovalLine("total", a.Total)}
	for _, p := range a.ByPerson {
		l := newApprovalLine("person", p)
		if names != nil {
			l.Name, _ = names.UserName(p.Name)
		}
		lines = append(lines, l)
	}
	for _, r := range a.ByRule {
		lines = append(lines, newApprovalLine("rule", r))
	}
	return lines
}

func approvalsTable(w io.Writer, lines []approvalLine, since time.Time) error {
	total := lines[0]
	if _, err := fmt.Fprintf(w, "Approvals since %s\n", since.UTC().Format(time.DateOnly+" 15:04 MST")); err != nil {
		return err
	}
	if total.Decisions+total.Expired == 0 {
		_, err := fmt.Fprintln(w, "Nobody was asked for anything.")
		return err
	}
	if _, err := fmt.Fprintf(w, "%d decided in %s (median) and %s (95 %%), %d of them within 2 s; %d expired\n",
		total.Decisions, shortTime(total.Median), shortTime(total.P95), total.Quick, total.Expired); err != nil {
		return err
	}
	for _, group := range []struct{ name, head string }{{"person", "Person"}, {"rule", "Rule"}} {
		t := textTable{head: []string{group.head, "Decisions", "Allowed", "Median", "95 %", "≤ 2 s"}, left: 1}
		for _, l := range lines {
			if l.Group != group.name {
				continue
			}
			share := "–"
			if l.Decisions > 0 {
				share = strconv.FormatFloat(l.Share*100, 'f', 0, 64) + "%"
			}
			t.rows = append(t.rows, []string{
				oneLine(cmp.Or(l.Name, l.ID, "(none)"), 48), strconv.FormatInt(l.Decisions, 10), share,
				shortTime(l.Median), shortTime(l.P95), strconv.FormatInt(l.Quick, 10),
			})
		}
		if len(t.rows) == 0 {
			continue
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := t.write(w); err != nil {
			return err
		}
	}
	return nil
}

// shortTime writes seconds in two units at most: 0.8 s, 42 s, 3 min 5 s, 2 h 4 min.
func shortTime(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
