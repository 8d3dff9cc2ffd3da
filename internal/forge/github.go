package forge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"
	"github.com/shurcooL/githubv4"
)

// ofGitHub is a repository at GitHub: github.com, or an Enterprise Server.
type ofGitHub struct {
	host, owner, name string
	rest              *github.Client
	graph             *githubv4.Client // for what REST lacks
	http              *http.Client
}

// perPage is the most that GitHub and GitLab give on a page.
const perPage = 100

func newGitHub(c Config) (Repository, error) {
	at, err := locate(c)
	if err != nil {
		return nil, err
	}
	g := &ofGitHub{host: at.site.Host, owner: at.path[0], name: at.path[1], http: newClient(c, at.api)}
	base := at.api.String() + "/"
	if g.rest, err = github.NewClient(github.WithHTTPClient(g.http), github.WithURLs(&base, nil), github.WithDisableRateLimitCheck()); err != nil {
		return nil, fmt.Errorf("read the address of the API: %w", err)
	}
	graph := *at.api
	if before, ok := strings.CutSuffix(graph.Path, "/v3"); ok { // of an Enterprise Server
		graph.Path = before
	}
	g.graph = githubv4.NewEnterpriseClient(graph.JoinPath("graphql").String(), &http.Client{Transport: graphTransport{g.http.Transport}, CheckRedirect: checkRedirect})
	return g, nil
}

// failed wraps an error of a call, and knows what GitHub's words mean.
func (g *ofGitHub) failed(doing string, err error) error {
	r, e := said(err)
	if r == nil {
		return failed(doing, g.host, err)
	}
	words := strings.ToLower(r.message)
	switch {
	case r.status != http.StatusForbidden && r.status != http.StatusTooManyRequests:
	case strings.Contains(words, "rate limit"):
		if e.Reason = RateLimited; e.Until.IsZero() {
			e.Until = time.Now().Add(time.Minute) // what GitHub asks for where it says nothing
		}
		e.Sentence = g.host + " takes no more calls for a while"
	case strings.Contains(words, "not accessible by"):
		e.Sentence = "The credential may not " + doing + " at " + g.host + ". Grant it Contents and Pull requests: read and write, and Actions, Checks and Commit statuses: read"
	case strings.Contains(words, "suspended"):
		e.Sentence = "The GitHub App, or its account, is suspended at " + g.host + ". Have the owner unsuspend it"
	case strings.Contains(words, "saml"):
		e.Sentence = g.host + " wants the credential authorised for the organization's single sign-on. Authorise it where it was made"
	}
	return failed(doing, g.host, err)
}

// said returns the answer in an error's chain, and what was made of it, for who knows more:
// nil if there is none.
func said(err error) (*refusal, *Error) {
	e, ok := errors.AsType[*Error](err)
	r := refusalOf(err)
	if r == nil || !ok {
		return nil, nil
	}
	return r, e
}

// graphTransport makes an error of what GraphQL refuses with status 200.
type graphTransport struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t graphTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	defer response.Body.Close() //nolint:errcheck // it is in memory
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, unavailable(r.URL.Host, err)
	}
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Errors) == 0 && (len(answer.Data) == 0 || string(answer.Data) == "null") {
		return nil, unavailable(r.URL.Host, cmp.Or(err, errors.New("the answer has no data")))
	}
	if len(answer.Errors) == 0 {
		response.Body = io.NopCloser(bytes.NewReader(body))
		return response, nil
	}
	first := answer.Errors[0]
	switch first.Type {
	case "NOT_FOUND":
		response.StatusCode = http.StatusNotFound
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		response.StatusCode = http.StatusForbidden
	case "RATE_LIMITED", "RATE_LIMIT":
		response.StatusCode = http.StatusTooManyRequests
	case "", "INTERNAL", "SERVICE_UNAVAILABLE": // it went wrong there
		response.StatusCode = http.StatusBadGateway
	default:
		response.StatusCode = http.StatusUnprocessableEntity
	}
	text, _ := json.Marshal(map[string]string{"message": first.Message})
	return nil, refused(r, response, text)
}

