package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/agent/place"
	"deckhand/internal/playground/slack"
	"deckhand/internal/settings"
	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

func TestMain(m *testing.M) {
	storetest.Main(m, func() error { http.DefaultClient.CloseIdleConnections(); return goleak.Find() })
}

// sound is a setup in which everything is as it should be, and its deckhand.yaml.
func sound(t *testing.T) (Setup, string) {
	t.Helper()
	web := filepath.Join(t.TempDir(), "web")
	git(t, "", "init", "-q", web)
	git(t, web, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
	git(t, web, "branch", "-f", "stable")
	yaml := fmt.Sprintf(`projects:
  web: {dir: %q, workspace: worktree, base: stable, model: sonnet}
  api: {repo: %q, workspace: worktree, base: stable, env: [PATH]}
channels:
  %s: web
  %s: api
roles:
  admins: [%s]
  approvers: [%s]
`, web, web, slack.ChannelGeneral, slack.ChannelEngineering, slack.UserAda, slack.GroupApprovers)
	s := Setup{Environment: settings.Environment{
		DatabaseURL: storetest.URL(t), ClaudeCommand: cli(t, LeastCLI), DataDir: t.TempDir(), Listen: "127.0.0.1:0",
	}, Environ: []string{"ANTHROPIC_API_KEY=k", "PATH=/usr/bin:/bin"}}
	workspace(t, &s, slack.Options{NoRateLimits: true})
	return s, yaml
}

func workspace(t *testing.T, s *Setup, o slack.Options) {
	t.Helper()
	w, err := slack.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.Handler())
	t.Cleanup(func() {
		server.Close()
		_ = w.Close(context.Background())
	})
	s.Environment.SlackBotToken, s.Environment.SlackAppToken, s.Environment.SlackAPIURL = w.BotToken(), w.AppToken(), server.URL+"/api/"
}

