package gateway_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"deckhand/internal/gateway"
	"deckhand/internal/needtest"
	"deckhand/internal/playground/model"
)

// says has the real CLI ask its model once, in a namespace that has no network unless the
// way leads there.
func says(ctx context.Context, t testing.TB, env []string, words ...string) (string, error) {
	t.Helper()
	program, home := needtest.Claude(t), folder(t)
	bwrap := needtest.Program(t, "bwrap")
	args := []string{"--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", os.TempDir(), "--bind", home, home}
	near := false
	for _, entry := range env {
		if socket, ok := strings.CutPrefix(entry, "ANTHROPIC_UNIX_SOCKET="); ok {
			near = true
			args = append(args, "--ro-bind", filepath.Dir(socket), filepath.Dir(socket))
		}
	}
	if !near {
		args = append(args, "--share-net")
	}
	args = append(args, program, "-p", "--setting-sources", "", "--strict-mcp-config")
	cmd := exec.CommandContext(ctx, bwrap, append(args, words...)...)
	cmd.Dir = home
	cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "HOME="+home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

// The real CLI reaches every kind of provider by the socket alone, without a credential,
// and from afar by the listener; what the provider hears is proven by the gateway.
func TestCLIByEveryProvider(t *testing.T) {
	t.Parallel()
	scripted, err := model.New(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "the-secret"}
	tokens := office(t, func() bool { return false })
	for _, c := range []struct {
		name  string
		of    gateway.Provider
		model string // as the CLI is told
		path  string // as the provider hears it
		far   bool
	}{
		{"a gateway of the team's own", gateway.Provider{Kind: gateway.Anthropic, HeadersEnv: map[string]string{"X-Litellm-Key": "KEY"}, Models: map[string]string{"sonnet": "claude-opus-5-5"}}, "sonnet", "/prefix/v1/messages?beta=true", false},
		{"Bedrock", gateway.Provider{Kind: gateway.Bedrock, Region: "eu-central-1", AccessKeyIDEnv: "ID", SecretAccessKeyEnv: "SECRET"}, "claude-sonnet-5-5", "/prefix/model/eu.anthropic.claude-sonnet-5-5/invoke-with-response-stream", false},
		{"Vertex AI", gateway.Provider{Kind: gateway.Vertex, Region: "europe-west1", Project: "p", CredentialsFile: write(t, account(t, tokens.URL))}, "claude-sonnet-5-5", "/prefix/projects/p/locations/europe-west1/publishers/anthropic/models/claude-sonnet-5-5:streamRawPredict", false},
		{"Foundry", gateway.Provider{Kind: gateway.Foundry, APIKeyEnv: "KEY"}, "claude-sonnet-5-5", "/prefix/v1/messages?beta=true", false},
		{"Bedrock, from afar", gateway.Provider{Kind: gateway.Bedrock, Region: "eu-central-1", AccessKeyIDEnv: "ID", SecretAccessKeyEnv: "SECRET"}, "claude-sonnet-5-5", "/prefix/model/eu.anthropic.claude-sonnet-5-5/invoke-with-response-stream", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				proof := r.Header.Get("Authorization") + r.Header.Get("X-Litellm-Key") + r.Header.Get("X-Api-Key")
				if r.RequestURI != c.path || !strings.Contains(proof, realKey) && !strings.HasPrefix(proof, "AWS4-HMAC-SHA256 Credential="+keys.AccessKeyID) {
					t.Errorf("%s %s", r.RequestURI, proof)
				}
				if r.Header.Get("X-Litellm-Key") != "" {
					r.Header.Set("X-Api-Key", "the team's gateway has it")
				}
				scripted.ServeHTTP(w, r)
			}))
			t.Cleanup(web.Close)
			c.of.BaseURL = web.URL + "/prefix"
			g := newGateway(t, nil, "KEY="+realKey, "ID="+keys.AccessKeyID, "SECRET="+keys.SecretAccessKey)
			if c.far {
				g = newListener(t, gateway.Listen{}, "ID="+keys.AccessKeyID, "SECRET="+keys.SecretAccessKey)
			}
			s, err := g.Open(t.Context(), gateway.Opening{Provider: c.of, Far: c.far, Meter: newMeter()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			if got, err := says(t.Context(), t, s.Env(), "--model", c.of.Model(c.model), "say: hello there"); got != "hello there" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// The doctor's call is the CLI's, but for one token.
func TestCLITrial(t *testing.T) {
	t.Parallel()
	scripted, err := model.New(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		if r.RequestURI != "/model/eu.anthropic.claude-haiku-4-5-20251001-v1:0/invoke" {
			t.Error(r.RequestURI)
		}
		scripted.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	env := map[string]string{"ID": "AKID", "SECRET": "s"}
	of := gateway.Provider{Kind: gateway.Bedrock, Region: "eu-central-1", AccessKeyIDEnv: "ID", SecretAccessKeyEnv: "SECRET", BaseURL: web.URL}
	trial, err := gateway.Try(t.Context(), of, func(name string) string { return env[name] }, func(ctx context.Context, env []string) error {
		_, err := says(ctx, t, env, "--model", "haiku", "Hi")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if trial.Input == 0 || trial.Input > 20 || calls != 1 {
		t.Errorf("%+v in %d calls", trial, calls)
	}
}