// Me implements [Repository]. REST's GET /user refuses the token of an App.
func (g *ofGitHub) Me(ctx context.Context) (Account, error) {
	var q struct {
		Viewer struct {
			DatabaseID int64
			Login      string
		}
	}
	if err := g.graph.Query(ctx, &q, nil); err != nil {
		return Account{}, g.failed("read the account", err)
	}
	return Account{ID: q.Viewer.DatabaseID, Login: q.Viewer.Login}, nil
}

func (g *ofGitHub) repository(ctx context.Context) (*github.Repository, error) {
	r, _, err := g.rest.Repositories.Get(ctx, g.owner, g.name)
	if err == nil && r.GetDefaultBranch() == "" {
		err = errors.New("the answer is no repository")
	}
	return r, g.failed("read the repository", err)
}

func (g *ofGitHub) DefaultBranch(ctx context.Context) (string, error) {
	r, err := g.repository(ctx)
	return r.GetDefaultBranch(), err
}

// Template implements [Repository]. Of several templates it is the one that GitHub takes
// where nobody chooses.
func (g *ofGitHub) Template(ctx context.Context) (string, error) {
	var q struct {
		Repository struct {
			PullRequestTemplates []struct{ Filename, Body string }
		} `graphql:"repository(owner: $owner, name: $name)"`
	}
	if err := g.graph.Query(ctx, &q, g.variables()); err != nil {
		return "", g.failed("read the template", err)
	}
	all := q.Repository.PullRequestTemplates
	for _, t := range all {
		before, _, _ := strings.Cut(strings.ToLower(t.Filename), ".")
		if before == "pull_request_template" || len(all) == 1 {
			return t.Body, nil
		}
	}
	return "", nil
}

func (g *ofGitHub) variables() map[string]any {
	return map[string]any{"owner": githubv4.String(g.owner), "name": githubv4.String(g.name)}
}

// CodeOwners implements [Repository]: the first of the three files that GitHub looks for.
func (g *ofGitHub) CodeOwners(ctx context.Context, branch string) (string, error) {
	type file *struct {
		Blob struct {
			Text        *string
			IsTruncated bool
		} `graphql:"... on Blob"`
	}
	var q struct {
		Repository struct {
			A file `graphql:"a: object(expression: $a)"`
			B file `graphql:"b: object(expression: $b)"`
			C file `graphql:"c: object(expression: $c)"`
		} `graphql:"repository(owner: $owner, name: $name)"`
	}
	v := g.variables()
	for name, path := range map[string]string{"a": ".github/CODEOWNERS", "b": "CODEOWNERS", "c": "docs/CODEOWNERS"} {
		v[name] = githubv4.String(branch + ":" + path)
	}
	if err := g.graph.Query(ctx, &q, v); err != nil {
		return "", g.failed("read CODEOWNERS", err)
	}
	for _, f := range []file{q.Repository.A, q.Repository.B, q.Repository.C} {
		if f != nil && f.Blob.Text != nil && !f.Blob.IsTruncated {
			return *f.Blob.Text, nil
		}
	}
	return "", nil
}

// gitHubPages reads the pages of a list, within bounds.
func gitHubPages[T any](list func(github.ListOptions) ([]T, *github.Response, error)) ([]T, error) {
	var all []T
	for at := (github.ListOptions{Page: 1, PerPage: perPage}); at.Page != 0 && at.Page <= maxPages; {
		some, response, err := list(at)
		if err != nil {
			return nil, err
		}
		all, at.Page = append(all, some...), response.NextPage
	}
	return all, nil
}

// known are those of the names that a list has, in its spelling, and the others, each once.
func known(names, list []string) (out, others []string) {
	for _, name := range names {
		i := slices.IndexFunc(list, func(s string) bool { return strings.EqualFold(s, name) })
		switch {
		case i < 0 && !slices.Contains(others, name):
			others = append(others, name)
		case i >= 0 && !slices.Contains(out, list[i]):
			out = append(out, list[i])
		}
	}
	return out, others
}
