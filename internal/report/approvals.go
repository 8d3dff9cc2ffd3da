package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"deckhand/internal/store/approvals"
)

// Approvals says who decides, how fast and how often yes. It is also its JSON: fields
// are added, never renamed.
type Approvals struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	Team  string    `json:"team"`
	// Lines begin with the total; people and rules follow, the busiest first.
	Lines []ApprovalLine `json:"lines"`
	// Feedback is what people thought of answers, by project.
	Feedback []FeedbackLine `json:"feedback"`
}

// FeedbackLine counts what people thought of a project's answers.
type FeedbackLine struct {
	Project string `json:"project"`
	Good    int64  `json:"good"`
	Bad     int64  `json:"bad"`
}

// NewApprovals is what a team decided from since until until, with people's names.
func NewApprovals(team string, since, until time.Time, r approvals.Report, names Names) Approvals {
	out := Approvals{Since: since.UTC().Truncate(time.Second), Until: until.UTC().Truncate(time.Second), Team: team, Feedback: []FeedbackLine{}}
	for _, f := range r.Feedback {
		out.Feedback = append(out.Feedback, FeedbackLine(f))
	}
	out.Lines = append(out.Lines, newApprovalLine("total", r.Total))
	for _, p := range r.ByPerson {
		l := newApprovalLine("person", p)
		if names != nil {
			l.Name, _ = names.UserName(p.Name)
		}
		out.Lines = append(out.Lines, l)
	}
	for _, rule := range r.ByRule {
		out.Lines = append(out.Lines, newApprovalLine("rule", rule))
	}
	return out
}

// ApprovalLine sums up the decisions of a person, by a rule, or of all.
type ApprovalLine struct {
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

func newApprovalLine(group string, s approvals.Stats) ApprovalLine {
	l := ApprovalLine{
		Group: group, ID: s.Name, Decisions: s.Allowed + s.Denied, Allowed: s.Allowed, Denied: s.Denied, Expired: s.Expired,
		Median: s.Median.Round(time.Millisecond).Seconds(), P95: s.P95.Round(time.Millisecond).Seconds(), Quick: s.Quick,
	}
	if l.Decisions > 0 {
		l.Share = float64(int64(float64(l.Allowed)/float64(l.Decisions)*1e6+0.5)) / 1e6
	}
	return l
}

// CSV writes a row for each line. New columns go to the end.
func (a Approvals) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	// An error stays with the writer until Flush.
	_ = out.Write([]string{
		"group", "id", "name", "decisions", "allowed", "denied", "expired", "allowed_share", "median_seconds", "p95_seconds", "within_2_seconds",
	})
	for _, l := range a.Lines {
		_ = out.Write([]string{
			l.Group, Inert(l.ID), Inert(l.Name), whole(l.Decisions), whole(l.Allowed), whole(l.Denied), whole(l.Expired),
			number(l.Share), number(l.Median), number(l.P95), whole(l.Quick),
		})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

// Table writes it for a terminal.
func (a Approvals) Table(w io.Writer) error {
	total := a.Lines[0]
	out := "Approvals since " + a.Since.Format(time.DateOnly+" 15:04 MST") + "\n"
	if total.Decisions+total.Expired == 0 {
		return write(w, out+"Nobody was asked about anything.\n"+a.liked())
	}
	out += fmt.Sprintf("%d decided in %s (median) and %s (95 %%), %d of them within 2 s; %d expired\n",
		total.Decisions, shortTime(total.Median), shortTime(total.P95), total.Quick, total.Expired)
	for _, group := range []struct{ name, head string }{{"person", "Person"}, {"rule", "Rule"}} {
		if !slices.ContainsFunc(a.Lines, func(l ApprovalLine) bool { return l.Group == group.name }) {
			continue
		}
		t := newTable(1, group.head, "Decisions", "Allowed", "Median", "95 %", "≤ 2 s")
		for _, l := range a.Lines {
			if l.Group != group.name {
				continue
			}
			share := "–"
			if l.Decisions > 0 {
				share = strconv.FormatFloat(l.Share*100, 'f', 0, 64) + "%"
			}
			t.AppendRow(table.Row{fit(printable(cmp.Or(l.Name, l.ID, "(none)")), 48), l.Decisions, share, shortTime(l.Median), shortTime(l.P95), l.Quick})
		}
		out += "\n" + t.Render() + "\n"
	}
	return write(w, out+a.liked())
}

// liked says in a line how people liked the answers; empty if nobody said.
func (a Approvals) liked() string {
	var parts []string
	for _, f := range a.Feedback {
		parts = append(parts, fmt.Sprintf("%s %d of %d", printable(f.Project), f.Good, f.Good+f.Bad))
	}
	if len(parts) == 0 {
		return ""
	}
	return "\nAnswers called good: " + strings.Join(parts, ", ") + "\n"
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
