package slackui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/spend"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/playground/slack"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

// The matrix: everybody, by every way in, to every act, in every kind of channel.
// What should come of it stands in literal tables below, so that a role that is
// widened by accident shows as a line of this test.

// entitled says which acts each sort of person is entitled to, in a channel of the
// team's own.
var entitled = []struct {
	who, user string
	acts      string // of: prompt stop see approve administer
}{
	{"an admin", slack.UserAda, "prompt stop see approve administer"},
	{"an approver, by a user group", slack.UserGrace, "prompt stop see approve"},
	{"a user, by a user group", slack.UserLinus, "prompt stop see"},
	{"the person who asked, who may not approve that", "U0ASKED", "prompt stop see"},
	{"a member without a role", slack.UserMallory, ""},
	{"a guest who has a role", slack.UserGuest, ""},
	{"a guest of one channel who has a role", "U0ULTRA", ""},
	{"somebody of another company who has a role", slack.UserConnect, ""},
	{"a stranger who has a role", "U0STRANGER", ""},
	{"a bot who has a role", "U0ROBOT", ""},
	{"somebody who left and has a role", "U0LEFT", ""},
	{"somebody whom Slack does not know", "U0NOBODY", ""},
}

// odd are people whom the playground's workspace does not have.
var odd = map[string]string{
	"U0ASKED":    `{}`,
	"U0ULTRA":    `{"is_restricted":true,"is_ultra_restricted":true}`,
	"U0STRANGER": `{"is_stranger":true}`,
	"U0ROBOT":    `{"is_bot":true}`,
	"U0LEFT":     `{"deleted":true}`,
}

// places are the kinds of channels. In one that is shared with another company
// nobody may do anything.
var places = []struct {
	kind, id string
	shared   bool
}{
	{"a public channel", slack.ChannelEngineering, false},
	{"a private channel", slack.ChannelPrivate, false},
	{"a direct message", "D0ANY", false},
	{"a channel shared with another company", slack.ChannelShared, true},
}

// way is a way in. run does the act as a person in the place and returns its
// outcome.
type way struct {
	name, act string
	envelope  func(m *matrix, user, channel, thread string, a approvals.Approval) envelope
}

