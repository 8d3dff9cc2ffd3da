package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	tokenHeader = "X-Deckhand-Token"
	// nowhere is the provider's host name inside if its own must not be known. It never resolves (RFC 6761).
	nowhere = "model.invalid"

	apiHost = "api.anthropic.com"
)

// route is the way to a provider, shared by all sessions that have it.
type route struct {
	provider Provider
	// path is that of forms for the provider's kind.
	path *regexp.Regexp
	// base is the provider's address, without a prefix of its host.
	base *url.URL
	// inside is the host name that the CLI uses. The CLI asks Anthropic's own API for more than others.
	inside string
	// keys are the credentials whose placeholders the CLI chooses from.
	keys []credential
	// headers are set on every call and override others.
	headers http.Header
	// signer makes a credential per call; nil if none is needed.
	signer signer
	// variables are set inside.
	variables map[string]string
	// regions are those that Vertex may be asked in, besides its own and those of patterns.
	regions []string
	secrets []string
}

// signer adds to a call its proof of account. It is safe for concurrent use.
type signer interface {
	// sign adds the proof. Its error is a sentence for people, with the cure.
	sign(ctx context.Context, r *http.Request, body []byte) error
}

// key is a variable that holds a placeholder inside, and the header in which the CLI sends it.
type key struct{ variable, header, scheme string }

// credential is a key that is set. One without a value is dropped from the call: something else authenticates it.
type credential struct {
	key
	value string
}

// placeholder is the variable's value inside.
func (k key) placeholder() string { return "deckhand-holds-" + strings.ToLower(k.variable) }

const (
	authorization = "Authorization"
	apiKey        = "X-Api-Key"
	bearer        = "Bearer "
)

var (
	keyOfAPI     = key{"ANTHROPIC_API_KEY", apiKey, ""}
	keyOfToken   = key{"ANTHROPIC_AUTH_TOKEN", authorization, bearer}
	keyOfOAuth   = key{"CLAUDE_CODE_OAUTH_TOKEN", authorization, bearer}
	keyOfFoundry = key{"ANTHROPIC_FOUNDRY_API_KEY", apiKey, ""}
)

var messages = regexp.MustCompile(`^/v1/messages(?:/(?P<act>count_tokens))?$`)

// forms are how calls look by kind: [url.URL.EscapedPath] below the base's. The group model holds the model, and act the
// operation, if they are in the path.
var forms = map[Kind]*regexp.Regexp{
	Anthropic: messages,
	Bedrock:   regexp.MustCompile(`^/model/(?P<model>(?:[\w.:-]|%3A|%2F)+)/(?P<act>invoke|invoke-with-response-stream|count-tokens)$`),
	Vertex:    regexp.MustCompile(`^/projects/([\w.:-]+)/locations/([a-z0-9-]+)/publishers/anthropic/models/(?P<model>[\w.@-]+):(?P<act>rawPredict|streamRawPredict)$`),
	Foundry:   messages,
}

// newRoute finds the way to a provider and its credentials in the bot's environment. It makes no call. Its error
// says what to set.
func newRoute(p Provider, getenv func(string) string, out *outside) (*route, error) {
	r := &route{headers: http.Header{}, variables: map[string]string{}, inside: nowhere}
	var err error
	if p.Kind == "" {
		if p, r.headers, err = environment(getenv); err != nil {
			return nil, err
		}
		if p.Kind == Vertex {
			r.regions = vertexRegions(getenv, r.variables)
		}
	}
	r.provider, r.path = p, forms[p.Kind]
	if r.base, err = p.address(); err != nil {
		return nil, err
	}
	if user := r.base.User; user != nil {
		password, _ := user.Password()
		(&http.Request{Header: r.headers}).SetBasicAuth(user.Username(), password)
		r.base.User, r.secrets = nil, append(r.secrets, password)
	}
	if p.BaseURL == "" || r.base.Host == apiHost {
		r.inside = r.base.Host
	}
	for header, variable := range p.HeadersEnv {
		value, err := need(getenv, variable)
		if err != nil {
			return nil, err
		}
		r.headers[textproto.CanonicalMIMEHeaderKey(header)] = []string{value}
	}
	for _, values := range r.headers {
		r.secrets = append(r.secrets, values...)
	}
	if err := r.identify(getenv, out); err != nil {
		return nil, err
	}
	for _, f := range families {
		if name := p.Models[f.name]; name != "" {
			r.variables[f.variable] = name
		}
	}
	return r, nil
}

