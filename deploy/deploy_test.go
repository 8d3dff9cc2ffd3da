// Package deploy_test holds the files that a deployment is made from to what
// the code and each other say.
package deploy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
)

// manifest decodes slack-manifest.yaml and refuses a field that Slack's schema
// does not have.
func manifest(t *testing.T) slack.Manifest {
	t.Helper()
	raw := read(t, "slack-manifest.yaml")
	var m slack.Manifest
	if err := yaml.NewDecoder(bytes.NewReader(raw), yaml.Strict()).Decode(&m); err != nil {
		t.Fatalf("slack-manifest.yaml: %v", err)
	}
	return m
}

func TestManifestIsForSocketMode(t *testing.T) {
	t.Parallel()
	m := manifest(t)
	s := m.Settings
	if !s.SocketModeEnabled || s.Interactivity == nil || !s.Interactivity.IsEnabled {
		t.Errorf("socket mode and interactivity must be on: %+v", s)
	}
	if raw := string(read(t, "slack-manifest.yaml")); strings.Contains(raw, "url:") {
		t.Error("in socket mode Slack calls no address of ours")
	}
	if s.EventSubscriptions == nil || len(s.EventSubscriptions.UserEvents) != 0 || len(m.OAuthConfig.Scopes.User) != 0 {
		t.Errorf("the bot acts and hears as itself, never as a person: %+v, %q", s.EventSubscriptions, m.OAuthConfig.Scopes.User)
	}
}

func TestManifestShowsTheAgentAndItsHome(t *testing.T) {
	t.Parallel()
	f := manifest(t).Features
	if !f.AppHome.HomeTabEnabled || !f.AppHome.MessagesTabEnabled || f.AppHome.MessagesTabReadOnlyEnabled {
		t.Errorf("home and messages tabs: %+v", f.AppHome)
	}
	if f.AgentView == nil || f.AssistantView != nil {
		t.Error("an agent view, and not its predecessor beside it")
	}
	if len(f.SlashCommands) != 1 || f.SlashCommands[0].Command != "/deckhand" || f.SlashCommands[0].UsageHint == "" {
		t.Errorf("slash commands: %+v", f.SlashCommands)
	}
}

// The limits of Slack's schema for manifests of version 2.
func TestManifestKeepsSlacksLimits(t *testing.T) {
	t.Parallel()
	m := manifest(t)
	if v := m.Metadata; v.MajorVersion != 2 {
		t.Errorf("the version of the schema: %+v", v)
	}
	type limits struct {
		text     string
		min, max int
	}
	texts := map[string]limits{
		"name":              {m.Display.Name, 1, 35},
		"description":       {m.Display.Description, 1, 140},
		"long description":  {m.Display.LongDescription, 175, 4000},
		"display name":      {m.Features.BotUser.DisplayName, 1, 80},
		"agent description": {m.Features.AgentView.AgentDescription, 1, 300},
	}
	for _, c := range m.Features.SlashCommands {
		texts["command "+c.Command] = limits{c.Command, 2, 32}
		texts["description of "+c.Command] = limits{c.Description, 1, 2000}
		texts["hint of "+c.Command] = limits{c.UsageHint, 1, 1000}
	}
	for i, p := range m.Features.AgentView.SuggestedPrompts {
		texts[fmt.Sprintf("title of prompt %d", i)] = limits{p.Title, 1, 4000}
		texts[fmt.Sprintf("message of prompt %d", i)] = limits{p.Message, 1, 4000}
	}
	for i, name := range slices.Concat(m.OAuthConfig.Scopes.Bot, m.Settings.EventSubscriptions.BotEvents) {
		texts[fmt.Sprintf("scope or event %d", i)] = limits{name, 1, 50}
	}
	for what, c := range texts {
		if n := len([]rune(c.text)); n < c.min || n > c.max {
			t.Errorf("the %s has %d characters, not %d to %d", what, n, c.min, c.max)
		}
	}
	for what, c := range map[string]struct{ n, most int }{
		"scopes": {len(m.OAuthConfig.Scopes.Bot), 255}, "events": {len(m.Settings.EventSubscriptions.BotEvents), 100},
		"suggested prompts": {len(m.Features.AgentView.SuggestedPrompts), 4},
	} {
		if c.n < 1 || c.n > c.most {
			t.Errorf("%d %s, not 1 to %d", c.n, what, c.most)
		}
	}
	if !regexp.MustCompile(`^#[0-9a-fA-F]{3}([0-9a-fA-F]{3})?$`).MatchString(m.Display.BackgroundColor) {
		t.Errorf("the background color %q", m.Display.BackgroundColor)
	}
}

