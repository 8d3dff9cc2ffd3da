// Package accounts connects people's own accounts at forges and MCP servers, so that the bot acts there with no
// more right than whoever asks. It keeps their tokens encrypted in the database, renews them,
// and hands them to nobody but those who call the forge in that person's name.
//
// A forge's token is bound to a person of Slack's only if the forge's account provably is theirs: its
// verified address is that of their profile, or deckhand.yaml names it. So a code that one
// person makes another enter connects nothing.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/oauth2"

	"deckhand/internal/forge"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/pg"
)

// Store is what is remembered: [*store.Store], which tells what each method does.
type Store interface {
	Connect(ctx context.Context, c forges.Connection) error
	Connection(ctx context.Context, team, user, host string) (forges.Connection, error)
	Connections(ctx context.Context, team, user string) ([]forges.Connection, error)
	RefreshConnection(ctx context.Context, team, user, host string, change func(*forges.Connection) error) error
	Disconnect(ctx context.Context, team, user, host string) (forges.Connection, error)
}

// Config is what a service needs.
type Config struct {
	Store Store
	Key   Key
	Sites []Site
	// Logins are the accounts that deckhand.yaml names: by Slack user, then host.
	Logins map[string]map[string]string
	Log    *zap.Logger
}

// Service is people's accounts. Its methods are safe for concurrent use.
type Service struct {
	Config
	// EmailOf is the address of somebody's Slack profile, and Tell tells them in private.
	EmailOf func(ctx context.Context, user string) string
	Tell    func(user, sentence string)
}

// New returns a service.
func New(c Config) *Service { return &Service{Config: c} }

// Site is the one of a host at which people connect; false: they cannot.
func (s *Service) Site(host string) (Site, bool) {
	if s == nil || s.Key.aead == nil {
		return Site{}, false
	}
	i := slices.IndexFunc(s.Sites, func(site Site) bool { return site.Host() == host })
	if i < 0 {
		return Site{}, false
	}
	return s.Sites[i], true
}

// Begin asks a forge for a code that the person enters there. wait returns once they have, or
// why not, a sentence.
func (s *Service) Begin(ctx context.Context, site Site) (code, address string, wait func(context.Context) (*oauth2.Token, error), err error) {
	da, err := site.oauth().DeviceAuth(site.client(ctx))
	if err != nil {
		return "", "", nil, fmt.Errorf("%s gives no code now (%s). An admin checks connect: in deckhand.yaml, and that the app may use the device flow", site.Host(), reason(err))
	}
	return da.UserCode, da.VerificationURI, func(ctx context.Context) (*oauth2.Token, error) {
		t, err := site.oauth().DeviceAccessToken(site.client(ctx), da)
		refused, _ := errors.AsType[*oauth2.RetrieveError](err)
		switch {
		case err == nil:
			return t, nil
		case refused != nil && refused.ErrorCode == "access_denied":
			return nil, site.denied()
		case errors.Is(err, context.DeadlineExceeded), refused != nil && refused.ErrorCode == "expired_token":
			return nil, fmt.Errorf("the code for %s has expired. Write “connect” for another one", site.Host())
		}
		return nil, fmt.Errorf("%s did not connect. Write “connect” to try again", site.Host())
	}, nil
}

// Bind connects the account of a token to a person if it is theirs. Its error is a sentence.
func (s *Service) Bind(ctx context.Context, site Site, team, user string, t *oauth2.Token) (login string, err error) {
	if site.Server != nil {
		return s.bindServer(ctx, site, team, user, t)
	}
	host := site.Host()
	config := site.config(t)
	r, err := forge.New(config)
	if err != nil {
		return "", err
	}
	me, err := r.Me(ctx)
	if err != nil {
		return "", fmt.Errorf("%s did not say whose token this is: %s", host, sentence(err))
	}
	if named := s.Logins[user][host]; named == "" || !strings.EqualFold(named, me.Login) {
		if named != "" {
			return "", fmt.Errorf("this is the account %s at %s, and deckhand.yaml says that yours is %s", me.Login, host, named)
		}
		emails, err := forge.Emails(ctx, config)
		if err != nil {
			return "", fmt.Errorf("%s did not say which addresses the account has: %s", host, sentence(err))
		}
		mine := s.EmailOf(ctx, user)
		if mine == "" || !slices.ContainsFunc(emails, func(e string) bool { return strings.EqualFold(e, mine) }) {
			return "", fmt.Errorf("nothing shows that the account %s at %s is yours: none of its verified addresses is the one of your Slack profile, and deckhand.yaml does not name it. An admin can: people: {%s: {accounts: {%s: %s}}}", me.Login, host, user, host, me.Login)
		}
	}
	return me.Login, s.keep(ctx, forges.Connection{TeamID: team, UserID: user, Host: host, Account: me.ID, Login: me.Login}, t, nil)
}

