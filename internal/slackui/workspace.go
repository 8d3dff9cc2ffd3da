package slackui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/publish"
)

// Tokens are how the bot is let into a workspace.
type Tokens struct {
	Bot string // xoxb-…
	App string // xapp-…
	// APIURL is the Web API's base URL; empty means Slack's.
	APIURL string
}

// Workspace is a Slack workspace that has let us in. It is safe for concurrent use.
type Workspace struct {
	client *slack.Client
	self   identity
	team   string
	scopes []string // of the bot's token; nil where Slack did not say
	known  known
}

// identity is who the tokens say we are; it is pinned at the start.
type identity struct {
	TeamID, UserID, TeamURL string
}

// Dial checks the tokens against Slack and pins the team. Its errors are sentences
// that name the variable to change.
func Dial(ctx context.Context, t Tokens) (*Workspace, error) {
	options := []slack.Option{
		slack.OptionAppLevelToken(t.App),
		// slack-go's own client has no time limit.
		slack.OptionHTTPClient(&http.Client{Timeout: 30 * time.Second, CheckRedirect: onlyToSlack}),
	}
	if t.APIURL != "" {
		options = append(options, slack.OptionAPIURL(strings.TrimSuffix(t.APIURL, "/")+"/"))
	}
	w := &Workspace{client: slack.New(t.Bot, options...)}

	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("auth.test: no answer in 30s"))
	defer cancel()
	who, err := w.client.AuthTestContext(ctx)
	if err != nil {
		return nil, connectError("SLACK_BOT_TOKEN", "xoxb-… token from OAuth & Permissions", err)
	}
	w.self = identity{TeamID: who.TeamID, UserID: who.UserID, TeamURL: who.URL}
	w.team = who.Team
	w.scopes = grantedScopes(who.Header.Get("X-Oauth-Scopes"))
	if _, _, err := w.client.StartSocketModeContext(ctx); err != nil {
		return nil, connectError("SLACK_APP_TOKEN", "xapp-… token with connections:write from Basic Information", err)
	}
	return w, nil
}

func connectError(variable, kind string, err error) error {
	if code := publish.Code(err); code != "" {
		return fmt.Errorf("slack refuses %s (%s): set it to the app's %s", variable, code, kind)
	}
	return fmt.Errorf("slack's API cannot be reached (%w): let this machine reach it, through HTTPS_PROXY if need be", err)
}

// Name is the workspace's.
func (w *Workspace) Name() string { return w.team }

// TeamID is the workspace's id.
func (w *Workspace) TeamID() string { return w.self.TeamID }

// CheckChannel says why the bot could not work in a channel; empty if it can. An error
// means that it cannot be told.
func (w *Workspace) CheckChannel(ctx context.Context, id string) (problem string, err error) {
	c, err := w.client.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
	switch {
	case publish.RefusedAs(err, "channel_not_found"):
		return "there is no channel " + id + ", or it is private and the bot is not in it; correct the id, or /invite the bot", nil
	case err != nil:
		return "", err
	case c.IsArchived:
		return "#" + c.Name + " (" + id + ") is archived; leave it out, or unarchive it", nil
	case !c.IsMember:
		return "the bot is not in #" + c.Name + " (" + id + "); /invite it there", nil
	}
	return "", nil
}

// CheckUser says why a person could not do anything; empty if they can.
func (w *Workspace) CheckUser(ctx context.Context, id string) (problem string, err error) {
	u, err := w.client.GetUserInfoContext(ctx, id)
	switch {
	case publish.RefusedAs(err, "user_not_found"):
		return "there is no person " + id + "; correct the id (Copy member ID in the person's profile)", nil
	case err != nil:
		return "", err
	case u.Deleted:
		return u.Name + " (" + id + ") is deactivated; leave them out", nil
	case u.IsBot, u.IsRestricted, u.IsUltraRestricted:
		return u.Name + " (" + id + ") is a guest or a bot, who may do nothing whatever list they are on", nil
	}
	return "", nil
}

// UserGroup is a user group: whether it is enabled, and who is in it.
type UserGroup struct {
	Enabled bool
	Users   []string
}

// UserGroups are the workspace's user groups by id.
func (w *Workspace) UserGroups(ctx context.Context) (map[string]UserGroup, error) {
	list, err := w.client.GetUserGroupsContext(ctx, slack.GetUserGroupsOptionIncludeDisabled(true), slack.GetUserGroupsOptionIncludeUsers(true))
	if err != nil {
		return nil, err
	}
	out := make(map[string]UserGroup, len(list))
	for _, g := range list {
		out[g.ID] = UserGroup{Enabled: g.DateDelete == 0, Users: g.Users}
	}
	return out, nil
}
