package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"deckhand/internal/gateway"
)

// What each provider hears, and that nothing of it is known inside.
func TestEveryProvidersCredentialIsAddedOutside(t *testing.T) {
	t.Parallel()
	const (
		onBedrock = "/model/eu.anthropic.claude-sonnet-5-5/invoke-with-response-stream"
		onVertex  = "/projects/p/locations/%s/publishers/anthropic/models/claude-sonnet-5-5:streamRawPredict"
	)
	for _, c := range []struct {
		name  string
		env   []string // of the bot; @@ stands for the provider's address
		of    gateway.Provider
		base  string // the variable of the address
		ask   string // path of the call
		with  string // the variable whose placeholder it carries in X-Api-Key
		heard string // path; the same if it is empty
		want  [2]string
	}{
		{
			name: "a gateway of the team's own, by a header", of: gateway.Provider{Kind: gateway.Anthropic, HeadersEnv: map[string]string{"x-litellm-api-key": "TEAM"}},
			env: []string{"TEAM=" + realKey}, base: "ANTHROPIC_BASE_URL", ask: "/v1/messages?beta=true", with: "ANTHROPIC_API_KEY", want: [2]string{"X-Litellm-Api-Key", realKey},
		},
		{
			name: "a project's own key", of: gateway.Provider{Kind: gateway.Anthropic, APIKeyEnv: "WEB_KEY"},
			env: []string{"ANTHROPIC_API_KEY=the-team's", "WEB_KEY=" + realKey}, base: "ANTHROPIC_BASE_URL", ask: "/v1/messages", with: "ANTHROPIC_API_KEY", want: [2]string{"X-Api-Key", realKey},
		},
		{
			name: "none, where none is taken", of: gateway.Provider{Kind: gateway.Anthropic, SkipAuth: true},
			base: "ANTHROPIC_BASE_URL", ask: "/v1/messages", with: "ANTHROPIC_API_KEY", want: [2]string{"X-Api-Key", ""},
		},
		{
			name: "Bedrock, a bearer token of the environment", env: []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_BEARER_TOKEN_BEDROCK=" + realKey, "ANTHROPIC_BEDROCK_BASE_URL=@@/b/"},
			base: "ANTHROPIC_BEDROCK_BASE_URL", ask: "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fx/invoke", want: [2]string{"Authorization", "Bearer " + realKey},
		},
		{
			name: "Bedrock, a project's bearer token", env: []string{"WEB=" + realKey}, of: gateway.Provider{Kind: gateway.Bedrock, Region: "eu-central-1", AuthTokenEnv: "WEB"},
			base: "ANTHROPIC_BEDROCK_BASE_URL", ask: onBedrock, want: [2]string{"Authorization", "Bearer " + realKey},
		},
		{
			name: "Vertex, in the region of the model", of: gateway.Provider{Kind: gateway.Vertex, Region: "eu", Project: "p", SkipAuth: true, Regions: map[string]string{"claude-*": "us-east5", "claude-sonnet-*": "europe-west1"}},
			base: "ANTHROPIC_VERTEX_BASE_URL", ask: fmt.Sprintf(onVertex, "eu"), heard: fmt.Sprintf(onVertex, "europe-west1"),
		},
		{
			name: "Vertex, in no region but its own", of: gateway.Provider{Kind: gateway.Vertex, Region: "eu", Project: "p", SkipAuth: true},
			base: "ANTHROPIC_VERTEX_BASE_URL", ask: fmt.Sprintf(onVertex, "us-east5"), heard: fmt.Sprintf(onVertex, "eu"),
		},
		{
			name: "Vertex, in the environment's region of the model",
			env:  []string{"CLAUDE_CODE_USE_VERTEX=1", "CLAUDE_CODE_SKIP_VERTEX_AUTH=1", "CLOUD_ML_REGION=eu", "ANTHROPIC_VERTEX_PROJECT_ID=p", "VERTEX_REGION_CLAUDE_5_5_SONNET=us-east5", "ANTHROPIC_VERTEX_BASE_URL=@@/v1"},
			base: "ANTHROPIC_VERTEX_BASE_URL", ask: fmt.Sprintf(onVertex, "us-east5"),
		},
		{
			name: "Foundry", env: []string{"CLAUDE_CODE_USE_FOUNDRY=1", "ANTHROPIC_FOUNDRY_API_KEY=" + realKey, "ANTHROPIC_FOUNDRY_BASE_URL=@@/anthropic"},
			base: "ANTHROPIC_FOUNDRY_BASE_URL", ask: "/v1/messages?beta=true", with: "ANTHROPIC_FOUNDRY_API_KEY", want: [2]string{"X-Api-Key", realKey},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, nil)
			g := newGateway(t, nil)
			for _, entry := range c.env {
				g.set([]string{strings.Replace(entry, "@@", p.URL, 1)})
			}
			if c.of.Kind != "" {
				c.of.BaseURL = p.URL + "/prefix"
			}
			s := openFor(t, g, c.of)
			for name, value := range s.env {
				if strings.Contains(value, realKey) || strings.Contains(value, p.URL) {
					t.Errorf("%s=%s is known inside", name, value)
				}
			}
			r := s.request(http.MethodPost, s.env[c.base]+c.ask, call)
			r.Header.Del("X-Api-Key")
			if c.with != "" {
				r.Header.Set("X-Api-Key", s.env[c.with])
			}
			if status, body := s.do(t, r); status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
			got := <-p.calls
			if !strings.HasSuffix(got.RequestURI, cmp.Or(c.heard, c.ask)) {
				t.Errorf("it went to %s", got.RequestURI)
			}
			if c.want[0] != "" && got.Header.Get(c.want[0]) != c.want[1] {
				t.Errorf("%v", got.Header)
			}
			r = s.request(http.MethodPost, s.env[c.base]+c.ask, call)
			r.Header.Set("Authorization", "Bearer the attacker's own")
			if status, _ := s.do(t, r); status != http.StatusUnauthorized {
				t.Errorf("with a credential of its own: %d", status)
			}
		})
	}
}