// Every YAML and JSON file of the deployment parses.
func TestFilesParse(t *testing.T) {
	t.Parallel()
	files := []string{"../docker-compose.yml", "../.golangci.yml"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case strings.HasPrefix(path, "helm"+string(filepath.Separator)):
			return nil // templates
		}
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		var v any
		if filepath.Ext(path) == ".json" {
			if err := json.Unmarshal(read(t, path), &v); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		d := yaml.NewDecoder(bytes.NewReader(read(t, path)))
		for {
			if err := d.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v", path, err)
				break
			}
		}
	}
}

type composeFile struct {
	Services map[string]struct {
		Image       string            `yaml:"image"`
		Init        bool              `yaml:"init"`
		EnvFile     string            `yaml:"env_file"`
		Environment map[string]string `yaml:"environment"`
		Ports       []string          `yaml:"ports"`
		Volumes     []any             `yaml:"volumes"`
		DependsOn   map[string]struct {
			Condition string `yaml:"condition"`
		} `yaml:"depends_on"`
		Healthcheck struct {
			Test []string `yaml:"test"`
		} `yaml:"healthcheck"`
		CapDrop     []string `yaml:"cap_drop"`
		SecurityOpt []string `yaml:"security_opt"`
		ReadOnly    bool     `yaml:"read_only"`
	} `yaml:"services"`
	Volumes map[string]any `yaml:"volumes"`
}

func TestComposeKeepsItsPromises(t *testing.T) {
	t.Parallel()
	var c composeFile
	if err := yaml.Unmarshal(read(t, "../docker-compose.yml"), &c); err != nil {
		t.Fatal(err)
	}
	bot, db := c.Services["bot"], c.Services["postgres"]
	if bot.Init {
		t.Error("Docker's init shows the bot's tokens in /proc/1/environ; the bot reaps by itself")
	}
	if bot.DependsOn["postgres"].Condition != "service_healthy" || len(db.Healthcheck.Test) == 0 {
		t.Error("the bot does not wait for a healthy database")
	}
	if len(db.Ports) != 0 {
		t.Errorf("the database is published: %q", db.Ports)
	}
	if !slices.Contains(bot.CapDrop, "ALL") || !slices.Contains(bot.SecurityOpt, "no-new-privileges:true") || !bot.ReadOnly {
		t.Error("the bot's container has more rights than it needs")
	}
	// Besides, no more than bubblewrap needs.
	want := []string{"no-new-privileges:true", "seccomp=deploy/seccomp.json", "apparmor=unconfined", "systempaths=unconfined"}
	if diff := cmp.Diff(want, bot.SecurityOpt); diff != "" {
		t.Errorf("security_opt of the bot (-want +got):\n%s", diff)
	}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			short, ok := v.(string)
			if !ok {
				continue // a file, in the long form
			}
			source, _, _ := strings.Cut(short, ":")
			if _, known := c.Volumes[source]; !known && !strings.HasPrefix(source, ".") {
				t.Errorf("%s mounts %s, which is not declared", name, source)
			}
		}
	}
}

