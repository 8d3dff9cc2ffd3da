package gitway

import (
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// App is the GitHub App as which the bot acts.
type App struct {
	// ID is the app's number, or its client id.
	ID string `yaml:"id"`
	// KeyEnv names the variable with its private key (PEM), or KeyFile the file.
	KeyEnv  string `yaml:"key_env"`
	KeyFile string `yaml:"key_file"`
	// API is the address of GitHub's REST API; empty means the repository host's.
	API string `yaml:"api"`
}

const (
	// tokenSpare is the lifetime a token must have left to be used: a fetch may take long.
	tokenSpare = 10 * time.Minute
	maxAnswer  = 1 << 20 // bytes of the API's
	apiTimeout = 30 * time.Second
)

// minted caches the tokens of all apps, by app and repository. GitHub issues each for an hour.
var minted = struct {
	sync.Mutex
	tokens map[mintedKey]mintedToken
}{tokens: map[mintedKey]mintedToken{}}

type mintedKey struct {
	app    App
	repo   string
	rights rights
}

type mintedToken struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
}

// rights are what a token may do in its repository, by the names of GitHub's API, in the
// order in which people are asked for them.
type rights string

const (
	gitRights rights = "contents:write"
	apiRights rights = "contents:write pull_requests:write actions:read checks:read statuses:read"
)

func (r rights) permissions() map[string]string {
	out := map[string]string{}
	for one := range strings.FieldsSeq(string(r)) {
		name, level, _ := strings.Cut(one, ":")
		out[name] = level
	}
	return out
}

// lacking are those that are not among the granted ones, as GitHub's page calls them.
func (r rights) lacking(granted map[string]string) string {
	titles := map[string]string{"contents": "Contents", "pull_requests": "Pull requests", "actions": "Actions", "checks": "Checks", "statuses": "Commit statuses"}
	var out []string
	for one := range strings.FieldsSeq(string(r)) {
		name, level, _ := strings.Cut(one, ":")
		if has := granted[name]; has == level || has == "write" || has == "admin" {
			continue
		}
		if level == "write" {
			level = "read and write"
		}
		out = append(out, titles[name]+": "+level)
	}
	return strings.Join(out, ", ")
}

// token is one that may do what its rights say in one repository, and nothing else. Its error
// is a sentence.
func (a App) token(ctx context.Context, p place, r rights) (string, error) {
	key := mintedKey{a, p.name(), r}
	minted.Lock()
	t, ok := minted.tokens[key]
	minted.Unlock()
	if ok && time.Until(t.ExpiresAt) > tokenSpare {
		return t.Token, nil
	}
	t, err := a.mint(ctx, p, r)
	if err != nil {
		return "", err
	}
	minted.Lock()
	defer minted.Unlock()
	minted.tokens[key] = t
	return t.Token, nil
}

func (a App) mint(ctx context.Context, p place, r rights) (t mintedToken, err error) {
	identity, err := a.identity()
	if err != nil {
		return t, err
	}
	var installation struct {
		ID          int64             `json:"id"`
		Permissions map[string]string `json:"permissions"`
		SuspendedAt *time.Time        `json:"suspended_at"`
	}
	status, err := a.call(ctx, p, identity, http.MethodGet, "/repos/"+p.path+"/installation", nil, &installation)
	switch {
	case status == http.StatusNotFound:
		return t, fmt.Errorf("the GitHub App %s is not installed on %s; install it there (the app's page, Install App) with %s", a.ID, p.path, r.lacking(nil))
	case status == http.StatusMovedPermanently:
		return t, fmt.Errorf("the repository %s has another name at GitHub by now; write that one into deckhand.yaml", p.path)
	case status == http.StatusUnauthorized:
		return t, fmt.Errorf("GitHub does not take the key of the app %s; see whether github_app names the right id and a private key of this app, and whether this machine's clock is right", a.ID)
	case err != nil:
		return t, err
	case installation.SuspendedAt != nil:
		return t, fmt.Errorf("the GitHub App %s is suspended on %s; have the owner unsuspend it", a.ID, p.path)
	}
	_, name, _ := strings.Cut(p.path, "/")
	want := map[string]any{"repositories": []string{name}, "permissions": r.permissions()}
	status, err = a.call(ctx, p, identity, http.MethodPost, fmt.Sprintf("/app/installations/%d/access_tokens", installation.ID), want, &t)
	switch {
	case status == http.StatusUnprocessableEntity || status == http.StatusForbidden:
		lacking := r.lacking(installation.Permissions)
		if lacking == "" { // it says that it has them all
			lacking = r.lacking(nil)
		}
		return t, fmt.Errorf("GitHub gives the app %s no token with all rights in %s; grant it %s, and have the owner accept", a.ID, p.path, lacking)
	case err != nil:
		return t, err
	case t.Token == "":
		return t, errors.New("GitHub's answer holds no token")
	}
	return t, nil
}

// identity is a token that authenticates the app to GitHub for some minutes.
func (a App) identity() (string, error) {
	key, err := a.key()
	if err != nil {
		return "", err
	}
	now := time.Now()
	return jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer: a.ID, IssuedAt: jwt.NewNumericDate(now.Add(-time.Minute)), ExpiresAt: jwt.NewNumericDate(now.Add(8 * time.Minute)),
	}).SignedString(key)
}

func (a App) key() (*rsa.PrivateKey, error) {
	where, pem := "the variable "+a.KeyEnv, []byte(os.Getenv(a.KeyEnv))
	if a.KeyFile != "" {
		where = a.KeyFile
		var err error
		if pem, err = os.ReadFile(a.KeyFile); err != nil {
			return nil, fmt.Errorf("the key of the GitHub App cannot be read: %w", err)
		}
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM(pem)
	if err != nil {
		return nil, fmt.Errorf("%s holds no private key of a GitHub App (PEM, RSA); generate one on the app's page", where)
	}
	return key, nil
}

// api is the address of the REST API.
func (a App) api(p place) string {
	switch {
	case a.API != "":
		return strings.TrimSuffix(a.API, "/")
	case p.host == "github.com":
		return "https://api.github.com"
	}
	return p.scheme + "://" + p.host + "/api/v3"
}

func (a App) call(ctx context.Context, p place, identity, method, path string, in, out any) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.api(p)+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+identity)
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	resp, err := apiClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("GitHub's API cannot be reached: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return resp.StatusCode, fmt.Errorf("GitHub's API: %w", err)
	}
	if resp.StatusCode >= 300 {
		return resp.StatusCode, fmt.Errorf("GitHub's API answers %s to %s %s", resp.Status, method, path)
	}
	return resp.StatusCode, json.Unmarshal(b, out)
}

// apiClient follows no redirects: they would carry the app's identity elsewhere.
var apiClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
