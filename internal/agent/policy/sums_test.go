package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRulesThatAddUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		rules string // separated by |, each with "in PROJECT: " or "on CHANNEL: " before it
		want  []string
	}{
		{"writing and running", "allow Edit(**) | allow Bash(go test *)", []string{"Edit(**) (1) and Bash(go test *) (2)"}},
		{"in one rule", "allow Edit(src/**), Bash(make lint)", []string{"Edit(src/**) (1) and Bash(make lint) (1)"}},
		{"a test may lie anywhere", "allow Edit(docs/**) | allow Bash(go test *)", []string{"Edit(docs/**) (1) and Bash(go test *) (2)"}},
		{"writing alone", "allow Edit(**)", nil},
		{"running alone", "allow Bash(go test *), Bash(make *)", nil},
		{"writing what nothing runs", "allow Edit(docs/**/*.md), Edit(README.md) | allow Bash(go test *)", nil},
		{"a folder that is called like a text", "allow Edit(notes.md/**) | allow Bash(make *)", []string{"Edit(notes.md/**) (1) and Bash(make *) (2)"}},
		{"looking around", "allow Edit(**) | allow Bash(ls *), Bash(grep *), Bash(git status *), Bash(git diff)", nil},
		{"any command", "allow Edit | allow Bash", []string{"Edit (1) and Bash (2)"}},
		{"any tool", "allow *", []string{"* (1) and * (1)"}},
		{"any words", "allow Write(src/**) | allow Bash(ls **)", []string{"Write(src/**) (1) and Bash(ls **) (2)"}},
		{"a program that nobody knows", "allow Edit(src/**) | allow Bash(frobnicate *), Bash(./run.sh)", []string{"Edit(src/**) (1) and Bash(frobnicate *), Bash(./run.sh) (2)"}},
		{"a line", "allow Edit(src/**) | allow Bash(cd web && npm run build)", []string{"Edit(src/**) (1) and Bash(cd web && npm run build) (2)"}},
		{"a harmless line", "allow Edit(src/**) | allow Bash(cd web && ls > /dev/null; wc -l x)", nil},
		{"every subcommand", "allow Edit(src/**) | allow Bash(go *)", []string{"Edit(src/**) (1) and Bash(go *) (2)"}},
		{"a harmless subcommand", "allow Edit(src/**) | allow Bash(docker ps *)", nil},
		{"an option before the subcommand", "allow Edit(src/**) | allow Bash(git --no-pager status *)", nil},
		{"an option that nothing is known of", "allow Edit(src/**) | allow Bash(git -C . status *)", []string{"Edit(src/**) (1) and Bash(git -C . status *) (2)"}},
		{"in a wrapper", "allow Edit(src/**) | allow Bash(timeout 60 go test *), Bash(timeout 60 ls *), Bash(nice *)", []string{"Edit(src/**) (1) and Bash(timeout 60 go test *), Bash(nice *) (2)"}},
		{"a harmless subcommand of go", "allow Edit(src/**) | allow Bash(go version *), Bash(go list ./...)", nil},
		{"no subcommand", "allow Edit(src/**) | allow Bash(git --version), Bash(docker)", nil},
		{"hooks of the repository", "allow Edit(src/**) | allow Bash(git commit -m x)", []string{"Edit(src/**) (1) and Bash(git commit -m x) (2)"}},
		{"asked before", "allow Edit(**) | ask Bash | allow Bash(make *)", nil},
		{"asked in part", "allow Edit(**) | ask Bash(make deploy) | allow Bash(make *)", []string{"Edit(**) (1) and Bash(make *) (3)"}},
		{"asked after", "allow Edit(**) | allow Bash(make *) | ask Bash", []string{"Edit(**) (1) and Bash(make *) (2)"}},
		{"in this project", "in web: allow Edit(**) | in web: allow Bash(make *)", []string{"Edit(**) (1) and Bash(make *) (2)"}},
		{"in different projects", "in web: allow Edit(**) | in api: allow Bash(make *)", nil},
		{"in a project and everywhere", "in web: allow Edit(**) | allow Bash(make *)", []string{"Edit(**) (1) and Bash(make *) (2)"}},
		{"in different channels", "on C1: allow Edit(**) | on C2: allow Bash(make *)", nil},
		{"in a channel and everywhere", "on C1: allow Edit(**) | allow Bash(make *)", []string{"Edit(**) (1) and Bash(make *) (2)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := &Policy{}
			for i, text := range strings.Split(tt.rules, " | ") {
				p.Rules = append(p.Rules, placedRule(t, text, string(rune('1'+i))))
			}
			var got []string
			for _, s := range p.Sums("web") {
				got = append(got, s.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// placedRule reads "in PROJECT: " or "on CHANNEL: ", a verdict, and patterns.
func placedRule(t *testing.T, text, source string) Rule {
	t.Helper()
	r := Rule{Source: source}
	if place, rest, ok := strings.Cut(text, ": "); ok {
		switch kind, name, _ := strings.Cut(place, " "); kind {
		case "in":
			r.Projects = []string{name}
		case "on":
			r.Channels = []string{name}
		}
		text = rest
	}
	verdict, patterns, _ := strings.Cut(text, " ")
	r.Verdict = Verdict(verdict)
	for pattern := range strings.SplitSeq(patterns, ", ") {
		r.Patterns = append(r.Patterns, mustParse(pattern))
	}
	return r
}

func TestWidth(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"Bash":                "",
		"Edit(**)":            "",
		"Bash(ls *)":          "",
		"Bash(ls -la)":        "",
		"Bash(frobnicate)":    "",
		"Bash(ls **)":         "any further words",
		"Bash(**)":            "every command",
		"Bash(frobnicate *)":  "nothing is known of frobnicate",
		"Bash(./run.sh *)":    "nothing is known of ./run.sh",
		"Bash(frobnicate **)": "any further words",
	} {
		got := mustParse(pattern).Width()
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}
