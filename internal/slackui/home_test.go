package slackui

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"deckhand/internal/playground/slack"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// tab is what a person's home tab shows, as JSON.
func (m *matrix) tab(user string, choice render.HomeChoice) string {
	m.t.Helper()
	view, err := m.app.homeView(m.t.Context(), person{TeamID: slack.TeamID, UserID: user}, choice, m.app.mayDo)
	if err != nil {
		m.t.Fatal(err)
	}
	b, err := json.Marshal(view)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(b)
}

// homeClick is a click on a home tab that shows metadata.
func (m *matrix) homeClick(user, block, action, value, metadata string) envelope {
	return m.envelope("interactive", object{
		"type": "block_actions", "team": object{"id": slack.TeamID}, "user": object{"id": user, "team_id": slack.TeamID},
		"container": object{"type": "view", "view_id": "V1"}, "view": object{"id": "V1", "type": "home", "private_metadata": metadata},
		"trigger_id": "none", "actions": []any{object{"type": "button", "action_id": action, "value": value, "block_id": block}},
	})
}

// TestTheHomeTab: everybody may open it, and sees what they may. What threads are about is
// seen by those who can read their channel; who is only an approver of a private one sees
// the request and no more.
func TestTheHomeTab(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	asked := map[string]store.Approval{}
	for _, p := range places {
		_, asked[p.id], _, _, _ = m.asked(p.id)
	}
	for _, who := range entitled {
		outcome := m.act(m.event(object{"type": "app_home_opened", "user": who.user, "channel": "D0ANY", "tab": "home"}))
		if n := m.refusals(); outcome != "home" || (n > 0) != (who.acts == "") {
			t.Errorf("%s: %q, %d refusals", who.who, outcome, n)
		}
		all := m.tab(who.user, render.HomeChoice{All: true})
		for _, p := range places {
			inPrivate := who.user == slack.UserAda || who.user == slack.UserGrace
			want := who.acts != "" && (who.user == "U0ASKED" || p.id == slack.ChannelEngineering || p.id == slack.ChannelPrivate && inPrivate)
			if got := strings.Contains(all, "what is done in "+p.id); got != want {
				t.Errorf("%s sees what a thread in %s is about: %v, want %v", who.who, p.kind, got, want)
			}
			decides := strings.Contains(who.acts, "approve") && !p.shared
			if got := strings.Contains(all, render.HomeBlock(asked[p.id].ID)); got != decides {
				t.Errorf("%s has buttons for a request in %s: %v, want %v", who.who, p.kind, got, decides)
			}
		}
		if got, want := strings.Contains(all, "For admins"), strings.Contains(who.acts, "administer"); got != want {
			t.Errorf("%s sees the admins' part: %v", who.who, got)
		}
		if mine := m.tab(who.user, render.HomeChoice{}); strings.Contains(mine, "opened ") != (who.user == "U0ASKED") {
			t.Errorf("%s: threads of their own: %v", who.who, strings.Contains(mine, "opened "))
		} else if newcomer := who.acts != "" && who.user != "U0ASKED"; strings.Contains(mine, "How to begin") != newcomer {
			t.Errorf("%s is told how to begin: %v", who.who, !newcomer)
		} else if _, to, _ := strings.Cut(mine, "1. Go to "); newcomer && strings.Contains(strings.SplitN(to, "2. ", 2)[0], slack.ChannelShared) {
			t.Errorf("%s is sent to a channel in which Deckhand does not work", who.who)
		}
	}
	// A request is decided on the tab, by its own buttons there and by no others.
	a := asked[slack.ChannelEngineering]
	for _, c := range []struct{ user, block, want string }{
		{slack.UserGrace, "b", "wrong card"},
		{slack.UserGrace, render.HomeBlock(asked[slack.ChannelPrivate].ID), "wrong card"},
		{slack.UserLinus, render.HomeBlock(a.ID), "refused"},
		{slack.UserMallory, render.HomeBlock(a.ID), "refused"},
		{slack.UserGrace, render.HomeBlock(a.ID), "allowed"},
		{slack.UserAda, render.HomeBlock(a.ID), "too late"},
	} {
		if got := m.act(m.homeClick(c.user, c.block, render.ActionApprove, a.ID, "")); got != c.want {
			t.Errorf("%s clicks Approve in %s: %q, want %q", c.user, c.block, got, c.want)
		}
	}
	if ada := m.tab(slack.UserAda, render.HomeChoice{All: true}); strings.Contains(ada, render.HomeBlock(a.ID)) {
		t.Error("what is decided still waits on the tab")
	}
	// The list narrows, and stays narrowed.
	for action, value := range map[string]string{render.ActionHomeWhose: "all", render.ActionHomeState: "waits", render.ActionHomeEarlier: "earlier", "menu": "x"} {
		m.act(m.homeClick(slack.UserAda, "home:choice", action, value, `{"project":"web"}`))
		m.app.homes.mu.Lock()
		got := m.app.homes.tabs[slack.UserAda].choice
		m.app.homes.mu.Unlock()
		want := map[string]render.HomeChoice{
			render.ActionHomeWhose: {All: true, Project: "web"}, render.ActionHomeState: {State: "waits", Project: "web"},
			render.ActionHomeEarlier: {Project: "web", Page: 1},
		}[action]
		if action != "menu" && got != want {
			t.Errorf("%s: %+v, want %+v", action, got, want)
		}
	}
	for choice, want := range map[render.HomeChoice]bool{
		{State: "waits"}: true, {State: "works"}: true, {State: "over"}: false, {Project: "web"}: true, {Project: "api"}: false, {Page: 1}: false,
	} {
		if got := strings.Contains(m.tab("U0ASKED", choice), "what is done in "); got != want {
			t.Errorf("%+v: %v, want %v", choice, got, want)
		}
	}
	m.tellsWhomAQuestionWaitsFor(asked[slack.ChannelPrivate])
}

