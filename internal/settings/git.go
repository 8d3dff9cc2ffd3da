package settings

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/gateway/gitway"
)

// gitYAML is the bot's access to a forge. A project's own credential replaces the team's.
type gitYAML struct {
	// URL is a project's repository if repo is missing, and Also further ones.
	URL  string   `yaml:"url"`
	Also []string `yaml:"also"`

	TokenEnv   string      `yaml:"token_env"`
	User       string      `yaml:"user"`
	KeyFile    string      `yaml:"key_file"`
	KnownHosts string      `yaml:"known_hosts"`
	GitHubApp  *gitway.App `yaml:"github_app"`

	// SignKeyFile is the key that signs commits, and CommitterEmail the address that they are committed by.
	SignKeyFile    string `yaml:"sign_key_file"`
	CommitterEmail string `yaml:"committer_email"`
}

// appID is a GitHub App's number or client id.
var appID = regexp.MustCompile(`^([0-9]{1,18}|Iv[A-Za-z0-9.]{1,62})$`)

func (g gitYAML) access() gitway.Access {
	return gitway.Access{TokenEnv: g.TokenEnv, User: g.User, KeyFile: g.KeyFile, KnownHosts: g.KnownHosts, App: pointed(g.GitHubApp)}
}

// accessOf is a project's access.
func (d document) accessOf(p projectYAML) gitway.Access {
	if own := p.Git.access(); own != (gitway.Access{}) {
		return own
	}
	return d.Git.access()
}

// ownHost is the forge of a project's own repository; empty for none.
func ownHost(p projectYAML) string { return gitway.Host(cmp.Or(p.Git.URL, p.Repo)) }

// teamsGit checks the team's credential, which goes to one host.
func (v *validation) teamsGit(d document) {
	v.git("$.git", d.Git)
	if d.Git.URL != "" || d.Git.Also != nil {
		v.add("$.git", "repositories are a project's; write url and also there (projects.NAME.git)")
	}
	if d.Git.TokenEnv == "" && d.Git.GitHubApp == nil {
		return
	}
	first, known := "", ""
	for _, name := range sorted(d.Projects) {
		p := d.Projects[name]
		host := ownHost(p)
		switch {
		case host == "" || p.Git.access() != (gitway.Access{}):
		case known == "":
			first, known = name, host
		case host != known:
			v.add("$.git", "this credential would be shown to %s for project %s and to %s for project %s; write it under git of the projects whose host it is for", known, first, host, name)
			return
		}
	}
}

// signingOf is the key that signs a project's commits, and its owner's address.
func (d document) signingOf(p projectYAML) (key, email string) {
	g := d.Git
	if p.Git.SignKeyFile != "" {
		g = p.Git
	}
	return g.SignKeyFile, g.CommitterEmail
}

// forgeOf are the addresses that a project's sessions reach.
func (d document) forgeOf(p projectYAML) []string {
	var out []string
	own := cmp.Or(p.Git.URL, p.Repo)
	if own != "" && gitway.IsForge(own) {
		out = append(out, own)
	}
	for _, r := range p.further() {
		if gitway.IsForge(r.Repo) {
			out = append(out, r.Repo)
		}
	}
	return append(out, p.Git.Also...)
}

// git checks the value at a path.
func (v *validation) git(at string, g gitYAML) {
	ways := 0
	for _, there := range []bool{g.TokenEnv != "", g.KeyFile != "", g.GitHubApp != nil} {
		if there {
			ways++
		}
	}
	switch {
	case ways > 1:
		v.add(at, "one credential is enough; write token_env, key_file or github_app")
	case g.User != "" && g.TokenEnv == "":
		v.add(at+".user", "a user goes with token_env")
	case g.KnownHosts != "" && g.KeyFile == "":
		v.add(at+".known_hosts", "known_hosts goes with key_file")
	}
	if g.TokenEnv != "" {
		v.secretVariable(at+".token_env", g.TokenEnv)
	}
	switch {
	case (g.SignKeyFile == "") != (g.CommitterEmail == ""):
		v.add(at, "a signature is the committer's; write both sign_key_file and committer_email, the address of the account at the forge that has the key")
	case g.CommitterEmail != "":
		v.email(at+".committer_email", g.CommitterEmail)
	}
	for key, path := range map[string]string{".key_file": g.KeyFile, ".known_hosts": g.KnownHosts, ".sign_key_file": g.SignKeyFile} {
		v.absolute(at+key, path)
	}
	app := g.GitHubApp
	if app == nil {
		return
	}
	v.absolute(at+".github_app.key_file", app.KeyFile)
	if app.ID == "" || (app.KeyEnv == "") == (app.KeyFile == "") {
		v.add(at+".github_app", "an app has its id, and its private key: write id, and key_env (the name of a variable) or key_file")
	}
	if app.ID != "" && !appID.MatchString(app.ID) {
		v.add(at+".github_app.id", "this is no app's id; write the number, or the client id (Iv…), that stands on the app's page at GitHub")
	}
	if app.KeyEnv != "" {
		v.secretVariable(at+".github_app.key_env", app.KeyEnv)
	}
}

