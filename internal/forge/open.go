package forge

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
)

// opens has a constructor for each kind of forge.
var opens = map[Kind]func(Config) (Repository, error){
	GitHub: newGitHub, GitLab: newGitLab, Gitea: newGitea,
}

// New returns a repository of a forge. It makes no call. Keep what it returns: it
// remembers answers, so that asking again costs the forge little.
func New(c Config) (Repository, error) {
	open := opens[c.Kind]
	if open == nil {
		return nil, fmt.Errorf("there is no kind of forge %q: write github, gitlab or gitea", c.Kind)
	}
	return open(c)
}

// address is where a repository and its API are.
type address struct {
	site *url.URL // the forge's own, which may have a path
	path []string // of the repository there
	api  *url.URL
}

// locate finds the addresses of a repository. A GitLab below a path of its host is known by its API's address alone:
// a group may have the path's name.
func locate(c Config) (a address, err error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return a, fmt.Errorf("%q is no address of a repository: write https://host/team/web.git", c.URL)
	}
	a.path = strings.Split(strings.Trim(strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git"), "/"), "/")
	if len(a.path) < 2 {
		return a, fmt.Errorf("%q does not say whose repository it is: write https://host/team/web.git", c.URL)
	}
	a.site = &url.URL{Scheme: u.Scheme, Host: u.Host}
	if c.Kind != GitLab { // which has groups within groups
		before := len(a.path) - 2
		a.site.Path, a.path = strings.Join(append([]string{""}, a.path[:before]...), "/"), a.path[before:]
	}
	end := map[Kind]string{GitLab: "/api/v4", Gitea: "/api/v1"}[c.Kind]
	api := a.site.JoinPath(cmp.Or(end, "/api/v3")).String() // that of a GitHub Enterprise Server
	if host := strings.ToLower(u.Host); c.Kind == GitHub && (host == "github.com" || strings.HasSuffix(host, ".ghe.com")) {
		api = "https://api." + host
	}
	if c.API != "" {
		api = strings.TrimSuffix(strings.TrimRight(c.API, "/"), end) + end
	}
	if a.api, err = url.Parse(api); err != nil || a.api.Host == "" || a.api.Scheme != "https" && a.api.Scheme != "http" {
		return a, fmt.Errorf("%q is no address of an API: write one such as https://host/api/v1", c.API)
	}
	if c.Kind == GitLab && strings.EqualFold(a.api.Host, u.Host) {
		below := strings.TrimSuffix(a.api.Path, end)
		if rest, ok := strings.CutPrefix("/"+strings.Join(a.path, "/"), below+"/"); ok {
			a.site.Path, a.path = below, strings.Split(rest, "/")
		}
	}
	return a, nil
}

// Site returns the address of a forge's own pages, which may have a path.
func Site(c Config) (*url.URL, error) {
	a, err := locate(c)
	return a.site, err
}