func ways() []way {
	message := func(text string) func(*matrix, string, string, string, approvals.Approval) envelope {
		return func(m *matrix, user, channel, thread string, a approvals.Approval) envelope {
			words := strings.ReplaceAll(text, "CODE", view.Code(a))
			return m.event(object{"type": "app_mention", "user": user, "channel": channel, "ts": m.ts(), "thread_ts": thread, "text": "<@" + slack.BotUser + "> " + words})
		}
	}
	button := func(action string) func(*matrix, string, string, string, approvals.Approval) envelope {
		return func(m *matrix, user, channel, thread string, a approvals.Approval) envelope {
			return m.click(user, channel, thread, action, a.ID)
		}
	}
	modal := func(callback string, values object) func(*matrix, string, string, string, approvals.Approval) envelope {
		return func(m *matrix, user, channel, thread string, a approvals.Approval) envelope {
			about := a.ID
			if callback == view.CallbackBudget {
				about += " " + channel + " " + thread
			}
			v := object{
				"type": "view_submission", "team": object{"id": slack.TeamID}, "user": object{"id": user, "team_id": slack.TeamID},
				"view": object{"callback_id": callback, "private_metadata": about, "state": object{"values": values}},
			}
			return m.envelope("interactive", v)
		}
	}
	slash := func(text string) func(*matrix, string, string, string, approvals.Approval) envelope {
		return func(m *matrix, user, channel, _ string, _ approvals.Approval) envelope {
			return m.envelope("slash_commands", object{"team_id": slack.TeamID, "channel_id": channel, "user_id": user, "command": "/deckhand", "text": text})
		}
	}
	return []way{
		{name: "a mention", act: "prompt", envelope: message("do something")},
		{name: "a mention: stop", act: "stop", envelope: message("stop")},
		{name: "a mention: help", act: "see", envelope: message("help")},
		{name: "a mention: costs", act: "see", envelope: message("costs")},
		{name: "a mention: costs for me", act: "see", envelope: message("costs this week for me with csv")},
		{name: "a mention: costs by user", act: "administer", envelope: message("costs this week by user")},
		{name: "a mention: costs of somebody", act: "administer", envelope: message("costs for <@U0SOMEBODY>")},
		{name: "/deckhand costs by user", act: "administer", envelope: slash("costs by user")},
		{name: "a mention: grants", act: "see", envelope: message("grants")},
		{name: "a mention: approvals", act: "administer", envelope: message("approvals")},
		{name: "a reply: approve", act: "approve", envelope: message("approve CODE")},
		{name: "a reply: deny", act: "approve", envelope: message("deny CODE")},
		{name: "the button Approve", act: "approve", envelope: button(view.ActionApprove)},
		{name: "the button Always allow", act: "approve", envelope: button(view.ActionAlways)},
		{name: "the button Deny", act: "approve", envelope: button(view.ActionDeny)},
		{name: "the button Deny with reason", act: "approve", envelope: button(view.ActionDenyReason)},
		{name: "the button View all", act: "see", envelope: button(view.ActionViewInput)},
		{name: "the button Stop", act: "stop", envelope: button(view.ActionStop)},
		{name: "the button Show steps", act: "see", envelope: button(view.ActionSteps)},
		{name: "the button Send now", act: "stop", envelope: button(view.ActionSendNow)},
		{name: "the button Drop", act: "stop", envelope: button(view.ActionDrop)},
		{name: "the button Continue", act: "prompt", envelope: button(view.ActionContinue)},
		{name: "the button Ask Claude instead", act: "prompt", envelope: button(view.ActionInstead)},
		{name: "a button that says costs", act: "see", envelope: button(view.ActionSay + ":0")},
		{name: "a button that says costs by user", act: "administer", envelope: button(view.ActionSay + ":1")},
		{name: "a button that says stop", act: "stop", envelope: button(view.ActionSay + ":2")},
		{name: "a mention: how much did we spend", act: "see", envelope: message("how much did we spend this month?")},
		{name: "a mention: who spent the most", act: "administer", envelope: message("who spent the most?")},
		{name: "a mention: model", act: "prompt", envelope: message("model")},
		{name: "a mention: plan", act: "prompt", envelope: message("plan")},
		{name: "a mention: effort", act: "prompt", envelope: message("effort high")},
		{name: "a mention: sessions", act: "see", envelope: message("sessions")},
		{name: "a mention: arrête", act: "stop", envelope: message("arrête !")},
		{name: "the button Revoke", act: "administer", envelope: button(view.ActionRevoke)},
		{name: "the button that raises a budget", act: "administer", envelope: button(view.ActionBudgetRaise)},
		{name: "the button of a cheaper model", act: "administer", envelope: button(view.ActionBudgetModel)},
		{name: "the button that leaves a budget", act: "administer", envelope: button(view.ActionBudgetLeave)},
		{name: "the modal that raises a budget", act: "administer", envelope: modal(view.CallbackBudget, object{view.BudgetAmount: object{view.BudgetAmount: object{"value": "50"}}})},
		{name: "the modal with a reason", act: "approve", envelope: modal(view.CallbackDenyReason, object{})},
		{name: "the modal that confirms", act: "approve", envelope: modal(view.CallbackConfirm, object{view.ConfirmBox: object{view.ConfirmBox: object{"selected_options": []any{object{"value": "yes"}}}}})},
		{name: "the modal of Always allow, for the thread", act: "approve", envelope: grantModal("thread")},
		{name: "the modal of Always allow, for the project", act: "administer", envelope: grantModal("project")},
		{name: "/deckhand costs", act: "see", envelope: slash("costs")},
		{name: "/deckhand grants", act: "see", envelope: slash("grants")},
		{name: "/deckhand approvals", act: "administer", envelope: slash("approvals")},
		{name: "/deckhand", act: "see", envelope: slash("")},
		{name: "the native Stop button", act: "stop", envelope: func(m *matrix, user, channel, thread string, _ approvals.Approval) envelope {
			return m.event(object{"type": "agent_session_stopped", "user": user, "channel": channel, "thread_ts": thread})
		}},
	}
}