// tellsWhomAQuestionWaitsFor: it waits for the person who was asked, and for others only if
// that person may not answer any more.
func (m *matrix) tellsWhomAQuestionWaitsFor(a store.Approval) {
	m.t.Helper()
	a.Kind = store.ApprovalQuestion
	for asked, waits := range map[string]map[string]bool{
		"U0ASKED":         {"U0ASKED": true, slack.UserAda: false, slack.UserGrace: false},
		slack.UserMallory: {"U0ASKED": true, slack.UserAda: true, slack.UserMallory: false},
	} {
		a.RequestedBy = asked
		for user, want := range waits {
			who := person{TeamID: slack.TeamID, UserID: user}
			if got := m.app.mineToDecide(m.t.Context(), who, []store.Approval{a})[a.ID]; got != want {
				m.t.Errorf("a question to %s waits for %s: %v", asked, user, got)
			}
		}
		if m.app.mayDecide(m.t.Context(), person{TeamID: slack.TeamID, UserID: slack.UserAda}, a) != nil {
			m.t.Error("who helps out may not answer any more")
		}
	}
}

func TestWhatIsNoChoice(t *testing.T) {
	t.Parallel()
	for _, metadata := range []string{"", "{", `{"page":-1}`, `{"page":100}`, `{"state":"else"}`, `{"project":"` + strings.Repeat("x", 76) + `"}`, `[]`} {
		if got := render.ParseHomeChoice(metadata); got != (render.HomeChoice{}) {
			t.Errorf("%s: %+v", metadata, got)
		}
	}
}

// TestTabsAreKeptForThoseWhoLooked, for ten minutes, and are looked at four times a minute
// at most.
func TestTabsAreKeptForThoseWhoLooked(t *testing.T) {
	t.Parallel()
	h := homes{wake: make(chan struct{}, 1), news: make(chan struct{}, 1)}
	now := time.Now()
	h.changed()
	if len(h.wake) != 0 {
		t.Error("nobody looks, and somebody is woken")
	}
	h.looks(person{UserID: "U1"}, render.HomeChoice{}, now)
	if due, next := h.due(now.Add(time.Minute)); len(due) != 0 || !next.IsZero() {
		t.Errorf("nothing has changed: %v, %v", due, next)
	}
	h.changed()
	if due, next := h.due(now.Add(homeEvery - time.Second)); len(due) != 0 || !next.Equal(now.Add(homeEvery)) {
		t.Errorf("too soon: %v, %v", due, next)
	}
	if due, _ := h.due(now.Add(homeEvery)); len(due) != 1 {
		t.Errorf("%d are due", len(due))
	}
	if due, next := h.due(now.Add(2 * homeEvery)); len(due) != 0 || !next.IsZero() {
		t.Errorf("it was looked at: %v, %v", due, next)
	}
	h.changed()
	if due, next := h.due(now.Add(homeKept + time.Second)); len(due) != 0 || !next.IsZero() || len(h.tabs) != 0 {
		t.Errorf("nobody looks any more: %v, %v", due, next)
	}
}
