package accounts

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"go.uber.org/zap"
	"golang.org/x/oauth2"

	"deckhand/internal/gateway/egress"
)

// The bot finds an MCP server's OAuth as the MCP specification says, and connects people by the authorization code flow
// with PKCE. No browser can come back to the bot, so it is sent to an address of the person's own machine where nobody
// listens, and the person copies that address to the bot.

const (
	comeBack = "http://127.0.0.1:8976/callback"
	// attemptLimit is how long a person has to agree and to paste.
	attemptLimit = 10 * time.Minute
	// linkMost and attemptMost are what fits into a form of Slack's.
	linkMost, attemptMost = 2400, 2600
)

// found is the OAuth that the bot found of a server, and what it knows the bot as. It is kept with the token.
type found struct {
	ID        string           `json:"id"`
	Secret    string           `json:"secret,omitempty"`
	Style     oauth2.AuthStyle `json:"style"`
	TokenURL  string           `json:"token_url"`
	RevokeURL string           `json:"revoke_url,omitempty"`
	// Resource is the server's name there.
	Resource string `json:"resource"`
	// Inside is set if the server itself is in a private network: then its OAuth may be, too.
	Inside bool   `json:"inside,omitempty"`
	State  string `json:"state"`
}

// attempt is a person's to connect. It lies sealed in the form, since any replica may be sent that.
type attempt struct {
	found
	Verifier string    `json:"verifier"`
	Issuer   string    `json:"issuer"`
	SendsIss bool      `json:"sends_iss,omitempty"`
	Until    time.Time `json:"until"`
}

// guarded connect to addresses that a server named: to public ones, and by true to those in private networks. A cloud's
// metadata address is never reached. Where a proxy of the company's is set, only that one knows addresses.
var guarded = map[bool]http.RoundTripper{false: guard(false), true: guard(true)}

func guard(internal bool) http.RoundTripper {
	direct := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	direct.Proxy, direct.MaxResponseHeaderBytes = nil, 64<<10
	direct.DialContext = (&net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err != nil || !egress.Reachable(at.Addr(), internal) {
			return errors.New("the address is not public")
		}
		return nil
	}}).DialContext
	return watching(func(r *http.Request) (*http.Response, error) {
		if proxy, err := http.ProxyFromEnvironment(r); err != nil || proxy != nil {
			return http.DefaultTransport.RoundTrip(r)
		}
		return direct.RoundTrip(r)
	})
}

// cannot is why a server's OAuth is not used, in words of ours.
type cannot string

func (c cannot) Error() string { return string(c) }

// Find asks an MCP server for its OAuth. It returns the link by which the person agrees there, and what the form keeps
// for [Service.Redeem]. Its error is a sentence: then they enter a token.
func (s *Service) Find(ctx context.Context, site Site, team, user string) (link, kept string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a := attempt{found: found{State: rand.Text()}, Verifier: oauth2.GenerateVerifier(), Until: time.Now().Add(attemptLimit)}
	site.found = &a.found
	server, scopes, err := site.discover(ctx)
	if err == nil {
		err = site.register(ctx, server, scopes)
	}
	if err != nil {
		s.Log.Warn("an MCP server's OAuth cannot be used", zap.String("server", site.Host()), zap.String("why", fmt.Sprintf("%.400q", err.Error())))
		why, ours := errors.AsType[cannot](err)
		if !ours {
			why = "it does not answer as the MCP specification says"
		}
		return "", "", fmt.Errorf("%s has no OAuth that Deckhand can use: %w", site.Host(), why)
	}
	a.Issuer, a.SendsIss = server.Issuer, server.AuthorizationResponseIssParameterSupported
	c := site.oauth()
	c.Endpoint.AuthURL, c.Scopes = server.AuthorizationEndpoint, scopes
	link = c.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier), oauth2.SetAuthURLParam("resource", a.Resource))
	kept = base64.RawURLEncoding.EncodeToString(s.Key.sealed(a, "attempt", team, user, site.Host()))
	if len(link) > linkMost || len(kept) > attemptMost {
		return "", "", fmt.Errorf("the addresses of the OAuth of %s are longer than Slack takes", site.Host())
	}
	return link, kept, nil
}