func (v *validation) absolute(at, path string) {
	if path != "" && !filepath.IsAbs(path) {
		v.add(at, "%q is not an absolute path", path)
	}
}

// forgeVariables hold credentials of forges, of any project.
func (d document) forgeVariables() []string {
	var out []string
	add := func(a gitway.Access) { out = append(out, a.TokenEnv, a.App.KeyEnv) }
	add(d.Git.access())
	for _, p := range d.Projects {
		add(p.Git.access())
		if p.PullRequests != nil {
			out = append(out, p.PullRequests.WebhookSecretEnv)
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}

// forge checks a project's addresses with its credential.
func (v *validation) forge(at, name string, d document, p projectYAML) {
	v.git(at+".git", p.Git)
	switch {
	case p.Repo != "" && p.Git.URL != "":
		v.add(at+".git.url", "the project's repository is what repo says; leave url out, or write further ones under also")
	case p.Workspace == "scratch" && (p.Git.URL != "" || p.Git.Also != nil):
		v.add(at+".git", "a scratch project has no repository")
	case len(p.Git.Also) > 0 && !gitway.IsForge(cmp.Or(p.Git.URL, p.Repo)):
		v.add(at+".git.also", "these are beside the project's own repository at a forge; write its address under repo, or git: {url: …}")
	case p.Git.SignKeyFile != "" && (p.Workspace != "worktree" || d.pullsOf(p).Kind == ""):
		v.add(at+".git.sign_key_file", "commits are signed where threads open pull requests, which this project's do not; see pull_requests, or leave the key out")
	}
	access := d.accessOf(p)
	for _, address := range p.Git.Also {
		v.address(at+".git.also", address, access.At(address, ownHost(p)), false)
	}
	v.repos(at+".repos", name, p, access)
	v.address(at+".repo", p.Repo, access, true)
	v.address(at+".git.url", p.Git.URL, access, false)
}

// repos checks a project's further repositories.
func (v *validation) repos(at, project string, p projectYAML, access gitway.Access) {
	own := cmp.Or(p.Git.URL, p.Repo)
	if len(p.Repos) > 0 && p.Workspace != "worktree" {
		v.add(at, "each thread gets folders of its own of these repositories; write workspace: worktree")
	}
	known := map[string]string{}
	for _, address := range []string{own, p.Repo, p.Dir} {
		known[gitway.Name(address)] = "the project's own"
	}
	for _, address := range p.Git.Also {
		known[gitway.Name(address)] = "under git: also"
	}
	for _, r := range p.further() {
		at, name := at+"."+r.Name, gitway.Name(r.Repo)
		switch {
		case !projectName.MatchString(r.Name):
			v.add(at, "%q is not a short name; write small letters, digits, - and _", r.Name)
		case r.Name == project:
			v.add(at, "%q is what the project's own repository is called; give this one another name", r.Name)
		case r.Repo == "":
			v.add(at, "write the repository's address, or repo: and base:")
		case strings.HasPrefix(r.Repo, "-") || strings.HasPrefix(r.Base, "-"):
			v.add(at, "repo and base must not begin with -")
		case known[name] != "":
			v.add(at, "this repository is here twice: it is %s as well", known[name])
		case gitway.IsForge(r.Repo) && (own == "" || !gitway.IsForge(own)):
			v.add(at, "this is beside the project's own repository at a forge; write the address of that under repo, or git: {url: …}")
		}
		v.address(at, r.Repo, access.At(r.Repo, ownHost(p)), true)
		known[name] = "repos: " + r.Name
	}
}

func (v *validation) address(at, address string, access gitway.Access, pathToo bool) {
	switch err := (gitway.Upstream{URL: address, Access: access}).Check(); {
	case address == "":
	case err != nil:
		v.add(at, "%v", err)
	case !pathToo && !gitway.IsForge(address):
		v.add(at, "%v; write an address such as https://host/team/web.git", gitway.ErrNoForge)
	}
}