// cli is a program that says that it is a version of Claude Code.
func cli(t *testing.T, version string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "claude")
	// No other test starts a program meanwhile: it would hold the file open, which is busy then.
	syscall.ForkLock.RLock()
	err := os.WriteFile(file, []byte("#!/bin/sh\necho '"+version+" (Claude Code)'\n"), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func examine(t *testing.T, s Setup, yaml string) []Finding {
	t.Helper()
	file := filepath.Join(t.TempDir(), "deckhand.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	s.File, s.FileErr = settings.ReadFile(file)
	d := New(s)
	return append(d.Essentials(t.Context()), d.Advice(t.Context())...)
}

func lines(found []Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s %s: %s\n", f.Status, f.Check, f.Text)
	}
	return b.String()
}

func TestNothingIsWrongWithASoundSetup(t *testing.T) {
	t.Parallel()
	s, yaml := sound(t)
	found := examine(t, s, yaml)
	for _, f := range found {
		if f.Status != OK {
			t.Errorf("%s %s: %s", f.Status, f.Check, f.Text)
		}
	}
	if len(found) != 16 {
		t.Errorf("%d findings:\n%s", len(found), lines(found))
	}
	left, err := os.ReadDir(s.Environment.DataDir)
	if err != nil || len(left) != 0 {
		t.Errorf("it left %v in the data folder", left)
	}
}

// The wall is told as it was seen, and what a contained posture rests on.
func TestTheWallIsTold(t *testing.T) {
	t.Parallel()
	s, yaml := sound(t)
	got := lines(examine(t, s, yaml+"posture: contained\n"))
	for _, want := range []string{
		"ok sandboxes: Linux ", "ok sandboxes: api, web: bwrap, no network, ", "Seen inside: kernel Linux ", "system calls filtered (seccomp)",
		"ok sandboxes: posture: contained in api, web rests on bwrap and this machine's kernel",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// One thing is wrong at a time: it is found, with its cure, and nothing else is.
func TestWhatIsWrongIsFoundWithItsCure(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	busy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() }) // after the parallel ones
	replace := func(old, with string) func(*Setup, string) string {
		return func(_ *Setup, yaml string) string {
			if !strings.Contains(yaml, old) {
				t.Errorf("%q is not in the sound configuration", old)
			}
			return strings.Replace(yaml, old, with, 1)
		}
	}
	change := func(f func(*Setup)) func(*Setup, string) string {
		return func(s *Setup, yaml string) string { f(s); return yaml }
	}
	for _, tt := range []struct {
		name  string
		spoil func(*Setup, string) string
		want  string
	}{
		{"a misspelt variable", change(func(s *Setup) { s.Environ = append(s.Environ, "DECKHAND_LISTN="+canary) }), "warning environment: DECKHAND_LISTN: nothing reads this variable; did you mean DECKHAND_LISTEN?"},
		{"a misspelt key", replace("roles:", "rules:"), `failed configuration: `},
		{"nobody may do anything", replace("  admins: ["+slack.UserAda+"]\n  approvers: ["+slack.GroupApprovers+"]", "  admins: []"), "nobody may use the bot; write user ids"},
		{"a data folder that is a file", change(func(s *Setup) { s.Environment.DataDir = cli(t, "x") }), "failed data folder: DECKHAND_DATA_DIR: "},
		{"a data folder nowhere", change(func(s *Setup) { s.Environment.DataDir = "/proc/nowhere" }), "failed data folder: DECKHAND_DATA_DIR: /proc/nowhere is not there"},
		{"a port in use", change(func(s *Setup) { s.Environment.Listen = busy.Addr().String() }), "failed address: DECKHAND_LISTEN: " + busy.Addr().String() + ": another program listens there; stop it, or write another port"},
		{"another machine's address", change(func(s *Setup) { s.Environment.Listen = "192.0.2.1:80" }), "this machine has no such address"},
		{"no CLI", change(func(s *Setup) { s.Environment.ClaudeCommand = "/nowhere/claude" }), "failed Claude Code: CLAUDE_COMMAND: /nowhere/claude does not run"},
		{"an old CLI", change(func(s *Setup) { s.Environment.ClaudeCommand = cli(t, "2.0.0") }), "failed Claude Code: CLAUDE_COMMAND: Claude Code 2.0.0 is too old"},
		{"no PostgreSQL", change(func(s *Setup) { s.Environment.DatabaseURL = "postgres://u:" + canary + "@127.0.0.1:1/d" }), "failed database: DATABASE_URL: nothing listens at 127.0.0.1:1: start PostgreSQL"},
		{"a URL that is none", change(func(s *Setup) { s.Environment.DatabaseURL = "postgres://u:" + canary + "/@h/d" }), "skipped database: "},
		{"an empty database", change(func(s *Setup) {
			storetest.Exec(t, s.Environment.DatabaseURL, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
		}), "warning database: it answers, and its schema is 0 of "},
		{"a newer schema", change(func(s *Setup) {
			storetest.Exec(t, s.Environment.DatabaseURL, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`)
		}), "failed database: DATABASE_URL: the database is at schema 99999"},
		{"no key", change(func(s *Setup) { s.Environ = []string{"ANTHROPIC_BASE_URL=https://gateway", "PATH=/usr/bin:/bin"} }), "nothing can be done in api, web, since the model is not reached: there is no credential for the model: set ANTHROPIC_API_KEY"},
		{"a project's key that is not set", replace("model: sonnet", "model: sonnet, provider: {kind: anthropic, api_key_env: WEB_KEY}"), "nothing can be done in web, since the model is not reached: WEB_KEY is not set"},
		{"a credential of Google's that has no file", replace("model: sonnet", "model: sonnet, provider: {kind: vertex, region: eu, project: p, credentials_file: /nowhere.json}"), "set GOOGLE_APPLICATION_CREDENTIALS"},
		{"a launcher that takes no socket", replace("model: sonnet", "model: sonnet, sandbox: {kind: command, command: [env]}"), "DECKHAND_GATEWAY_LISTEN"},
		{"an unknown model", replace("sonnet", "sonet"), `:2:`},
		{"an unknown model, and the one that was meant", replace("sonnet", "sonet"), `"sonet" is no model that is known here; did you mean "sonnet"?`},
		{"a wrong bot token", change(func(s *Setup) { s.Environment.SlackBotToken = "xoxb-" + canary }), "failed Slack: slack refuses SLACK_BOT_TOKEN"},
		{"a wrong app token", change(func(s *Setup) { s.Environment.SlackAppToken = "xapp-" + canary }), "failed Slack: slack refuses SLACK_APP_TOKEN"},
		{"no Slack", change(func(s *Setup) { s.Environment.SlackAPIURL = "http://127.0.0.1:1/api/" }), "failed Slack: slack's API cannot be reached"},
		{"a missing scope", change(func(s *Setup) {
			some := slices.DeleteFunc(slack.DefaultScopes(), func(scope string) bool { return scope == "im:write" })
			workspace(t, s, slack.Options{NoRateLimits: true, Scopes: some})
		}), "warning Slack's scopes: the bot token lacks im:write (for requests and reports by direct message, each sent once); add them to the app as in deploy/slack-manifest.yaml, and install it again"},
		{"scopes for nothing", change(func(s *Setup) {
			workspace(t, s, slack.Options{NoRateLimits: true, Scopes: append(slack.DefaultScopes(), "files:write:user", "channels:join")})
		}), "warning Slack's scopes: the bot token has files:write:user, channels:join, which Deckhand does not use; remove them from the app"},
		{"a channel that is not there", replace(slack.ChannelGeneral, "C0NOWHERE"), "there is no channel C0NOWHERE, or it is private"},
		{"a group that is not there", replace(slack.GroupApprovers, "S0NOBODY"), "there is no user group S0NOBODY; correct the id"},
		{"a person who is not there", replace(slack.UserAda, "U0NOBODY"), "there is no person U0NOBODY"},
		{"a guest with a role", replace(slack.UserAda, slack.UserGuest), "is a guest or a bot, who may do nothing"},
		{"rules that add up, without a sandbox", func(_ *Setup, yaml string) string {
			return strings.Replace(yaml, "base: stable, env", "base: stable, sandbox: none, env", 1) + "policy: {rules: [{allow: [Edit(src/**), Bash(make *)]}]}\n"
		}, "warning policy: Edit(src/**) ("},
		{"a rule that can fetch nothing", func(_ *Setup, yaml string) string {
			return yaml + "policy: {rules: [{allow: 'WebFetch(domain:go.dev)'}]}\n"
		}, "can fetch nothing in api, web, where the sandbox has no network; write the domains under network:"},
		{"a rule that lets nothing be reached", func(_ *Setup, yaml string) string {
			return yaml + "policy: {rules: [{allow: 'SandboxNetworkAccess(domain:go.dev)'}]}\n"
		}, "lets nothing be reached, since nobody is asked about hosts in any project where it holds; write network: ask"},
		{"a rule that no call reaches", func(_ *Setup, yaml string) string {
			return yaml + "policy: {rules: [{deny: Bash}, {allow: Bash(ls *)}]}\n"
		}, "no call reaches it, since deny Bash ("},
		{"a quorum that a group is too small for", func(_ *Setup, yaml string) string {
			return yaml + "policy: {quorum: 3}\n"
		}, "policy.quorum: 3 people must approve, but in "},
		{
			"a server's variable that is not set", replace("model: sonnet", `model: sonnet, mcp_servers: {linear: {url: "https://mcp.example/", headers: {Authorization: "Bearer ${NOT_SET}"}}}`),
			"nothing can be done in web, since the MCP server linear takes NOT_SET in its header Authorization, which is not set; set it, or leave the server out",
		},
		{"a server's variable of two lines", func(s *Setup, yaml string) string {
			s.Environ = append(s.Environ, "TWO_LINES="+canary+"\nx")
			return strings.Replace(yaml, "model: sonnet", `model: sonnet, mcp_servers: {linear: {url: "https://mcp.example/", headers: {A: "${TWO_LINES}"}}}`, 1)
		}, "takes TWO_LINES in its header A, which has a line break in it"},
		{"a folder that is not there", replace(`/web", workspace`, `/wbe", workspace`), "project web: there is no folder "},
		{"a folder without the base", replace("base: stable, model", "base: nowhere, model"), "has no nowhere that working trees could start from"},
		{"a repository that is not there", func(_ *Setup, yaml string) string {
			return strings.Replace(yaml, `repo: "`, `repo: "https://127.0.0.1:1`, 1)
		}, "project api: https://127.0.0.1:1"},
		{"a password in an address", func(_ *Setup, yaml string) string {
			return strings.Replace(yaml, `repo: "`, `repo: "https://u:`+canary+`@127.0.0.1:1`, 1)
		}, "projects.api.repo: an address holds no credentials"},
		{"a repository without the base", replace("base: stable, env", "base: nowhere, env"), "has no nowhere; correct base"},
		{"a sandbox that does not work", replace("model: sonnet", "model: sonnet, sandbox: {see: [/opt/nowhere]}"), "warning sandboxes: "},
		{"… and what is wrong with it", replace("model: sonnet", "model: sonnet, sandbox: {see: [/opt/nowhere]}"), "nothing runs in web, since the sandbox does not work: there is no /opt/nowhere"},
		{"a PATH that the sandbox does not show", change(func(s *Setup) {
			s.Environ = []string{"ANTHROPIC_API_KEY=k", "PATH=/usr/bin:" + filepath.Dir(s.Environment.ClaudeCommand)}
		}), "not seen in the sandbox of api, web; name what they need under sandbox.see"},
		{"a variable that is not set", replace("[PATH]", "[DECKHAND_TEST_UNSET]"), "the variable DECKHAND_TEST_UNSET is not set"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, yaml := sound(t)
			yaml = tt.spoil(&s, yaml)
			found := examine(t, s, yaml)
			got := lines(found)
			if !strings.Contains(got, tt.want) {
				t.Errorf("no %q in\n%s", tt.want, got)
			}
			if strings.Contains(got, canary) {
				t.Errorf("a secret in\n%s", got)
			}
			failed, wrong := 0, 0
			for _, f := range found {
				switch f.Status {
				case Failed:
					failed++
					wrong++
				case Warning:
					wrong++
				case OK, Skipped:
				}
			}
			if wrong > 1 || (wrong == 0 && !strings.HasPrefix(tt.want, "skipped")) {
				t.Errorf("%d things are wrong:\n%s", wrong, got)
			}
			if strings.HasPrefix(tt.want, "failed") && failed != 1 {
				t.Errorf("%d checks failed:\n%s", failed, got)
			}
		})
	}
}

// A bot that runs has the folder and the port, and is not in its own way.
func TestTheBotThatRunsHereIsNotInTheWay(t *testing.T) {
	t.Parallel()
	s, yaml := sound(t)
	replica, err := place.OpenReplica(s.Environment.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Close() //nolint:errcheck // a test's lock
	if got := lines(examine(t, s, yaml)); !strings.Contains(got, "failed data folder: DECKHAND_DATA_DIR: another bot uses the data folder") {
		t.Errorf("it does not see the other bot:\n%s", got)
	}
	health := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "ready", "version": "v1", "database": "ok", "slack": "connected"})
	}))
	defer health.Close()
	s.Environment.Listen = health.Listener.Addr().String()
	for _, f := range examine(t, s, yaml) {
		if f.Status != OK {
			t.Errorf("%s %s: %s", f.Status, f.Check, f.Text)
		}
	}
}

