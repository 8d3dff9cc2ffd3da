package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Kind is a form of the API and its operator.
type Kind string

// The kinds of providers.
const (
	// Anthropic is Anthropic's API, and every gateway that speaks it.
	Anthropic Kind = "anthropic"
	// Bedrock is Amazon Bedrock.
	Bedrock Kind = "bedrock"
	// Vertex is Google Vertex AI.
	Vertex Kind = "vertex"
	// Foundry is Microsoft Foundry.
	Foundry Kind = "foundry"
)

// Kinds are all of them, in the order for display.
func Kinds() []Kind { return []Kind{Anthropic, Bedrock, Vertex, Foundry} }

// Provider says where calls of the model go and on whose account. It holds no secret: fields ending in Env name
// variables of the bot's environment. The zero value is the provider chosen by the environment, by the variables
// that the CLI reads.
type Provider struct {
	Kind Kind `yaml:"kind"`
	// BaseURL replaces the kind's own address: https://host/path.
	BaseURL string `yaml:"base_url"`
	// Region is Bedrock's or Vertex's. Regions are Vertex's for models elsewhere, by a pattern in which * is any
	// text.
	Region  string            `yaml:"region"`
	Regions map[string]string `yaml:"regions"`

	// Keys. AuthTokenEnv is a bearer token, also Bedrock's.
	APIKeyEnv     string `yaml:"api_key_env"`
	AuthTokenEnv  string `yaml:"auth_token_env"`
	OAuthTokenEnv string `yaml:"oauth_token_env"`
	// HeadersEnv are variables by the header that carries them.
	HeadersEnv map[string]string `yaml:"headers_env"`
	// SkipAuth says that BaseURL takes calls without a credential, or adds its own.
	SkipAuth bool `yaml:"skip_auth"`

	// For Bedrock: a profile of AWS's configuration files, keys, and a role to assume. Without any the AWS SDK uses
	// its default chain.
	Profile            string `yaml:"profile"`
	RoleARN            string `yaml:"role_arn"`
	AccessKeyIDEnv     string `yaml:"access_key_id_env"`
	SecretAccessKeyEnv string `yaml:"secret_access_key_env"`
	SessionTokenEnv    string `yaml:"session_token_env"`

	// For Vertex: Google's project, and a credentials file instead of the application default credentials.
	Project         string `yaml:"project"`
	CredentialsFile string `yaml:"credentials_file"`

	// For Foundry: the resource, and a client of Entra ID instead of an API key.
	Resource        string `yaml:"resource"`
	TenantID        string `yaml:"tenant_id"`
	ClientID        string `yaml:"client_id"`
	ClientSecretEnv string `yaml:"client_secret_env"`

	// Models are the provider's model names, by sonnet, opus, haiku, fable, or by the names written under model.
	Models map[string]string `yaml:"models"`
}

// families are the CLI's names for its model families, and the variables that map them.
var families = []struct{ name, variable string }{
	{"sonnet", "ANTHROPIC_DEFAULT_SONNET_MODEL"},
	{"opus", "ANTHROPIC_DEFAULT_OPUS_MODEL"},
	{"haiku", "ANTHROPIC_DEFAULT_HAIKU_MODEL"},
	{"fable", "ANTHROPIC_DEFAULT_FABLE_MODEL"},
}

// Model is the provider's name of a model that a project names. Family names stay: the CLI resolves them.
func (p Provider) Model(name string) string {
	if slices.ContainsFunc(families, func(f struct{ name, variable string }) bool { return f.name == name }) {
		return name
	}
	return cmp.Or(p.Models[name], name)
}

