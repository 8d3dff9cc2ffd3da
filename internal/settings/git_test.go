package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/gateway/gitway"
)

// A project's own credential takes the place of the team's; its repositories are what repo
// or url says, and those under also.
func TestWhatAForgeIsReachedBy(t *testing.T) {
	t.Parallel()
	const repo = "https://host/team/web.git"
	type reach struct {
		Forge  []string
		Access gitway.Access
	}
	for _, tt := range []struct {
		name, team, project string
		want                reach
	}{
		{"nothing said", "", "repo: " + repo, reach{Forge: []string{repo}}},
		{"a path is no forge", "git: {token_env: T}", "repo: /srv/web.git", reach{Access: gitway.Access{TokenEnv: "T"}}},
		{"the team's", "git: {token_env: T, user: bot}", "repo: " + repo, reach{[]string{repo}, gitway.Access{TokenEnv: "T", User: "bot"}}},
		{"a project's own", "git: {token_env: T, user: bot}", "repo: git@host:team/web.git\n    git: {key_file: /k, known_hosts: /h}", reach{[]string{"git@host:team/web.git"}, gitway.Access{KeyFile: "/k", KnownHosts: "/h"}}},
		{"an app", "git: {github_app: {id: 7, key_env: K}}", "dir: /srv/web\n    git: {url: " + repo + ", also: [https://host/team/lib]}", reach{[]string{repo, "https://host/team/lib"}, gitway.Access{App: gitway.App{ID: "7", KeyEnv: "K"}}}},
		{"several", "git: {token_env: T}", "repo: " + repo + "\n    workspace: worktree\n    repos: {b: {repo: /srv/b, base: x}, a: https://host/team/a}\n    git: {also: [https://host/team/c]}", reach{[]string{repo, "https://host/team/a", "https://host/team/c"}, gitway.Access{TokenEnv: "T"}}},
		{"a folder", "git: {token_env: T}", "dir: /srv/web", reach{Access: gitway.Access{TokenEnv: "T"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := ReadFile(write(t, tt.team+"\nprojects:\n  web:\n    "+tt.project+"\n"+channelsAndRoles))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, reach{f.Projects["web"].Forge, f.Projects["web"].Access}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A project's own key signs, else the team's. No session sees either.
func TestWhatSignsCommits(t *testing.T) {
	t.Parallel()
	for project, want := range map[string][2]string{"": {"/team", "team@example.com"}, ", git: {sign_key_file: /own, committer_email: own@example.com}": {"/own", "own@example.com"}} {
		f, err := ReadFile(write(t, "git: {token_env: T, sign_key_file: /team, committer_email: team@example.com}\nprojects:\n  web: {repo: https://github.com/t/w, workspace: worktree"+project+"}\n"+channelsAndRoles))
		if err != nil {
			t.Fatal(err)
		}
		p := f.Projects["web"]
		if got := [2]string{p.SignKey, p.Committer}; got != want || p.Access.TokenEnv != "T" {
			t.Errorf("%q: %q, %+v", project, got, p.Access)
		}
		if !slices.Contains(f.CredentialFiles(func(string) string { return "" }), want[0]) {
			t.Errorf("%q: sessions see the key", project)
		}
	}
}

func TestAForgeThatMakesNoSenseIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	const tree = "repo: https://h/t/w\n    workspace: worktree"
	for name, tt := range map[string]struct{ team, project, want string }{
		"two credentials":             {"{token_env: T, key_file: /k}", "repo: https://h/t/w", ":1:7: git: one credential is enough"},
		"a token":                     {"{token_env: ghp_x-y}", "repo: https://h/t/w", ":1:18: git.token_env: write the name of a variable"},
		"a token of letters":          {"{token_env: ghp_s3cr3t}", "repo: https://h/t/w", ":1:18: git.token_env: write the name of a variable"},
		"an app's key":                {"{github_app: {id: 7, key_env: s3cr3t}}", "repo: https://h/t/w", "git.github_app.key_env: write the name of a variable"},
		"a project's token":           {"{}", "repo: https://h/t/w\n    git: {token_env: ghp_s3cr3t}", "projects.web.git.token_env: write the name of a variable"},
		"a key that signs for nobody": {"{sign_key_file: /k}", "repo: https://h/t/w", "write both sign_key_file and committer_email"},
		"a relative key that signs":   {"{sign_key_file: k, committer_email: d@example.com}", "repo: https://h/t/w", `git.sign_key_file: "k" is not an absolute path`},
		"a committer without address": {"{sign_key_file: /k, committer_email: Deckhand}", "repo: https://h/t/w", `git.committer_email: "Deckhand" is no address`},
		"a key that signs nothing":    {"{}", "repo: https://h/t/w\n    git: {sign_key_file: /k, committer_email: d@example.com}", "projects.web.git.sign_key_file: commits are signed where threads open pull requests"},
		"a user alone":                {"{user: x}", "repo: https://h/t/w", "a user goes with token_env"},
		"an app by its name":          {"{github_app: {id: abc, key_env: K}}", "repo: https://h/t/w", "git.github_app.id: this is no app's id; write the number, or the client id"},
		"an app without a key":        {"{github_app: {id: 7}}", "repo: https://h/t/w", "an app has its id, and its private key"},
		"a key for https":             {"{key_file: /k}", "repo: https://h/t/w", ":4:11: projects.web.repo: a key file is for ssh"},
		"a relative key":              {"{key_file: k}", "repo: git@h:t/w", `"k" is not an absolute path`},
		"repositories of all":         {"{url: https://h/t/w}", "repo: https://h/t/w", "repositories are a project's"},
		"two of one":                  {"{}", "repo: https://h/t/w\n    git: {url: https://h/t/v}", "the project's repository is what repo says"},
		"a folder as a forge":         {"{}", "dir: /srv/web\n    git: {url: /srv/web.git}", "projects.web.git.url: a path is no forge"},
		"a password":                  {"{}", "repo: https://u:s3cr3t@h/t/w", "an address holds no credentials"},
		"what it holds, inside":       {"{token_env: TOK}", "repo: https://h/t/w\n    env: [TOK]", "TOK holds a credential, which stays outside"},
		"no folders of threads":       {"{}", "repo: https://h/t/w\n    repos: {lib: https://h/t/l}", ":5:13: projects.web.repos: each thread gets folders of its own of these repositories; write workspace: worktree"},
		"a name that leads away":      {"{}", tree + "\n    repos: {../x: https://h/t/l}", `"../x" is not a short name`},
		"the project's own name":      {"{}", tree + "\n    repos: {web: https://h/t/l}", `"web" is what the project's own repository is called`},
		"the same once more":          {"{}", tree + "\n    repos: {lib: 'ssh://git@h/t/w.git'}", "projects.web.repos.lib: this repository is here twice: it is the project's own as well"},
		"one under two names":         {"{}", tree + "\n    repos: {a: https://h/t/l, b: {repo: https://h/t/l.git, base: x}}", "projects.web.repos.b: this repository is here twice: it is repos: a as well"},
		"one to be cloned as well":    {"{}", tree + "\n    git: {also: [https://h/t/l]}\n    repos: {a: https://h/t/l}", "it is under git: also as well"},
		"no address":                  {"{}", tree + "\n    repos: {a: {base: x}}", "projects.web.repos.a: write the repository's address"},
		"one beside no forge":         {"{}", "dir: /srv/web\n    workspace: worktree\n    repos: {a: https://h/t/l}", "projects.web.repos.a: this is beside the project's own repository at a forge"},
		"a list of them":              {"{}", tree + "\n    repos: [https://h/t/l]", "projects.web.repos: write a mapping"},
		"nobody's repository":         {"{token_env: T}", "repo: https://h/w\n    workspace: worktree\n    pull_requests: {forge: gitlab}", `projects.web.pull_requests: "https://h/w" does not say whose repository it is: write https://host/team/web.git`},
		"one token for two hosts":     {"{token_env: T}", "repo: https://h/t/w\n  api:\n    repo: https://other/t/w", ":1:7: git: this credential would be shown to other for project api and to h for project web"},
		"a key that is none":          {"{token: x}", "repo: https://h/t/w", `there is no key "token" here`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadFile(write(t, "git: "+tt.team+"\nprojects:\n  web:\n    "+tt.project+"\n"+channelsAndRoles))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%v", err)
			}
		})
	}
}
