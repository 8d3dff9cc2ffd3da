package costs

import (
	stdcmp "cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/playground/slack"
	"deckhand/internal/report"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/store/threads"
	"deckhand/internal/waittest"
)

// TestAQuestionIsCutDown: a question reaches access as what it is about, and comes back
// narrowed. Who may see what is access's own test.
func TestAQuestionIsCutDown(t *testing.T) {
	t.Parallel()
	a := &Accountant{c: Config{Team: "T0US", People: peopleOf{directory.New(nil, zap.NewNop())}, Access: access.Rules{
		Roles:    access.Roles{Admins: []string{"U0ADMIN"}, Users: []string{"U0USER"}},
		Projects: map[string]access.Roles{"secret": {Users: []string{"U0SPY"}}},
		Channels: map[string]access.Roles{"C0OPS": {Users: []string{"U0OPS"}}},
		Places:   access.Places{Channels: map[string]string{"C0WEB": "web", "C0OPS": "web", "C0SECRET": "secret"}},
	}}}
	at := view.Place{Channel: "C0WEB", Thread: threads.Thread{ID: 7, ChannelID: "C0WEB", Project: "web"}}
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
		q, allowed := a.mayAsk(t.Context(), askerOf(tt.user, at), q)
		got := q.String()
		if !allowed.Allowed {
			got = no + allowed.Refusal.Reason
		}
		if got != tt.want {
			t.Errorf("%s, %q: %s, want %s", tt.user, tt.asks, got, tt.want)
		}
	}
	asker := askerOf("U0USER", at)
	if got := a.usable(t.Context(), asker); fmt.Sprint(got) != "[web]" {
		t.Errorf("usable: %v", got)
	}
	if shows := a.shows(t.Context(), asker); !shows("C0WEB") || shows("C0OPS") || shows("D0OTHER") {
		t.Error("not the channels that may stand alone")
	}
}

// TestAnswersGoToThoseWhoMaySeeThem: to all where they are plain sums, to one where they
// are about people; files follow to where nobody else reads them.
func TestAnswersGoToThoseWhoMaySeeThem(t *testing.T) {
	t.Parallel()
	const eng = slack.ChannelEngineering
	for _, tt := range []struct {
		what, user string
		at         view.Place
		words      string
		want       []string // how, where and to whom, and what is in it
		not        string   // what is in none
	}{
		{"sums in a thread", slack.UserLinus, view.Place{Channel: eng}, "by project", []string{"message C web"}, "Linus"},
		{"sums of channels, none of which is private", slack.UserLinus, view.Place{Channel: eng}, "by channel", []string{"message C 2 others"}, "private-ops"},
		{"an admin's channels, where all read it", slack.UserAda, view.Place{Channel: eng}, "by channel", []string{"message C private-channel"}, "private-ops"},
		{"an admin's channels", slack.UserAda, view.Place{Channel: eng, Slash: true}, "by channel", []string{"whisper C:" + slack.UserAda + " private-ops"}, "private-channel"},
		{"threads, by their titles where all read them", slack.UserAda, view.Place{Channel: eng}, "by thread", []string{"message C what is done in " + eng}, "done in " + slack.ChannelPrivate},
		{"threads, for an admin in another channel", slack.UserAda, view.Place{Channel: slack.ChannelGeneral, Slash: true}, "by thread", []string{"whisper C:" + slack.UserAda + " private-ops"}, "done in"},
		{"one's own", slack.UserLinus, view.Place{Channel: eng}, "for me", []string{"whisper C:" + slack.UserLinus + " Linus"}, ""},
		{"by user", slack.UserAda, view.Place{Channel: eng}, "by user", []string{"whisper C:" + slack.UserAda + " Linus"}, ""},
		{"by slash command", slack.UserLinus, view.Place{Channel: eng, Slash: true}, "today", []string{"whisper C:" + slack.UserLinus + " Costs of"}, ""},
		{"a file for all", slack.UserLinus, view.Place{Channel: eng}, "by project as csv", []string{"message C web", "file C by-project.csv"}, ""},
		{"a file for one", slack.UserAda, view.Place{Channel: eng}, "by user as csv", []string{"whisper C:" + slack.UserAda + " Linus", "message " + slack.UserAda + " The files", "file D by-user.csv"}, ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			outcome, refused, err := h.Answer(t.Context(), tt.user, tt.at, tt.words)
			if outcome != "costs" || refused != nil || err != nil {
				t.Fatalf("%q, %v, %v", outcome, refused, err)
			}
			waitFor(t, func() bool { return len(h.sent()) >= len(tt.want) })
			for i, p := range h.sent() {
				where := p.Channel
				if where != tt.user {
					where = where[:1]
				}
				if p.To != "" {
					where += ":" + p.To
				}
				got := p.How + " " + where + " " + p.Text
				how, part, _ := strings.Cut(tt.want[min(i, len(tt.want)-1)], " ")
				place, part, _ := strings.Cut(part, " ")
				if i >= len(tt.want) || !strings.HasPrefix(got, how+" "+place+" ") || !strings.Contains(p.Text, part) || tt.not != "" && strings.Contains(p.Text, tt.not) {
					t.Errorf("%d: %s", i, got)
				}
			}
		})
	}
}