// keep writes a connection down. Its error is a sentence.
func (s *Service) keep(ctx context.Context, c forges.Connection, t *oauth2.Token, by *found) error {
	s.Key.seal(&c, t, by)
	switch err := s.Store.Connect(ctx, c); {
	case errors.Is(err, forges.ErrTaken):
		return fmt.Errorf("the account %s at %s is connected by somebody else here", c.Login, c.Host)
	case err != nil:
		s.Log.Error("connect an account", zap.String("user", c.UserID), zap.Error(err))
		return errors.New("the connection could not be written down. Try again later")
	}
	return nil
}

// reason is what people are told of an OAuth server that did not do something.
func reason(err error) string {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return wordOf(refused.ErrorCode)
	}
	return "it does not answer"
}

// sentence is what people are told of a forge that did not do something.
func sentence(err error) string {
	if e, ok := errors.AsType[*forge.Error](err); ok {
		return e.Sentence
	}
	return "it gave no answer"
}

// soon is how long before a token ends it is renewed.
const soon = 5 * time.Minute

// Token is the token of a person at a host, renewed if it ends; empty if they have connected
// none. Its error is a sentence: then nothing is done, not even as the bot.
func (s *Service) Token(ctx context.Context, team, user, host string) (string, error) {
	site, ok := s.Site(host)
	if !ok {
		return "", nil
	}
	c, err := s.Store.Connection(ctx, team, user, host)
	if errors.Is(err, pg.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the connection to %s: %w", host, err)
	}
	t, by, err := s.usable(c)
	if err != nil || c.ExpiresAt == nil || time.Until(*c.ExpiresAt) > soon || t.RefreshToken == "" {
		if err == nil && c.ExpiresAt != nil && time.Now().After(*c.ExpiresAt) {
			s.Refused(ctx, team, user, host, t.AccessToken)
			return "", died(host)
		}
		if err != nil {
			return "", err
		}
		return t.AccessToken, nil
	}
	var ended bool
	var problem error
	err = s.Store.RefreshConnection(ctx, team, user, host, func(c *forges.Connection) error {
		if t, by, problem = s.usable(*c); problem != nil || c.ExpiresAt == nil || time.Until(*c.ExpiresAt) > soon {
			return nil // another caller has renewed it
		}
		site.found = by
		var fresh *oauth2.Token
		if fresh, ended, problem = site.refresh(ctx, t); problem == nil {
			t = fresh
			s.Key.seal(c, t, by)
		} else if ended {
			now := time.Now()
			c.DeadAt = &now
		}
		return nil
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("renew the connection to %s: %w", host, err)
	case ended:
		s.Tell(user, died(host).Error()+".")
		return "", died(host)
	case problem != nil:
		return "", problem
	}
	return t.AccessToken, nil
}

// usable is the token of a connection that is not over.
func (s *Service) usable(c forges.Connection) (*oauth2.Token, *found, error) {
	if c.DeadAt != nil {
		return nil, nil, died(c.Host)
	}
	return s.Key.open(c)
}

func died(host string) error {
	return fmt.Errorf("your connection to %s has ended: its token is not taken there any more. Write “connect” to Deckhand to connect again, or “disconnect” to end it", host)
}

// Refused notes that the forge did not take a token, and tells the person once.
func (s *Service) Refused(ctx context.Context, team, user, host, refused string) {
	first := false
	err := s.Store.RefreshConnection(ctx, team, user, host, func(c *forges.Connection) error {
		if t, _, err := s.usable(*c); err == nil && t.AccessToken == refused {
			now := time.Now()
			c.DeadAt, first = &now, true
		}
		return nil
	})
	if err != nil {
		s.Log.Error("note that a connection has ended", zap.String("user", user), zap.String("host", host), zap.Error(err))
	} else if first {
		s.Tell(user, died(host).Error()+".")
	}
}

// Client makes the calls that are made with a person's token: when the forge refuses the token,
// the connection has ended.
func (s *Service) Client(team, user, host, token string) *http.Client {
	return &http.Client{Transport: watching(func(r *http.Request) (*http.Response, error) {
		response, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusUnauthorized {
			s.Refused(context.WithoutCancel(r.Context()), team, user, host, token)
		}
		return response, err
	})}
}

type watching func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f watching) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Disconnect forgets a person's own connection, and has the forge forget it where it can.
func (s *Service) Disconnect(ctx context.Context, team, user, host string) (login string, err error) {
	c, err := s.Store.Disconnect(ctx, team, user, host)
	if err != nil {
		return "", err
	}
	if site, ok := s.Site(host); ok {
		if t, by, err := s.Key.open(c); err == nil {
			site.found = by
			site.revoke(ctx, t)
		}
	}
	return c.Login, nil
}
