package access

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The team of these tests: web and api are open to all users; secret has users of its
// own; C0OPS, of web, has users of its own.
var costTeam = Rules{
	Roles:    Roles{Admins: []string{"U0ADMIN", "S0ADMINS"}, Approvers: []string{"U0APPROVER"}, Users: []string{"U0USER", "S0USERS"}},
	Projects: map[string]Roles{"web": {}, "api": {Admins: []string{"U0LEAD"}}, "secret": {Users: []string{"U0SPY"}}},
	Channels: map[string]Roles{"C0OPS": {Users: []string{"U0OPS"}, Approvers: []string{}}},
	Places:   Places{Channels: map[string]string{"C0WEB": "web", "C0API": "api", "C0SECRET": "secret", "C0OPS": "web"}, DirectMessages: "web"},
}

// scope reads what a question is about: @person, #channel, a project, or one of the
// words below.
func scope(words string) CostScope {
	var s CostScope
	for w := range strings.FieldsSeq(words) {
		switch {
		case w == "everyone":
			s.Everyone = true
		case w == "thread":
			s.Thread = 7
		case w == "by-user":
			s.ByUser = true
		case w == "by-place":
			s.ByPlace = true
		case w[0] == '@':
			s.Users = append(s.Users, w[1:])
		case w[0] == '#':
			s.Channels = append(s.Channels, w[1:])
		default:
			s.Projects = append(s.Projects, w)
		}
	}
	return s
}