func grantModal(scope string) func(*matrix, string, string, string, approvals.Approval) envelope {
	return func(m *matrix, user, _, _ string, a approvals.Approval) envelope {
		modal := render.GrantModal(a, chat.Offers(a), []approvals.GrantScope{approvals.GrantScope(scope)}, false, render.Options{})
		b, err := json.Marshal(modal)
		if err != nil {
			m.t.Fatal(err)
		}
		_, rest, ok := strings.Cut(string(b), `"value":"0:`)
		if !ok {
			m.t.Fatalf("the modal has no offer: %s", b)
		}
		offer := "0:" + rest[:strings.IndexByte(rest, '"')]
		one := func(block, value string) object {
			return object{block: object{"selected_option": object{"value": value}}}
		}
		return m.envelope("interactive", object{
			"type": "view_submission", "team": object{"id": slack.TeamID}, "user": object{"id": user, "team_id": slack.TeamID},
			"view": object{"callback_id": view.CallbackGrant, "private_metadata": a.ID, "state": object{"values": object{
				view.GrantRule: one(view.GrantRule, offer), view.GrantWhere: one(view.GrantWhere, scope), view.GrantUntil: one(view.GrantUntil, "7d"),
			}}},
		})
	}
}

type object = map[string]any

// matrix is an app with a database and a workspace, and a thread in every place.
type matrix struct {
	t   testing.TB
	app *App
	db  *store.Store
	url string       // of the database
	at  http.Handler // of the workspace
	n   int

	begin   func() // begins another app
	shown   homes
	refused int // by this app

	conn    *pgx.Conn // to the database
	audited int64     // the number of the audit's last row that was looked at
}

func newMatrix(t testing.TB) *matrix {
	t.Helper()
	workspace, err := slack.New(slack.Options{NoRateLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	handler := workspace.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/users.info" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			form, err := url.ParseQuery(string(body))
			if err != nil {
				t.Error(err)
			}
			if about, ok := odd[form.Get("user")]; ok {
				var user object
				if err := json.Unmarshal([]byte(about), &user); err != nil {
					t.Error(err)
				}
				user["id"], user["team_id"], user["name"] = form.Get("user"), slack.TeamID, "odd"
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(object{"ok": true, "user": user})
				return
			}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		_ = workspace.Close(context.Background())
	})
	m := &matrix{t: t, url: storetest.URL(t), at: handler}
	m.db = storetest.Open(t, m.url, store.Options{})
	if m.conn, err = pgx.Connect(t.Context(), m.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.conn.Close(context.Background()) })
	var roles []string
	for _, e := range entitled {
		if strings.Contains(e.who, "has a role") {
			roles = append(roles, e.user)
		}
	}
	entered, err := Dial(t.Context(), Tokens{Bot: workspace.BotToken(), App: workspace.AppToken(), APIURL: server.URL + "/api/"})
	if err != nil {
		t.Fatal(err)
	}
	m.begin = func() {
		m.refused = 0
		m.app = New(entered, Config{Config: chat.Config{
			Store: m.db, Log: zap.NewNop(),
			Access: access.Rules{Roles: access.Roles{
				Admins: append([]string{slack.UserAda}, roles...), Approvers: []string{slack.GroupApprovers, "U0ASKED"}, Users: []string{slack.GroupEngineers},
			}, Places: access.Places{
				Channels:       map[string]string{slack.ChannelEngineering: "web", slack.ChannelPrivate: "web", slack.ChannelShared: "web"},
				DirectMessages: "web",
			}},
			Budgets: []spend.Budget{{Scope: ledger.BudgetPerson, Period: ledger.BudgetDaily, Ask: true, CheaperModel: "haiku"}},
			CatchUp: time.Hour,
		}, Costs: m.db})
		m.shown = homes{screen: m.app.screen, last: map[string]view.Home{}}
		m.app.Chat = chat.New(*m.app.Settings(), chat.Self{Team: slack.TeamID, User: slack.BotUser}, m.shown, people{m.app.screen.people}, m.app.costs)
		m.app.screen.chat, m.app.screen.poster.c = m.app.Chat, m.app.Settings()
		m.app.Begin(agent.New(agent.Config{Store: m.db, Frontend: m.app.Frontend(), Authoriser: m.app, Reminder: m.app, Policy: &policy.Policy{}, Replica: "replica-1"}))
	}
	m.begin()
	return m
}

// homes are a screen that keeps what was shown last of each home tab.
type homes struct {
	screen
	last map[string]view.Home
}

func (h homes) ShowHome(user string, home view.Home, refresh bool) {
	h.last[user] = home
	h.screen.ShowHome(user, home, refresh)
}

func (m *matrix) ts() string {
	m.n++
	return fmt.Sprintf("%d.%06d", 1700000000+m.n, m.n)
}

