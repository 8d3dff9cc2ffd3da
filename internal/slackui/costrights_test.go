package slackui

import (
	"fmt"
	"testing"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/report"
	"deckhand/internal/store"
)

// TestAQuestionIsCutDown: a question reaches access as what it is about, and comes back
// narrowed. Who may see what is access's own test.
func TestAQuestionIsCutDown(t *testing.T) {
	t.Parallel()
	a := &App{c: Config{Access: access.Rules{
		Roles:    access.Roles{Admins: []string{"U0ADMIN"}, Users: []string{"U0USER"}},
		Projects: map[string]access.Roles{"secret": {Users: []string{"U0SPY"}}},
		Channels: map[string]access.Roles{"C0OPS": {Users: []string{"U0OPS"}}},
		Places:   access.Places{Channels: map[string]string{"C0WEB": "web", "C0OPS": "web", "C0SECRET": "secret"}},
	}}}
	at := costPlace{channel: "C0WEB", thread: store.Thread{ID: 7, ChannelID: "C0WEB", Project: "web"}}
	const no = "REFUSED "
	for _, tt := range []struct{ user, asks, want string }{
		{"U0ADMIN", "today by user for project secret", "today by user for project secret"},
		{"U0ADMIN", "today for everyone", "today for everyone"},
		{"U0USER", "today", "today for project web"},
		{"U0USER", "today by day for everyone", no + "the whole team's costs"},
		{"U0USER", "today by channel", "today by channel for project web"},
		{"U0USER", "today for me for project secret", "today for <@U0USER> for project secret"},
		{"U0USER", "today by user", no + "costs by user"},
		{"U0USER", "today for <@U0ADMIN>", no + "others' costs"},
		{"U0USER", "today for channel C0SECRET", no + "costs of a place that the person may not use"},
		{"U0USER", "today for this thread", "today for this thread"},
		{"U0OPS", "today", "today for <#C0OPS>"},
	} {
		q, err := report.Parse(tt.asks, report.Context{Now: time.Now(), Asker: tt.user, ThreadID: 7, Projects: []string{"secret", "web"}})
		if err != nil {
			t.Fatal(err)
		}
		q, allowed := a.mayAsk(t.Context(), askerOf(person{UserID: tt.user}, at), q)
		got := q.String()
		if !allowed.Allowed {
			got = no + allowed.Refusal.Reason
		}
		if got != tt.want {
			t.Errorf("%s, %q: %s, want %s", tt.user, tt.asks, got, tt.want)
		}
	}
	asker := askerOf(person{UserID: "U0USER"}, at)
	if got := a.usable(t.Context(), asker); fmt.Sprint(got) != "[web]" {
		t.Errorf("usable: %v", got)
	}
	if shows := a.shows(t.Context(), asker); !shows("C0WEB") || shows("C0OPS") || shows("D0OTHER") {
		t.Error("not the channels that may stand alone")
	}
}

// TestWhatIsAboutCosts: work that begins with the word is work.
func TestWhatIsAboutCosts(t *testing.T) {
	t.Parallel()
	a := &App{c: Config{Access: access.Rules{Places: access.Places{Channels: map[string]string{"C0WEB": "web"}}}}}
	for text, want := range map[string]bool{
		"costs": true, "Costs?": true, "cost": true, "costs last month by user": true, "costs: today": true,
		"costs last moth": true, "costs by colour": true, "costs for project wbe": true, "costs last fortnihgt by user": true, "costs seem off, fix them": false, "costs flurb": true,
		"costs this month by user for project wbe please":                              true,
		"costs are too high in the checkout, make it cheaper":                          false,
		"costs of the new index: measure them and tell me what you think of it, today": false,
		"costs today\nand then fix the test":                                           false,
		"costly":                                                                       false, "costsheet": false,
	} {
		c, rest := allCommands().find(text)
		got := c != nil && c.name == "costs" && !c.isWork(a, rest)
		if got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
