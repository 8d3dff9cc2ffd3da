package settings

import (
	"net/url"
	"slices"
	"strings"

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
}

// forgeKinds are the values of forge.
var forgeKinds = []string{string(forge.GitHub), string(forge.GitLab), string(forge.Gitea)}

// knownForges are the kinds of forges that are known by their hosts.
var knownForges = map[string]forge.Kind{"github.com": forge.GitHub, "gitlab.com": forge.GitLab}

// pullsOf is what is in force for a project. Without a token there is no API.
func (d document) pullsOf(p projectYAML) place.PullRequests {
	y := pullsYAML{}
	if p.PullRequests != nil {
		y = *p.PullRequests
	}
	out := place.PullRequests{Kind: forge.Kind(y.Forge), API: y.API, Babysit: y.Babysit, Ready: y.Draft != nil && !*y.Draft, Labels: y.Labels, WebhookSecretEnv: y.WebhookSecretEnv}
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
	if d.pullsOf(p).Kind == "" {
		v.add(at+".forge", "what kind of forge this is does not follow from its address; write github, gitlab or gitea (which is Forgejo's, too)")
	}
	if y.WebhookSecretEnv != "" {
		v.secretVariable(at+".webhook_secret_env", y.WebhookSecretEnv)
	}
	if y.API != "" {
		if u, err := url.Parse(y.API); err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
			v.add(at+".api", "this is no address of an API; write one such as https://git.example.com/api/v1")
		}
	}
}

func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }
