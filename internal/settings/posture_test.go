package settings

import (
	"strings"
	"testing"

	"deckhand/internal/agent/policy"
)

const containable = "projects:\n  web: {repo: 'https://git.example/web.git', workspace: worktree"

func TestPostures(t *testing.T) {
	t.Parallel()
	f, err := ReadFile(write(t, "posture: contained\n"+containable+`, mcp_servers: {tracker: {url: "https://t.example/mcp", reads: [search, get_issue]}}}
  api: {dir: /srv/api, posture: careful}
channels: {C0123: web, C0456: {project: web, posture: careful}, C0789: api}
roles: {users: [U1AB]}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		project, channel string
		want             policy.Posture
	}{{"web", "C0123", policy.Contained}, {"web", "C0456", policy.Careful}, {"api", "C0789", policy.Careful}, {"web", "", policy.Contained}} {
		if got := f.Policy.Postures.Of(c.project, c.channel); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.project, c.channel, got, c.want)
		}
	}
	if reads := f.Policy.Reads["web"]; !reads["mcp__tracker__search"] || !reads["mcp__tracker__get_issue"] || len(reads) != 2 {
		t.Errorf("tools that read: %v", reads)
	}
	if why := f.Uncontained("api"); !strings.Contains(why, "workspace: worktree") {
		t.Errorf("api: %q", why)
	}
	if why := f.Uncontained("web"); why != "" {
		t.Errorf("web: %q", why)
	}
}

// What a contained posture rests on is asked for where the posture is written.
func TestAPostureWithoutWhatItRestsOnIsRefused(t *testing.T) {
	t.Parallel()
	web := containable + "}\n"
	for _, c := range []struct{ name, text, where, want string }{
		{"a misspelt posture", "posture: contain\n" + web, ":1:", `"contain" is no posture`},
		{"no sandbox", "posture: contained\nsandbox: none\n" + web, ":1:", "sandbox: none confines nothing"},
		{"a launcher", "posture: contained\nsandbox: {kind: command, command: [ssh, b]}\n" + web, ":1:", "cannot see what sandbox: command confines"},
		{"an open network", "sandbox: {network: open}\n" + containable + ", posture: contained}\n", ":3:", "network: open lets everything leave"},
		{"shared caches", "sandbox: {caches: [.npm]}\n" + containable + ", posture: contained}\n", ":3:", "share the caches"},
		{"a shared folder", "posture: contained\nprojects:\n  web: {dir: /srv/web}\n", ":1:", "share one folder"},
		{"a channel's", "projects:\n  web: {dir: /srv/web}\nchannels: {C0123: {project: web, posture: contained}}\nroles: {users: [U1AB]}\n", ":3:", "share one folder"},
		{"reads that is a pattern", containable + ", mcp_servers: {t: {url: 'https://t.example', reads: ['search*']}}}\n", ":2:", `"search*" is no tool of a server`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := c.text
			if !strings.Contains(text, "channels:") {
				text += channelsAndRoles
			}
			_, err := ReadFile(write(t, text))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.where) {
				t.Errorf("%v; want %q at %s", err, c.want, c.where)
			}
		})
	}
}
