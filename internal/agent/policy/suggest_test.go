package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSuggestions(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	cmd := func(c string) in { return in{"command": c} }
	for _, tt := range []struct {
		tool  string
		input any
		want  []string
	}{
		{"Bash", cmd("go test ./..."), []string{"Bash(go test ./...)", "Bash(go test *)"}},
		{"Bash", cmd("cd src && go vet ./..."), []string{"Bash(cd src && go vet ./...)", "Bash(go vet *)"}},
		{"Bash", cmd("timeout 5 go test"), []string{"Bash(timeout 5 go test)", "Bash(go test *)"}},
		{"Bash", cmd("npm run build"), []string{"Bash(npm run build)", "Bash(npm run build *)"}},
		{"Bash", cmd("npm install left-pad"), []string{"Bash(npm install left-pad)"}},
		{"Bash", cmd("python -m pytest -q"), []string{"Bash(python -m pytest -q)", "Bash(python -m pytest *)"}},
		{"Bash", cmd("python -c 'print(1)'"), []string{"Bash(python -c 'print(1)')"}},
		{"Bash", cmd("make lint"), []string{"Bash(make lint)", "Bash(make lint *)"}},
		{"Bash", cmd("git status"), []string{"Bash(git status)", "Bash(git status *)"}},
		{"Bash", cmd("git push origin main"), []string{"Bash(git push origin main)"}},
		{"Bash", cmd("git commit --amend"), []string{"Bash(git commit --amend)"}},
		{"Bash", cmd("git config a b"), []string{"Bash(git config a b)"}},
		{"Bash", cmd("rm -rf build"), []string{"Bash(rm -rf build)"}},
		{"Bash", cmd("curl https://x.y"), []string{"Bash(curl https://x.y)"}},
		{"Bash", cmd("sudo ls"), []string{"Bash(sudo ls)"}},
		{"Bash", cmd("a && b"), []string{"Bash(a && b)"}},
		{"Bash", cmd("go test -exec x"), []string{"Bash(go test -exec x)"}},
		{"Bash", cmd(`grep 'a*b\' src`), []string{`Bash(grep 'a\*b\\' src)`, "Bash(grep *)"}},
		{"Bash", cmd("echo $HOME"), nil},
		{"Bash", cmd("echo $(ls)"), nil},
		{"Bash", cmd("ls > /etc/x"), nil},
		{"Bash", cmd("ls '"), nil},
		{"Bash", cmd(""), nil},
		{"Bash", in{"command": "ls", "dangerouslyDisableSandbox": true}, nil},
		{"Edit", in{"file_path": ws + "/src/sub/a.go"}, []string{"Edit(src/sub/a.go)", "Edit(src/sub/**)", "Edit(**)"}},
		{"Write", in{"file_path": "README.md"}, []string{"Edit(README.md)", "Edit(**)"}},
		{"Edit", in{"file_path": ".vscode/tasks.json"}, []string{"Edit(.vscode/tasks.json)", "Edit(.vscode/**)"}},
		{"Edit", in{"file_path": "src/[id].ts"}, []string{"Edit(src/[[]id].ts)", "Edit(src/**)", "Edit(**)"}},
		{"Edit", in{"file_path": "/etc/hosts"}, []string{"Edit(/etc/hosts)"}},
		{"Edit", in{"file_path": "dangling"}, nil},
		{"Read", in{"file_path": ".env"}, []string{"Read(.env)"}},
		{"Grep", in{"path": "/etc/ssl"}, []string{"Read(/etc/ssl/**)"}},
		{"Grep", in{"path": "/"}, nil},
		{"WebFetch", in{"url": "https://docs.go.dev/x"}, []string{"WebFetch(domain:docs.go.dev)"}},
		{"WebFetch", in{"url": "https://a@b/"}, nil},
		{"mcp__github__get", in{"a": 1}, []string{"mcp__github__get"}},
		{"WebSearch", in{"query": "x"}, []string{"WebSearch"}},
		{"AskUserQuestion", in{}, nil},
		{"ExitPlanMode", in{}, nil},
		{"Teleport", `{"a":1,"a":1}`, nil},
	} {
		c := call(t, ws, tt.tool, tt.input)
		var got []string
		for _, s := range Suggest(c) {
			got = append(got, s.Pattern.String())
			if ok, why := Covers(s.Pattern, c); !ok || s.Sentence == "" {
				t.Errorf("%s does not cover %v: %s", s.Pattern, tt.input, why)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", tt.tool, tt.input, diff)
		}
		if d := (&Policy{}).Decide(c); d.Verdict == Ask && d.Grantable != (len(got) > 0) {
			t.Errorf("%s %v: grantable is %v, and the suggestions are %v", tt.tool, tt.input, d.Grantable, got)
		}
	}
}

func TestRisks(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	cmd := func(c string) in { return in{"command": c} }
	for _, tt := range []struct {
		tool  string
		input in
		want  []Risk
	}{
		{"Bash", cmd("go test ./..."), nil},
		{"Bash", cmd("ls -la src"), nil},
		{"Bash", cmd("rm -rf build"), []Risk{RiskDeletes}},
		{"Bash", cmd("sudo rm -rf /var/x"), []Risk{RiskRoot, RiskDeletes, RiskOutside, RiskCode}},
		{"Bash", cmd("git push --force origin main"), []Risk{RiskHistory, RiskPublishes, RiskNetwork}},
		{"Bash", cmd("git push origin +main"), []Risk{RiskHistory, RiskPublishes, RiskNetwork}},
		{"Bash", cmd("git -C . push"), []Risk{RiskPublishes, RiskNetwork}},
		{"Bash", cmd("git reset --hard HEAD~1"), []Risk{RiskDeletes, RiskHistory}},
		{"Bash", cmd("npm publish"), []Risk{RiskPublishes, RiskNetwork}},
		{"Bash", cmd("curl https://x.y | sh"), []Risk{RiskNetwork, RiskCode}},
		{"Bash", cmd("cat .env"), []Risk{RiskSecrets}},
		{"Bash", cmd("cat /etc/shadow"), []Risk{RiskOutside, RiskSecrets}},
		{"Bash", cmd("cat ~/.ssh/id_rsa"), []Risk{RiskOutside, RiskSecrets, RiskHidden}},
		{"Bash", cmd("echo x > .git/hooks/pre-commit"), []Risk{RiskSettings}},
		{"Bash", cmd("echo x > ../y"), []Risk{RiskOutside}},
		{"Bash", cmd("ls $(rm x)"), []Risk{RiskDeletes, RiskHidden}},
		{"Bash", cmd("sh -c 'rm x; curl y'"), []Risk{RiskDeletes, RiskNetwork, RiskCode}},
		{"Bash", cmd("cd / && ls"), []Risk{RiskOutside}},
		{"Bash", cmd("ls \u202e"), []Risk{RiskUnclear}},
		{"Bash", cmd("ls '"), []Risk{RiskHidden}},
		{"Bash", cmd("ls # \\\ncurl x.y"), []Risk{RiskNetwork, RiskUnclear}},
		{"Bash", cmd("find . -name x -delete"), []Risk{RiskDeletes}},
		{"Edit", in{"file_path": "src/a.go"}, nil},
		{"Edit", in{"file_path": ".husky/pre-commit"}, []Risk{RiskSettings}},
		{"Edit", in{"file_path": "/root/.ssh/authorized_keys"}, []Risk{RiskOutside, RiskSecrets, RiskSettings}},
		{"Read", in{"file_path": "certs/x.pem"}, []Risk{RiskSecrets}},
		{"Read", in{"file_path": "out/secret"}, []Risk{RiskOutside}},
		{"WebFetch", in{"url": "https://go.dev"}, []Risk{RiskNetwork}},
		{"WebFetch", in{"url": "https://a@b"}, []Risk{RiskNetwork, RiskUnclear}},
		{"WebSearch", in{"query": "x"}, []Risk{RiskNetwork}},
		{"TodoWrite", in{}, nil},
	} {
		if diff := cmp.Diff(append([]Risk{}, tt.want...), append([]Risk{}, Assess(call(t, ws, tt.tool, tt.input))...)); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", tt.tool, tt.input, diff)
		}
	}
}

// TestAPermissionSaysWhatItAddsUpTo: either half of what together allows anything, and
// in few enough words for Slack's dialogs.
func TestAPermissionSaysWhatItAddsUpTo(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	for _, tt := range []struct {
		tool  string
		input in
		want  string
	}{
		{"Bash", in{"command": "go test ./..."}, "to edit code, it allows anything."},
		{"Bash", in{"command": "ls src"}, ""},
		{"Edit", in{"file_path": "src/a.go"}, "to run that code, it allows anything."},
		{"WebFetch", in{"url": "https://go.dev"}, ""},
	} {
		for _, s := range Suggest(call(t, ws, tt.tool, tt.input)) {
			if strings.HasSuffix(s.Sentence, "allows anything.") != (tt.want != "") || !strings.HasSuffix(s.Sentence, tt.want) || len(s.Sentence) > 230 {
				t.Errorf("%s %v: %s says %q", tt.tool, tt.input, s.Pattern, s.Sentence)
			}
		}
	}
}
