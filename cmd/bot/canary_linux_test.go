package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/playground/model"
	"deckhand/internal/playground/slack"
)

// canaries are secrets that are known by their look, one for each place.
type canaries map[string]string // where they were put, by their text

// in is a new canary for a place. Those that may be inside say so.
func (c canaries) in(place string) string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // it never fails
	text := "CANARY-" + hex.EncodeToString(b)
	c[text] = place
	return text
}

var canaryForm = regexp.MustCompile(`CANARY-[0-9a-f]+`)

// inside marks the place of a canary that is to be found: that shows that the search works.
const inside = "inside: "

// found are the places whose canaries are in a text, but for those that may be.
func (c canaries) found(text string) (out []string) {
	for _, canary := range canaryForm.FindAllString(text, -1) {
		if place := c[canary]; !strings.HasPrefix(place, inside) {
			out = append(out, place)
		}
	}
	return out
}

// everySecret fills every credential that a bot can have with a canary.
func everySecret(c canaries, dir string) (out []string) {
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_ADMIN_KEY", "ANTHROPIC_FOUNDRY_API_KEY", "AWS_BEARER_TOKEN_BEDROCK",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "PGPASSWORD", "SAMPLE_KEY", "SAMPLE_HEADER", "OTHER_KEY", "OTHER_SECRET", "ENTRA_SECRET", "MCP_SECRET",
		"GITHUB_TOKEN", "GH_TOKEN", "GIT_TOKEN", "NPM_TOKEN",
	} {
		out = append(out, name+"="+c.in(name))
	}
	for name, form := range map[string]string{
		"ANTHROPIC_CUSTOM_HEADERS": "X-Team: %s", "HTTP_PROXY": "http://bot:%s@127.0.0.1:1", "HTTPS_PROXY": "http://bot:%s@127.0.0.1:1", "ALL_PROXY": "http://bot:%s@127.0.0.1:1",
		"https_proxy": "http://bot:%s@127.0.0.1:1",
	} {
		out = append(out, name+"="+fmt.Sprintf(form, c.in(name)))
	}
	out = append(out, "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	for name, file := range map[string]string{
		"GOOGLE_APPLICATION_CREDENTIALS": "google.json", "AWS_SHARED_CREDENTIALS_FILE": "aws", "AWS_WEB_IDENTITY_TOKEN_FILE": "identity",
	} {
		path := filepath.Join(dir, "sample", file) // where a session would see it
		if err := os.WriteFile(path, []byte(c.in(name)), 0o600); err != nil {
			panic(err)
		}
		out = append(out, name+"="+path)
	}
	return out
}

const canaryConfig = `# %s
provider: {kind: anthropic, base_url: %q, api_key_env: SAMPLE_KEY, headers_env: {X-Team-Key: SAMPLE_HEADER}}
projects:
  sample:
    dir: %q
    env: [PASSED_ON]
    sandbox: bwrap
    git: {url: "https://forge.invalid/web.git", token_env: GIT_TOKEN}
    mcp_servers: {docs: {url: "http://127.0.0.1:1/mcp", headers: {Authorization: "Bearer ${MCP_SECRET}"}}}
  bare:
    workspace: scratch
    env: [PASSED_ON]
    sandbox: none
  amazon:
    workspace: scratch
    provider: {kind: bedrock, region: eu-central-1, access_key_id_env: OTHER_KEY, secret_access_key_env: OTHER_SECRET}
  microsoft:
    workspace: scratch
    provider: {kind: foundry, resource: r, tenant_id: t, client_id: c, client_secret_env: ENTRA_SECRET}
channels: {%s: sample, %s: bare}
roles:
  admins: [%s]
  users: [%s]
`

