package settings

import (
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"deckhand/internal/accounts"
	"deckhand/internal/agent/place"
	"deckhand/internal/forge"
)

// pullsYAML is how a project's threads open pull requests.
type pullsYAML struct {
	// Forge is the kind of its forge, and API the address of its API, where they are not known
	// by the repository's address.
	Forge   string   `yaml:"forge"`
	API     string   `yaml:"api"`
	Babysit bool     `yaml:"babysit"`
	Draft   *bool    `yaml:"draft"`
	Labels  []string `yaml:"labels"`
	// WebhookSecretEnv names the variable with the secret of the forge's webhook.
	WebhookSecretEnv string `yaml:"webhook_secret_env"`
	// Connect is the app by which people connect their own accounts, and As whose account acts:
	// the bot's where the person who asks has none, or person, who has to have one.
	Connect *connectYAML `yaml:"connect"`
	As      string       `yaml:"as"`
}

type connectYAML struct {
	ClientID        string `yaml:"client_id"`
	ClientSecretEnv string `yaml:"client_secret_env"`
}

// personYAML is what is known of somebody.
type personYAML struct {
	// Name and Email are of the author of their commits where their Slack profile has no address.
	Name  string `yaml:"name"`
	Email string `yaml:"email"`
	// Accounts are their logins, by the forge's host.
	Accounts map[string]string `yaml:"accounts"`
}

// Sites are the forges and MCP servers at which people can connect their accounts.
func (f File) Sites() (out []accounts.Site) {
	known := func(site accounts.Site) bool {
		return slices.ContainsFunc(out, func(s accounts.Site) bool { return s.Host() == site.Host() })
	}
	for _, name := range sorted(f.Projects) {
		p := f.Projects[name]
		for _, server := range sorted(f.document.Projects[name].MCPServers) {
			if s := f.document.Projects[name].MCPServers[server]; s.As == asPerson && !known(s.site()) {
				out = append(out, s.site())
			}
		}
		if !p.OpensPulls() {
			continue
		}
		site := accounts.Site{Kind: p.PullRequests.Kind, URL: p.Forge[0], API: p.PullRequests.API}
		if y := f.document.Projects[name].PullRequests; y != nil && y.Connect != nil {
			site.ClientID, site.ClientSecretEnv = y.Connect.ClientID, y.Connect.ClientSecretEnv
		}
		if !known(site) && (site.ClientID != "" || site.EntersToken()) {
			out = append(out, site)
		}
	}
	return out
}

// Logins are people's accounts at forges: by Slack user, then host.
func (f File) Logins() map[string]map[string]string {
	out := map[string]map[string]string{}
	for user, p := range f.document.People {
		out[user] = p.Accounts
	}
	return out
}

// Authors are people as authors of commits, where their Slack profile has no address.
func (f File) Authors() map[string]mail.Address {
	out := map[string]mail.Address{}
	for user, p := range f.document.People {
		out[user] = mail.Address{Name: p.Name, Address: p.Email}
	}
	return out
}

// people checks who has which name, address and account.
func (v *validation) people(d document) {
	owners := map[string]string{}
	for _, user := range sorted(d.People) {
		at := "$.people." + user
		if !strings.HasPrefix(user, "U") && !strings.HasPrefix(user, "W") || !memberID.MatchString(user) {
			v.add(at, "%q is not a user id (U…); Slack shows it in the person's profile, under Copy member ID", user)
		}
		p := d.People[user]
		if strings.ContainsAny(p.Name, "<>") || strings.ContainsFunc(p.Name, unicode.IsControl) {
			v.add(at+".name", "%q is no name that a commit can have; leave out < and >", p.Name)
		}
		if p.Email != "" {
			v.email(at+".email", p.Email)
		}
		for _, host := range sorted(p.Accounts) {
			login := p.Accounts[host]
			key := host + "/" + strings.ToLower(login)
			switch {
			case host == "" || host != strings.ToLower(host) || strings.ContainsAny(host, "/@ "):
				v.add(at+".accounts", "%q is not the host of a forge; write one such as github.com: login", host)
			case login == "" || strings.ContainsAny(login, "@/ "):
				v.add(at+".accounts", "%q is not a login at %s; write it as the forge does, without @", login, host)
			case owners[key] != "":
				v.add(at+".accounts", "%s at %s is the account of %s already; an account is one person's", login, host, owners[key])
			}
			owners[key] = user
		}
	}
}

