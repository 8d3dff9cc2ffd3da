package slackui

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/report"
	"deckhand/internal/store"
)

// The team of these tests: web and api are open to all users; secret has users of its
// own; C0OPS, of web, has users of its own.
var costTeam = Access{
	Roles: Roles{Admins: []string{"U0ADMIN"}, Approvers: []string{"U0APPROVER"}, Users: []string{"U0USER"}},
	Projects: map[string]Roles{
		"web": {}, "api": {Admins: []string{"U0LEAD"}}, "secret": {Users: []string{"U0SPY"}},
	},
	Channels: map[string]Roles{"C0WEB": {}, "C0API": {}, "C0SECRET": {}, "C0OPS": {Users: []string{"U0OPS"}, Approvers: []string{}}},
}

var costChannels = map[string]string{"C0WEB": "web", "C0API": "api", "C0SECRET": "secret", "C0OPS": "web"}

func rightsOf(t *testing.T, access Access, user string, at costPlace) costRights {
	t.Helper()
	a := &App{c: Config{Access: access, Channels: costChannels, DirectMessages: "web"}}
	for id := range access.Channels {
		if costChannels[id] == "" {
			t.Fatalf("%s has no project", id)
		}
	}
	rights, failed := a.costRights(t.Context(), person{UserID: user}, at)
	if err := failed(); err != nil {
		t.Fatal(err)
	}
	return rights
}

// TestWhoMaySeeWhatCosts is the rule as a table: what becomes of a question, or why
// it is refused.
func TestWhoMaySeeWhatCosts(t *testing.T) {
	t.Parallel()
	const no = "REFUSED "
	inWeb := costPlace{channel: "C0WEB", thread: store.Thread{ID: 7, ChannelID: "C0WEB", Project: "web"}}
	inOps := costPlace{channel: "C0OPS", thread: store.Thread{ID: 8, ChannelID: "C0OPS", Project: "web"}}
	direct := costPlace{channel: "D0USER", thread: store.Thread{ID: 9, ChannelID: "D0USER", Project: "web"}}
	tests := []struct {
		who, user string
		at        costPlace
		asks      string
		want      string // the question, or the beginning of the refusal's reason
		people    bool
	}{
		{"an admin", "U0ADMIN", inWeb, "today by user", "today by user", true},
		{"an admin", "U0ADMIN", inWeb, "today for <@U0USER>", "today for <@U0USER>", true},
		{"an admin", "U0ADMIN", inWeb, "today for project secret", "today for project secret", true},
		{"an admin", "U0ADMIN", inWeb, "today for everyone", "today for everyone", true},
		{"an admin", "U0ADMIN", inWeb, "today for channel D0123456", "today for <#D0123456>", true},

		{"a user", "U0USER", inWeb, "today for me", "today for <@U0USER>", false},
		{"a user", "U0USER", inWeb, "today for me by user", "today by user for <@U0USER>", false},
		{"a user", "U0USER", inWeb, "today for me for project secret", "today for <@U0USER> for project secret", false},
		{"a user", "U0USER", inWeb, "today by user", no + "costs by user", false},
		{"a user", "U0USER", inWeb, "today by user for project web", no + "costs by user", false},
		{"a user", "U0USER", inWeb, "today by user for this thread", no + "costs by user", false},
		{"a user", "U0USER", inWeb, "today for <@U0ADMIN>", no + "others' costs", false},
		{"a user", "U0USER", inWeb, "today for me and <@U0ADMIN>", no + "others' costs", false},
		{"a user", "U0USER", inWeb, "today", "today for project api for project web", false},
		{"a user", "U0USER", inWeb, "today by channel", "today by channel for project api for project web", false},
		{"a user", "U0USER", inWeb, "today for everyone", no + "the whole team's costs", false},
		{"a user", "U0USER", inWeb, "today for project web by thread", "today by thread for project web", false},
		{"a user", "U0USER", inWeb, "today for project secret", no + "costs of a place", false},
		{"a user", "U0USER", inWeb, "today for projects web and secret", no + "costs of a place", false},
		{"a user", "U0USER", inWeb, "today for channel C0API", "today for <#C0API>", false},
		{"a user", "U0USER", inWeb, "today for channel C0OPS", no + "costs of a place", false},
		{"a user", "U0USER", inWeb, "today for channel C0OPS for project web", no + "costs of a place", false},
		{"a user", "U0USER", inWeb, "today for channel C0SECRET", no + "costs of a place", false},
		{"a user", "U0USER", inWeb, "today for channel D0123456", no + "costs of a place", false},
		{"a user", "U0USER", inWeb, "today for channel D0123456 for project web", no + "costs of a place", false},
		{"a user", "U0USER", inWeb, "today for this thread", "today for this thread", false},
		{"a user", "U0USER", direct, "today for this thread", "today for this thread", false},
		{"a user", "U0USER", direct, "today for channel D0USER", "today for <#D0USER>", false},

		{"an approver", "U0APPROVER", inWeb, "today by user", no + "costs by user", false},
		{"an approver", "U0APPROVER", inWeb, "today by day", "today by day for project api for project secret for project web", false},

		{"an admin of one project", "U0LEAD", inWeb, "today by user for project api", "today by user for project api", true},
		{"an admin of one project", "U0LEAD", inWeb, "today for <@U0USER> for channel C0API", "today for <@U0USER> for <#C0API>", true},
		{"an admin of one project", "U0LEAD", inWeb, "today by user", no + "costs by user", false},
		{"an admin of one project", "U0LEAD", inWeb, "today by user for projects api and web", no + "costs by user", false},
		{"an admin of one project", "U0LEAD", inWeb, "today for project web", no + "costs of a place", false},

		{"a user of one channel", "U0OPS", inOps, "today", "today for <#C0OPS>", false},
		{"a user of one channel", "U0OPS", inOps, "today for this thread", "today for this thread", false},
		{"a user of one channel", "U0OPS", inOps, "today for project web", no + "costs of a place", false},
		{"somebody without a role", "U0NOBODY", inWeb, "today", no + "no place", false},
	}
	for _, tt := range tests {
		q, err := report.Parse(tt.asks, report.Context{
			Now: time.Now(), Asker: tt.user, ThreadID: tt.at.thread.ID, Projects: []string{"api", "secret", "web"},
		})
		if err != nil {
			t.Fatal(err)
		}
		q, sight, r := rightsOf(t, costTeam, tt.user, tt.at).narrow(q)
		got := q.String()
		if r != nil {
			got = no + r.reason
			if r.sentence == "" {
				t.Errorf("%s, %q: nobody says why", tt.who, tt.asks)
			}
		}
		if got != tt.want && (r == nil || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s, %q: %s, want %s", tt.who, tt.asks, got, tt.want)
		}
		if sight.people != tt.people {
			t.Errorf("%s, %q: names people: %v", tt.who, tt.asks, sight.people)
		}
	}
}

