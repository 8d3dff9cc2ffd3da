package report

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/store/ledger"
)

func withTeams(t *testing.T) Context {
	t.Helper()
	o := saturday(t)
	o.Teams = map[string]string{"web": "Platform", "api": "Platform", "shop-floor": "Shop"}
	return o
}

func TestQuestionsNameTeams(t *testing.T) {
	t.Parallel()
	o := withTeams(t)
	for said, want := range map[string]string{
		"costs last month by team":              "last month by team",
		"which team spent the most last week?":  "last week by team",
		"per department":                        "this month by team",
		"last month for team platform":          "last month for project api for project web",
		"team Shop by user":                     "this month by user for project shop-floor",
		"how much did the whole team spend":     "this month for everyone",
		"what did the team spend last week":     "last week for everyone",
		"the team's costs":                      "this month for everyone",
		`costs last month for team "Shop"`:      "last month for project shop-floor",
		"last month by team with csv":           "last month by team with csv",
		"by team for model opus this quarter":   "this quarter by team for model claude-opus-4-5-20251101",
		"spend of team platform per day so far": "this month by day for project api for project web",
	} {
		q, err := Parse(said, o)
		if got := q.String(); err != nil || got != want {
			t.Errorf("%q is %q (%v), want %q", said, got, err, want)
		}
	}
	var wrong *ParseError
	if _, err := Parse("costs for team Nobody", o); !errors.As(err, &wrong) || wrong.Sentence != "There is no team “Nobody”. There is Platform, Shop." {
		t.Error(err)
	}
	o.Teams = map[string]string{}
	if _, err := Parse("last month by team", o); !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Sentence, "No project has a team: ") || wrong.Nearest[0].String() != "last month by project" {
		t.Error(err)
	}
}

// What a team has spent is what its projects have, and no project is forgotten.
func TestTeamsAreTheSumsOfTheirProjects(t *testing.T) {
	t.Parallel()
	o, book := withTeams(t), autumn(t)
	delete(o.Teams, "api") // a project without one
	ask := func(said string) Answer {
		a, err := Ask(t.Context(), book, mustParse(t, said, o), "T1")
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	teams, projects := ask("last month by team"), ask("last month by project")
	want, before, got := map[string]ledger.CostLine{}, map[string]int64{}, map[string]ledger.CostLine{}
	for _, l := range projects.Lines {
		sum := want[o.Teams[l.Key]]
		sum.Key = o.Teams[l.Key]
		sum.Add(l.CostLine)
		want[sum.Key] = sum
		before[sum.Key] += l.Before
	}
	for _, l := range teams.Lines {
		got[l.Key] = l.CostLine
		if l.Before != before[l.Key] || !l.Compared {
			t.Errorf("team %q cost %d before (%v), want %d", l.Key, l.Before, l.Compared, before[l.Key])
		}
	}
	if !maps.Equal(got, want) || len(got) < 2 || teams.Total.CostLine != projects.Total.CostLine {
		t.Errorf("teams %+v, want %+v", got, want)
	}
	if !slices.IsSortedFunc(teams.Lines, func(x, y Line) int { return cmp.Compare(y.MicroUSD, x.MicroUSD) }) {
		t.Errorf("not the dearest first: %+v", teams.Lines)
	}
	bound := func(a Answer) (calls int64) {
		for _, c := range a.Meter.CutBy {
			calls += c.Calls
		}
		return calls
	}
	if bound(teams) != bound(projects) {
		t.Errorf("%d cut calls by team, %d by project", bound(teams), bound(projects))
	}
}