func TestEverythingIsLookedAtWhateverElseIsWrong(t *testing.T) {
	t.Parallel()
	s := Setup{EnvironmentErr: settings.Problems{"A: wrong", "B: wrong"}, FileErr: fmt.Errorf("no file")}
	d := New(s)
	got := lines(append(d.Essentials(t.Context()), d.Advice(t.Context())...))
	for _, want := range []string{"failed environment: A: wrong", "failed environment: B: wrong", "failed configuration: no file", "skipped database", "skipped Slack:", "skipped projects"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestChannelsThatWereSetUpInSlack: what deckhand.yaml does not have as it is, is told with what to do.
func TestChannelsThatWereSetUpInSlack(t *testing.T) {
	t.Parallel()
	s, yaml := sound(t)
	db, err := store.Open(t.Context(), s.Environment.DatabaseURL, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for channel, project := range map[string]string{
		slack.ChannelGeneral: "web", slack.ChannelEngineering: "web", slack.ChannelRandom: "api", slack.ChannelCareful: "gone",
	} {
		if _, err := db.Bind(t.Context(), "T0PLAYGRND", threads.Binding{ChannelID: channel, Project: project, BoundBy: slack.UserAda}); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	for _, f := range examine(t, s, yaml) {
		if f.Check == "channels set up in Slack" {
			told = append(told, string(f.Status)+" "+f.Text)
		}
	}
	want := []string{
		"warning C0CAREFUL was set up in Slack for the project gone, which deckhand.yaml does not have any more, so nothing is done there; write “/deckhand setup” in it",
		"warning C0ENG was set up in Slack for the project web, but deckhand.yaml says api, which counts; write “/deckhand setup project none” in it to forget the other",
		"warning C0RANDOM was set up in Slack for the project api, which holds until deckhand.yaml has the channel; add channels: {C0RANDOM: api}",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}
