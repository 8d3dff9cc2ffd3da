package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/gateway"
)

// A project's provider takes the place of the team's as a whole, so that no key reaches
// another account's address.
func TestAProjectsProviderTakesThePlaceOfTheTeams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, team, project string
		want                gateway.Provider
	}{
		{"nothing: the environment chooses", "", "", gateway.Provider{}},
		{"the team's", "provider: {kind: anthropic, api_key_env: TEAM_KEY}", "", gateway.Provider{Kind: gateway.Anthropic, APIKeyEnv: "TEAM_KEY"}},
		{
			"a project's", "provider: {kind: anthropic, api_key_env: TEAM_KEY, models: {sonnet: team/sonnet}}", "provider: {kind: anthropic, base_url: 'https://litellm/web', headers_env: {X-Key: WEB_KEY}}",
			gateway.Provider{Kind: gateway.Anthropic, BaseURL: "https://litellm/web", HeadersEnv: map[string]string{"X-Key": "WEB_KEY"}},
		},
		{"Bedrock", "", "provider: {kind: bedrock, region: eu-central-1, profile: web, role_arn: 'arn:aws:iam::123456789012:role/web'}", gateway.Provider{Kind: gateway.Bedrock, Region: "eu-central-1", Profile: "web", RoleARN: "arn:aws:iam::123456789012:role/web"}},
		{"Vertex AI", "", "provider: {kind: vertex, region: global, regions: {claude-haiku-*: us-east5}, project: p, credentials_file: /k.json}", gateway.Provider{Kind: gateway.Vertex, Region: "global", Regions: map[string]string{"claude-haiku-*": "us-east5"}, Project: "p", CredentialsFile: "/k.json"}},
		{"Foundry", "", "provider: {kind: foundry, resource: r, tenant_id: t, client_id: c, client_secret_env: SECRET}", gateway.Provider{Kind: gateway.Foundry, Resource: "r", TenantID: "t", ClientID: "c", ClientSecretEnv: "SECRET"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := ReadFile(write(t, tt.team+"\nprojects:\n  web:\n    dir: /srv/web\n    "+tt.project+"\n"+channelsAndRoles))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, f.Projects["web"].Provider); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProviderThatMakesNoSenseIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	const canary, word, key = "sk-ant-c4n4ry", "skant_c4n4ry", "AKIA0123456789ABCDEF"
	for name, tt := range map[string]struct{ provider, want string }{
		"a kind that is none":      {"{kind: bedrok, region: eu-central-1}", `:1:18: provider.kind: "bedrok" is no provider; did you mean "bedrock"?`},
		"a key that is none":       {"{kind: anthropic, api_key: K}", `there is no key "api_key" here; there are kind, base_url,`},
		"no credential":            {"{kind: anthropic, base_url: 'https://h'}", "it names no credential; write api_key_env:"},
		"a secret in its place":    {"{kind: anthropic, api_key_env: " + canary + "}", ":1:42: provider.api_key_env: write the name of a variable"},
		"a secret of letters":      {"{kind: anthropic, api_key_env: " + word + "}", "provider.api_key_env: write the name of a variable"},
		"a bearer":                 {"{kind: anthropic, auth_token_env: " + word + "}", "provider.auth_token_env: write the name of a variable"},
		"an OAuth token":           {"{kind: anthropic, oauth_token_env: " + word + "}", "provider.oauth_token_env: write the name of a variable"},
		"a header of letters":      {"{kind: anthropic, headers_env: {X-Key: " + word + "}}", "provider.headers_env.X-Key: write the name of a variable"},
		"a key's id":               {"{kind: bedrock, region: r, access_key_id_env: " + key + ", secret_access_key_env: K}", "provider.access_key_id_env: write the name of a variable"},
		"a key":                    {"{kind: bedrock, region: r, access_key_id_env: K, secret_access_key_env: " + word + "}", "provider.secret_access_key_env: write the name of a variable"},
		"a session's token":        {"{kind: bedrock, region: r, access_key_id_env: K, secret_access_key_env: K, session_token_env: " + word + "}", "provider.session_token_env: write the name of a variable"},
		"a client's secret":        {"{kind: foundry, resource: r, tenant_id: t, client_id: c, client_secret_env: " + word + "}", "provider.client_secret_env: write the name of a variable"},
		"two credentials":          {"{kind: anthropic, api_key_env: K, auth_token_env: T}", ":1:12: provider: one credential is enough; write api_key_env, auth_token_env or oauth_token_env"},
		"a secret as a header":     {"{kind: anthropic, headers_env: {X-Key: " + canary + "}}", "write the name of a variable"},
		"no variable of a header":  {"{kind: anthropic, headers_env: {X-Key: ''}}", "write the name of a variable"},
		"a password in an address": {"{kind: anthropic, api_key_env: K, base_url: 'https://u:" + canary + "@h'}", "there is a password in it"},
		"no address":               {"{kind: anthropic, api_key_env: K, base_url: h}", "this is not an http(s) address"},
		"no auth at the provider":  {"{kind: anthropic, skip_auth: true}", "the provider itself always takes a credential"},
		"another kind's key":       {"{kind: anthropic, api_key_env: K, region: eu}", ":1:53: provider.region: kind: anthropic does not read it"},
		"a region that is a path":  {"{kind: vertex, region: x/../y, project: p}", "provider.region: this is no region; write one such as"},
		"a project that is one":    {"{kind: vertex, region: eu, project: p/../q}", "provider.project: this is no name"},
		"a model's region":         {"{kind: vertex, region: eu, project: p, regions: {claude-haiku-*: 'eu.evil/'}}", "this is no region"},
		"Bedrock nowhere":          {"{kind: bedrock}", "kind: bedrock takes region:"},
		"half a key":               {"{kind: bedrock, region: r, access_key_id_env: K}", "belong together"},
		"two accounts":             {"{kind: bedrock, region: r, profile: p, auth_token_env: K}", "takes the place of profile"},
		"no role":                  {"{kind: bedrock, region: r, role_arn: web}", `"web" is no role`},
		"Vertex nowhere":           {"{kind: vertex, region: eu}", "and project:"},
		"a file somewhere":         {"{kind: vertex, region: eu, project: p, credentials_file: k.json}", "is not an absolute path"},
		"Foundry nowhere":          {"{kind: foundry, api_key_env: K}", "kind: foundry takes resource:"},
		"half of Entra ID":         {"{kind: foundry, resource: r, tenant_id: t}", "belong together; write all of them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadFile(write(t, "provider: "+tt.provider+"\nprojects: {web: {dir: /srv/web}}\n"+channelsAndRoles))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "c4n4ry") || strings.Contains(err.Error(), key) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// What leads to a model, or holds a credential of a provider, is not handed to sessions.
func TestNoProjectHandsOnACredential(t *testing.T) {
	t.Parallel()
	_, err := ReadFile(write(t, `provider: {kind: anthropic, api_key_env: TEAM_KEY}
projects:
  web:
    dir: /srv/web
    env: [ANTHROPIC_API_KEY, CLAUDE_CODE_USE_BEDROCK, TEAM_KEY, API_KEY, GOPROXY]
  api:
    dir: /srv/api
    provider: {kind: anthropic, headers_env: {X-Key: API_KEY}}
`+channelsAndRoles))
	if err == nil {
		t.Fatal("it was accepted")
	}
	var told []string
	for line := range strings.Lines(err.Error()) {
		_, what, _ := strings.Cut(strings.TrimSpace(line), ": ")
		told = append(told, strings.TrimPrefix(what, "projects.web."))
	}
	want := []string{
		"env[0]: ANTHROPIC_API_KEY is not passed on, since the model is reached through the bot; what the project is to have of its own stands under provider",
		"env[1]: CLAUDE_CODE_USE_BEDROCK is not passed on, since the model is reached through the bot; what the project is to have of its own stands under provider",
		"env[2]: TEAM_KEY holds a credential, which stays outside; leave it out",
		"env[3]: API_KEY holds a credential, which stays outside; leave it out",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every credential is a secret to Slack and to the log.
func TestCredentialsAreSecret(t *testing.T) {
	for name, value := range map[string]string{
		"WEB_KEY": "web-key", "ANTHROPIC_AUTH_TOKEN": "team-token", "ANTHROPIC_CUSTOM_HEADERS": "X-A: header-a\nX-B: header-b", "HTTPS_PROXY": "http://u:proxy-password@p",
		"ANTHROPIC_BASE_URL": "https://u:url-password@h", "AWS_SECRET_ACCESS_KEY": "aws-secret",
	} {
		t.Setenv(name, value)
	}
	f, err := ReadFile(write(t, "projects: {web: {dir: /srv/web, provider: {kind: anthropic, api_key_env: WEB_KEY}}}\n"+channelsAndRoles))
	if err != nil {
		t.Fatal(err)
	}
	got := Environment{}.Secrets(f.Projects)
	for _, want := range []string{"web-key", "team-token", "header-a", "header-b", "proxy-password", "url-password", "aws-secret"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is no secret", want)
		}
	}
}

// TestModelNamesAreThoseOfClaudeCode: a name that a provider has another for is told of
// where it is given that other name, and not where it is used.
func TestModelNamesAreThoseOfClaudeCode(t *testing.T) {
	t.Parallel()
	file := write(t, good+`budgets:
  - {scope: person, per: day, limit: 5, then: ask, cheaper_model: haikoo}
  - {scope: person, per: week, limit: 5, then: ask, cheaper_model: ours}
provider: {kind: anthropic, api_key_env: K, base_url: 'https://h', models: {ours: a, sonet: b}}
`)
	f, err := ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []Reference{{"ours", file + ":20:83"}, {"sonet", file + ":20:93"}, {"haikoo", file + ":18:67"}}
	if diff := cmp.Diff(want, f.ModelNames()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
