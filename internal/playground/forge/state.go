package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// person is an account; the ids and names are those of the playground's workspace.
type person struct {
	id, Login, Name string
	writes, admin   bool
}

var people = []person{
	{id: "U0DECKHAND", Login: "deckhand", Name: "Deckhand", writes: true},
	{id: "U0ADA", Login: "ada", Name: "Ada Admin", writes: true, admin: true},
	{id: "U0GRACE", Login: "grace", Name: "Grace Approver", writes: true},
	{id: "U0LINUS", Login: "linus", Name: "Linus Engineer", writes: true},
	{id: "U0MALLORY", Login: "mallory", Name: "Mallory Stranger"},
}

// tokenPrefix and a login are the token of a person.
const tokenPrefix = "playground-"

// Token is Deckhand's.
const Token = tokenPrefix + "deckhand"

func personOf(name string) (person, error) {
	i := slices.IndexFunc(people, func(p person) bool { return p.Login == name || p.id == name })
	if i < 0 {
		return person{}, refuse(422, "there is nobody %q: write ada, grace, linus, mallory or deckhand", name)
	}
	return people[i], nil
}

// user is a person as the API has it.
func (p person) user() *gitea.User {
	return &gitea.User{ID: int64(slices.Index(people, p) + 1), UserName: p.Login, FullName: p.Name, IsAdmin: p.admin}
}

// state is what git does not know; it is kept in forge.json.
type state struct {
	Repos map[string]*repository `json:"repos"`
}

type repository struct {
	Last     int64           `json:"last"` // the last number given to anything
	Pulls    []*pull         `json:"pulls,omitempty"`
	Statuses []*status       `json:"statuses,omitempty"`
	Labels   []*gitea.Label  `json:"labels,omitempty"`
	Rules    map[string]rule `json:"rules,omitempty"` // of protected branches
}

// rule is what a protected branch requires.
type rule struct {
	Approvals    int64    `json:"required_approvals"`
	StatusChecks bool     `json:"enable_status_check"`
	Contexts     []string `json:"status_check_contexts"`
}

// The rest is kept as the API says it.

type pull struct {
	*gitea.PullRequest
	Since   string           `json:"since"` // the commit of the base that it was merged into
	Reviews []*review        `json:"reviews"`
	Talk    []*gitea.Comment `json:"talk,omitempty"` // on the whole
}

type review struct {
	*gitea.PullReview
	Comments []*gitea.PullReviewComment `json:"comments"`
}

type status struct {
	*gitea.Status
	Commit string `json:"commit"`
	Log    string `json:"log"`
}

func (p *pull) draft() bool {
	t := strings.ToUpper(p.Title)
	return strings.HasPrefix(t, "WIP:") || strings.HasPrefix(t, "[WIP]")
}

// Is says for people where it is.
func (p *pull) Is() string {
	switch {
	case p.HasMerged:
		return "merged"
	case p.State == gitea.StateClosed:
		return "closed"
	case p.draft():
		return "draft"
	}
	return "open"
}

// problem is what a caller hears: a status and a sentence.
type problem struct {
	status  int
	message string
}

func (p *problem) Error() string { return p.message }

func refuse(status int, format string, a ...any) error {
	return &problem{status, fmt.Sprintf(format, a...)}
}

func (f *Forge) stateFile() string { return filepath.Join(f.dir, "forge.json") }

func (f *Forge) load() error {
	raw, err := os.ReadFile(f.stateFile())
	if err == nil {
		err = json.Unmarshal(raw, &f.state)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the forge's state (start fresh to forget it): %w", err)
	}
	if f.state.Repos == nil {
		f.state.Repos = map[string]*repository{}
	}
	return nil
}

// save replaces the file in one step, so that a crash leaves the old or the new.
func (f *Forge) save() error {
	raw, err := json.Marshal(f.state)
	if err == nil {
		err = os.WriteFile(f.stateFile()+".new", raw, 0o600)
	}
	if err == nil {
		err = os.Rename(f.stateFile()+".new", f.stateFile())
	}
	if err != nil {
		return fmt.Errorf("keep the forge's state: %w", err)
	}
	return nil
}

// repo returns what is known of a repository that git has.
func (f *Forge) repo(name string) (*repository, error) {
	if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\`) {
		return nil, refuse(404, "there is no repository %q", name)
	}
	if _, err := os.Stat(f.path(name)); err != nil {
		return nil, refuse(404, "there is no repository %q", name)
	}
	r := f.state.Repos[name]
	if r == nil {
		r = &repository{}
		f.state.Repos[name] = r
	}
	return r, nil
}

func (f *Forge) path(name string) string { return filepath.Join(f.dir, name+".git") }

func (r *repository) next() int64 {
	r.Last++
	return r.Last
}

func (r *repository) pull(number int64) (*pull, error) {
	i := slices.IndexFunc(r.Pulls, func(p *pull) bool { return p.Index == number })
	if i < 0 {
		return nil, refuse(404, "there is no pull request #%d", number)
	}
	return r.Pulls[i], nil
}

// checks returns the newest status of each name, in the order of their names.
func (r *repository) checks(commit string) []*status {
	var newest []*status
	for _, s := range slices.Backward(r.Statuses) {
		if s.Commit == commit && !slices.ContainsFunc(newest, func(n *status) bool { return n.Context == s.Context }) {
			newest = append(newest, s)
		}
	}
	slices.SortFunc(newest, func(a, b *status) int { return strings.Compare(a.Context, b.Context) })
	return newest
}