// TestWhatIsNotAnswered: what nobody understands is told to the one who wrote it; what
// they may not ask is for the caller to say.
func TestWhatIsNotAnswered(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	at := view.Place{Channel: slack.ChannelEngineering, ThreadTS: "1.1"}
	outcome, refused, err := h.Answer(t.Context(), slack.UserLinus, at, "for project wbe")
	if outcome != "asked back" || refused != nil || err != nil || len(h.told) != 1 || !strings.Contains(h.told[0], "web") || strings.Contains(h.told[0], "secret") {
		t.Errorf("%q, %v, %v, told %q", outcome, refused, err, h.told)
	}
	_, refused, err = h.Answer(t.Context(), slack.UserLinus, at, "by user")
	if refused == nil || refused.Reason != "costs by user" || err != nil || len(h.told) != 1 || len(h.sent()) != 0 {
		t.Errorf("%v, %v, told %q, sent %v", refused, err, h.told, h.sent())
	}
	h.c.Teams = map[string]string{"web": "Platform", "secret": "Hidden"}
	if _, _, err := h.Answer(t.Context(), slack.UserLinus, at, "for team Nobody"); err != nil || len(h.told) != 2 || !strings.Contains(h.told[1], "Platform") || strings.Contains(h.told[1], "Hidden") {
		t.Errorf("%q, %v", h.told, err)
	}
}

// TestAnAnswerIsShownInWhatSlackTakes: without its chart, then as plain text; a chart
// that was refused comes as a picture, and is not tried again.
func TestAnAnswerIsShownInWhatSlackTakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		refuses int
		want    []string
	}{
		{0, []string{"message true"}},
		{1, []string{"message true", "file false"}},
		{2, []string{"message false", "file false"}},
	} {
		h := newHouse(t)
		h.web.refuses = tt.refuses
		if _, _, err := h.Answer(t.Context(), slack.UserLinus, view.Place{Channel: slack.ChannelEngineering}, "by project"); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return len(h.sent()) >= len(tt.want) })
		var got []string
		for _, p := range h.sent() {
			got = append(got, fmt.Sprintf("%s %v", p.How, p.Blocks))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%d refusals (-want +got):\n%s", tt.refuses, diff)
		}
	}
}

// TestTheHomeTabsSums: everybody their own, users those of their projects, admins all
// with the projects.
func TestTheHomeTabsSums(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for user, want := range map[string]string{
		slack.UserAda:     "3 mine, 3 team, projects true",
		slack.UserLinus:   "3 mine, 3 team, projects false",
		slack.UserMallory: "3 mine, 0 team, projects false",
	} {
		var view view.Home
		if err := h.FillHome(t.Context(), &view, user, time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%d mine, %d team, projects %v", len(view.Mine), len(view.Team), view.Projects != nil); got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
	for _, q := range h.ledger.asked {
		if len(q.Projects) != 0 && fmt.Sprint(q.Projects) != "[web]" {
			t.Errorf("asked for %v", q.Projects)
		}
	}
}

func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	limit := time.After(waittest.Limit)
	for !what() {
		select {
		case <-limit:
			t.Fatal("waited in vain")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestPlainCostsHaveSumsBeside: of the thread, and to one person alone their own.
func TestPlainCostsHaveSumsBeside(t *testing.T) {
	t.Parallel()
	thread := threads.Thread{ID: 7, ChannelID: slack.ChannelEngineering, Project: "web"}
	for _, tt := range []struct {
		at   view.Place
		want []string
	}{
		{view.Place{Channel: slack.ChannelEngineering, Thread: thread}, []string{"This thread"}},
		{view.Place{Channel: slack.ChannelEngineering, Thread: thread, Slash: true}, []string{"This thread", "You"}},
		{view.Place{Channel: slack.ChannelEngineering}, nil},
	} {
		h := newHouse(t)
		if _, _, err := h.Answer(t.Context(), slack.UserAda, tt.at, " "); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return len(h.sent()) > 0 })
		for _, name := range []string{"This thread", "You"} {
			if got := strings.Contains(h.sent()[0].Text, "*"+name+"*"); got != slices.Contains(tt.want, name) {
				t.Errorf("%+v: %q stands there: %v\n%s", tt.at, name, got, h.sent()[0].Text)
			}
		}
	}
}

// TestDaysAreThoseOfTheAsker, where the team wants that.
func TestDaysAreThoseOfTheAsker(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	person, err := h.c.People.(peopleOf).User(t.Context(), slack.UserAda)
	if err != nil {
		t.Fatal(err)
	}
	if zone := h.zoneOf(t.Context(), slack.UserAda); zone != time.UTC {
		t.Errorf("the team's days are those of %s", zone)
	}
	h.c.AskersTimeZone = true
	if zone := h.zoneOf(t.Context(), slack.UserAda); zone.String() != stdcmp.Or(person.TZ, "UTC") {
		t.Errorf("Ada lives in %q, her days are those of %s", person.TZ, zone)
	}
	if zone := h.zoneOf(t.Context(), "U0NOBODY"); zone != time.UTC {
		t.Errorf("nobody's days are those of %s", zone)
	}
}