func (m *matrix) envelope(kind string, payload object) envelope {
	b, err := json.Marshal(payload)
	if err != nil {
		m.t.Fatal(err)
	}
	return envelope{ID: uuid.NewString(), Type: kind, Payload: b}
}

func (m *matrix) event(inner object) envelope {
	return m.envelope("events_api", object{"team_id": slack.TeamID, "event_id": uuid.NewString(), "event": inner})
}

func (m *matrix) click(user, channel, thread, action, value string) envelope {
	return m.envelope("interactive", object{
		"type": "block_actions", "team": object{"id": slack.TeamID}, "user": object{"id": user, "team_id": slack.TeamID},
		"channel": object{"id": channel}, "container": object{"type": "message", "message_ts": "1.1", "thread_ts": thread, "channel_id": channel},
		"trigger_id": "none", "actions": []any{object{"type": "button", "action_id": action, "value": value, "block_id": "b"}},
	})
}

// asked makes a thread in the channel whose turn waits for an approval, and a grant
// that somebody else made; the approval's id is the value of most buttons.
func (m *matrix) asked(channel string) (thread string, a approvals.Approval, turnID, grantID int64, noticeID string) {
	m.t.Helper()
	ctx := m.t.Context()
	key := threads.ThreadKey{TeamID: slack.TeamID, ChannelID: channel, ThreadTS: m.ts()}
	fail := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	id, _, err := m.db.Receive(ctx, inbox.Envelope{EventID: uuid.NewString(), Kind: inbox.Message, TeamID: key.TeamID, ChannelID: channel, TS: key.ThreadTS, ThreadTS: key.ThreadTS, UserID: "U0ASKED", Payload: json.RawMessage(`{}`)})
	fail(err)
	th, _, err := m.db.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U0ASKED", UUID: uuid.NewString(), Text: "go", Title: "what is done in " + channel})
	fail(err)
	th, _, err = storetest.Acquire(ctx, m.db, th.ID, "replica-1")
	fail(err)
	lease := threads.Lease{ThreadID: th.ID, Owner: "replica-1", Epoch: th.LeaseEpoch}
	session := uuid.NewString()
	fail(m.db.NewSession(ctx, lease, session, ""))
	epoch, err := m.db.BeginEpoch(ctx, lease, session, "2.1.329", 0)
	fail(err)
	turn, _, _, err := m.db.BeginTurn(ctx, lease, session, epoch)
	fail(err)
	ask := func() approvals.Approval {
		a, err := m.db.Ask(ctx, lease, approvals.Approval{
			ID: newID(), Input: json.RawMessage(`{"command":"go vet ./..."}`), Terms: approvals.Terms{Rule: "default", RequesterMay: false, Grantable: true},
			Origin:  approvals.Origin{SessionID: session, TurnID: turn.ID, RequestedBy: "U0ASKED"},
			Request: approvals.Request{Kind: approvals.Tool, RequestID: uuid.NewString(), ToolUseID: "toolu_1", ToolName: "Bash", ExpiresAt: time.Now().Add(time.Hour)},
		})
		fail(err)
		return a
	}
	granted := ask()
	_, err = m.db.Decide(ctx, approvals.Decision{
		ApprovalID: granted.ID, Status: approvals.Allowed, By: "U0OTHER", Via: "button",
		Grants: []approvals.NewGrant{{Scope: approvals.GrantThread, Pattern: "Bash(go vet *)", For: time.Hour}},
	})
	fail(err)
	grants, err := m.db.Grants(ctx, approvals.GrantFilter{TeamID: slack.TeamID, ThreadID: th.ID}, 1)
	fail(err)
	from, to := ledger.BudgetDaily.Span(time.Now(), time.UTC)
	m.n++
	notice := ledger.BudgetNotice{
		ID: newID(), Share: 100, LimitMicroUSD: int64(m.n), ThreadID: th.ID,
		BudgetWindow: ledger.BudgetWindow{TeamID: slack.TeamID, Scope: ledger.BudgetPerson, Key: "U0ASKED", Period: ledger.BudgetDaily, From: from, To: to},
	}
	if _, fresh, err := m.db.NoticeBudget(ctx, notice); err != nil || !fresh {
		m.t.Fatalf("NoticeBudget: %v %v", fresh, err)
	}
	return key.ThreadTS, ask(), turn.ID, grants[0].ID, notice.ID
}

