package report

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/store/ledger"
)

// ByTeam sums projects up by the team that each belongs to. The ledger knows no teams.
const ByTeam ledger.CostGroup = "team"

// teamLedger answers questions by team from a ledger's projects.
type teamLedger struct {
	Ledger
	teams map[string]string // by project
}

// Costs is [Ledger.Costs]. All teams are lines: Limit does not count for them.
func (b teamLedger) Costs(ctx context.Context, q ledger.CostQuery) (ledger.CostReport, error) {
	if q.By != ByTeam {
		return b.Ledger.Costs(ctx, q)
	}
	q.By, q.Limit = ledger.ByProject, 0
	r, err := b.Ledger.Costs(ctx, q)
	lines := map[string]ledger.CostLine{}
	for _, l := range r.Lines {
		sum := lines[b.teams[l.Key]]
		sum.Key = b.teams[l.Key]
		sum.Add(l)
		lines[sum.Key] = sum
	}
	r.Lines = slices.SortedFunc(maps.Values(lines), func(x, y ledger.CostLine) int {
		return cmp.Or(cmp.Compare(y.MicroUSD, x.MicroUSD), strings.Compare(x.Key, y.Key))
	})
	return r, err
}

// MeterNotes is [Ledger.MeterNotes].
func (b teamLedger) MeterNotes(ctx context.Context, q ledger.CostQuery) (ledger.MeterNotes, error) {
	if q.By != ByTeam {
		return b.Ledger.MeterNotes(ctx, q)
	}
	q.By = ledger.ByProject
	notes, err := b.Ledger.MeterNotes(ctx, q)
	cut := map[string]ledger.CutCalls{}
	for project, c := range notes.CutBy {
		sum := cut[b.teams[project]]
		cut[b.teams[project]] = ledger.CutCalls{Calls: sum.Calls + c.Calls, BoundMicroUSD: sum.BoundMicroUSD + c.BoundMicroUSD}
	}
	notes.CutBy = cut
	return notes, err
}

// team finds the projects of the team that a word names.
func (r *reading) team(w word) (projects []string) {
	for project, team := range r.o.Teams {
		if strings.EqualFold(team, w.raw) {
			projects = append(projects, project)
		}
	}
	return projects
}

// teamNames are all teams, sorted.
func (o Context) teamNames() []string {
	return slices.Compact(slices.Sorted(maps.Values(o.Teams)))
}
