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
// the caller's own code.
func Environ(passthrough []string, set map[string]string) []string {
	env := make(map[string]string)
	for _, entry := range os.Environ() {
		name, value, ok := strings.Cut(entry, "=")
		if ok && !forbidden(name) && (harmless(name) || slices.Contains(passthrough, name)) {
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

func harmless(name string) bool {
	switch name {
	case "PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
		"http_proxy", "https_proxy", "no_proxy", "all_proxy":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

func forbidden(name string) bool {
	return name == "DATABASE_URL" || strings.HasPrefix(name, "SLACK_") || strings.HasPrefix(name, "PG")
}
