package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const (
	tokenHeader = "X-Deckhand-Token"
	// nowhere is the provider's name inside, where its own must not be known. Nothing of
	// that name can ever be found (RFC 6761).
	nowhere = "model.invalid"

	apiHost = "api.anthropic.com"
)

// route is a session's way to its provider, as its environment chooses it.
type route struct {
	provider provider
	// base is the provider's address, without what stands before its host.
	base *url.URL
	// inside is the host that the CLI knows it by. The CLI asks Anthropic's own API for
	// more than others, and signs the provider's name with its calls.
	inside string
	// credentials are what the gateway adds.
	credentials []credential
	// headers are set on every call, over all others.
	headers http.Header
	// foreign says that calls carry credentials that the bot does not have.
	foreign bool
}

// provider is a form of the API, and the variables by which the CLI is told of it.
type provider struct {
	baseVariable string
	path         *regexp.Regexp // of [url.URL.EscapedPath], below the base's
	keys         []key
	prefixes     []string // of headers that it knows besides Anthropic's
}

// key is a variable that holds a credential, and the header that the CLI sends it in.
type key struct{ variable, header, scheme string }

// credential is a key that is there.
type credential struct {
	key
	value string
}

// placeholder stands in the variable inside.
func (k key) placeholder() string { return "deckhand-holds-" + strings.ToLower(k.variable) }

const (
	authorization = "Authorization"
	apiKey        = "X-Api-Key"
	bearer        = "Bearer "
)

var (
	anthropic = provider{
		baseVariable: "ANTHROPIC_BASE_URL",
		path:         regexp.MustCompile(`^/v1/messages(/count_tokens)?$`),
		keys: []key{
			{"ANTHROPIC_API_KEY", apiKey, ""},
			{"ANTHROPIC_AUTH_TOKEN", authorization, bearer},
			{"CLAUDE_CODE_OAUTH_TOKEN", authorization, bearer},
		},
	}
	bedrock = provider{
		baseVariable: "ANTHROPIC_BEDROCK_BASE_URL",
		path:         regexp.MustCompile(`^/model/([\w.:-]|%3A|%2F)+/(invoke|invoke-with-response-stream|count-tokens)$`),
		keys:         []key{{"AWS_BEARER_TOKEN_BEDROCK", authorization, bearer}},
		prefixes:     []string{"X-Amzn-Bedrock-"},
	}
	vertex = provider{
		baseVariable: "ANTHROPIC_VERTEX_BASE_URL",
		path:         regexp.MustCompile(`^/projects/[\w.:-]+/locations/([a-z0-9-]+)/publishers/anthropic/models/[\w.@-]+:(rawPredict|streamRawPredict)$`),
	}
	foundry = provider{
		baseVariable: "ANTHROPIC_FOUNDRY_BASE_URL",
		path:         anthropic.path,
		keys:         []key{{"ANTHROPIC_FOUNDRY_API_KEY", apiKey, ""}},
	}
)

// readRoute reads the way to the model that an environment chooses, as the CLI would. Its
// error says what to set.
func readRoute(env map[string]string) (*route, error) {
	r := &route{headers: http.Header{}}
	base, err := r.choose(env)
	if err != nil {
		return nil, err
	}
	if own := env[r.provider.baseVariable]; own != "" {
		base = own
	}
	if r.base, err = url.Parse(base); err != nil || (r.base.Scheme != "http" && r.base.Scheme != "https") || r.base.Host == "" || r.base.RawQuery != "" {
		return nil, fmt.Errorf("%s: this is not an http(s) address; write one such as https://host", r.provider.baseVariable)
	}
	if user := r.base.User; user != nil {
		password, _ := user.Password()
		req := http.Request{Header: r.headers}
		req.SetBasicAuth(user.Username(), password)
		r.base.User = nil
	}
	r.base.Path = strings.TrimSuffix(r.base.Path, "/")
	for _, k := range r.provider.keys {
		if v := env[k.variable]; v != "" {
			r.credentials = append(r.credentials, credential{k, v})
		}
	}
	if err := r.readHeaders(env["ANTHROPIC_CUSTOM_HEADERS"]); err != nil {
		return nil, err
	}
	r.foreign = len(r.credentials) == 0
	r.inside = nowhere
	if env[r.provider.baseVariable] == "" || r.base.Host == apiHost || r.foreign {
		r.inside = r.base.Host
	}
	return r, nil
}

