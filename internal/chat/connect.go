package chat

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"deckhand/internal/access"
	"deckhand/internal/accounts"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/pg"
)

// notOffered says why nobody can connect an account.
const notOffered = "Nobody can connect an account here: that takes a project that opens pull requests, with pull_requests.connect in deckhand.yaml at GitHub and GitLab, or an MCP server with as: person; and DECKHAND_TOKEN_KEY in the bot's environment. An admin can set them."

// connectLimit is how long a person has to enter a code.
const connectLimit = 15 * time.Minute

// accountsOf are the forges at which a person can connect an account, or has.
func (a *Chat) accountsOf(ctx context.Context, team, user string) ([]view.Account, error) {
	if a.c.Accounts == nil {
		return nil, nil
	}
	connected, err := a.c.Accounts.Store.Connections(ctx, team, user)
	if err != nil {
		return nil, err
	}
	var out []view.Account
	seen := map[string]bool{}
	for _, c := range connected {
		seen[c.Host] = true
		out = append(out, view.Account{Host: c.Host, Login: c.Login, Dead: c.DeadAt != nil, Server: accounts.IsServer(c.Host)})
	}
	for _, s := range a.c.Accounts.Sites {
		if _, ok := a.c.Accounts.Site(s.Host()); ok && !seen[s.Host()] {
			out = append(out, view.Account{Host: s.Host(), Server: s.Server != nil})
		}
	}
	return out, nil
}

// onConnectCommand shows a person their accounts, with what they can do about them.
func (a connector) onConnectCommand(ctx context.Context, in *Incoming, _ string) (outcome string, err error) {
	all, err := a.accountsOf(ctx, a.self.Team, in.Row.UserID)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		a.Answer(in, notOffered)
		return "not offered", nil
	}
	a.reply(in, view.Accounts(all))
	return "accounts", nil
}

// onConnectClick begins to connect an account of whoever pressed, in a window of theirs.
func (a connector) onConnectClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	site, ok := a.c.Accounts.Site(in.Click.Value)
	if a.refuses(ctx, in, in.person(), access.See) {
		return "refused", nil
	}
	if !ok {
		a.Answer(in, notOffered)
		return "not offered", nil
	}
	enters := view.ConnectByToken{Host: site.Host(), Address: site.TokenPage(), Server: site.Server != nil}
	if site.Asks() {
		// The trigger is not kept waiting for the server.
		open, err := a.screen.Open(ctx, in, view.Notice("Deckhand asks "+site.Host()+" how you connect there…"))
		if err != nil || open.ID == "" {
			return "no window", err
		}
		link, kept, err := a.c.Accounts.Find(ctx, site, a.self.Team, in.Row.UserID)
		if err != nil {
			enters.Why = err.Error()
			return "asked for a token", a.screen.Update(ctx, in, open, enters)
		}
		return "asked to agree", a.screen.Update(ctx, in, open, view.ConnectByLink{Host: site.Host(), Link: link, Kept: kept})
	}
	if site.EntersToken() {
		return "asked for a token", a.open(ctx, in, enters)
	}
	code, address, wait, err := a.c.Accounts.Begin(ctx, site)
	if err != nil {
		a.Answer(in, notConnected(err))
		return "no code", nil
	}
	if err := a.open(ctx, in, view.ConnectByCode{Host: site.Host(), Address: address, Code: code}); err != nil {
		return "", err
	}
	user := in.Row.UserID
	go func() { // a bot that stops meanwhile forgets the code: the person asks for another
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectLimit)
		defer cancel()
		t, err := wait(ctx)
		if err != nil {
			a.TellPerson(user, notConnected(err))
			return
		}
		a.bind(context.WithoutCancel(ctx), site, user, t)
	}()
	return "waits for a code", nil
}

// wrongToken says what is wrong with a token, or with an address that has its code.
func wrongToken(s *Submission) map[string]string {
	token := strings.TrimSpace(s.Inputs[view.TokenField][view.TokenField].Value)
	if token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil
	}
	said := "That is no token: one has no spaces, and no letters with accents."
	if strings.Contains(s.State, "\n") { // the form has a link
		said = "That is no address with a code: one has no spaces, and no letters with accents."
	}
	return map[string]string{view.TokenField: said}
}

// onConnectSubmission connects the account of a token that a person has entered, or of an address that has its code.
func (a connector) onConnectSubmission(ctx context.Context, in *Incoming) (outcome string, err error) {
	host, kept, agreed := strings.Cut(in.Submission.State, "\n")
	site, ok := a.c.Accounts.Site(host)
	token := strings.TrimSpace(in.Submission.Inputs[view.TokenField][view.TokenField].Value)
	who := in.person()
	if r := a.authorise(ctx, who, access.See); r != nil {
		a.TellPerson(who.UserID, r.Sentence)
		return "refused", nil
	}
	if !ok || !site.EntersToken() {
		a.TellPerson(who.UserID, notOffered)
		return "not offered", nil
	}
	t := &oauth2.Token{AccessToken: token}
	if agreed {
		if site, t, err = a.c.Accounts.Redeem(ctx, site, a.self.Team, who.UserID, kept, token); err != nil {
			a.TellPerson(who.UserID, notConnected(err))
			return "did not connect", nil
		}
	}
	a.bind(ctx, site, who.UserID, t)
	return "asked the forge", nil
}

func (a connector) bind(ctx context.Context, site accounts.Site, user string, t *oauth2.Token) {
	login, err := a.c.Accounts.Bind(ctx, site, a.self.Team, user, t)
	if err != nil {
		a.TellPerson(user, notConnected(err))
		return
	}
	does := "Pull requests that you ask for are opened, merged and answered by that account."
	if site.Server != nil {
		does = "In work that you ask for, from your next message on, the tools of that MCP server act as you."
	}
	a.TellPerson(user, "You are connected to "+site.Host()+" as "+login+". "+does+" Write “disconnect” to end that.")
}

// notConnected is what a person is told of an error of accounts, which is a sentence without its end.
func notConnected(err error) string { return "Not connected: " + err.Error() + "." }

// onDisconnectClick ends a connection of whoever pressed: whose it is, no button says.
func (a connector) onDisconnectClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	login, err := a.c.Accounts.Disconnect(ctx, a.self.Team, in.Row.UserID, in.Click.Value)
	if errors.Is(err, pg.ErrNotFound) {
		a.Answer(in, "You have no account connected there any more.")
		return "not connected", nil
	}
	if err != nil {
		return "", err
	}
	a.Answer(in, "Disconnected: Deckhand has forgotten the token of "+login+" at "+in.Click.Value+". Where you have made the token yourself, or approved Deckhand's app at GitHub, remove that there, too.")
	if in.Click.OnHome {
		return "disconnected", tab(a).publishHome(ctx, in.person(), homeChoice(in))
	}
	return "disconnected", nil
}

// TellPerson tells somebody something in a direct message.
func (a *Chat) TellPerson(user, sentence string) { a.screen.Direct(user, view.Sentence(sentence)) }

// EmailOf is the address of somebody's profile, empty where Slack does not tell it.
func (a *Chat) EmailOf(ctx context.Context, user string) string {
	_, email, _ := a.people.Profile(ctx, user) // who is not known has none
	return email
}
