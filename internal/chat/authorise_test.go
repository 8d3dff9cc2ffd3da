package chat

import (
	"context"
	"net/http/httptest"
	"net/mail"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/playground/slack"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/store/storetest"
)

// workspaceGate is the gate of a chat in a playground's workspace.
func workspaceGate(t *testing.T, roles access.Roles) *gate {
	t.Helper()
	workspace, err := slack.New(slack.Options{NoRateLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(workspace.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := workspace.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	api := slackgo.New(workspace.BotToken(), slackgo.OptionAPIURL(server.URL+"/api/"))
	return &gate{
		c:    Config{Access: access.Rules{Roles: roles}, Store: storetest.New(t), Log: zap.NewNop()},
		self: Self{Team: slack.TeamID, User: slack.BotUser}, screen: refusing{}, people: workspacePeople{known: directory.New(api, zap.NewNop())},
	}
}

// refusing is a screen that tells what passes, and workspacePeople are a workspace's.
type (
	refusing        struct{ Screen }
	workspacePeople struct {
		People
		known *directory.Directory
	}
)

func (refusing) RetryAfter(err error) (time.Duration, bool) { return publish.RetryAfter(err) }

func (p workspacePeople) Establish(ctx context.Context, team, user, channel string, ask func(access.Facts) access.Answer) access.Answer {
	return p.known.Establish(ctx, team, user, channel, ask)
}

func (p workspacePeople) Name(ctx context.Context, user string) string {
	return p.known.Name(ctx, user)
}

func (p workspacePeople) Profile(ctx context.Context, user string) (name, email string, err error) {
	u, err := p.known.User(ctx, user)
	if err != nil {
		return "", "", err
	}
	return u.RealName, u.Profile.Email, nil
}

// TestAuthorise: what Slack says of people, channels and groups reaches access. The
// whole matrix is access's own test.
func TestAuthorise(t *testing.T) {
	t.Parallel()
	a := workspaceGate(t, access.Roles{Admins: []string{slack.UserAda}, Approvers: []string{slack.GroupApprovers}, Users: []string{slack.GroupEngineers}})
	const yes = ""
	tests := []struct {
		who, user, channel string
		uses, approves     string // part of the refusal's reason
	}{
		{"an admin", slack.UserAda, slack.ChannelEngineering, yes, yes},
		{"an approver, by group", slack.UserGrace, slack.ChannelEngineering, yes, yes},
		{"a user, by group", slack.UserLinus, slack.ChannelEngineering, yes, "not an approver"},
		{"an admin in a direct message", slack.UserAda, "D0ADA", yes, yes},
		{"an admin in the home tab", slack.UserAda, "", yes, yes},
		{"an admin in a private channel", slack.UserAda, slack.ChannelPrivate, yes, yes},
		{"a stranger", slack.UserMallory, slack.ChannelEngineering, "not a user", "not an approver"},
		{"a guest", slack.UserGuest, slack.ChannelGeneral, "guest", "guest"},
		{"somebody of another company", slack.UserConnect, slack.ChannelShared, "another team", "another team"},
		{"the bot itself", slack.BotUser, slack.ChannelEngineering, "bot", "bot"},
		{"an admin in a shared channel", slack.UserAda, slack.ChannelShared, "externally shared", "externally shared"},
		{"an admin in a channel that is not there", slack.UserAda, "C0NOWHERE", "could not be looked up", "could not be looked up"},
		{"somebody who is not there", "U0NOBODY", slack.ChannelEngineering, "could not be looked up", "could not be looked up"},
		{"nobody", "", slack.ChannelEngineering, "another team", "another team"},
	}
	for _, tt := range tests {
		for act, want := range map[access.Act]string{access.Prompt: tt.uses, access.Stop: tt.uses, access.See: tt.uses, access.Approve: tt.approves} {
			r := a.authorise(t.Context(), person{TeamID: slack.TeamID, UserID: tt.user, ChannelID: tt.channel}, act)
			switch {
			case (r == nil) != (want == yes):
				t.Errorf("%s, %s: refused: %v", tt.who, act, r)
			case r != nil && (!strings.Contains(r.Reason, want) || r.Sentence == ""):
				t.Errorf("%s, %s: refused as %q with %q, want %q", tt.who, act, r.Reason, r.Sentence, want)
			}
		}
	}
	if r := a.authorise(t.Context(), person{TeamID: slack.OtherTeamID, UserID: slack.UserAda, ChannelID: slack.ChannelEngineering}, access.Prompt); r == nil {
		t.Error("a payload of another team passed")
	}
}

func TestAnEmptyConfigurationLetsNobodyIn(t *testing.T) {
	t.Parallel()
	a := workspaceGate(t, access.Roles{})
	for _, act := range []access.Act{access.Prompt, access.Stop, access.See, access.Approve} {
		if r := a.authorise(t.Context(), person{TeamID: slack.TeamID, UserID: slack.UserAda, ChannelID: slack.ChannelEngineering}, act); r == nil {
			t.Errorf("%s: Ada was let in", act)
		}
	}
}

func TestAGroupThatCannotBeLookedUpRefuses(t *testing.T) {
	t.Parallel()
	a := workspaceGate(t, access.Roles{Users: []string{"S0NOWHERE"}})
	r := a.authorise(t.Context(), person{TeamID: slack.TeamID, UserID: slack.UserLinus, ChannelID: slack.ChannelEngineering}, access.Prompt)
	if r == nil || !strings.Contains(r.Reason, "could not be looked up") {
		t.Errorf("refused: %v", r)
	}
}

// Commits are by people as their profiles have them, else as the configuration does. An account is connected by the
// profile's address alone.
func TestAuthorsOfCommits(t *testing.T) {
	t.Parallel()
	a := &Chat{gate: workspaceGate(t, access.Roles{})}
	a.c.Authors = map[string]mail.Address{
		slack.UserAda: {Name: "Somebody", Address: "else@example.com"}, slack.BotUser: {Name: "Robin", Address: "robin@example.com"}, "U0NOBODY": {Address: "n@example.com"},
	}
	for user, want := range map[string][3]string{ // whose profile has an address; whose has none; who cannot be looked up; and who is not named
		slack.UserAda: {"Ada", "ada@boathouse.example", "ada@boathouse.example"}, slack.BotUser: {"Robin", "robin@example.com"}, "U0NOBODY": {"", "n@example.com"}, "U0OTHER": {},
	} {
		name, email := a.AuthorOf(t.Context(), user)
		if got := [3]string{name, email, a.EmailOf(t.Context(), user)}; !strings.HasPrefix(got[0], want[0]) || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("%s is %q, want %q", user, got, want)
		}
	}
}