// discover finds the server's OAuth, and the scopes to ask for.
func (s Site) discover(ctx context.Context) (server *oauthex.AuthServerMeta, scopes []string, err error) {
	f, inside := s.found, false
	f.Inside, f.Resource = true, s.URL // the admin has written this address
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	// What answers for the server's name by TLS is the server, so where that is says whether it is inside: its name alone
	// could lead anywhere.
	resp, err := s.caller().Do(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		proxy, failed := http.ProxyFromEnvironment(r)
		at, odd := netip.ParseAddrPort(c.Conn.RemoteAddr().String())
		inside = failed == nil && proxy == nil && odd == nil && !egress.Reachable(at.Addr(), false)
	}})))
	if err != nil {
		return nil, nil, err
	}
	_ = resp.Body.Close()
	f.Inside = inside
	challenges, _ := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate")) // without it, it is looked for
	named := ""
	for _, c := range challenges {
		if c.Scheme == "bearer" {
			named, scopes = c.Params["resource_metadata"], strings.Fields(c.Params["scope"])
		}
	}
	issuer := r.URL.Scheme + "://" + r.URL.Host // of a server that is older than this metadata
	known := issuer + "/.well-known/oauth-protected-resource"
	for _, at := range [][2]string{{named, s.URL}, {known + strings.TrimRight(r.URL.EscapedPath(), "/"), s.URL}, {known, issuer}} {
		m, err := oauthex.GetProtectedResourceMetadata(ctx, at[0], at[1], s.caller())
		if err != nil {
			continue
		}
		if len(m.AuthorizationServers) == 0 {
			return nil, nil, cannot("it names no server of it")
		}
		issuer, f.Resource = m.AuthorizationServers[0], m.Resource
		if len(scopes) == 0 {
			scopes = m.ScopesSupported
		}
		break
	}
	server, err = auth.GetAuthServerMetadata(ctx, strings.TrimSuffix(issuer, "/"), s.caller())
	switch {
	case err != nil:
		return nil, nil, err
	case server == nil:
		return nil, nil, cannot("it tells of none")
	case !slices.Contains(server.CodeChallengeMethodsSupported, "S256"):
		return nil, nil, cannot("it has no PKCE with S256")
	}
	f.TokenURL, f.RevokeURL = server.TokenEndpoint, server.RevocationEndpoint
	for _, at := range []string{server.AuthorizationEndpoint, f.TokenURL, cmp.Or(server.RegistrationEndpoint, f.TokenURL), cmp.Or(f.RevokeURL, f.TokenURL)} {
		if !Secure(at) || !f.Inside && !strings.HasPrefix(at, "https:") {
			return nil, nil, cannot("one of its addresses is not https")
		}
	}
	if slices.Contains(server.ScopesSupported, "offline_access") && !slices.Contains(scopes, "offline_access") {
		scopes = append(scopes, "offline_access") // without it some renew no token
	}
	if len(s.Server.Scopes) > 0 {
		scopes = s.Server.Scopes
	}
	return server, scopes, nil
}

// register has the OAuth server know the bot, unless an admin has.
func (s Site) register(ctx context.Context, server *oauthex.AuthServerMeta, scopes []string) error {
	f, methods := s.found, server.TokenEndpointAuthMethodsSupported
	method := "none"
	if s.ClientSecretEnv != "" || len(methods) > 0 && !slices.Contains(methods, method) {
		method = "client_secret_basic"
		if slices.Contains(methods, "client_secret_post") {
			method = "client_secret_post"
		}
	}
	if f.ID = s.ClientID; f.ID == "" {
		if server.RegistrationEndpoint == "" {
			return cannot("it takes no app by itself. An admin can make one there, and name it by connect: client_id in deckhand.yaml")
		}
		r, err := oauthex.RegisterClient(ctx, server.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{comeBack}, GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
			ClientName: "Deckhand", ApplicationType: "native", TokenEndpointAuthMethod: method, Scope: strings.Join(scopes, " "),
		}, s.caller())
		if refused, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
			return cannot("it does not take Deckhand as an app (" + wordOf(refused.ErrorCode) + ")")
		}
		if err != nil { // it may quote an answer with a secret
			return cannot("it does not take Deckhand as an app")
		}
		f.ID, f.Secret, method = r.ClientID, r.ClientSecret, cmp.Or(r.TokenEndpointAuthMethod, method)
	}
	f.Style = oauth2.AuthStyleInParams
	if method == "client_secret_basic" {
		f.Style = oauth2.AuthStyleInHeader
	}
	return nil
}

// Redeem makes a token of the address that a person has pasted into their form, or of the code in it. The site that it
// returns has the OAuth that gave the token. Its error is a sentence.
func (s *Service) Redeem(ctx context.Context, site Site, team, user, kept, pasted string) (Site, *oauth2.Token, error) {
	var a attempt
	host := site.Host()
	raw, err := base64.RawURLEncoding.DecodeString(kept)
	if err != nil || s.Key.opened(raw, &a, "attempt", team, user, host) != nil {
		return site, nil, errors.New("this form is not yours, or cannot be read any more. Write “connect” for another one")
	}
	site.found = &a.found
	said := url.Values{"code": {pasted}, "state": {a.State}}
	if _, query, isAddress := strings.Cut(pasted, "?"); isAddress {
		query, _, _ = strings.Cut(query, "#")
		said, _ = url.ParseQuery(query) // what cannot be read is missing
	}
	used := false
	if c, err := s.Store.Connection(ctx, team, user, host); err == nil {
		_, by, err := s.Key.open(c)
		used = err == nil && by != nil && by.State == a.State
	}
	iss, no := said.Get("iss"), said.Get("error")
	switch {
	case time.Now().After(a.Until):
		return site, nil, fmt.Errorf("the form for %s is older than ten minutes. Write “connect” for another one", host)
	case used:
		return site, nil, fmt.Errorf("this form has connected you to %s already. Write “connect” for another one", host)
	case said.Get("state") != a.State:
		return site, nil, errors.New("that address is not from the link in this form. Write “connect” to try again")
	case iss != a.Issuer && (iss != "" || a.SendsIss):
		return site, nil, fmt.Errorf("that address does not say that it is from the OAuth of %s. Write “connect” to try again, and paste the whole address", host)
	case no == "access_denied":
		return site, nil, site.denied()
	case no != "" || said.Get("code") == "":
		return site, nil, fmt.Errorf("%s did not connect (%s). Write “connect” to try again", host, wordOf(no))
	}
	t, err := site.token(ctx, url.Values{"grant_type": {"authorization_code"}, "code": {said.Get("code")}, "redirect_uri": {comeBack}, "code_verifier": {a.Verifier}})
	if err != nil {
		return site, nil, fmt.Errorf("%s did not connect (%s). Write “connect” to try again", host, reason(err))
	}
	return site, t, nil
}

func (s Site) denied() error {
	return fmt.Errorf("%s was told not to connect", s.Host())
}
