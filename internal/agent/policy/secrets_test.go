package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lay writes files into a new folder: names that end in / are folders.
func lay(t *testing.T, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		file := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A search shows what the files hold: those that look like secrets are asked for, as
// if they were read one by one.
func TestSearchesAreAskedWhereSecretsAre(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		files string
		tool  string
		input in
		want  string // a part of why it is asked; empty when it is allowed
	}{
		{"src/a.go README.md .gitignore .env.example", "Grep", in{"pattern": "x"}, ""},
		{"src/a.go .env", "Grep", in{"pattern": "x"}, ".env, which it would show, looks like a secret"},
		{"src/a.go deep/down/server.key", "Grep", in{"pattern": "x", "output_mode": "count"}, "deep/down/server.key"},
		{"src/a.go secrets/k8s.yaml", "Grep", in{"pattern": "x", "path": "."}, "secrets/k8s.yaml"},
		{"src/a.go .env", "Grep", in{"pattern": "x", "path": "src"}, ""},
		{"src/a.go src/.env", "Grep", in{"pattern": "x", "path": "src"}, "src/.env"},
		{"src/a.go src/.env", "Grep", in{"pattern": "x", "path": "src/a.go"}, ""},
		{"src/a.go .env", "Grep", in{"pattern": "x", "glob": "*.go"}, ""},
		{"src/a.go .env", "Grep", in{"pattern": "x", "glob": "*.{go,env}"}, ".env"},
		{"src/a.go .env", "Grep", in{"pattern": "x", "glob": "!*.go"}, ".env"},
		{"src/a.go id_rsa", "Grep", in{"pattern": "x", "glob": "*.go id_rsa"}, "id_rsa"},
		{"src/a.go .env", "Grep", in{"pattern": "x", "type": "go"}, ""},
		{"src/a.go a.pem", "Grep", in{"pattern": "x", "type": "yaml"}, "a.pem"},
		{"src/a.go .git/config", "Grep", in{"pattern": "x"}, ""},
		{"src/a.go .git/config", "Grep", in{"pattern": "x", "path": ".git"}, ".git/config"},
		{"src/a.go .env", "Glob", in{"pattern": "**/*"}, ""},
		{"src/a.go", "Grep", in{"pattern": "x", "path": "nowhere"}, ""},
	} {
		t.Run(fmt.Sprint(tt.files, "/", tt.tool, "/", tt.input), func(t *testing.T) {
			t.Parallel()
			ws := lay(t, strings.Fields(tt.files)...)
			d := (&Policy{}).Decide(call(t, ws, tt.tool, tt.input))
			if (d.Verdict == Allow) != (tt.want == "") || !strings.Contains(d.Why, tt.want) {
				t.Errorf("%s by %q (%s), want %q", d.Verdict, d.Rule, d.Why, tt.want)
			}
			if d := rules(t, "allow Read(**)").Decide(call(t, ws, tt.tool, tt.input)); d.Verdict != Allow {
				t.Errorf("a rule for everything does not cover it: %s", d.Why)
			}
		})
	}
}

// A folder that holds too much to be looked through is asked.
func TestASearchOfTooMuchIsAsked(t *testing.T) {
	t.Parallel()
	ws := lay(t, "a/a.go", "a/b.go", "a/c.go")
	all := newRoot(ws).lexical(ws, ".")
	all.folder = true
	if why := all.secretBelow(5); why != "" {
		t.Errorf("of five: %s", why)
	}
	if why := all.secretBelow(4); !strings.Contains(why, "more than 4 files") {
		t.Errorf("of more than four: %q", why)
	}
}

// A filter of two names is not one of either.
func TestAFilterOfSeveralNamesHidesNothing(t *testing.T) {
	t.Parallel()
	ws := lay(t, "a.pem", "x.go")
	for _, filter := range []string{"*.pem x.go", "*.pem,x.go"} {
		d := rules(t, "deny Read(**/*.pem)", "allow Read").Decide(call(t, ws, "Grep", in{"pattern": "x", "glob": filter}))
		if d.Verdict == Allow {
			t.Errorf("%s: %s by %s", filter, d.Verdict, d.Rule)
		}
	}
}
