package accounts

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"deckhand/internal/forge"
)

// Site is a forge at which people connect their accounts.
type Site struct {
	Kind forge.Kind
	// URL is a repository's there, and API its API's where it is not the usual one.
	URL, API string
	// ClientID is the app's by which people connect, and ClientSecretEnv the variable with its
	// secret, if it has one. Gitea has no such way: there people enter a token.
	ClientID, ClientSecretEnv string
	// Server is what the site is if it is no forge but an MCP server, whose address is URL.
	Server *Server
}

// Host names the site.
func (s Site) Host() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	if s.Server != nil { // never a forge's, whose tokens go elsewhere
		return strings.ToLower(u.Host) + "/" + strings.Trim(u.Path, "/")
	}
	return strings.ToLower(u.Host)
}

// EntersToken reports whether people enter a token that they have made at the forge.
func (s Site) EntersToken() bool {
	if s.Server != nil {
		return s.Server.DeviceURL == ""
	}
	return s.Kind == forge.Gitea
}

// TokenPage is where people make a token; empty if nobody has said.
func (s Site) TokenPage() string {
	if s.Server != nil {
		return s.Server.TokenPage
	}
	return s.root("/user/settings/applications")
}

// callTimeout bounds a call to the forge's OAuth server.
const callTimeout = 20 * time.Second

// client has the library's calls go to the forge itself alone.
func client(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: callTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}})
}

// root is a path of the site's.
func (s Site) root(path string) string {
	u, err := forge.Site(s.config(nil))
	if err != nil {
		return ""
	}
	return u.JoinPath(path).String()
}

// config is how its API is called with somebody's token.
func (s Site) config(t *oauth2.Token) forge.Config {
	return forge.Config{Kind: s.Kind, URL: s.URL, API: s.API, Token: func(context.Context) (string, error) { return t.AccessToken, nil }}
}

func (s Site) oauth() *oauth2.Config {
	c := &oauth2.Config{ClientID: s.ClientID, Endpoint: oauth2.Endpoint{AuthStyle: oauth2.AuthStyleInParams}}
	if s.ClientSecretEnv != "" {
		c.ClientSecret = os.Getenv(s.ClientSecretEnv)
	}
	if s.Server != nil {
		c.Scopes, c.Endpoint.DeviceAuthURL, c.Endpoint.TokenURL = s.Server.Scopes, s.Server.DeviceURL, s.Server.TokenURL
		return c
	}
	switch s.Kind {
	case forge.GitHub: // a GitHub App has its own permissions, and these count for an OAuth app
		c.Scopes = []string{"repo", "user:email"}
		c.Endpoint.DeviceAuthURL, c.Endpoint.TokenURL = s.root("/login/device/code"), s.root("/login/oauth/access_token")
	case forge.GitLab:
		c.Scopes = []string{"api", "write_repository"}
		c.Endpoint.DeviceAuthURL, c.Endpoint.TokenURL = s.root("/oauth/authorize_device"), s.root("/oauth/token")
	case forge.Gitea:
	}
	return c
}

// refresh asks for a token instead of one that ends; ended says that there will be none.
func (s Site) refresh(ctx context.Context, t *oauth2.Token) (fresh *oauth2.Token, ended bool, err error) {
	fresh, err = s.oauth().TokenSource(client(ctx), &oauth2.Token{RefreshToken: t.RefreshToken}).Token()
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return nil, refused.ErrorCode == "invalid_grant" || refused.ErrorCode == "bad_refresh_token", errors.New(s.Host() + " does not renew the connection now: " + wordOf(refused.ErrorCode))
	}
	if err != nil {
		return nil, false, errors.New(s.Host() + " does not answer now. Try again later")
	}
	return fresh, false, nil
}

// wordOf is a code of the protocol's, and nothing else that a forge may say.
func wordOf(code string) string {
	if code == "" || len(code) > 40 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return "it gives no reason"
	}
	return code
}

// revoke has the site forget a token, where it can.
func (s Site) revoke(ctx context.Context, t *oauth2.Token) {
	c, at := s.oauth(), ""
	switch {
	case s.Server != nil:
		at = s.Server.RevokeURL
	case s.Kind == forge.GitLab:
		at = s.root("/oauth/revoke")
	}
	if at == "" {
		return // GitHub wants the app's secret and Gitea a password: people do it there
	}
	ctx, cancel := context.WithTimeout(client(ctx), callTimeout)
	defer cancel()
	own, _ := ctx.Value(oauth2.HTTPClient).(*http.Client)
	for _, token := range []string{t.RefreshToken, t.AccessToken} {
		form := url.Values{"client_id": {c.ClientID}, "client_secret": {c.ClientSecret}, "token": {token}}
		call, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
		if token == "" || err != nil {
			continue
		}
		call.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if response, err := own.Do(call); err == nil {
			_ = response.Body.Close()
		}
	}
}