// vertexRegions are the regions per model from the environment, as the CLI reads them.
func vertexRegions(getenv func(string) string, inside map[string]string) (regions []string) {
	for _, name := range vertexVariables {
		if v := getenv(name); regionForm.MatchString(v) {
			regions, inside[name] = append(regions, v), v
		}
	}
	return regions
}

// vertexVariables are those of the pinned CLI.
var vertexVariables = func() (out []string) {
	for model := range strings.FieldsSeq(`3_5_HAIKU 3_5_SONNET 3_7_SONNET 4_0_OPUS 4_0_SONNET 4_1_OPUS 4_5_OPUS 4_5_SONNET 4_6_OPUS 4_6_SONNET
		4_7_OPUS 4_8_OPUS 5_OPUS 5_SONNET 5_5_OPUS 5_5_SONNET FABLE_5 FABLE_5_1 FABLE_5_2 HAIKU_4_5 HAIKU_5_5`) {
		out = append(out, "VERTEX_REGION_CLAUDE_"+model)
	}
	return out
}()

// need returns the value of a required variable.
func need(getenv func(string) string, variable string) (string, error) {
	v := strings.TrimSpace(getenv(variable))
	switch {
	case v == "":
		return "", fmt.Errorf("%s is not set; the provider's credential is to be in it: set it in the bot's environment", variable)
	case strings.ContainsAny(v, "\r\n\x00"):
		return "", fmt.Errorf("%s has a line break in it; set it to the credential alone", variable)
	}
	return v, nil
}

// identify finds the credentials of calls.
func (r *route) identify(getenv func(string) string, out *outside) (err error) {
	p := r.provider
	switch p.Kind {
	case Bedrock:
		r.variables["CLAUDE_CODE_USE_BEDROCK"], r.variables["CLAUDE_CODE_SKIP_BEDROCK_AUTH"], r.variables["AWS_REGION"] = "1", "1", p.Region
		if p.AuthTokenEnv != "" {
			return r.always(getenv, p.AuthTokenEnv, authorization, bearer)
		}
		if !p.SkipAuth {
			r.signer, err = newAWS(p, getenv, out)
		}
		return err
	case Vertex:
		if !projectForm.MatchString(p.Project) {
			return errors.New("name Google's project that Vertex AI is used in (project, ANTHROPIC_VERTEX_PROJECT_ID)")
		}
		r.variables["CLAUDE_CODE_USE_VERTEX"], r.variables["CLAUDE_CODE_SKIP_VERTEX_AUTH"] = "1", "1"
		r.variables["ANTHROPIC_VERTEX_PROJECT_ID"], r.variables["CLOUD_ML_REGION"] = p.Project, p.Region
		if !p.SkipAuth {
			r.signer = newGoogle(p, out)
		}
		return nil
	case Foundry:
		r.variables["CLAUDE_CODE_USE_FOUNDRY"] = "1"
		return r.identifyFoundry(getenv, out)
	}
	return r.identifyAnthropic(getenv)
}

func (r *route) identifyAnthropic(getenv func(string) string) error {
	p := r.provider
	for _, k := range []struct {
		key      key
		variable string
	}{{keyOfAPI, p.APIKeyEnv}, {keyOfToken, p.AuthTokenEnv}, {keyOfOAuth, p.OAuthTokenEnv}} {
		if k.variable == "" {
			continue
		}
		v, err := need(getenv, k.variable)
		if err != nil {
			return err
		}
		r.keys, r.secrets = append(r.keys, credential{k.key, v}), append(r.secrets, v)
	}
	if len(r.keys) == 0 && len(r.headers) == 0 && !p.SkipAuth {
		return errors.New("there is no credential for the model: set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN in the bot's environment (an address is none), or write provider: in deckhand.yaml")
	}
	if len(r.keys) == 0 {
		r.keys = []credential{{keyOfAPI, ""}}
	}
	return nil
}