// Whoever reads .env.example sees every variable that the bot reads, and no
// other, and no value that looks like a secret.
func TestEnvExampleIsComplete(t *testing.T) {
	t.Parallel()
	want := []string{
		"ANTHROPIC_ADMIN_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_WORKSPACE_ID", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_COMMAND",
		"DATABASE_DIRECT_URL", "DATABASE_URL", "DECKHAND_CATCH_UP", "DECKHAND_CLI_TIMEOUT", "DECKHAND_CONFIG", "DECKHAND_DATA_DIR", "DECKHAND_DRAIN_TIMEOUT", "DECKHAND_FORGE_EVERY", "DECKHAND_GATEWAY_CERT", "DECKHAND_GATEWAY_KEY", "DECKHAND_GATEWAY_LISTEN", "DECKHAND_GATEWAY_URL", "DECKHAND_IDLE_TIMEOUT", "DECKHAND_LEASE_TIME",
		"DECKHAND_LISTEN", "DECKHAND_LOG_FORMAT", "DECKHAND_LOG_LEVEL", "DECKHAND_MAX_LIVE_SESSIONS", "DECKHAND_PARK_AFTER", "DECKHAND_STARTS_AT_ONCE", "DECKHAND_TOKEN_KEY", "DECKHAND_WEBHOOK_LISTEN",
		"POSTGRES_PASSWORD", "SLACK_API_URL", "SLACK_APP_TOKEN", "SLACK_BOT_TOKEN",
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^#?([A-Z][A-Z0-9_]+)=(.*)$`).FindAllStringSubmatch(string(read(t, "../.env.example")), -1) {
		got = append(got, m[1])
		if len(m[2]) > 20 && m[1] != "DATABASE_URL" {
			t.Errorf("%s has a value that is too long for an example", m[1])
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables of .env.example (-want +got):\n%s", diff)
	}
}

// The image holds the CLI that is pinned, and what it is built from is not
// kept out of its context.
func TestImageHasWhatItCopies(t *testing.T) {
	t.Parallel()
	var allowed []string
	for line := range strings.Lines(string(read(t, "../.dockerignore"))) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			allowed = append(allowed, name)
		}
	}
	copied := regexp.MustCompile(`(?m)^COPY ([^-\n][^\n]*) \S+$`).FindAllStringSubmatch(string(read(t, "../Dockerfile")), -1)
	if len(copied) == 0 {
		t.Fatal("the Dockerfile copies nothing")
	}
	for _, m := range copied {
		for source := range strings.FieldsSeq(m[1]) {
			if !slices.Contains(allowed, source) {
				t.Errorf("the Dockerfile copies %s, which .dockerignore keeps out", source)
			}
			if _, err := os.Stat(filepath.Join("..", source)); err != nil {
				t.Errorf("the Dockerfile copies what is not there: %v", err)
			}
		}
	}
}

// A package.json that was changed without its lock file would be refused by
// npm ci, in everybody's first minutes.
func TestLockFilesAreInStep(t *testing.T) {
	t.Parallel()
	type dependencies struct {
		Dependencies         map[string]string `json:"dependencies"`
		OptionalDependencies map[string]string `json:"optionalDependencies"`
	}
	for _, dir := range []string{"claude", "postgres"} {
		var want dependencies
		var lock struct {
			Packages map[string]json.RawMessage `json:"packages"`
		}
		if err := json.Unmarshal(read(t, filepath.Join(dir, "package.json")), &want); err != nil {
			t.Fatal(err)
		}
		raw := read(t, filepath.Join(dir, "package-lock.json"))
		if err := json.Unmarshal(raw, &lock); err != nil {
			t.Fatal(err)
		}
		var got dependencies
		if err := json.Unmarshal(lock.Packages[""], &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s/package-lock.json (-package.json +lock):\n%s", dir, diff)
		}
		for name, p := range lock.Packages {
			if name != "" && !bytes.Contains(p, []byte(`"integrity"`)) {
				t.Errorf("%s: %s is locked without a checksum", dir, name)
			}
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
