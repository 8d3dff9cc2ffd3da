package place

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"

	"deckhand/internal/forge"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/threads"
	"deckhand/internal/workspace"
)

// PullRequests are how a project's threads open pull requests. The zero Kind is for none.
type PullRequests struct {
	Kind forge.Kind
	API  string // where it is not the usual one of the forge
	// Babysit has failed checks and requested changes become prompts by themselves.
	Babysit bool
	// AsPerson has the bot act in the name of those alone who have connected their accounts.
	AsPerson bool
	Ready    bool // pull requests are no drafts where nobody says
	Labels   []string
	// WebhookSecretEnv names the variable with the secret of the forge's webhook; empty for none.
	WebhookSecretEnv string
}

// OpensPulls reports whether threads of the project open pull requests: they work on branches
// of their own, and their forge's API is known.
func (p Project) OpensPulls() bool {
	return p.PullRequests.Kind != "" && p.Workspace == workspace.Worktree && len(p.Forge) > 0
}

// ForgeHost is the host of the project's forge.
func (p Project) ForgeHost() string {
	if len(p.Forge) == 0 {
		return ""
	}
	return gitway.Host(p.Forge[0])
}

// RepositoryAs is [Project.Repository] with a person's own token, by whose client it is called.
func (p Project) RepositoryAs(token string, client *http.Client) (forge.Repository, error) {
	return forge.New(forge.Config{
		Kind: p.PullRequests.Kind, URL: p.Forge[0], API: p.PullRequests.API, Client: client,
		Token: func(context.Context) (string, error) { return token, nil },
	})
}

// Repository is the project's own repository at its forge, by its API.
func (p Project) Repository() (forge.Repository, error) {
	u := p.remote(p.Forge[0]).Upstream
	return forge.New(forge.Config{Kind: p.PullRequests.Kind, URL: u.URL, API: p.PullRequests.API, Token: func(ctx context.Context) (string, error) {
		token, err := u.APIToken(ctx, u.URL)
		if err != nil {
			return "", &forge.Error{Reason: forge.Denied, Sentence: err.Error()}
		}
		return token, nil
	}})
}

// ErrMoved is a branch that is not where it was when somebody decided about it, in the thread
// or at the forge.
var ErrMoved = errors.New("the branch is not where it was when it was approved")

// Push puts the thread's own branch at the forge to where the thread has it now, which has to be
// the commit where one is named: as the bot or, with a token, as the person whose it is. Old is
// what the forge's branch has to be, empty for whatever it is. It gives [ErrMoved], or a sentence
// for people.
func (h *Host) Push(ctx context.Context, t threads.Thread, p Project, token, old, commit string) (pushed string, err error) {
	tip, objects, err := h.Keeper.Committed(ctx, h.worksIn(t, p), p.space(t))
	switch {
	case err != nil:
		return "", err
	case commit != "" && tip != commit:
		return "", ErrMoved
	}
	remote := p.remote(p.Forge[0])
	if token != "" {
		remote.Token, remote.Access = token, gitway.Access{}
		if p.PullRequests.Kind == forge.GitLab {
			remote.User = "oauth2"
		}
	}
	err = remote.PushCommit(ctx, filepath.Join(h.DataDir, "scratch"), objects, t.Branch, old, tip)
	if errors.Is(err, gitway.ErrMoved) {
		err = ErrMoved
	}
	return tip, err
}

// Changed are the files that the thread's branch changes since it has left a branch of the forge, 200 at most.
func (h *Host) Changed(ctx context.Context, t threads.Thread, p Project, base string) ([]string, error) {
	space := p.space(t)
	space.Base = base
	_, changed, _, err := h.Keeper.Before(ctx, h.worksIn(t, p), space)
	return changed, err
}
