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

// place splits a repository's address for git into the forge's own address, which may have a
// path, and the repository's path there.
func place(address string, segments int) (root *url.URL, path []string, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return nil, nil, fmt.Errorf("%q is no address of a repository: write https://host/team/web.git", address)
	}
	parts := strings.Split(strings.Trim(strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git"), "/"), "/")
	if segments == 0 {
		segments = len(parts) // all of it: groups within groups
	}
	if len(parts) < max(segments, 2) {
		return nil, nil, fmt.Errorf("%q does not say whose repository it is: write https://host/team/web.git", address)
	}
	root = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.Join(append([]string{""}, parts[:len(parts)-segments]...), "/")}
	return root, parts[len(parts)-segments:], nil
}

// apiOf reads the address of an API: the one that is configured, or else the usual one.
func apiOf(c Config, usual string) (*url.URL, error) {
	address := cmp.Or(strings.TrimRight(c.API, "/"), usual)
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%q is no address of an API: write one such as %s", address, usual)
	}
	return u, nil
}
