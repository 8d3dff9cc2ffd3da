package claude

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// Environ returns an environment for the CLI: of this process's own variables
// only those on a fixed list of harmless ones and those named in passthrough,
// and then those in set, which win. Credentials of Slack and of the database
// are never passed on, not even by name; only set can name them, and set is
// the caller's own code. Nor are a proxy's user and password: its address goes alone.
func Environ(passthrough []string, set map[string]string) []string {
	env := make(map[string]string)
	for _, entry := range os.Environ() {
		name, value, ok := strings.Cut(entry, "=")
		if ok && !forbidden(name) && (harmless(name) || slices.Contains(passthrough, name)) {
			if proxies[strings.ToLower(name)] {
				value = withoutUser(value)
			}
			env[name] = value
		}
	}
	maps.Copy(env, set)
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// proxies are the variables that name one, in small letters; people use both cases.
var proxies = map[string]bool{"http_proxy": true, "https_proxy": true, "all_proxy": true}

// withoutUser is a proxy's address without what stands before its last @, which nobody
// has to have escaped.
func withoutUser(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return address
	}
	scheme, _, ok := strings.Cut(address[:at], "://")
	if !ok {
		return address[at+1:]
	}
	return scheme + "://" + address[at+1:]
}

func harmless(name string) bool {
	switch name {
	case "PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		"NO_PROXY", "no_proxy":
		return true
	}
	return proxies[strings.ToLower(name)] || strings.HasPrefix(name, "LC_")
}

func forbidden(name string) bool {
	return name == "DATABASE_URL" || strings.HasPrefix(name, "SLACK_") || strings.HasPrefix(name, "PG")
}