func (r *route) identifyFoundry(getenv func(string) string, out *outside) error {
	p := r.provider
	r.keys = []credential{{keyOfFoundry, ""}}
	switch {
	case p.APIKeyEnv != "":
		return r.always(getenv, p.APIKeyEnv, apiKey, "")
	case p.ClientSecretEnv != "":
		secret, err := need(getenv, p.ClientSecretEnv)
		if err != nil {
			return err
		}
		r.secrets = append(r.secrets, secret)
		r.signer = newEntra(p, secret, cmp.Or(getenv("AZURE_AUTHORITY_HOST"), "https://login.microsoftonline.com"), out)
	case !p.SkipAuth && len(r.headers) == 0:
		return errors.New("there is no credential for Microsoft Foundry: set ANTHROPIC_FOUNDRY_API_KEY in the bot's environment, or write provider: with api_key_env, or with tenant_id, client_id and client_secret_env, in deckhand.yaml; managed identities are not supported")
	}
	return nil
}

// always sets a header of every call to a variable's value.
func (r *route) always(getenv func(string) string, variable, header, scheme string) error {
	v, err := need(getenv, variable)
	if err != nil {
		return err
	}
	r.headers.Set(header, scheme+v)
	r.secrets = append(r.secrets, v)
	return nil
}

// ready obtains what calls are signed with, so that a missing credential is reported before anything runs.
func (r *route) ready(ctx context.Context) error {
	trial, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base.String(), http.NoBody)
	if err != nil {
		return err
	}
	return r.sign(ctx, trial, nil)
}

// environ is the environment inside, NAME=value: env without anything that leads to a model, plus the way through
// the gateway.
func (r *route) environ(env []string, d door) []string {
	set := maps.Clone(r.variables)
	maps.Copy(set, d.variables(r))
	for _, k := range r.keys {
		set[k.variable] = k.placeholder()
	}
	var out []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if _, ours := set[name]; !ours && !Owns(name) && !slices.Contains(r.provider.variables(), name) {
			out = append(out, entry)
		}
	}
	for name, value := range set {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}

// door is a session's entrance: a unix socket, or the listener's address.
type door struct{ socket, url, token string }

func (d door) variables(r *route) map[string]string {
	out := map[string]string{"ANTHROPIC_CUSTOM_HEADERS": tokenHeader + ": " + d.token}
	at := d.url
	if d.url == "" {
		out["ANTHROPIC_UNIX_SOCKET"], at = d.socket, "http://"+r.inside
	}
	out[r.provider.Kind.baseVariable()] = at + r.base.EscapedPath()
	return out
}

// target is where a call goes; false if the gateway does not pass it on.
func (r *route) target(u *url.URL) (*url.URL, bool) {
	path, ok := strings.CutPrefix(u.EscapedPath(), r.base.EscapedPath())
	if !ok || strings.Contains(path, "..") || (u.RawQuery != "" && u.RawQuery != "beta=true") {
		return nil, false
	}
	m := r.path.FindStringSubmatch(path)
	if m == nil {
		return nil, false
	}
	out := *r.base
	out.Path, out.RawPath, out.RawQuery = u.Path, u.RawPath, u.RawQuery
	if r.provider.Kind == Vertex {
		return r.inRegion(out, m[1], m[2], m[3], m[4])
	}
	return &out, true
}

// inRegion is a call of Vertex AI in its model's region. The caller can choose neither the project nor the region:
// the provider's apply.
func (r *route) inRegion(out url.URL, project, location, model, verb string) (*url.URL, bool) {
	if project != r.provider.Project {
		return nil, false
	}
	region := r.provider.Region
	if slices.Contains(r.regions, location) {
		region = location
	}
	if by, ok := r.provider.regionOf(model); ok {
		region = by
	}
	if r.provider.BaseURL == "" {
		out.Host = vertexHost(region)
	}
	out.Path = r.base.Path + "/projects/" + project + "/locations/" + region + "/publishers/anthropic/models/" + model + ":" + verb
	out.RawPath = ""
	return &out, true
}

// regionOf is the region that Regions have for a model, by the most specific pattern.
func (p Provider) regionOf(model string) (region string, ok bool) {
	said := -1
	for pattern, r := range p.Regions {
		glob := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
		if n := len(strings.ReplaceAll(pattern, "*", "")); n > said && regexp.MustCompile("^"+glob+"$").MatchString(model) {
			said, region = n, r
		}
	}
	return region, said >= 0
}