// TestAnOpenTeamSeesItsTotals: where everybody may use everything, nothing is cut.
func TestAnOpenTeamSeesItsTotals(t *testing.T) {
	t.Parallel()
	open := Access{Roles: costTeam.Roles, Projects: map[string]Roles{"web": {}, "api": {}, "secret": {}}}
	for _, words := range []string{"today", "today for everyone", "today by channel"} {
		q, err := report.Parse(words, report.Context{Now: time.Now(), Asker: "U0USER"})
		if err != nil {
			t.Fatal(err)
		}
		got, sight, r := rightsOf(t, open, "U0USER", costPlace{channel: "C0WEB"}).narrow(q)
		if r != nil || got.String() != words || sight.people {
			t.Errorf("%q: %s, %v", words, got, r)
		}
	}
}

// TestMask: what may not stand alone is among the others, and nothing is lost.
func TestMask(t *testing.T) {
	t.Parallel()
	line := func(key string, micro int64) report.Line {
		l := report.Line{CostLine: store.CostLine{Key: key, MicroUSD: micro, Turns: 1, Entries: 1}, Share: float64(micro) / 100, Before: 1, Compared: true}
		l.ThreadKey.ChannelID = key
		return l
	}
	a := report.Answer{
		By: store.ByChannel, Lines: []report.Line{line("C0WEB", 40), line("D0OTHER", 30), line("C0OPS", 20), line("D0USER", 10)},
		Threads: []report.Line{line("D0OTHER", 30), line("C0WEB", 5)},
	}
	s := sight{shows: rightsOf(t, costTeam, "U0USER", costPlace{channel: "D0USER"}).shows}
	s.mask(&a)
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

// TestWhatIsAboutCosts: work that begins with the word is work.
func TestWhatIsAboutCosts(t *testing.T) {
	t.Parallel()
	a := &App{c: Config{Channels: map[string]string{"C0WEB": "web"}}}
	for text, want := range map[string]bool{
		"costs": true, "Costs?": true, "cost": true, "costs last month by user": true, "costs: today": true,
		"costs last moth": true, "costs by colour": true, "costs for project wbe": true, "costs last fortnihgt by user": true, "costs seem off, fix them": false, "costs flurb": true,
		"costs this month by user for project wbe please":                              true,
		"costs are too high in the checkout, make it cheaper":                          false,
		"costs of the new index: measure them and tell me what you think of it, today": false,
		"costs today\nand then fix the test":                                           false,
		"costly":                                                                       false, "costsheet": false,
	} {
		c, ok := parseCommand(text)
		got := ok && c.verb == "cost" && a.meansCosts(c.rest)
		if got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