// newID is an approval's. Its code has a digit, as those of package agent have: one of
// letters alone is no code, but a word.
func newID() string { return "7" + strings.ToUpper(strings.ReplaceAll(uuid.NewString(), "-", ""))[:25] }

// TestEveryWayIn is the whole matrix.
func TestEveryWayIn(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	cases := 0
	for _, place := range places {
		var thread, noticeID string
		var a approvals.Approval
		var turnID, grantID int64
		fresh := false // a refusal changes nothing, so the next case finds the same
		for _, w := range ways() {
			for _, who := range entitled {
				cases++
				what := fmt.Sprintf("%s, by %s, in %s", who.who, w.name, place.kind)
				if !fresh {
					thread, a, turnID, grantID, noticeID = m.asked(place.id)
				}
				carried := a
				if strings.Contains(w.name, "budget") || strings.Contains(w.name, "cheaper") {
					carried.ID = noticeID
				}
				e := w.envelope(m, who.user, place.id, thread, carried)
				switch { // what these buttons carry is no text
				case w.name == "the button Stop":
					e = m.click(who.user, place.id, thread, view.ActionStop, fmt.Sprint(turnID))
				case w.name == "the button Show steps":
					e = m.click(who.user, place.id, thread, view.ActionSteps, view.StepsPage{Turn: turnID, First: -1}.String())
				case w.name == "the button Send now":
					e = m.click(who.user, place.id, thread, view.ActionSendNow, "0")
				case w.name == "the button Drop":
					e = m.click(who.user, place.id, thread, view.ActionDrop, "0")
				case w.name == "the button Continue":
					e = m.click(who.user, place.id, thread, view.ActionContinue, fmt.Sprint(turnID))
				case w.name == "the button Ask Claude instead":
					e = m.click(who.user, place.id, thread, view.ActionInstead, thread)
				case strings.HasPrefix(w.name, "a button that says "):
					e = m.click(who.user, place.id, thread, view.ActionSay+":0", strings.TrimPrefix(w.name, "a button that says "))
				case w.name == "the button Revoke":
					e = m.click(who.user, place.id, thread, view.ActionRevoke, fmt.Sprint(grantID))
				}
				outcome := m.act(e)
				refused := outcome == "refused"
				want := strings.Contains(who.acts, w.act) && !place.shared
				if refused == want {
					t.Errorf("%s: outcome %q, entitled: %v", what, outcome, want)
				}
				if told := m.refusals(); refused != (told > 0) {
					t.Errorf("%s: refused: %v, and %d refusals in the audit", what, refused, told)
				}
				if m.refused > 15 { // an app has no more than 20 rows a minute for a person
					m.begin()
				}
				m.nothingHappened(what, want, a, grantID)
				fresh = !want
			}
		}
	}
	t.Logf("%d cases", cases)
}

// act does what the socket does with an envelope, less the acknowledgement.
func (m *matrix) act(e envelope) string {
	m.t.Helper()
	in, err := m.app.screen.decode(e)
	if err != nil || in == nil {
		m.t.Fatalf("decode: %v %v", in, err)
	}
	if in.Message != nil || in.Command != nil || in.Event != "" || in.Click != nil && m.app.IsPrompt(in.Click.Action) {
		id, _, err := m.db.Receive(m.t.Context(), in.Row)
		if err != nil {
			m.t.Fatal(err)
		}
		in.Row.ID = id
	}
	return m.app.Act(m.t.Context(), in)
}

// refusals are those in the audit since this was asked last, by its numbers: a clock may
// step back.
func (m *matrix) refusals() (n int) {
	m.t.Helper()
	if err := m.conn.QueryRow(m.t.Context(), `
		SELECT count(*) FILTER (WHERE kind = $2), COALESCE(max(seq), $1) FROM audit WHERE seq > $1`, m.audited, audit.Refused).Scan(&n, &m.audited); err != nil {
		m.t.Fatal(err)
	}
	m.refused += n
	return n
}