func (v *validation) email(at, text string) {
	if a, err := mail.ParseAddress(text); err != nil || a.Address != text || strings.ContainsAny(text, " <>\"") {
		v.add(at, "%q is no address; write one such as ada@example.com", text)
	}
}

// asPerson is the value of as by which the bot does nothing in its own name.
const asPerson = "person"

// forgeKinds are the values of forge.
var forgeKinds = []string{string(forge.GitHub), string(forge.GitLab), string(forge.Gitea)}

// knownForges are the kinds of forges that are known by their hosts.
var knownForges = map[string]forge.Kind{"github.com": forge.GitHub, "gitlab.com": forge.GitLab}

// pullsOf is what is in force for a project. Without a token there is no API.
func (d document) pullsOf(p projectYAML) place.PullRequests {
	y := pointed(p.PullRequests)
	out := place.PullRequests{Kind: forge.Kind(y.Forge), API: y.API, Babysit: y.Babysit, AsPerson: y.As == asPerson, Ready: y.Draft != nil && !*y.Draft, Labels: y.Labels, WebhookSecretEnv: y.WebhookSecretEnv}
	addresses, access := d.forgeOf(p), d.accessOf(p)
	if len(addresses) == 0 || access.TokenEnv == "" && access.App.ID == "" {
		return place.PullRequests{}
	}
	if u, err := url.Parse(addresses[0]); err == nil && out.Kind == "" {
		out.Kind = knownForges[strings.ToLower(u.Host)]
	}
	if out.API == "" && out.Kind == forge.GitHub {
		out.API = access.App.API
	}
	return out
}

// pulls checks what a project says about pull requests.
func (v *validation) pulls(at string, d document, p projectYAML) {
	if p.PullRequests == nil {
		return
	}
	y, access := *p.PullRequests, d.accessOf(p)
	at += ".pull_requests"
	switch {
	case y.Forge != "" && !slices.Contains(forgeKinds, y.Forge):
		v.add(at+".forge", "%q is no kind of forge; write github, gitlab or gitea (which is Forgejo's, too)", y.Forge)
		return
	case p.Workspace != "worktree":
		v.add(at, "pull requests come from branches of threads; write workspace: worktree")
		return
	case len(d.forgeOf(p)) == 0:
		v.add(at, "the project has no forge; write its address under repo, or git: {url: …}")
		return
	case access.TokenEnv == "" && access.App.ID == "":
		v.add(at, "the forge's API needs a token; write git: {token_env: NAME}, or a github_app")
		return
	}
	kind := d.pullsOf(p).Kind
	if kind == "" {
		v.add(at+".forge", "what kind of forge this is does not follow from its address; write github, gitlab or gitea (which is Forgejo's, too)")
	} else if u, err := url.Parse(d.forgeOf(p)[0]); err == nil && u.User == nil { // one with a password is refused where it stands, and not repeated
		if _, err := forge.Site(forge.Config{Kind: kind, URL: u.String()}); err != nil {
			v.add(at, "%v", err)
		}
	}
	if y.WebhookSecretEnv != "" {
		v.secretVariable(at+".webhook_secret_env", y.WebhookSecretEnv)
	}
	switch c := y.Connect; {
	case y.As != "" && y.As != asPerson:
		v.add(at+".as", "%q is nobody; write person, or leave it out", y.As)
	case c != nil && kind == forge.Gitea:
		v.add(at+".connect", "Gitea has no way to connect by a code: people enter a token there. Leave connect out")
	case c != nil && c.ClientID == "":
		v.add(at+".connect", "write the client_id of the app by which people connect their accounts")
	case y.As == asPerson && c == nil && kind != forge.Gitea:
		v.add(at+".as", "nobody could connect an account here; write connect: {client_id: …}")
	}
	if y.Connect != nil && y.Connect.ClientSecretEnv != "" {
		v.secretVariable(at+".connect.client_secret_env", y.Connect.ClientSecretEnv)
	}
	if y.API != "" {
		if u, err := url.Parse(y.API); err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
			v.add(at+".api", "this is no address of an API; write one such as https://git.example.com/api/v1")
		}
	}
}

func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }
