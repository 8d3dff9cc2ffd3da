package settings

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml/parser"
	"github.com/google/go-cmp/cmp"

	"deckhand/internal/access"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/sandbox"
	"deckhand/internal/workspace"
)

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "deckhand.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const good = `projects:
  web:
    dir: /srv/web
    workspace: worktree
    env: [GOPROXY]
channels:
  C0123: web
roles:
  admins: [U1AB]
  users: [S1AB]
policy:
  rules:
    - allow: [Read, Glob]
    - deny: mcp__prod__*
  requester_may_approve: false
  approval_timeout: 90m
`

func TestConfigIsReadIntoTheTermsOfItsUsers(t *testing.T) {
	t.Parallel()
	c, err := ReadFile(write(t, good))
	if err != nil {
		t.Fatal(err)
	}
	wantProjects := map[string]place.Project{"web": {Name: "web", Dir: "/srv/web", Workspace: workspace.Worktree, Env: []string{"GOPROXY"}, Sandbox: sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Off, Limits: sandbox.DefaultLimits()}}}
	if diff := cmp.Diff(wantProjects, c.Projects); diff != "" {
		t.Errorf("projects (-want +got):\n%s", diff)
	}
	var rules []string
	for _, r := range c.Policy.Rules {
		rules = append(rules, r.String()+" ("+filepath.Base(r.Source)+")")
	}
	if diff := cmp.Diff([]string{"allow Read, Glob (deckhand.yaml:13:7)", "deny mcp__prod__* (deckhand.yaml:14:7)"}, rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(policy.Terms{Timeout: 90 * time.Minute}, c.Policy.Default); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(access.Roles{Admins: []string{"U1AB"}, Users: []string{"S1AB"}}, c.Access.Roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	if got := c.Calls()["web"]; got != access.CallAuto {
		t.Errorf("people are called by %q", got)
	}
	const own = "projects: {web: {dir: /srv/web, roles: {users: [U2AB]}}}\nchannels: {C0123: {project: web, roles: {approvers: [U3AB]}}}\nroles: {users: [U1AB]}\n"
	if c, err = ReadFile(write(t, own)); err != nil {
		t.Fatal(err)
	}
	want := access.Rules{Projects: map[string]access.Roles{"web": {Users: []string{"U2AB"}}}, Channels: map[string]access.Roles{"C0123": {Approvers: []string{"U3AB"}}}}
	if diff := cmp.Diff(want, access.Rules{Projects: c.Access.Projects, Channels: c.Access.Channels}); diff != "" {
		t.Errorf("roles of projects and channels (-want +got):\n%s", diff)
	}
}

func TestTheExampleIsValid(t *testing.T) {
	t.Parallel()
	if _, err := ReadFile(filepath.Join("..", "..", "deploy", "deckhand.example.yaml")); err != nil {
		t.Error(err)
	}
}

// Every mistake is told with its position and with what to write instead.
// TestTheDocumentsExamplesAreValid reads each block of YAML in the documents as a
// deckhand.yaml, with the keys that it leaves out and any such file has.
func TestTheDocumentsExamplesAreValid(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block, examples := regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```"), 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			source := m[1]
			if strings.HasPrefix(source, "apiVersion:") || strings.HasPrefix(source, "services:") { // Kubernetes' or Compose's
				if _, err := parser.ParseBytes([]byte(source), 0); err != nil {
					t.Errorf("%s: %v", page, err)
				}
				continue
			}
			for _, key := range []string{"projects: {web: {repo: 'https://host/team/web.git'}}", "channels: {C0123456789: web}", "roles: {admins: [U0123456789], approvers: [S0123456789]}"} {
				if name, _, _ := strings.Cut(key, " "); !strings.HasPrefix(source, name) && !strings.Contains(source, "\n"+name) {
					source += key + "\n"
				}
			}
			examples++
			if _, err := readText(page, []byte(source)); err != nil {
				t.Errorf("%v\n%s", err, source)
			}
		}
	}
	if examples < 10 {
		t.Errorf("only %d examples were read", examples)
	}
}

func TestConfigErrorsNameThePlaceAndTheWayOut(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, old, new string
		want           []string
	}{
		{"an unknown key", "workspace: worktree", "worksapce: worktree", []string{":4:5", `no key "worksapce" here; did you mean "workspace"?`}},
		{"several repositories", "    dir: /srv/web", "    dir: /srv/web\n    repositories: [a, b]", []string{":4:5", `no key "repositories" here; a project's further repositories are under repos, a short name and an address each`}},
		{"a list of repositories", "    dir: /srv/web", "    repo: [a, b]", []string{":3:", "write one address; a project's further repositories are under repos"}},
		{"further repositories without its own", "    dir: /srv/web", "    dir: /srv/web\n    git: {also: [\"https://host/team/lib.git\"]}", []string{":4:", "beside the project's own repository at a forge"}},
		{"a wrong type", "C0123: web", "C0123: [web]", []string{":7:"}},
		{"broken YAML", "  web:\n", "  web: [\n", []string{":"}},
		{"a second document", "projects:", "---\nroles: {}\n---\nprojects:", []string{":", "a second document begins here"}},
		{"an unknown workspace", "workspace: worktree", "workspace: tree", []string{":4:16", "projects.web.workspace", "shared, worktree or scratch"}},
		{"a subfolder of a shared folder", "workspace: worktree", "subdir: web", []string{":4:", "projects.web.subdir", "write workspace: worktree"}},
		{"a subfolder elsewhere", "workspace: worktree", "workspace: worktree\n    subdir: ../api", []string{":5:", `"../api" is no folder of the repository`}},
		{"an absolute subfolder", "workspace: worktree", "workspace: worktree\n    subdir: /services/web", []string{"write its path from the top, such as services/web"}},
		{"a subfolder with a slash", "workspace: worktree", "workspace: worktree\n    subdir: services/", []string{"is no folder of the repository"}},
		{"git's own folder", "workspace: worktree", "workspace: worktree\n    subdir: .GIT/hooks", []string{"is no folder of the repository"}},
		{"a relative folder", "/srv/web", "srv/web", []string{":3:10", "absolute"}},
		{"neither dir nor repo", "    dir: /srv/web\n", "", []string{":3:5", "either dir"}},
		{"a channel's name for its id", "C0123: web", "general: web", []string{":7:", "channel id"}},
		{"an emoji with its colons", "C0123: web", "C0123: web\nreactions: {':eyes:': begin}", []string{":8:", "is not an emoji's name"}},
		{"an emoji that dances", "C0123: web", "C0123: web\nreactions: {eyes: dance}", []string{":8:", `"dance" is nothing that an emoji does`}},
		{"replies of a kind that is not there", "C0123: web", "C0123: {project: web, replies: none}", []string{":7:", `"none" is neither`}},
		{"a name of two lines", "projects:", "people: {U1AB: {name: \"Ada\\nx\"}}\nprojects:", []string{":1:23", "people.U1AB.name", "is no name that a commit can have"}},
		{"an address with a name", "projects:", "people: {U1AB: {email: Ada <ada@example.com>}}\nprojects:", []string{":1:24", "people.U1AB.email", "write one such as ada@example.com"}},
		{"no address", "projects:", "people: {U1AB: {email: ada}}\nprojects:", []string{"is no address"}},
		{"a project that is not there", "C0123: web", "C0123: wbe", []string{":7:10", `"wbe"`}},
		{"a person's name for their id", "[U1AB]", "[ada]", []string{":9:12", "roles.admins[0]", "Copy member ID"}},
		{"a rule with two verdicts", "    - deny: mcp__prod__*", "    - deny: Bash\n      allow: Bash", []string{":14:", "one verdict"}},
		{"a rule without tools", "mcp__prod__*", "[]", []string{":14:", "names no tool"}},
		{"a pattern that is not closed", "mcp__prod__*", `"Bash(rm *"`, []string{":14:", "Bash(rm *"}},
		{"a rule for a project that is not there", "mcp__prod__*", "Bash\n      projects: [wbe]", []string{":15:", `"wbe"`}},
		{"terms on a rule that asks nobody", "mcp__prod__*", "Bash\n      quorum: 2", []string{":14:", "a rule that asks"}},
		{"more people than there are", "deny: mcp__prod__*", "ask: Bash\n      approvers: [U1AB]\n      quorum: 2", []string{":16:", "2 people must approve, but in C0123 only 1 may decide (U1AB)"}},
		{"a timeout that leads nowhere", "deny: mcp__prod__*", "ask: Bash\n      on_timeout: allow", []string{":15:", "pause, or deny"}},
		{"a reminder for nobody", "  approval_timeout: 90m", "  reminders: [{after: 1h, to: everyone}]", []string{":16:", `"everyone"`}},
		{"a secret handed on", "[GOPROXY]", "[SLACK_BOT_TOKEN]", []string{":5:11", "cannot be passed on"}},
		{"a timeout without a unit", "90m", "90", []string{"24h"}},
		{"a mode that asks nobody", "    workspace: worktree", "    permission_mode: bypassPermissions", []string{":4:22", "default or plan"}},
		{"a model and models", "    workspace: worktree", "    model: opus\n    models: [sonnet]", []string{":4:12", "write them alone"}},
		{"a model twice", "    workspace: worktree", "    models: [sonnet, sonnet]", []string{":4:22", "stands here twice"}},
		{"a model that is none", "    workspace: worktree", "    models: [the best]", []string{":4:14", `"the best" is not a model's name`}},
		{"no calls in a turn", "    workspace: worktree", "    max_turns: 0", []string{":4:16", "write 1 or more"}},
		{"a tool that is none", "    workspace: worktree", "    allowed_tools: [Bahs]", []string{":4:21", `"Bahs" is no tool`}},
		{"a server's tool among the built-in ones", "    workspace: worktree", "    allowed_tools: [mcp__linear__get]", []string{":4:21", "is no tool"}},
		{"a call to everybody", "    workspace: worktree", "    call: everyone", []string{":4:11", `"everyone" is not a way to call`, "auto, thread, dm or channel"}},
		{"a zone that is none", "  approval_timeout: 90m", "time_zone: Europe/Atlantis", []string{":16:", `"Europe/Atlantis" is not a time zone`}},
		{"somebody's zone", "  approval_timeout: 90m", "reports: {time_zone: mine}", []string{":16:", `"mine" is not a choice`}},
		{"a digest now and then", "  approval_timeout: 90m", "reports: {digests: [{every: fortnight, to: C0FINANCE}]}", []string{":16:", `"fortnight"`}},
		{"a digest at no time", "  approval_timeout: 90m", "reports: {digests: [{every: day, at: noon, to: C0FINANCE}]}", []string{":16:", `"noon" is not a time of day`}},
		{"a digest for nobody", "  approval_timeout: 90m", "reports: {digests: [{every: day, to: finance}]}", []string{":16:", `"finance" cannot be sent to`}},
		{"a digest by colour", "  approval_timeout: 90m", "reports: {digests: [{every: day, to: C0FINANCE, by: colour}]}", []string{":16:", `“by colour”`}},
		{"a digest of another project", "  approval_timeout: 90m", "reports: {digests: [{every: day, to: C0FINANCE, for: project nowhere}]}", []string{":16:", "There is no project “nowhere”"}},
		{"a digest of another time", "  approval_timeout: 90m", "reports: {digests: [{every: day, to: C0FINANCE, for: last month}]}", []string{":16:", "a digest is of the day"}},
		{"a digest twice", "  approval_timeout: 90m", "reports: {digests: [{every: day, to: C0FINANCE}, {every: day, to: C0FINANCE}]}", []string{":16:", "there twice"}},
		{"a budget without a limit", "  approval_timeout: 90m", "budgets: [{scope: person, per: day}]", []string{":16:", "US dollars above zero"}},
		{"a budget for nobody", "  approval_timeout: 90m", "budgets: [{scope: office, per: day, limit: 5}]", []string{":16:", `"office"`}},
		{"a budget of words", "  approval_timeout: 90m", "budgets: [{scope: person, per: day, limit: lots}]", []string{":16:", `"lots" is not a limit`}},
		{"a budget's unknown project", "  approval_timeout: 90m", "budgets: [{scope: project, only: wbe, per: day, limit: 5}]", []string{":16:", `"wbe"`}},
		{"a budget of a channel that is not served", "  approval_timeout: 90m", "budgets: [{scope: channel, only: [C0OTHER], per: day, limit: 5}]", []string{":16:", "the bot does not work in C0OTHER, which is not under channels"}},
		{"a budget twice", "  approval_timeout: 90m", "budgets: [{scope: person, only: [U1AB, U2AB], per: day, limit: 5}, {scope: person, only: [U2AB, U1AB], per: day, limit: 7}]", []string{":16:", "budgets[1]: this budget is there twice"}},
		{"a model that nobody is asked about", "  approval_timeout: 90m", "budgets: [{scope: person, per: day, limit: 5, cheaper_model: haiku}]", []string{":16:", "then: ask"}},
		{"an empty file", good, "", []string{"there is no project"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(good, tt.old) {
				t.Fatalf("%q is not in the good configuration", tt.old)
			}
			file := write(t, strings.Replace(good, tt.old, tt.new, 1))
			_, err := ReadFile(file)
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the error does not say %q:\n%v", w, err)
				}
			}
			if !strings.Contains(err.Error(), file) {
				t.Errorf("the error does not name the file:\n%v", err)
			}
		})
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(good)
	f.Add("projects: {a: &x {dir: *x}}")
	f.Add("policy: {rules: [{allow: {}}]}")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = ReadFile(write(t, text)) // an error, never a panic
	})
}

func TestAFileThatCannotBeReadSaysWhatToDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "nowhere.yaml"): "there is no file",
		dir:                                "is a folder; name the file in it",
		pipe:                               "is no file, but a pipe", // nobody writes to it
		"/dev/zero":                        "is no file, but a pipe, a socket or a device",
		write(t, strings.Repeat("# no end\n", 1<<17)): "is larger than 1 MiB",
	} {
		if _, err := ReadFile(name); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	if err := unreadable("x.yaml", os.ErrPermission); !strings.Contains(err.Error(), "may not read x.yaml; let it") {
		t.Errorf("error %v", err)
	}
}

// What a key is beside says which ones there are, whatever the file is made of.
func TestAnUnknownKeyIsToldWithItsNeighbours(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ old, new, want string }{
		"at the top":        {"roles:", "rolls:", `:8:1: there is no key "rolls" here; did you mean "roles"?`},
		"in a list":         {"deny:", "denny:", `:14:7: there is no key "denny" here; did you mean "deny"?`},
		"in a channel":      {"C0123: web", "C0123: {project: web, role: {}}", `did you mean "roles"?`},
		"behind an anchor":  {"  web:\n", "  web: &w\n    modell: x\n", `:3:5: there is no key "modell" here; did you mean "model"?`},
		"like nothing else": {"policy:", "banana:", `there is no key "banana" here; there are projects, channels, direct_messages`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadFile(write(t, strings.Replace(good, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
