package settings

import (
	"cmp"
	"fmt"
	"net/textproto"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/gateway"
)

// everyProvider are the keys of every kind, and providerKeys what else each kind has.
var everyProvider = []string{"kind", "base_url", "headers_env", "skip_auth", "models"}

var providerKeys = map[gateway.Kind][]string{
	gateway.Anthropic: {"api_key_env", "auth_token_env", "oauth_token_env"},
	gateway.Bedrock:   {"region", "auth_token_env", "profile", "role_arn", "access_key_id_env", "secret_access_key_env", "session_token_env"},
	gateway.Vertex:    {"region", "regions", "project", "credentials_file"},
	gateway.Foundry:   {"resource", "api_key_env", "tenant_id", "client_id", "client_secret_env"},
}

// written are the values of a provider that are not empty, by their keys.
func written(p gateway.Provider) map[string]any {
	out := map[string]any{}
	for f, v := range reflect.ValueOf(p).Fields() {
		if !v.IsZero() {
			out[f.Tag.Get("yaml")] = v.Interface()
		}
	}
	return out
}

var (
	roleARN    = regexp.MustCompile(`^arn:aws[a-z-]*:iam::\d{12}:role/.+$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
)

// provider checks the provider at a path.
func (v *validation) provider(at string, p *gateway.Provider) {
	if p == nil {
		return
	}
	kind := p.Kind
	if !slices.Contains(gateway.Kinds(), kind) {
		v.add(at+".kind", "%q is no provider; %s", kind, oneOf(string(kind), gateway.Kinds()))
		return
	}
	for _, key := range sorted(written(*p)) {
		if !slices.Contains(everyProvider, key) && !slices.Contains(providerKeys[kind], key) {
			v.add(at+"."+key, "kind: %s does not read it; leave it out", kind)
		}
	}
	v.providerAddress(at, p)
	v.providerPlace(at, p)
	v.providerVariables(at, p)
	missing := func(key, value, example string) {
		if value == "" && p.BaseURL == "" {
			v.add(at, "kind: %s takes %s: such as %s", kind, key, example)
		}
	}
	switch kind {
	case gateway.Bedrock:
		if p.Region == "" {
			v.add(at, "kind: bedrock takes region: such as eu-central-1")
		}
		v.bedrock(at, p)
	case gateway.Vertex:
		if p.Region == "" || p.Project == "" {
			v.add(at, "kind: vertex takes region: such as europe-west1, and project:, Google's")
		}
		if p.CredentialsFile != "" && !filepath.IsAbs(p.CredentialsFile) {
			v.add(at+".credentials_file", "%q is not an absolute path", p.CredentialsFile)
		}
	case gateway.Foundry:
		missing("resource", p.Resource, "your-team")
		v.foundry(at, p)
	default:
		if several(p.APIKeyEnv, p.AuthTokenEnv, p.OAuthTokenEnv) {
			v.add(at, "one credential is enough; write api_key_env, auth_token_env or oauth_token_env")
		}
		if p.APIKeyEnv+p.AuthTokenEnv+p.OAuthTokenEnv == "" && len(p.HeadersEnv) == 0 && !p.SkipAuth {
			v.add(at, "it names no credential; write api_key_env: with the name of the variable that holds it (or auth_token_env, oauth_token_env, headers_env; skip_auth: true if base_url takes none)")
		}
	}
}

// several reports whether more than one of the values is set.
func several(values ...string) bool {
	return len(slices.DeleteFunc(values, func(s string) bool { return s == "" })) > 1
}

func (v *validation) bedrock(at string, p *gateway.Provider) {
	if (p.AccessKeyIDEnv == "") != (p.SecretAccessKeyEnv == "") {
		v.add(at, "access_key_id_env and secret_access_key_env belong together; write both, or none")
	}
	if p.Profile != "" && p.AccessKeyIDEnv != "" {
		v.add(at+".profile", "there are keys, too (access_key_id_env); write one of them")
	}
	if p.AuthTokenEnv != "" && (p.Profile+p.RoleARN+p.AccessKeyIDEnv != "") {
		v.add(at+".auth_token_env", "a bearer token takes the place of profile, role_arn and keys; write one of them")
	}
	if p.RoleARN != "" && !roleARN.MatchString(p.RoleARN) {
		v.add(at+".role_arn", "%q is no role; write one such as arn:aws:iam::123456789012:role/deckhand-web", p.RoleARN)
	}
}

func (v *validation) foundry(at string, p *gateway.Provider) {
	entra := p.TenantID != "" && p.ClientID != "" && p.ClientSecretEnv != ""
	switch {
	case p.TenantID+p.ClientID+p.ClientSecretEnv != "" && !entra:
		v.add(at, "tenant_id, client_id and client_secret_env belong together; write all of them, or api_key_env")
	case p.APIKeyEnv == "" && !entra && len(p.HeadersEnv) == 0 && !p.SkipAuth:
		v.add(at, "it names no credential; write api_key_env: with the name of the variable that holds it, or tenant_id, client_id and client_secret_env")
	}
}

func (v *validation) providerAddress(at string, p *gateway.Provider) {
	if p.BaseURL == "" {
		if p.SkipAuth {
			v.add(at+".skip_auth", "the provider itself always takes a credential; leave it out, or write base_url: with what takes none")
		}
		return
	}
	u, err := url.Parse(p.BaseURL)
	switch {
	case err == nil && u.User != nil:
		v.add(at+".base_url", "there is a password in it; take it out, and write headers_env: {Authorization: NAME_OF_A_VARIABLE}")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		v.add(at+".base_url", "this is not an http(s) address; write one such as https://host")
	}
}

var (
	region = regexp.MustCompile(`^[a-z]{2,}(-[a-z0-9]{1,20}){0,4}$`)
	// placeName is a project of Google's, or a resource or tenant of Microsoft's.
	placeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:-]{0,99}$`)
)

