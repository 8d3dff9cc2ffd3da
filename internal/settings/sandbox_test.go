package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/sandbox"
)

const channelsAndRoles = "channels: {C0123: web}\nroles: {users: [U1AB]}\n"

// The team's sandbox holds where a project says nothing, and key by key where it says
// something else. None is never arrived at by leaving something out.
func TestAProjectsSandboxComesBeforeTheTeams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, team, project string
		want                sandbox.Spec
	}{
		{"nothing is bwrap without a network", "", "", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off}},
		{"a word", "sandbox: gvisor", "", sandbox.Spec{Kind: sandbox.GVisor, Network: sandbox.Off}},
		{"an empty mapping is the default", "sandbox: {}", "sandbox: {}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off}},
		{"a project's word", "sandbox: none", "sandbox: bwrap", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off}},
		{"a project's key", "sandbox: {network: open, see: [/opt/go], caches: [.npm]}", "sandbox: {network: off}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off, See: []string{"/opt/go"}, Caches: []string{".npm"}}},
		{"domains", "sandbox: {network: [registry.npmjs.org, '*.golang.org:443', 'internal:10.1.2.3:5432']}", "", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Domains, Domains: []string{"registry.npmjs.org", "*.golang.org:443", "internal:10.1.2.3:5432"}}},
		{"a project's domains take the place of the team's", "sandbox: {network: [a.example]}", "sandbox: {network: [b.example]}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Domains, Domains: []string{"b.example"}}},
		{"a project without the team's domains", "sandbox: {network: [a.example]}", "sandbox: {network: off}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off}},
		{"every domain is asked", "sandbox: {network: ask}", "", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Ask}},
		{"other domains are asked", "", "sandbox: {network: {allow: [go.dev, 'internal:10.1.2.3:5432'], otherwise: ask}}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Ask, Domains: []string{"go.dev", "internal:10.1.2.3:5432"}}},
		{"no domain is listed, all are asked", "", "sandbox: {network: {allow: [], otherwise: ask}}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Ask, Domains: []string{}}},
		{"other domains are refused", "sandbox: {network: ask}", "sandbox: {network: {otherwise: off, allow: [go.dev]}}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Domains, Domains: []string{"go.dev"}}},
		{"a project where nobody is asked", "sandbox: {network: {allow: [go.dev], otherwise: ask}}", "sandbox: {network: off}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off}},
		{"no domain is no network", "sandbox: {network: open}", "sandbox: {network: []}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off, Domains: []string{}}},
		{"no sandbox takes no domains of the team's", "sandbox: {network: [a.example]}", "sandbox: none", sandbox.Spec{Kind: sandbox.None, Network: sandbox.Off, Limits: sandbox.Limits{Memory: 8 << 30, Disk: 20 << 30, Processes: 2048}}},
		{"a project's empty list", "sandbox: {caches: [.npm]}", "sandbox: {caches: []}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off, Caches: []string{}}},
		{"another kind takes nothing of the team's", "sandbox: {kind: container, image: i, engine: podman}", "sandbox: bwrap", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off}},
		{"an image of its own", "sandbox: {kind: container, image: i}", "sandbox: {image: j}", sandbox.Spec{Kind: sandbox.Container, Network: sandbox.Off, Image: "j"}},
		{"limits, key by key", "sandbox: {limits: {memory: 4GiB, disk: none, cpu: 1.5}}", "sandbox: {limits: {processes: 512, memory: 1.5 GiB, files: 0}}", sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off, Limits: sandbox.Limits{Memory: 3 << 29, Processes: 512, CPU: 1.5}}},
		{"a launcher", "sandbox: {network: open}", "sandbox: {kind: command, command: [ssh, builder]}", sandbox.Spec{Kind: sandbox.Command, Network: sandbox.Off, Command: []string{"ssh", "builder"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := ReadFile(write(t, tt.team+"\nprojects:\n  web:\n    dir: /srv/web\n    "+tt.project+"\n"+channelsAndRoles))
			if err != nil {
				t.Fatal(err)
			}
			if tt.want.Limits == (sandbox.Limits{}) && tt.want.Kind != sandbox.Command {
				tt.want.Limits = sandbox.DefaultLimits()
			}
			if diff := cmp.Diff(tt.want, f.Projects["web"].Sandbox); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if f.Audited()["sandboxes"].(map[string]string)["web"] != tt.want.String() {
				t.Errorf("the audit says %v", f.Audited()["sandboxes"])
			}
		})
	}
}

func TestASandboxThatMakesNoSenseIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ sandbox, want string }{
		"a kind that is none":          {"bwarp", `:1:10: sandbox.kind: "bwarp" is no sandbox; did you mean "bwrap"?`},
		"a kind that is nothing":       {"off", `"off" is no sandbox; write bwrap, gvisor, container, command or none`},
		"a key that is none":           {"{knid: bwrap}", `did you mean "kind"?`},
		"a network of its own":         {"{network: some}", `:1:20: sandbox.network: "some" is no network; write off (the model and nothing else), a list of domains such as [some], ask (a person is asked about every domain), or open (this machine's)`},
		"a domain that is an address":  {"{network: [go.dev, 'https://registry.npmjs.org/x']}", `:1:29: sandbox.network[1]: "https://registry.npmjs.org/x": it is an address of a page; write the host alone, such as registry.npmjs.org`},
		"every domain":                 {"{network: ['*']}", "it would be every domain; write open instead of a list"},
		"off in the list":              {"{network: [off]}", `:1:21: sandbox.network[0]: "off" is no domain; write network: off`},
		"a switch in the list":         {"{network: [go.dev, true]}", `:1:29: sandbox.network[1]: "true" is no domain; write network: off`},
		"open in the list":             {"{network: [open]}", `"open" is no domain; write network: off, or network: open`},
		"two ports without quotes":     {"{network: [go.dev, example.com:443:443]}", `:1:29: sandbox.network[1]: this is no domain; put it in quotes`},
		"a house without quotes":       {"{network: [internal:host]}", "sandbox.network[0]: this is no domain; put it in quotes"},
		"a house with a space":         {"{network: [go.dev, internal: host]}", "sandbox.network[1]: this is no domain; put it in quotes"},
		"a house alone":                {"{network: {internal: host}}", "write off, ask, open, a list of domains, or {allow: [registry.npmjs.org], otherwise: ask}; put what has a colon in quotes"},
		"null in the list":             {"{network: [go.dev, null]}", `sandbox.network[1]: "" is no domain`},
		"ask in the list":              {"{network: [go.dev, ask]}", `:1:29: sandbox.network[1]: "ask" is no domain; write network: ask without a list, or {allow: [registry.npmjs.org], otherwise: ask}`},
		"ask with a capital":           {"{network: Ask}", `"Ask" is no network; write off (the model and nothing else)`},
		"ask in what is allowed":       {"{network: {allow: [Ask], otherwise: ask}}", `sandbox.network.allow[0]: "Ask" is no domain; write network: ask without a list`},
		"nothing otherwise":            {"{network: {allow: [go.dev]}}", "write otherwise: ask beside allow:, or the list of domains alone"},
		"nothing allowed":              {"{network: {otherwise: ask}}", "it allows no domain; write network: ask alone"},
		"nothing at all":               {"{network: {}}", "it allows no domain"},
		"open otherwise":               {"{network: {allow: [go.dev], otherwise: open}}", `sandbox.network.otherwise: "open" is not what can be otherwise; write ask`},
		"a switch otherwise":           {"{network: {allow: [go.dev], otherwise: true}}", `"true" is not what can be otherwise`},
		"a list otherwise":             {"{network: {allow: [go.dev], otherwise: [ask]}}", "write off, ask, open, a list of domains, or"},
		"a key of a network":           {"{network: {allow: [go.dev], else: ask}}", "write off, ask, open, a list of domains, or"},
		"a domain allowed alone":       {"{network: {allow: go.dev, otherwise: ask}}", ":1:21: sandbox.network: write off, ask, open, a list of domains, or"},
		"a house without quotes, too":  {"{network: {allow: [go.dev, internal: host], otherwise: ask}}", "sandbox.network.allow[1]: this is no domain; put it in quotes"},
		"every domain allowed, too":    {"{network: {allow: ['*'], otherwise: ask}}", "it would be every domain"},
		"ask without a sandbox":        {"{kind: none, network: ask}", "none does not decide about the network; leave it out"},
		"a top-level domain":           {"{network: ['*.com']}", "it would be all of .com"},
		"an address of the house":      {"{network: [10.1.2.3]}", "write internal:10.1.2.3 if sessions are to reach it"},
		"the cloud's metadata":         {"{network: ['internal:169.254.169.254']}", "nobody reaches this address by the gateway"},
		"domains without a sandbox":    {"{kind: none, network: [go.dev]}", "none does not decide about the network; leave it out"},
		"none, without a network":      {"{kind: none, network: off}", "none does not decide about the network; leave it out"},
		"an image for bwrap":           {"{image: i}", "engine and image belong to kind: container"},
		"a container without one":      {"container", "write image: with its name"},
		"an engine that is none":       {"{kind: container, image: i, engine: lxc}", "write docker or podman"},
		"a launcher for bwrap":         {"{command: [ssh, x]}", "a launcher belongs to kind: command"},
		"no launcher":                  {"command", "write command: with its words"},
		"seeing by a relative path":    {"{see: [tools]}", `:1:17: sandbox.see[0]: "tools" is not an absolute path`},
		"seeing everything":            {"{see: [/]}", "/ has more in it than a session should see"},
		"seeing all sockets":           {"{see: [/opt, /run/]}", "/run has more in it"},
		"a cache outside of the home":  {"{caches: [../x]}", `sandbox.caches[0]: "../x" cannot be kept`},
		"a cache in a cache":           {"{caches: [.cache, .cache/pip]}", ".cache/pip and .cache lie in one another"},
		"the home as a cache":          {"{caches: [.]}", "cannot be kept"},
		"the CLI's own as a cache":     {"{caches: [.claude/projects]}", "cannot be kept"},
		"a limit that is none":         {"{limits: {memory: lots}}", `:1:28: sandbox.limits.memory: "lots" is not a size; write one such as 4GiB`},
		"memory for less than the CLI": {"{limits: {memory: 512MiB}}", "512MiB is less than Claude Code itself takes; write 1 GiB or more, or none"},
		"a negative number":            {"{limits: {processes: -1}}", `sandbox.limits.processes: "-1" is not a number`},
		"too few files":                {"{limits: {files: 10}}", "write 256 or more"},
		"too little disk":              {"{limits: {disk: 1MB}}", "write 64 MiB or more"},
		"cores that are none":          {"{limits: {cpu: 2 cores}}", `"2 cores" is not a number of cores`},
		"a limit of nothing known":     {"{limits: {memroy: 4GiB}}", `did you mean "memory"?`},
		"limits of a launcher":         {"{kind: command, command: [ssh, x], limits: {memory: 4GiB}}", "limited by the launcher"},
		"cores without a sandbox":      {"{kind: none, limits: {cpu: 2}}", "kind: none is none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadFile(write(t, "sandbox: "+tt.sandbox+"\nprojects: {web: {dir: /srv/web}}\n"+channelsAndRoles))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, not once %q", err, tt.want)
			}
		})
	}
}
