package slackui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"deckhand/internal/chat/view"
	"deckhand/internal/playground/slack"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/storetest"
)

// tab is what a person's home tab shows, as JSON.
func (m *matrix) tab(user string, choice view.HomeChoice) string {
	m.t.Helper()
	of, err := json.Marshal(choice)
	if err != nil {
		m.t.Fatal(err)
	}
	if got := m.act(m.event(object{"type": "app_home_opened", "user": user, "channel": "D0ANY", "tab": "home", "view": object{"private_metadata": string(of)}})); got != "home" {
		m.t.Fatalf("the home tab of %s: %s", user, got)
	}
	m.refusals()
	b, err := json.Marshal(render.Home(m.shown.last[user]))
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
	asked := map[string]approvals.Approval{}
	for _, p := range places {
		_, asked[p.id], _, _, _ = m.asked(p.id)
	}
	for _, who := range entitled {
		outcome := m.act(m.event(object{"type": "app_home_opened", "user": who.user, "channel": "D0ANY", "tab": "home"}))
		if n := m.refusals(); outcome != "home" || (n > 0) != (who.acts == "") {
			t.Errorf("%s: %q, %d refusals", who.who, outcome, n)
		}
		all := m.tab(who.user, view.HomeChoice{All: true})
		for _, p := range places {
			inPrivate := who.user == slack.UserAda || who.user == slack.UserGrace
			want := who.acts != "" && (who.user == "U0ASKED" || p.id == slack.ChannelEngineering || p.id == slack.ChannelPrivate && inPrivate)
			if got := strings.Contains(all, "what is done in "+p.id); got != want {
				t.Errorf("%s sees what a thread in %s is about: %v, want %v", who.who, p.kind, got, want)
			}
			decides := strings.Contains(who.acts, "approve") && !p.shared
			if got := strings.Contains(all, view.HomeBlock(asked[p.id].ID)); got != decides {
				t.Errorf("%s has buttons for a request in %s: %v, want %v", who.who, p.kind, got, decides)
			}
		}
		if got, want := strings.Contains(all, "For admins"), strings.Contains(who.acts, "administer"); got != want {
			t.Errorf("%s sees the admins' part: %v", who.who, got)
		}
		if mine := m.tab(who.user, view.HomeChoice{}); strings.Contains(mine, "opened ") != (who.user == "U0ASKED") {
			t.Errorf("%s: threads of their own: %v", who.who, strings.Contains(mine, "opened "))
		} else if newcomer := who.acts != "" && who.user != "U0ASKED"; strings.Contains(mine, "How to begin") != newcomer {
			t.Errorf("%s is told how to begin: %v", who.who, !newcomer)
		} else if _, to, _ := strings.Cut(mine, "1. Go to "); newcomer && strings.Contains(strings.SplitN(to, "2. ", 2)[0], slack.ChannelShared) {
			t.Errorf("%s is sent to a channel in which Deckhand does not work", who.who)
		}
	}
	// a request is decided on the tab, by its own buttons there and by no others.
	a := asked[slack.ChannelEngineering]
	for _, c := range []struct{ user, block, want string }{
		{slack.UserGrace, "b", "wrong card"},
		{slack.UserGrace, view.HomeBlock(asked[slack.ChannelPrivate].ID), "wrong card"},
		{slack.UserLinus, view.HomeBlock(a.ID), "refused"},
		{slack.UserMallory, view.HomeBlock(a.ID), "refused"},
		{slack.UserGrace, view.HomeBlock(a.ID), "allowed"},
		{slack.UserAda, view.HomeBlock(a.ID), "too late"},
	} {
		if got := m.act(m.homeClick(c.user, c.block, view.ActionApprove, a.ID, "")); got != c.want {
			t.Errorf("%s clicks Approve in %s: %q, want %q", c.user, c.block, got, c.want)
		}
	}
	if ada := m.tab(slack.UserAda, view.HomeChoice{All: true}); strings.Contains(ada, view.HomeBlock(a.ID)) {
		t.Error("what is decided still waits on the tab")
	}
	// The list narrows, and stays narrowed.
	for action, value := range map[string]string{view.ActionHomeWhose: "all", view.ActionHomeState: "waits", view.ActionHomeEarlier: "earlier", "menu": "x"} {
		m.act(m.homeClick(slack.UserAda, "home:choice", action, value, `{"project":"web"}`))
		got := m.shown.last[slack.UserAda].Choice
		want := map[string]view.HomeChoice{
			view.ActionHomeWhose: {All: true, Project: "web"}, view.ActionHomeState: {State: "waits", Project: "web"},
			view.ActionHomeEarlier: {Project: "web", Page: 1},
		}[action]
		if action != "menu" && got != want {
			t.Errorf("%s: %+v, want %+v", action, got, want)
		}
	}
	for choice, want := range map[view.HomeChoice]bool{
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
func (m *matrix) tellsWhomAQuestionWaitsFor(a approvals.Approval) {
	m.t.Helper()
	a.Kind = approvals.Question
	for asked, waits := range map[string]map[string]bool{
		"U0ASKED":         {"U0ASKED": true, slack.UserAda: false, slack.UserGrace: false},
		slack.UserMallory: {"U0ASKED": true, slack.UserAda: true, slack.UserMallory: false},
	} {
		a.RequestedBy = asked
		storetest.Exec(m.t, m.url, fmt.Sprintf(`
			SET session_replication_role = replica; -- what is checked by triggers holds
			UPDATE approvals SET kind = 'question', requested_by = '%s' WHERE id = '%s'`, asked, a.ID))
		for user, want := range waits {
			if got := strings.Contains(m.tab(user, view.HomeChoice{}), view.HomeBlock(a.ID)); got != want {
				m.t.Errorf("a question to %s waits for %s: %v", asked, user, got)
			}
		}
		if !m.app.MayDecide(m.t.Context(), slack.UserAda, a) {
			m.t.Error("who helps out may not answer any more")
		}
	}
}

func TestWhatIsNoChoice(t *testing.T) {
	t.Parallel()
	for _, metadata := range []string{"", "{", `{"page":-1}`, `{"page":100}`, `{"state":"else"}`, `{"project":"` + strings.Repeat("x", 76) + `"}`, `[]`} {
		if got := view.ParseHomeChoice(metadata); got != (view.HomeChoice{}) {
			t.Errorf("%s: %+v", metadata, got)
		}
	}
}