// providerPlace checks the parts of addresses.
func (v *validation) providerPlace(at string, p *gateway.Provider) {
	regions := map[string]string{"region": p.Region}
	for model, r := range p.Regions {
		regions["regions.'"+model+"'"] = cmp.Or(r, "?") // an entry without a region is reported
	}
	for _, key := range sorted(regions) {
		if r := regions[key]; r != "" && !region.MatchString(r) {
			v.add(at+"."+key, "this is no region; write one such as eu-central-1, europe-west1 or global")
		}
	}
	for _, n := range []struct{ key, name string }{{"project", p.Project}, {"resource", p.Resource}, {"tenant_id", p.TenantID}} {
		if n.name != "" && !placeName.MatchString(n.name) {
			v.add(at+"."+n.key, "this is no name; write letters, digits, - and . alone")
		}
	}
}

// providerVariables checks that secrets are given as variables' names.
func (v *validation) providerVariables(at string, p *gateway.Provider) {
	named := map[string]string{}
	for key, value := range written(*p) {
		if name, ok := value.(string); ok && strings.HasSuffix(key, "_env") {
			named[key] = name
		}
	}
	for header, name := range p.HeadersEnv {
		if !headerName.MatchString(header) || textproto.CanonicalMIMEHeaderKey(header) == "Host" {
			v.add(at+".headers_env", "%q is no header; write Name: NAME_OF_A_VARIABLE", header)
		}
		named["headers_env."+header] = name
	}
	for _, key := range sorted(named) {
		v.secretVariable(at+"."+key, named[key])
	}
}

// credentials are the variables with a provider's or forge's credential.
func (d document) credentials() map[string]bool {
	names := map[string]bool{}
	note := func(p *gateway.Provider) {
		for _, name := range pointed(p).Variables() {
			names[name] = true
		}
	}
	note(d.Provider)
	for _, p := range d.Projects {
		if p.PullRequests != nil && p.PullRequests.Connect != nil {
			names[p.PullRequests.Connect.ClientSecretEnv] = true
		}
		note(p.Provider)
	}
	for _, name := range d.forgeVariables() {
		names[name] = true
	}
	return names
}

// passedOn checks that the variables a project passes to its sessions contain no credential.
func (v *validation) passedOn(at string, names []string, credentials map[string]bool) {
	for i, e := range names {
		at := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case !variable.MatchString(e) || kept(e):
			v.add(at, "%q cannot be passed on: write the name of a variable, none of Slack's or the database's", e)
		case gateway.Owns(e):
			v.add(at, "%s is not passed on, since the model is reached through the bot; what the project is to have of its own stands under provider", e)
		case credentials[e]:
			v.add(at, "%s holds a credential, which stays outside; leave it out", e)
		}
	}
}