func show(s CostScope) string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{{s.Everyone, "everyone"}, {s.Thread != 0, "thread"}, {s.ByUser, "by-user"}, {s.ByPlace, "by-place"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	for _, u := range s.Users {
		words = append(words, "@"+u)
	}
	for _, c := range s.Channels {
		words = append(words, "#"+c)
	}
	return strings.Join(append(words, s.Projects...), " ")
}

// costsOf decides about a question, looking up the groups that it takes. Of people by
// group U1 is a user, U2 an admin.
func costsOf(t rapid.TB, r Rules, a Asker, s CostScope) CostAnswer {
	t.Helper()
	w := world{groups: map[string]Group{"S0USERS": {Member: a.User == "U1"}, "S0ADMINS": {Member: a.User == "U2"}}}
	var out CostAnswer
	w.decide(t, us, func(f Facts) Answer { out = r.Costs(a, s, f); return out.Answer })
	return out
}

var (
	inWeb  = Asker{Channel: "C0WEB", Thread: 7, Project: "web"}
	inOps  = Asker{Channel: "C0OPS", Thread: 7, Project: "web"}
	direct = Asker{Channel: "D0USER", Thread: 7, Project: "web"}
)

// TestWhoMaySeeWhatCosts is the rule as a table: what becomes of a question, or why it
// is refused.
func TestWhoMaySeeWhatCosts(t *testing.T) {
	t.Parallel()
	const no = "REFUSED "
	for _, tt := range []struct {
		user   string
		at     Asker
		asks   string
		want   string // the question, or the beginning of the refusal's reason
		people bool
	}{
		{"U0ADMIN", inWeb, "by-user", "by-user", true},
		{"U0ADMIN", inWeb, "@U0USER", "@U0USER", true},
		{"U0ADMIN", inWeb, "secret", "secret", true},
		{"U0ADMIN", inWeb, "everyone", "everyone", true},
		{"U0ADMIN", inWeb, "#D0123456", "#D0123456", true},
		{"U2", inWeb, "by-user everyone", "everyone by-user", true},

		{"U0USER", inWeb, "@U0USER", "@U0USER", false},
		{"U0USER", inWeb, "by-user @U0USER", "by-user @U0USER", false},
		{"U0USER", inWeb, "@U0USER secret", "@U0USER secret", false},
		{"U0USER", inWeb, "by-user", no + "costs by user", false},
		{"U0USER", inWeb, "by-user web", no + "costs by user", false},
		{"U0USER", inWeb, "by-user thread", no + "costs by user", false},
		{"U0USER", inWeb, "@U0ADMIN", no + "others' costs", false},
		{"U0USER", inWeb, "@U0USER @U0ADMIN", no + "others' costs", false},
		{"U0USER", inWeb, "", "api web", false},
		{"U1", inWeb, "", "api web", false},
		{"U0USER", inWeb, "by-place", "by-place api web", false},
		{"U0USER", inWeb, "everyone", no + "the whole team's costs", false},
		{"U0USER", inWeb, "by-place web", "by-place web", false},
		{"U0USER", inWeb, "secret", no + "costs of a place", false},
		{"U0USER", inWeb, "web secret", no + "costs of a place", false},
		{"U0USER", inWeb, "#C0API", "#C0API", false},
		{"U0USER", inWeb, "#C0OPS", no + "costs of a place", false},
		{"U0USER", inWeb, "#C0OPS web", no + "costs of a place", false},
		{"U0USER", inWeb, "#C0SECRET", no + "costs of a place", false},
		{"U0USER", inWeb, "#D0123456", no + "costs of a place", false},
		{"U0USER", inWeb, "#D0123456 web", no + "costs of a place", false},
		{"U0USER", inWeb, "#C0UNKNOWN", "#C0UNKNOWN", false}, // the team's own roles count
		{"U0USER", inWeb, "thread", "thread", false},
		{"U0USER", direct, "thread", "thread", false},
		{"U0USER", direct, "#D0USER", "#D0USER", false},
		{"U0USER", Asker{Channel: "C0WEB"}, "thread", no + "costs of a place", false},

		{"U0APPROVER", inWeb, "by-user", no + "costs by user", false},
		{"U0APPROVER", inWeb, "", "api secret web", false},

		{"U0LEAD", inWeb, "by-user api", "by-user api", true},
		{"U0LEAD", inWeb, "@U0USER #C0API", "@U0USER #C0API", true},
		{"U0LEAD", inWeb, "by-user", no + "costs by user", false},
		{"U0LEAD", inWeb, "by-user api web", no + "costs by user", false},
		{"U0LEAD", inWeb, "web", no + "costs of a place", false},

		{"U0OPS", inOps, "", "#C0OPS", false},
		{"U0OPS", inOps, "thread", "thread", false},
		{"U0OPS", inOps, "web", no + "costs of a place", false},
		{"U0NOBODY", inWeb, "", no + "no place", false},
	} {
		tt.at.User = tt.user
		answer := costsOf(t, costTeam, tt.at, scope(tt.asks))
		got := show(answer.Scope)
		if !answer.Allowed {
			got = no + answer.Refusal.Reason
			if answer.Refusal.Sentence == "" {
				t.Errorf("%s, %q: nobody says why", tt.user, tt.asks)
			}
		}
		if got != tt.want && (answer.Allowed || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s, %q: %s, want %s", tt.user, tt.asks, got, tt.want)
		}
		if answer.People != tt.people {
			t.Errorf("%s, %q: names people: %v", tt.user, tt.asks, answer.People)
		}
	}
}

// TestAnOpenTeamSeesItsTotals: where everybody may use everything, nothing is cut.
func TestAnOpenTeamSeesItsTotals(t *testing.T) {
	t.Parallel()
	open := Rules{Roles: costTeam.Roles, Places: costTeam.Places}
	for _, words := range []string{"", "everyone", "by-place"} {
		answer := costsOf(t, open, Asker{User: "U0USER", Channel: "C0WEB"}, scope(words))
		if !answer.Allowed || show(answer.Scope) != words || answer.People || !answer.Narrow {
			t.Errorf("%q: %+v", words, answer)
		}
	}
}

// TestACostIsOnlyWidenedByARole: over random questions, nobody but an admin of what is
// asked about sees people, and nobody sees a project that they may not use.
func TestACostIsOnlyWidenedByARole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom([]Asker{inWeb, inOps, direct, {}}).Draw(t, "at")
		a.User = rapid.SampledFrom([]string{"U0USER", "U0APPROVER", "U0LEAD", "U0SPY", "U0OPS", "U0NOBODY", "U1"}).Draw(t, "user")
		words := rapid.SliceOfN(rapid.SampledFrom([]string{
			"@U0USER", "@U0ADMIN", "#C0WEB", "#C0API", "#C0SECRET", "#C0OPS", "#D0USER", "#D0OTHER", "web", "api", "secret", "thread", "everyone", "by-user", "by-place",
		}), 0, 4).Draw(t, "words")
		s := scope(strings.Join(words, " "))
		answer := costsOf(t, costTeam, a, s)
		if !answer.Allowed {
			return
		}
		own := len(s.Users) == 1 && s.Users[0] == a.User
		lead := a.User == "U0LEAD" && (len(s.Channels) > 0 || len(s.Projects) > 0)
		if (s.ByUser || len(s.Users) > 0 || answer.People) && !own && !lead {
			t.Fatalf("%s sees people: %s → %s", a.User, show(s), show(answer.Scope))
		}
		if own || answer.People || s.Thread != 0 || len(answer.Scope.Channels) > 0 {
			return
		}
		mine := map[string][]string{"U0USER": {"web", "api"}, "U1": {"web", "api"}, "U0APPROVER": {"web", "api", "secret"}, "U0SPY": {"secret"}, "U0LEAD": {"api"}}[a.User]
		if len(answer.Scope.Projects) == 0 || slices.ContainsFunc(answer.Scope.Projects, func(p string) bool { return !slices.Contains(mine, p) }) {
			t.Fatalf("%s sees %s, and may use %v", a.User, show(answer.Scope), mine)
		}
	})
}

