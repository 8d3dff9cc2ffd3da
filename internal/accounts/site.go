package accounts

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

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

	found *found // its OAuth, where the bot has found that itself
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
	return s.Server != nil || s.Kind == forge.Gitea
}

// Asks reports whether the bot asks an MCP server for its OAuth.
func (s Site) Asks() bool {
	return s.Server != nil && s.Server.TokenPage == ""
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

// caller calls the site itself alone: it follows no redirect. Where a server named its OAuth's addresses, it
// connects to none that is not public, unless the server's own is not.
func (s Site) caller() *http.Client {
	c := &http.Client{Timeout: callTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	if s.found != nil {
		c.Transport = guarded[s.found.Inside]
	}
	return c
}

// client has the library's calls made by it.
func (s Site) client(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, s.caller())
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
	if f := s.found; f != nil {
		if f.ID != s.ClientID {
			c.ClientID, c.ClientSecret = f.ID, f.Secret
		}
		c.RedirectURL, c.Endpoint.TokenURL, c.Endpoint.AuthStyle = comeBack, f.TokenURL, f.Style
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

// token asks for one by a grant. (The calls of package oauth2 for renewal take no resource.)
func (s Site) token(ctx context.Context, grant url.Values) (*oauth2.Token, error) {
	if s.found != nil {
		grant.Set("resource", s.found.Resource)
	}
	c := s.oauth()
	asks := clientcredentials.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.Endpoint.TokenURL, AuthStyle: c.Endpoint.AuthStyle, EndpointParams: grant}
	return asks.Token(s.client(ctx))
}

// refresh asks for a token instead of one that ends; ended says that there will be none.
func (s Site) refresh(ctx context.Context, t *oauth2.Token) (fresh *oauth2.Token, ended bool, err error) {
	fresh, err = s.token(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.RefreshToken}})
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		gone := s.found != nil && refused.ErrorCode == "invalid_client" // it has forgotten the bot
		return nil, gone || refused.ErrorCode == "invalid_grant" || refused.ErrorCode == "bad_refresh_token", errors.New(s.Host() + " does not renew the connection now: " + wordOf(refused.ErrorCode))
	}
	if err != nil {
		return nil, false, errors.New(s.Host() + " does not answer now. Try again later")
	}
	return fresh, false, nil
}

// Secure reports whether people's tokens may be sent to an address: by https, or on this machine.
func Secure(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
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
	case s.found != nil:
		at = s.found.RevokeURL
	case s.Kind == forge.GitLab:
		at = s.root("/oauth/revoke")
	}
	if at == "" {
		return // GitHub wants the app's secret and Gitea a password: people do it there
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	inHeader := c.Endpoint.AuthStyle == oauth2.AuthStyleInHeader
	for _, token := range []string{t.RefreshToken, t.AccessToken} {
		form := url.Values{"token": {token}}
		if !inHeader {
			form.Set("client_id", c.ClientID)
			form.Set("client_secret", c.ClientSecret)
		}
		call, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
		if token == "" || err != nil {
			continue
		}
		call.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if inHeader {
			call.SetBasicAuth(url.QueryEscape(c.ClientID), url.QueryEscape(c.ClientSecret))
		}
		if response, err := s.caller().Do(call); err == nil {
			_ = response.Body.Close()
		}
	}
}