// nothingHappened checks that somebody who was refused has changed nothing.
func (m *matrix) nothingHappened(what string, entitled bool, a approvals.Approval, grantID int64) {
	m.t.Helper()
	if entitled {
		return
	}
	now, err := m.db.ApprovalByID(m.t.Context(), a.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	if now.Status != approvals.Pending || len(now.Votes) > 0 {
		m.t.Errorf("%s: the approval is %s with %d votes", what, now.Status, len(now.Votes))
	}
	grants, err := m.db.Grants(m.t.Context(), approvals.GrantFilter{TeamID: slack.TeamID, ID: grantID}, 1)
	if err != nil || len(grants) != 1 || grants[0].RevokedBy != "" {
		m.t.Errorf("%s: the grant is %+v, %v", what, grants, err)
	}
}

// TestAskedBackIsClickedAtOnce: what is asked back is seen before its row is done, and whoever
// gives it to the model just then is not told that it is there already.
func TestAskedBackIsClickedAtOnce(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	ts := m.ts()
	in, err := m.app.screen.decode(m.event(object{"type": "app_mention", "user": slack.UserAda, "channel": slack.ChannelEngineering, "ts": ts, "text": "<@" + slack.BotUser + "> csots"}))
	if err != nil {
		t.Fatal(err)
	}
	if in.Row.ID, _, err = m.db.Receive(t.Context(), in.Row); err != nil {
		t.Fatal(err)
	}
	if got := m.app.Act(t.Context(), in); got != "asked back" {
		t.Fatalf("the misspelt command: %q", got)
	}
	clicked := make(chan string)
	go func() {
		clicked <- m.act(m.click(slack.UserAda, slack.ChannelEngineering, ts, view.ActionInstead, ts))
	}()
	select {
	case got := <-clicked:
		t.Fatalf("the click, before the row is done: %q", got)
	case <-time.After(200 * time.Millisecond):
	}
	if _, err := m.db.FinishTelling(t.Context(), in.Row.ID, "asked back"); err != nil {
		t.Fatal(err)
	}
	if got := <-clicked; got != "given to the model" {
		t.Errorf("the click: %q", got)
	}
	if got := m.act(m.click(slack.UserAda, slack.ChannelEngineering, ts, view.ActionInstead, ts)); got != "too late" {
		t.Errorf("the second click: %q", got)
	}
}

// TestEveryCommand says every command by a mention and after /deckhand, in several
// ways each, and what makes no sense to the slash command.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	const (
		elsewhere = "not in a thread"
		odd       = "not understood"
		back      = "asked back"
	)
	for _, c := range []struct{ text, mention, slash string }{
		{"help", "help", "help"},
		{"", "help", "help"},
		{"grants", "grants", "grants"},
		{"costs today", "costs", "costs"},
		{"costs last moth", back, back},
		{"csots", back, back},
		{"how much did we spend this month?", "costs", "costs"},
		{"how much did we spned this month?", back, back},
		{"reduce the cost of the query", "accepted", odd},
		{"approvals 7 days", "approvals", "approvals"},
		{"approvals 7 moons", back, back},
		{"grants all", back, back},
		{"help me", back, back},
		{"costs of this function: can we reduce them?", back, back},
		{"stop", "nothing to stop", elsewhere},
		{"approve 7K2QX", "no such approval", elsewhere},
		{"approve", back, odd},
		{"approve of this design?", "accepted", odd},
		{"deny 7K2QX no", "no such approval", elsewhere},
		{"fix the test", "accepted", odd},
		{"model", "models", elsewhere},
		{"model opus", "a model that is not allowed", elsewhere},
		{"effort high", "no session", elsewhere},
		{"plan", "no session", elsewhere},
		{"plan the release", "accepted", odd},
		{"retry", "no session", elsewhere},
		{"new", "no session", elsewhere},
		{"sessions", "no session", elsewhere},
		{"compcat", back, back},
	} {
		for _, text := range []string{c.text, strings.ToUpper(c.text), "  " + strings.ReplaceAll(c.text, " ", "   ") + " \t"} {
			mention := m.event(object{"type": "app_mention", "user": slack.UserAda, "channel": slack.ChannelEngineering, "ts": m.ts(), "text": "<@" + slack.BotUser + "> " + text})
			if got := m.act(mention); got != c.mention {
				t.Errorf("mention %q: %q, want %q", text, got, c.mention)
			}
			slash := m.envelope("slash_commands", object{"team_id": slack.TeamID, "channel_id": slack.ChannelEngineering, "user_id": slack.UserAda, "command": "/deckhand", "text": text})
			if got := m.act(slash); got != c.slash {
				t.Errorf("/deckhand %q: %q, want %q", text, got, c.slash)
			}
		}
	}
}