// choose sets the provider and returns its usual address.
func (r *route) choose(env map[string]string) (string, error) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch on := strings.HasPrefix(name, "CLAUDE_CODE_USE_") && truthy(env[name]); {
		case !on:
		case name == "CLAUDE_CODE_USE_BEDROCK":
			r.provider = bedrock
			region := cmp.Or(env["AWS_REGION"], env["AWS_DEFAULT_REGION"], "us-east-1")
			return "https://bedrock-runtime." + region + ".amazonaws.com", nil
		case name == "CLAUDE_CODE_USE_VERTEX":
			r.provider = vertex
			region := cmp.Or(env["CLOUD_ML_REGION"], "us-east5")
			return "https://" + vertexHost(region) + "/v1", nil
		case name == "CLAUDE_CODE_USE_FOUNDRY":
			r.provider = foundry
			return "https://" + env["ANTHROPIC_FOUNDRY_RESOURCE"] + ".services.ai.azure.com/anthropic", nil
		case slices.Contains(unrouted, name):
			return "", fmt.Errorf("%s: the gateway does not know the way to this provider; it knows Anthropic's API, Amazon Bedrock, Google Vertex AI and Microsoft Foundry", name)
		}
	}
	r.provider = anthropic
	return "https://" + apiHost, nil
}

// unrouted are the variables that choose another provider in the pinned CLI.
var unrouted = []string{"CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "CLAUDE_CODE_USE_GATEWAY", "CLAUDE_CODE_USE_MANTLE"}

// truthy is the CLI's reading of a switch.
func truthy(v string) bool {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
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

// readHeaders takes the headers that the CLI would send with every call, a line each.
func (r *route) readHeaders(lines string) error {
	for line := range strings.Lines(lines) {
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case strings.TrimSpace(line) == "":
		case !ok || name == "" || strings.ContainsAny(name+value, "\r\n\x00"):
			return errors.New("ANTHROPIC_CUSTOM_HEADERS: write lines such as Name: value")
		default:
			r.headers[textproto.CanonicalMIMEHeaderKey(name)] = []string{value}
		}
	}
	return nil
}

// environ is env as it stands inside: with our address, and nothing secret that we add.
func (r *route) environ(env map[string]string, socket, token string) map[string]string {
	out := maps.Clone(env)
	out["ANTHROPIC_UNIX_SOCKET"] = socket
	out[r.provider.baseVariable] = "http://" + r.inside + r.base.EscapedPath()
	out["ANTHROPIC_CUSTOM_HEADERS"] = tokenHeader + ": " + token
	for _, c := range r.credentials {
		out[c.variable] = c.placeholder()
	}
	return out
}

// target is where a call goes; false if it is none that the gateway passes on.
func (r *route) target(u *url.URL) (*url.URL, bool) {
	path, ok := strings.CutPrefix(u.EscapedPath(), r.base.EscapedPath())
	if !ok || strings.Contains(path, "..") || (u.RawQuery != "" && u.RawQuery != "beta=true") {
		return nil, false
	}
	m := r.provider.path.FindStringSubmatch(path)
	if m == nil {
		return nil, false
	}
	out := *r.base
	if r.inside == r.base.Host && strings.HasSuffix(out.Host, "aiplatform.googleapis.com") {
		out.Host = vertexHost(m[1]) // the CLI has regions by model
	}
	out.Path, out.RawPath, out.RawQuery = u.Path, u.RawPath, u.RawQuery
	return &out, true
}

// mask takes the credentials out of a text of the provider's, and its address where that
// is not known inside.
func (r *route) mask(text []byte) []byte {
	s := string(text)
	hide := func(secret, by string) {
		if len(secret) >= 8 { // what is shorter is a word of the text
			s = strings.ReplaceAll(s, secret, by)
		}
	}
	for _, c := range r.credentials {
		hide(c.value, "…")
	}
	for _, values := range r.headers {
		hide(values[0], "…")
	}
	if r.inside != r.base.Host {
		hide(r.base.Host, r.inside)
	}
	return []byte(s)
}