// TestNothingSecretIsInside: every credential that the bot can have is a canary. A session
// of the real CLI in bwrap reads all that it can, the memory of every process included, and
// finds what was handed to it and nothing else. Without a sandbox, where files and
// processes of the bot's user are open, its environment, its arguments and its home have
// none either. The model, Slack, the transcripts and the log hear of none.
func TestNothingSecretIsInside(t *testing.T) {
	t.Parallel()
	w, c := unstartedWorld(t), canaries{}
	var mu sync.Mutex
	var asked, key string
	scripted, err := model.New(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		asked, key = asked+string(body), r.Header.Get("X-Api-Key")+" "+r.Header.Get("X-Team-Key")
		mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		scripted.ServeHTTP(rw, r)
	}))
	t.Cleanup(web.Close)
	sample := filepath.Join(w.dir, "sample")
	if err := os.MkdirAll(sample, 0o755); err != nil { //nolint:gosec // for all to see
		t.Fatal(err)
	}
	passedOn := c.in(inside + "a variable that the project hands on")
	w.env = append(everySecret(c, w.dir), "PASSED_ON="+passedOn)
	if u, err := url.Parse(w.database); err == nil && u.User != nil {
		if _, has := u.User.Password(); !has { // the server asks for none
			u.User = url.UserPassword(u.User.Username(), c.in("DATABASE_URL"))
			w.database = u.String()
		}
	}
	config := fmt.Sprintf(canaryConfig, c.in("deckhand.yaml"), web.URL, sample, eng, slack.ChannelGeneral, ada, slack.GroupEngineers)
	if err := os.WriteFile(filepath.Join(w.dir, "deckhand.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	c[w.BotToken], c[w.AppToken] = "the bot's token", "the app's token"
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(w.Workspace, "tool"), "./testdata/attacker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the attacker: %v\n%s", err, out)
	}
	inBwrap := w.runs(linus, eng, "", "./tool ransack CANARY- xoxb- xapp- > loot")
	bare := w.runs(linus, slack.ChannelGeneral, "", `{ env; tr '\0' '\n' < /proc/$PPID/environ; tr '\0' ' ' < /proc/$PPID/cmdline; grep -r CANARY- "$HOME" "$CLAUDE_CONFIG_DIR"; } > loot 2>&1; true`)
	w.click(ada, eng, w.card(eng, inBwrap).TS, "approve")
	w.click(ada, slack.ChannelGeneral, w.card(slack.ChannelGeneral, bare).TS, "approve")
	w.done(eng, inBwrap, inBwrap)
	w.done(slack.ChannelGeneral, bare, bare)

	for name, dir := range map[string]string{
		"in bwrap": w.Workspace, "without a sandbox": w.text(`SELECT workspace FROM threads WHERE project = 'bare'`),
	} {
		b, err := os.ReadFile(filepath.Join(dir, "loot"))
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range c.found(string(b)) {
			t.Errorf("%s: %s is inside:\n%s", name, place, b)
		}
		if strings.Contains(string(b), w.BotToken) || strings.Contains(string(b), w.AppToken) {
			t.Errorf("%s: Slack's tokens are inside", name)
		}
		if !strings.Contains(string(b), passedOn) {
			t.Errorf("%s: what was handed on was not found either, so the search is of no use:\n%s", name, b)
		}
		if name == "in bwrap" && !strings.Contains(string(b), "/mem: "+passedOn) {
			t.Log("this kernel (Yama) lets nobody read the memory of others: it was not searched")
		}
	}
	w.stop() // all is written
	c.searchOutside(t, w)
	mu.Lock()
	defer mu.Unlock()
	for _, place := range c.found(asked) {
		t.Errorf("the model was told %s", place)
	}
	if c[strings.Fields(key)[0]] != "SAMPLE_KEY" || c[strings.Fields(key)[1]] != "SAMPLE_HEADER" {
		t.Errorf("the provider was not shown the project's credentials: %s", key)
	}
}

// searchOutside looks into the homes with their transcripts, and into the log.
func (c canaries) searchOutside(t *testing.T, w *world) {
	t.Helper()
	read := 0
	for _, root := range []string{filepath.Join(w.dir, "bot", "home"), filepath.Join(w.dir, "bot", "homes"), filepath.Join(w.dir, "bot.log")} {
		_ = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil //nolint:nilerr // it is not there
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			read++
			for _, place := range c.found(string(b)) {
				t.Errorf("%s has %s", path, place)
			}
			return nil
		})
	}
	if read < 3 {
		t.Errorf("%d files were read", read)
	}
}
