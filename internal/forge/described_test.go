package forge

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// What GitHub's description says of the calls that we make, and what GitLab's JavaScript
// client asks and takes for ours: testdata/README.md says where it comes from.
type description struct {
	Operations map[string]operation          `json:"operations"` // GitHub's, by method and path
	Defs       map[string]*jsonschema.Schema `json:"$defs"`
	Requests   map[string]asked              `json:"requests"` // GitLab's
	Answers    map[string]*jsonschema.Schema `json:"answers"`  // GitLab's, by what they hold

	mu       sync.Mutex
	resolved map[*jsonschema.Schema]*jsonschema.Resolved
}

type operation struct {
	Query   map[string]*jsonschema.Schema `json:"query"`
	Body    *jsonschema.Schema            `json:"body"`
	Answers map[string]struct {
		Schema  *jsonschema.Schema `json:"schema"`
		Example any                `json:"example"`
	} `json:"answers"`
}

// asked is a call as a server sees it.
type asked struct {
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Query  map[string]string `json:"query"`
	Body   any               `json:"body"`
}

var descriptions sync.Map // by name, each read once

func described(t *testing.T, name string) *description {
	t.Helper()
	read := sync.OnceValues(func() (*description, error) { return readDescription(name) })
	known, _ := descriptions.LoadOrStore(name, read)
	d, err := known.(func() (*description, error))()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func readDescription(name string) (*description, error) {
	f, err := os.Open("testdata/" + name + ".json.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	d := &description{}
	return d, json.NewDecoder(z).Decode(d)
}

// fits says what is wrong with a value by a schema.
func (d *description) fits(s *jsonschema.Schema, v any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resolved == nil {
		d.resolved = map[*jsonschema.Schema]*jsonschema.Resolved{}
	}
	if d.resolved[s] == nil {
		whole := s.CloneSchemas()
		whole.Defs = map[string]*jsonschema.Schema{}
		d.with(whole.Defs, s)
		resolved, err := whole.Resolve(nil)
		if err != nil {
			return err
		}
		d.resolved[s] = resolved
	}
	return d.resolved[s].Validate(v)
}

// with adds what a schema refers to.
func (d *description) with(defs map[string]*jsonschema.Schema, s *jsonschema.Schema) {
	text, _ := json.Marshal(s)
	for _, m := range regexp.MustCompile(`"#/\$defs/([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		if defs[m[1]] == nil {
			defs[m[1]] = d.Defs[m[1]].CloneSchemas()
			d.with(defs, d.Defs[m[1]])
		}
	}
}

// patch returns v with parts of it replaced: objects by their keys; a list by a list whose
// parts are patched into its first.
func patch(v, with any) any {
	switch with := with.(type) {
	case map[string]any:
		old, _ := v.(map[string]any)
		out := maps.Clone(old)
		if out == nil {
			out = map[string]any{}
		}
		for key, one := range with {
			if out[key] = patch(out[key], one); one == absent {
				delete(out, key)
			}
		}
		return out
	case []any:
		var first any
		if old, ok := v.([]any); ok && len(old) > 0 {
			first = old[0]
		}
		out := make([]any, len(with))
		for i, one := range with {
			out[i] = patch(first, one)
		}
		return out
	case int:
		return float64(with)
	}
	return with
}

// absent is patched into an object where a key goes.
const absent = "(absent)"

// answerer is a forge's API: it holds each call against the description, and answers as a
// test says.
type answerer struct {
	*httptest.Server
	t     *testing.T
	d     *description
	say   func(operation string, a asked) (status int, with any) // with is patched into what is usual
	check func(a asked) (operation string, usual func(status int) any, fits func(status int, answer any) error)
	below string                      // the path of the host that it is below, if any
	raw   map[string]http.HandlerFunc // by method and path: what no description has

	mu    sync.Mutex
	calls []asked
}

func (s *answerer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer canary" {
		s.t.Errorf("%s %s has the credential %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}
	if h := s.raw[r.Method+" "+r.URL.EscapedPath()]; h != nil {
		h(w, r)
		return
	}
	a := asked{Method: r.Method, Path: r.URL.EscapedPath(), Query: map[string]string{}}
	for name, values := range r.URL.Query() {
		a.Query[name] = values[0]
	}
	if body, _ := io.ReadAll(r.Body); len(body) > 0 {
		if err := json.Unmarshal(body, &a.Body); err != nil {
			s.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, a)
	operation, usual, fits := s.check(a)
	status, with := s.say(operation, a)
	w.Header().Set("Content-Type", "application/json")
	if raw, ok := with.(string); ok {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, raw)
		return
	}
	answer := with
	if usual != nil && status < 300 {
		answer = patch(usual(status), with)
	}
	if fits != nil && status != http.StatusNotFound && status < 500 {
		if err := fits(status, answer); err != nil {
			s.t.Errorf("the answer %d to %s does not fit: %v", status, operation, err)
		}
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *answerer) open(kind Kind, repository, api string) Repository {
	s.t.Helper()
	s.Server = httptest.NewServer(http.StripPrefix(s.below, s))
	s.t.Cleanup(s.Close)
	r, err := New(Config{Kind: kind, URL: s.URL + s.below + "/" + repository + ".git", API: s.URL + s.below + api, Token: func(context.Context) (string, error) { return "canary", nil }})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// did returns the bodies of the calls of an operation.
func (s *answerer) did(method, suffix string) (bodies []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.calls {
		if a.Method == method && strings.HasSuffix(a.Path, suffix) {
			bodies = append(bodies, a.Body)
		}
	}
	return bodies
}

// gitHubAPI serves what GitHub's description has, below /api/v3 as an Enterprise Server.
func gitHubAPI(t *testing.T, say func(operation string, a asked) (int, any)) (*answerer, Repository) {
	d := described(t, "github")
	s := &answerer{t: t, d: d, say: say, raw: map[string]http.HandlerFunc{}}
	s.check = func(a asked) (string, func(int) any, func(int, any) error) {
		path := strings.TrimPrefix(a.Path, "/api/v3")
		if path == "/graphql" || a.Path == "/api/graphql" {
			return "GRAPHQL", nil, nil
		}
		var found string
		for name := range d.Operations {
			method, template, _ := strings.Cut(name, " ")
			if method == a.Method && matches(template, path) {
				found = name
			}
		}
		o, ok := d.Operations[found]
		if !ok {
			t.Errorf("GitHub has no %s %s", a.Method, path)
			return "", nil, nil
		}
		for name, value := range a.Query {
			schema := o.Query[name]
			var v any = value
			if schema != nil && schema.Type == "integer" {
				_ = json.Unmarshal([]byte(value), &v)
			}
			if schema == nil {
				t.Errorf("%s has no parameter %q", found, name)
			} else if err := d.fits(schema, v); err != nil {
				t.Errorf("%s, parameter %s: %v", found, name, err)
			}
		}
		if (o.Body == nil) != (a.Body == nil) {
			t.Errorf("%s has the body %v", found, a.Body)
		} else if o.Body != nil {
			if err := d.fits(o.Body, a.Body); err != nil {
				t.Errorf("%s, its body: %v", found, err)
			}
		}
		return found, func(status int) any { return o.Answers[fmt.Sprint(status)].Example }, func(status int, answer any) error {
			is, ok := o.Answers[fmt.Sprint(status)]
			if !ok || is.Schema == nil {
				return nil // limits and the like are described elsewhere
			}
			return d.fits(is.Schema, answer)
		}
	}
	return s, s.open(GitHub, "octocat/Hello-World", "/api/v3")
}

func matches(template, path string) bool {
	a, b := strings.Split(template, "/"), strings.Split(path, "/")
	return len(a) == len(b) && !slices.ContainsFunc(a, func(part string) bool {
		i := slices.Index(a, part)
		return !strings.HasPrefix(part, "{") && part != b[i]
	})
}

// gitLabAPI serves what GitLab's JavaScript client takes for an answer.
func gitLabAPI(t *testing.T, say func(operation string, a asked) (int, any)) (*answerer, Repository) {
	return gitLabBelow(t, "", say)
}

// gitLabBelow is one below a path of its host.
func gitLabBelow(t *testing.T, path string, say func(operation string, a asked) (int, any)) (*answerer, Repository) {
	d := described(t, "gitlab")
	s := &answerer{t: t, d: d, say: say, below: path, raw: map[string]http.HandlerFunc{}}
	const project = "/api/v4/projects/team%2Fsub%2Fweb"
	holds := map[string]string{
		"GET /user": "account", "GET /users": "users", "GET :": "project", "GET :/labels": "labels", "POST :/merge_requests": "request", "GET :/merge_requests": "requests",
		"GET :/merge_requests/5": "request", "PUT :/merge_requests/5": "request", "PUT :/merge_requests/5/merge": "request",
		"GET :/merge_requests/5/approvals": "approvals", "GET :/merge_requests/5/reviewers": "reviewers", "GET :/merge_requests/5/notes": "notes", "GET :/merge_requests/5/discussions": "discussions",
		"POST :/merge_requests/5/discussions/" + thread + "/notes": "note", "PUT :/merge_requests/5/discussions/" + thread: "discussion",
		"GET :/repository/commits/" + head + "/statuses": "statuses", "GET :/repository/commits/" + other + "/statuses": "statuses", "GET :/repository/commits/" + head + "/merge_requests": "requests",
	}
	s.check = func(a asked) (string, func(int) any, func(int, any) error) {
		path := strings.TrimPrefix(a.Path, "/api/v4")
		if rest, ok := strings.CutPrefix(a.Path, project); ok {
			path = ":" + rest
		}
		operation := a.Method + " " + path
		schema := d.Answers[holds[operation]]
		if schema == nil {
			t.Errorf("GitLab has no %s", operation)
			return operation, nil, nil
		}
		return operation, func(int) any { return sample(schema) }, func(status int, answer any) error {
			if status >= 300 {
				return nil
			}
			return d.fits(schema, answer)
		}
	}
	return s, s.open(GitLab, "team/sub/web", "/api/v4")
}

// sample is the least that fits a schema.
func sample(s *jsonschema.Schema) any {
	switch {
	case s == nil:
		return o{}
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Const != nil:
		return *s.Const
	case len(s.AnyOf) > 0:
		return sample(s.AnyOf[len(s.AnyOf)-1])
	case s.Type == "array" || slices.Contains(s.Types, "array"):
		if s.Items == nil {
			return []any{}
		}
		return []any{sample(s.Items)}
	case s.Type == "object":
		out := map[string]any{}
		for _, name := range s.Required {
			out[name] = sample(s.Properties[name])
		}
		return out
	case s.Type == "null" || slices.Contains(s.Types, "null"):
		return nil
	case s.Type == "boolean":
		return false
	case s.Type == "number" || s.Type == "integer":
		return 1.0
	}
	return "2026-01-02T03:04:05Z" // fits where a time does
}

const (
	head   = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	other  = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	thread = "dddddddddddddddddddddddddddddddddddddddd"
)

// parameters are those of a call, wherever they stand, but for the pages.
func (a asked) parameters() url.Values {
	out := url.Values{}
	for name, value := range a.Query {
		out.Set(name, value)
	}
	if body, ok := a.Body.(map[string]any); ok {
		for name, value := range body {
			out.Set(name, fmt.Sprint(value))
		}
	}
	out.Del("page")
	out.Del("per_page")
	return out
}