// A provider that cannot be reached at all is told before anything runs, with the cure.
func TestAWayThatCannotBeGone(t *testing.T) {
	t.Parallel()
	nowhere := filepath.Join(t.TempDir(), "none.json")
	for _, c := range []struct {
		env  []string
		of   gateway.Provider
		want string
	}{
		{nil, gateway.Provider{}, "there is no credential for the model: set ANTHROPIC_API_KEY"},
		{[]string{"ANTHROPIC_BASE_URL=https://litellm"}, gateway.Provider{}, "there is no credential for the model: set ANTHROPIC_API_KEY"},
		{[]string{"CLAUDE_CODE_USE_MANTLE=1"}, gateway.Provider{}, "CLAUDE_CODE_USE_MANTLE: the gateway does not know"},
		{[]string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=ftp://h"}, gateway.Provider{}, "ANTHROPIC_BASE_URL: this is not"},
		{[]string{"ANTHROPIC_CUSTOM_HEADERS=no header"}, gateway.Provider{}, "ANTHROPIC_CUSTOM_HEADERS: write"},
		{[]string{"ANTHROPIC_API_KEY=the-team's"}, gateway.Provider{Kind: gateway.Anthropic, APIKeyEnv: "WEB_KEY"}, "WEB_KEY is not set"},
		{[]string{"WEB_KEY=a\nb"}, gateway.Provider{Kind: gateway.Anthropic, APIKeyEnv: "WEB_KEY"}, "WEB_KEY has a line break"},
		{[]string{"CLAUDE_CODE_USE_VERTEX=1"}, gateway.Provider{}, "name Google's project"},
		{[]string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=eu.evil/"}, gateway.Provider{}, "there is no region \"eu.evil/\" of Amazon Bedrock"},
		{nil, gateway.Provider{Kind: gateway.Vertex, Region: "eu", Project: "p", CredentialsFile: nowhere}, "the bot has no valid credential for Vertex AI"},
		{[]string{"CLAUDE_CODE_USE_FOUNDRY=1"}, gateway.Provider{}, "name the resource of Microsoft Foundry"},
		{nil, gateway.Provider{Kind: gateway.Foundry, Resource: "r"}, "there is no credential for Microsoft Foundry"},
		{nil, gateway.Provider{Kind: gateway.Bedrock, Region: "eu-central-1", AccessKeyIDEnv: "ID", SecretAccessKeyEnv: "SECRET"}, "ID is not set"},
	} {
		if _, err := newGateway(t, nil, c.env...).Open(t.Context(), gateway.Opening{Provider: c.of}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.env, err, c.want)
		}
	}
}