// TestWhatMayStandAlone: lines of channels for somebody who may use some.
func TestWhatMayStandAlone(t *testing.T) {
	t.Parallel()
	for channel, want := range map[string]bool{"C0WEB": true, "C0API": true, "C0SECRET": false, "C0OPS": false, "D0USER": true, "D0OTHER": false} {
		w := world{groups: map[string]Group{"S0USERS": {}, "S0ADMINS": {}}}
		answer := w.decide(t, us, func(f Facts) Answer { return costTeam.Shows(Asker{User: "U0USER", Channel: "D0USER"}, channel, f) })
		if answer.Allowed != want {
			t.Errorf("%s: %v", channel, answer.Allowed)
		}
	}
}

// TestCostsWithoutGroups: what could not be looked up is not held, and says so.
func TestCostsWithoutGroups(t *testing.T) {
	t.Parallel()
	w := world{}
	a := Asker{User: "U9", Channel: "C0WEB"}
	var answer CostAnswer
	w.decide(t, us, func(f Facts) Answer { answer = costTeam.Costs(a, CostScope{}, f); return answer.Answer })
	if answer.Allowed || answer.Refusal.Reason != "a user group could not be looked up" || answer.Refusal.Err == nil {
		t.Errorf("%+v", answer)
	}
	// Their own are theirs, whatever Slack says.
	w = world{}
	own := w.decide(t, us, func(f Facts) Answer { return costTeam.Costs(a, CostScope{Users: []string{"U9"}}, f).Answer })
	if !own.Allowed {
		t.Errorf("own costs: %+v", own)
	}
	facts := Facts{Groups: map[string]Group{"S0USERS": {Member: true}, "S0ADMINS": {}}}
	if projects, need := costTeam.Usable(a, facts); fmt.Sprint(projects) != "[api web]" || need != (Need{}) {
		t.Errorf("usable: %v, %+v", projects, need)
	}
	if _, need := costTeam.Usable(a, Facts{}); need.Group == "" {
		t.Error("projects without looking groups up")
	}
	for n, want := range map[int]string{0: "no project", 2: "p, p.", 9: "and more"} {
		if got := youMayUse(slices.Repeat([]string{"p"}, n)); !strings.Contains(got, want) {
			t.Errorf("%d projects: %s", n, got)
		}
	}
}