// known are the headers that leave with a call: what the CLI sends and what costs nothing.
var known = []string{
	"Accept", "Content-Type", "User-Agent", "X-App", "Anthropic-Version", "Anthropic-Dangerous-Direct-Browser-Access",
	"X-Claude-1p-Request-Class", "X-Claude-Code-Agent-Id", "X-Claude-Code-Agent-Type", "X-Claude-Code-Compaction", "X-Claude-Code-Context-Compacted",
	"X-Claude-Code-Parent-Agent-Id", "X-Claude-Code-Prev-Tool-Durations", "X-Claude-Code-Prompt-Id", "X-Claude-Code-Request-Class",
	"X-Claude-Code-Sandy-Plover", "X-Claude-Code-Session-Id",
	"X-Stainless-Arch", "X-Stainless-Lang", "X-Stainless-Os", "X-Stainless-Package-Version", "X-Stainless-Retry-Count", "X-Stainless-Runtime",
	"X-Stainless-Runtime-Version", "X-Stainless-Timeout",
}

const betaHeader = "Anthropic-Beta"

// header returns the headers that leave with a call, with the credentials; false if it brings a foreign one.
func (r *route) header(in http.Header) (http.Header, bool) {
	out := http.Header{}
	for _, name := range known {
		if v := in.Get(name); v != "" {
			out.Set(name, v)
		}
	}
	var betas []string
	for _, values := range in[betaHeader] {
		for beta := range strings.SplitSeq(values, ",") {
			if beta = strings.TrimSpace(beta); slices.Contains(knownBetas, beta) {
				betas = append(betas, beta)
			}
		}
	}
	if betas != nil {
		out.Set(betaHeader, strings.Join(betas, ","))
	}
	for _, name := range []string{authorization, apiKey, "Api-Key"} {
		if v := in.Get(name); v != "" && !r.credit(out, name, v) {
			return nil, false
		}
	}
	maps.Copy(out, r.headers)
	return out, true
}

// credit replaces a header's placeholder by its credential.
func (r *route) credit(out http.Header, name, value string) bool {
	for _, k := range r.keys {
		if k.header == name && value == k.scheme+k.placeholder() {
			if k.value != "" {
				out.Set(name, k.scheme+k.value)
			}
			return true
		}
	}
	return false
}

// sign adds what has to be made for each call. Its error is a sentence for people.
func (r *route) sign(ctx context.Context, out *http.Request, body []byte) error {
	if r.signer == nil {
		return nil
	}
	return r.signer.sign(ctx, out, body)
}

// call is what the meter learns of a call; nil if it only counts tokens, which is free.
func (r *route) call(in *http.Request, said terms) *Call {
	m := r.path.FindStringSubmatch(strings.TrimPrefix(in.URL.EscapedPath(), r.base.EscapedPath()))
	group := func(name string) string {
		if i := r.path.SubexpIndex(name); i >= 0 {
			return m[i]
		}
		return ""
	}
	model, _ := url.PathUnescape(group("model")) // the pattern admits valid escapes only
	act := group("act")
	if act == "count_tokens" || act == "count-tokens" || model == "count-tokens" {
		return nil
	}
	model = cmp.Or(printableName(model), said.model)
	return &Call{
		ID: uuid.Must(uuid.NewV7()), Model: model, Named: slices.Contains(slices.Collect(maps.Values(r.provider.Models)), model), MaxTokens: said.maxTokens, Fallbacks: said.fallbacks, Search: said.search, Bytes: int(in.ContentLength),
		Stream: said.stream || act == "invoke-with-response-stream" || act == "streamRawPredict", At: time.Now(),
	}
}

// mask removes the credentials from a text of the provider's, and its address if that is not known inside.
func (r *route) mask(text []byte) []byte {
	s := string(text)
	hide := func(secret, by string) {
		if len(secret) >= 8 { // shorter ones are ordinary words
			s = strings.ReplaceAll(s, secret, by)
		}
	}
	for _, secret := range r.secrets {
		hide(secret, "…")
	}
	if r.inside != r.base.Host {
		hide(r.base.Host, r.inside)
	}
	return []byte(s)
}
