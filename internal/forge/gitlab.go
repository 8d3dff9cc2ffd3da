package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// ofGitLab is a project at GitLab: gitlab.com, or a self-managed one.
type ofGitLab struct {
	host, project string
	api           *url.URL
	http          *http.Client
	rest          *gitlab.Client
}

func newGitLab(c Config) (Repository, error) {
	at, err := locate(c)
	if err != nil {
		return nil, err
	}
	g := &ofGitLab{host: at.site.Host, project: strings.Join(at.path, "/"), api: at.api, http: newClient(c, at.api)}
	// It neither tries again nor waits: its callers know when, and a second merge is none.
	g.rest, err = gitlab.NewAuthSourceClient(gitlab.Unauthenticated{}, gitlab.WithBaseURL(at.api.String()), gitlab.WithHTTPClient(g.http),
		gitlab.WithCustomRetryMax(0), gitlab.WithCustomLimiter(noLimit{}))
	if err != nil {
		return nil, fmt.Errorf("read the address of the API: %w", err)
	}
	return g, nil
}

type noLimit struct{}

// Wait implements [gitlab.RateLimiter].
func (noLimit) Wait(context.Context) error { return nil }

// failed wraps an error of a call, and knows what GitLab's words mean.
func (g *ofGitLab) failed(doing string, err error) error {
	if r, e := said(err); r != nil && r.status == http.StatusForbidden && e.Reason == Denied {
		e.Sentence = "The account of the token may not " + doing + " at " + g.host + ". Give it the role Developer or more in the project"
		if strings.Contains(r.message, "insufficient_scope") || strings.Contains(r.message, "higher privileges") {
			e.Sentence = "The token's scopes do not let it " + doing + " at " + g.host + ". Give one with the scope api"
		}
	}
	return failed(doing, g.host, err)
}

// gitLabPages reads the pages of a list, within bounds.
func gitLabPages[T any](list func(gitlab.ListOptions) ([]T, *gitlab.Response, error)) ([]T, error) {
	var all []T
	for page := int64(1); page != 0 && page <= maxPages; {
		some, response, err := list(gitlab.ListOptions{Page: page, PerPage: perPage})
		if err != nil {
			return nil, err
		}
		all, page = append(all, some...), response.NextPage
	}
	return all, nil
}

func (g *ofGitLab) Me(ctx context.Context) (Account, error) {
	u, _, err := g.rest.Users.CurrentUser(gitlab.WithContext(ctx))
	if err == nil && u.ID == 0 {
		err = errors.New("the answer is no account")
	}
	if err != nil {
		return Account{}, g.failed("read the account", err)
	}
	return Account{ID: u.ID, Login: u.Username}, nil
}

func (g *ofGitLab) read(ctx context.Context) (*gitlab.Project, error) {
	p, _, err := g.rest.Projects.GetProject(g.project, nil, gitlab.WithContext(ctx))
	if err == nil && p.ID == 0 {
		err = errors.New("the answer is no project")
	}
	return p, g.failed("read the project", err)
}

func (g *ofGitLab) DefaultBranch(ctx context.Context) (string, error) {
	p, err := g.read(ctx)
	if err != nil {
		return "", err
	}
	if p.DefaultBranch == "" {
		return "", &Error{Reason: NotFound, Sentence: "The project has no branch yet. Push one first"}
	}
	return p.DefaultBranch, nil
}

// Template implements [Repository]: the project's setting, or else its default file.
func (g *ofGitLab) Template(ctx context.Context) (string, error) {
	p, err := g.read(ctx)
	if err != nil {
		return "", err
	}
	if p.MergeRequestsTemplate != "" || p.DefaultBranch == "" {
		return p.MergeRequestsTemplate, nil
	}
	return g.first(ctx, p.DefaultBranch, ".gitlab/merge_request_templates/Default.md", ".gitlab/merge_request_templates/default.md")
}

// CodeOwners implements [Repository]: the first of the three files that GitLab looks for.
func (g *ofGitLab) CodeOwners(ctx context.Context, branch string) (string, error) {
	return g.first(ctx, branch, "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
}

// first returns the first of the files that a branch has, empty if it has none.
func (g *ofGitLab) first(ctx context.Context, branch string, files ...string) (string, error) {
	for _, file := range files {
		text, _, err := g.rest.RepositoryFiles.GetRawFile(g.project, file, &gitlab.GetRawFileOptions{Ref: &branch}, gitlab.WithContext(ctx))
		if err == nil {
			return string(text), nil
		}
		if err = g.failed("read "+file, err); ReasonOf(err) != NotFound {
			return "", err
		}
	}
	return "", nil
}