// unrouted are the variables that choose another provider in the pinned CLI.
var unrouted = []string{"CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "CLAUDE_CODE_USE_GATEWAY", "CLAUDE_CODE_USE_MANTLE"}

// owned are the variables that lead the CLI to a model, or hold what that takes.
var owned = slices.Concat([]string{
	"ANTHROPIC_UNIX_SOCKET", "ANTHROPIC_CUSTOM_HEADERS",
	"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
	"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "ANTHROPIC_BEDROCK_BASE_URL", "AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION",
	"CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_SKIP_VERTEX_AUTH", "ANTHROPIC_VERTEX_BASE_URL", "ANTHROPIC_VERTEX_PROJECT_ID", "CLOUD_ML_REGION",
	"CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_SKIP_FOUNDRY_AUTH", "ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_AUTH_TOKEN",
	"ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "ANTHROPIC_DEFAULT_FABLE_MODEL",
}, unrouted, vertexVariables)

// Owned are the variables that choose the way to the model or hold what it takes.
func Owned() []string { return slices.Clone(owned) }

// Owns reports whether a variable is the gateway's: it chooses the way to the model or holds what it takes, and no
// project passes it to its sessions.
func Owns(variable string) bool {
	return slices.Contains(owned, variable) || strings.HasPrefix(variable, "VERTEX_REGION_")
}

// truthy parses a switch as the CLI does.
func truthy(v string) bool {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// environment is the provider chosen by the bot's environment, as the CLI would read it, with the headers for every
// call.
func environment(getenv func(string) string) (Provider, http.Header, error) {
	for _, name := range unrouted {
		if truthy(getenv(name)) {
			return Provider{}, nil, fmt.Errorf("%s: the gateway does not know the way to this provider; it knows Anthropic's API, Amazon Bedrock, Google Vertex AI and Microsoft Foundry", name)
		}
	}
	p := Provider{Models: map[string]string{}}
	for _, f := range families {
		if v := getenv(f.variable); v != "" {
			p.Models[f.name] = v
		}
	}
	switch {
	case truthy(getenv("CLAUDE_CODE_USE_BEDROCK")):
		p.Kind, p.BaseURL, p.SkipAuth = Bedrock, getenv("ANTHROPIC_BEDROCK_BASE_URL"), truthy(getenv("CLAUDE_CODE_SKIP_BEDROCK_AUTH"))
		p.Region = cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"), "us-east-1")
		p.AuthTokenEnv = set(getenv, "AWS_BEARER_TOKEN_BEDROCK")
	case truthy(getenv("CLAUDE_CODE_USE_VERTEX")):
		p.Kind, p.BaseURL, p.SkipAuth = Vertex, getenv("ANTHROPIC_VERTEX_BASE_URL"), truthy(getenv("CLAUDE_CODE_SKIP_VERTEX_AUTH"))
		p.Region, p.Project = cmp.Or(getenv("CLOUD_ML_REGION"), "us-east5"), getenv("ANTHROPIC_VERTEX_PROJECT_ID")
	case truthy(getenv("CLAUDE_CODE_USE_FOUNDRY")):
		p.Kind, p.BaseURL, p.SkipAuth = Foundry, getenv("ANTHROPIC_FOUNDRY_BASE_URL"), truthy(getenv("CLAUDE_CODE_SKIP_FOUNDRY_AUTH"))
		p.Resource, p.APIKeyEnv = getenv("ANTHROPIC_FOUNDRY_RESOURCE"), set(getenv, "ANTHROPIC_FOUNDRY_API_KEY")
	default:
		p.Kind, p.BaseURL = Anthropic, getenv("ANTHROPIC_BASE_URL")
		p.APIKeyEnv, p.AuthTokenEnv, p.OAuthTokenEnv = set(getenv, "ANTHROPIC_API_KEY"), set(getenv, "ANTHROPIC_AUTH_TOKEN"), set(getenv, "CLAUDE_CODE_OAUTH_TOKEN")
	}
	headers, err := readHeaders(getenv("ANTHROPIC_CUSTOM_HEADERS"))
	return p, headers, err
}

// set returns the variable's name if it is set.
func set(getenv func(string) string, name string) string {
	if getenv(name) == "" {
		return ""
	}
	return name
}

// readHeaders parses the headers that the CLI would send with every call, one per line.
func readHeaders(lines string) (http.Header, error) {
	out := http.Header{}
	for line := range strings.Lines(lines) {
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case strings.TrimSpace(line) == "":
		case !ok || name == "" || strings.ContainsAny(name+value, "\r\n\x00"):
			return nil, errors.New("ANTHROPIC_CUSTOM_HEADERS: write lines such as Name: value")
		default:
			out[textproto.CanonicalMIMEHeaderKey(name)] = []string{value}
		}
	}
	return out, nil
}

// baseVariable is the environment variable that overrides the address.
func (k Kind) baseVariable() string {
	return map[Kind]string{
		Anthropic: "ANTHROPIC_BASE_URL", Bedrock: "ANTHROPIC_BEDROCK_BASE_URL", Vertex: "ANTHROPIC_VERTEX_BASE_URL", Foundry: "ANTHROPIC_FOUNDRY_BASE_URL",
	}[k]
}

var (
	regionForm   = regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)*$`)
	resourceForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)
	projectForm  = regexp.MustCompile(`^[a-z0-9][\w.:-]*$`)
)

// home is the kind's default address. Its error says what to set.
func (p Provider) home() (string, error) {
	switch p.Kind {
	case Bedrock:
		if !regionForm.MatchString(p.Region) {
			return "", fmt.Errorf("there is no region %q of Amazon Bedrock; write one such as eu-central-1 (region, AWS_REGION)", p.Region)
		}
		domain := "amazonaws.com"
		if strings.HasPrefix(p.Region, "cn-") {
			domain += ".cn"
		}
		return "https://bedrock-runtime." + p.Region + "." + domain, nil
	case Vertex:
		if !regionForm.MatchString(p.Region) {
			return "", fmt.Errorf("there is no region %q of Vertex AI; write one such as europe-west1, or global (region, CLOUD_ML_REGION)", p.Region)
		}
		return "https://" + vertexHost(p.Region) + "/v1", nil
	case Foundry:
		if !resourceForm.MatchString(p.Resource) {
			return "", errors.New("name the resource of Microsoft Foundry (resource, ANTHROPIC_FOUNDRY_RESOURCE), or its address (base_url, ANTHROPIC_FOUNDRY_BASE_URL)")
		}
		return "https://" + p.Resource + ".services.ai.azure.com/anthropic", nil
	}
	return "https://" + apiHost, nil
}

// vertexHost is Google's address of a region.
func vertexHost(region string) string {
	switch region {
	case "global":
		return "aiplatform.googleapis.com"
	case "us", "eu":
		return "aiplatform." + region + ".rep.googleapis.com"
	}
	return region + "-aiplatform.googleapis.com"
}

// address is where calls go: BaseURL or the kind's default.
func (p Provider) address() (*url.URL, error) {
	text := p.BaseURL
	if text == "" {
		var err error
		if text, err = p.home(); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%s: this is not an http(s) address; write one such as https://host", p.Kind.baseVariable())
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// variables are those with the provider's secrets.
func (p Provider) variables() []string {
	all := []string{p.APIKeyEnv, p.AuthTokenEnv, p.OAuthTokenEnv, p.AccessKeyIDEnv, p.SecretAccessKeyEnv, p.SessionTokenEnv, p.ClientSecretEnv}
	all = slices.AppendSeq(all, maps.Values(p.HeadersEnv))
	return slices.DeleteFunc(all, func(v string) bool { return v == "" })
}

// Variables are the variables of the bot's environment that it names for secrets.
func (p Provider) Variables() []string { return slices.Sorted(slices.Values(p.variables())) }

// usual are the variables that hold credentials without being named.
var usual = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_FOUNDRY_API_KEY",
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
}

// Secrets are the values to mask: the provider's, and any in the environment (keys, headers, passwords in
// addresses).
func (p Provider) Secrets(getenv func(string) string) []string {
	var out []string
	for _, name := range append(p.variables(), usual...) {
		out = append(out, getenv(name))
	}
	if headers, err := readHeaders(getenv("ANTHROPIC_CUSTOM_HEADERS")); err == nil {
		for _, values := range headers {
			out = append(out, values...)
		}
	}
	for _, name := range []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL", "ANTHROPIC_FOUNDRY_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		if u, err := url.Parse(getenv(name)); err == nil {
			password, _ := u.User.Password()
			out = append(out, password)
		}
	}
	return slices.DeleteFunc(out, func(v string) bool { return v == "" })
}

// Files are those with the provider's credentials: no session may see them.
func (p Provider) Files(getenv func(string) string) []string {
	out := []string{p.CredentialsFile}
	for _, name := range []string{"GOOGLE_APPLICATION_CREDENTIALS", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"} {
		out = append(out, getenv(name))
	}
	if home, err := os.UserHomeDir(); err == nil {
		out = append(out, filepath.Join(home, ".aws"), filepath.Join(home, ".config", "gcloud"))
	}
	return slices.DeleteFunc(out, func(path string) bool {
		_, err := os.Stat(path)
		return path == "" || err != nil
	})
}