// Two projects on one gateway: each call has the credential of its own.
func TestAccountsAreKeptApart(t *testing.T) {
	t.Parallel()
	p := newProvider(t, nil)
	g := newGateway(t, nil, "A_KEY=key-of-a-project", "B_KEY=key-of-another-one")
	of := func(variable string) gateway.Provider {
		return gateway.Provider{Kind: gateway.Anthropic, BaseURL: p.URL, APIKeyEnv: variable}
	}
	a, b := openFor(t, g, of("A_KEY")), openFor(t, g, of("B_KEY"))
	for _, c := range []struct {
		s    *caller
		want string
	}{{a, "key-of-a-project"}, {b, "key-of-another-one"}} {
		if status, body := c.s.do(t, c.s.request(http.MethodPost, "/v1/messages", call)); status != http.StatusOK {
			t.Fatal(status, body)
		}
		if got := (<-p.calls).Header.Get("X-Api-Key"); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	r := a.request(http.MethodPost, "/v1/messages", call)
	r.Header.Set("X-Deckhand-Token", strings.TrimPrefix(b.env["ANTHROPIC_CUSTOM_HEADERS"], "X-Deckhand-Token: "))
	if status, _ := a.do(t, r); status != http.StatusUnauthorized {
		t.Errorf("the other's token is taken: %d", status)
	}
}

// amazon is a provider that takes calls which are signed for it, and those of STS.
type amazon struct {
	*httptest.Server
	t      *testing.T
	region string
	keys   aws.Credentials // that calls of the model are to be signed with
	calls  chan string
}

func newAmazon(t *testing.T, keys aws.Credentials) *amazon {
	a := &amazon{t: t, region: "eu-central-1", keys: keys, calls: make(chan string, 10)}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *amazon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	if strings.HasPrefix(r.URL.Path, "/model/") {
		a.calls <- a.signature(r, body)
		return
	}
	result := "AssumeRole"
	if bytes.Contains(body, []byte("WebIdentity")) {
		result = "AssumeRoleWithWebIdentity"
	}
	fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>%[2]s</AccessKeyId><SecretAccessKey>%[3]s</SecretAccessKey><SessionToken>%[4]s</SessionToken><Expiration>%[5]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`,
		result, a.keys.AccessKeyID, a.keys.SecretAccessKey, a.keys.SessionToken, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
}

// signature says what is wrong with a call's.
func (a *amazon) signature(r *http.Request, body []byte) string {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return "it has no date"
	}
	same := &http.Request{Method: r.Method, URL: r.URL, Host: r.Host, Header: http.Header{"Content-Type": r.Header["Content-Type"]}, ContentLength: r.ContentLength}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(context.Background(), a.keys, same, hex.EncodeToString(sum[:]), "bedrock", a.region, at); err != nil {
		return err.Error()
	}
	if got, want := r.Header.Get("Authorization"), same.Header.Get("Authorization"); got != want {
		return fmt.Sprintf("Authorization: %s, want %s", got, want)
	}
	return ""
}

// The AWS SDK finds keys, profiles, roles and web identities, and calls are signed with
// them as they arrive.
func TestBedrockIsSignedOutside(t *testing.T) {
	for name, value := range map[string]string{"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"} {
		t.Setenv(name, value)
	}
	long := aws.Credentials{AccessKeyID: "AKIDLONG", SecretAccessKey: "the-secret-of-a-long-key"}
	lent := aws.Credentials{AccessKeyID: "ASIALENT", SecretAccessKey: "the-secret-that-was-lent", SessionToken: "the-token-that-was-lent"}
	for _, c := range []struct {
		name string
		of   gateway.Provider
		keys aws.Credentials
		set  func(t *testing.T, sts string)
	}{
		{"keys of the environment", gateway.Provider{}, long, func(t *testing.T, _ string) {
			t.Setenv("AWS_ACCESS_KEY_ID", long.AccessKeyID)
			t.Setenv("AWS_SECRET_ACCESS_KEY", long.SecretAccessKey)
		}},
		{"a project's keys", gateway.Provider{AccessKeyIDEnv: "A_ID", SecretAccessKeyEnv: "A_SECRET", SessionTokenEnv: "A_TOKEN"}, lent, func(t *testing.T, _ string) {
			t.Setenv("AWS_ACCESS_KEY_ID", "the-team's")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "the-team's")
		}},
		{"a profile, whatever the environment has", gateway.Provider{Profile: "web"}, long, func(t *testing.T, _ string) {
			t.Setenv("AWS_ACCESS_KEY_ID", "the-team's")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "the-team's")
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", write(t, "[web]\naws_access_key_id = "+long.AccessKeyID+"\naws_secret_access_key = "+long.SecretAccessKey+"\n"))
		}},
		{"a role", gateway.Provider{RoleARN: "arn:aws:iam::123456789012:role/web"}, lent, func(t *testing.T, sts string) {
			t.Setenv("AWS_ACCESS_KEY_ID", long.AccessKeyID)
			t.Setenv("AWS_SECRET_ACCESS_KEY", long.SecretAccessKey)
			t.Setenv("AWS_ENDPOINT_URL_STS", sts)
		}},
		{"a web identity", gateway.Provider{}, lent, func(t *testing.T, sts string) {
			t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/web")
			t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", write(t, "token"))
			t.Setenv("AWS_ENDPOINT_URL_STS", sts)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAmazon(t, c.keys)
			c.set(t, a.URL)
			c.of.Kind, c.of.Region, c.of.BaseURL = gateway.Bedrock, a.region, a.URL
			s := openFor(t, newGateway(t, nil, "A_ID="+lent.AccessKeyID, "A_SECRET="+lent.SecretAccessKey, "A_TOKEN="+lent.SessionToken), c.of)
			for _, path := range []string{
				"/model/eu.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke-with-response-stream",
				"/model/arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile%2Fabc/invoke",
				"/model/anthropic.claude-v2%3A1/count-tokens",
			} {
				r := s.request(http.MethodPost, s.env["ANTHROPIC_BEDROCK_BASE_URL"]+path, call)
				r.Header.Del("X-Api-Key")
				if status, body := s.do(t, r); status != http.StatusOK {
					t.Fatal(status, body)
				}
				if wrong := <-a.calls; wrong != "" {
					t.Errorf("%s: %s", path, wrong)
				}
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		_, err := newGateway(t, nil).Open(t.Context(), gateway.Opening{Provider: gateway.Provider{Kind: gateway.Bedrock, Region: "eu-central-1"}})
		if err == nil || !strings.HasPrefix(err.Error(), "the bot has no valid credential for Amazon Bedrock (") || !strings.Contains(err.Error(), "set AWS_ACCESS_KEY_ID") {
			t.Error(err)
		}
	})
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// office gives tokens by OAuth, until it is told to refuse.
func office(t *testing.T, refuses func() bool) *httptest.Server {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if refuses() {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`)
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"`+realKey+`","token_type":"Bearer","expires_in":1}`) // it is old at once
	}))
	t.Cleanup(web.Close)
	return web
}

// Tokens of Google's and of Entra ID are taken outside, anew when they are old; one that
// cannot be had is told in the thread, once.
func TestTokensAreTakenOutside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		of   func(office string) (gateway.Provider, []string)
		base string
		path string
		want string
	}{
		{"Google's", func(office string) (gateway.Provider, []string) {
			return gateway.Provider{Kind: gateway.Vertex, Region: "global", Project: "p", CredentialsFile: write(t, account(t, office))}, nil
		}, "ANTHROPIC_VERTEX_BASE_URL", "/projects/p/locations/global/publishers/anthropic/models/claude-opus-5-5:rawPredict", "Vertex AI (invalid_grant Token has been expired or revoked.); set GOOGLE_APPLICATION_CREDENTIALS"},
		{"Entra ID's", func(office string) (gateway.Provider, []string) {
			return gateway.Provider{Kind: gateway.Foundry, TenantID: "t", ClientID: "c", ClientSecretEnv: "SECRET"}, []string{"SECRET=s", "AZURE_AUTHORITY_HOST=" + office}
		}, "ANTHROPIC_FOUNDRY_BASE_URL", "/v1/messages", "Microsoft Foundry (invalid_grant Token has been expired or revoked.); check tenant_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			revoked := false
			p := newProvider(t, nil)
			of, env := c.of(office(t, func() bool { return revoked }).URL)
			of.BaseURL = p.URL
			s := openFor(t, newGateway(t, nil, env...), of)
			ask := func() (int, string) {
				r := s.request(http.MethodPost, s.env[c.base]+c.path, call)
				if key := s.env["ANTHROPIC_FOUNDRY_API_KEY"]; key != "" {
					r.Header.Set("X-Api-Key", key)
				}
				return s.do(t, r)
			}
			if status, body := ask(); status != http.StatusOK {
				t.Fatal(status, body)
			}
			if got := (<-p.calls).Header; got.Get("Authorization") != "Bearer "+realKey || got.Get("X-Api-Key") != "" {
				t.Errorf("%v", got)
			}
			revoked = true
			if status, body := ask(); status != http.StatusFailedDependency || !strings.Contains(body, c.want) {
				t.Error(status, body)
			}
		})
	}
}

// account is a service account of Google's.
func account(t *testing.T, office string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "bot@p.iam.gserviceaccount.com", "private_key_id": "1", "token_uri": office,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestModelsHaveTheProvidersNames(t *testing.T) {
	t.Parallel()
	p := gateway.Provider{Kind: gateway.Anthropic, APIKeyEnv: "K", Models: map[string]string{"sonnet": "team/sonnet", "claude-opus-5-5": "team/opus"}}
	for name, want := range map[string]string{"sonnet": "sonnet", "claude-opus-5-5": "team/opus", "other": "other", "": ""} {
		if got := p.Model(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	s := openFor(t, newGateway(t, nil, "K=k"), p)
	if got := s.env["ANTHROPIC_DEFAULT_SONNET_MODEL"]; got != "team/sonnet" {
		t.Error(got)
	}
	if !slices.Contains(s.Env(), "ANTHROPIC_DEFAULT_SONNET_MODEL=team/sonnet") {
		t.Error(s.Env())
	}
}
