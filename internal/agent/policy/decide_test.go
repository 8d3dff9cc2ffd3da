package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func call(t testing.TB, ws, tool string, input any) Call {
	t.Helper()
	if s, ok := input.(string); ok {
		return Call{Tool: tool, Input: json.RawMessage(s), Workspace: ws}
	}
	in, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return Call{Tool: tool, Input: in, Workspace: ws}
}

type in map[string]any

func TestWithoutRules(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	for _, tt := range []struct {
		name, tool string
		input      any
		want       Verdict
	}{
		{"reading in the workspace", "Read", in{"file_path": ws + "/src/a.go"}, Allow},
		{"reading a relative path", "Read", in{"file_path": "src/a.go"}, Allow},
		{"reading what is not there yet", "Read", in{"file_path": ws + "/src/new/b.go"}, Allow},
		{"reading through a link that stays inside", "Read", in{"file_path": ws + "/link/b.go"}, Allow},
		{"reading a secret", "Read", in{"file_path": ws + "/.env"}, Ask},
		{"reading a secret's example", "Read", in{"file_path": ws + "/.env.example"}, Allow},
		{"reading a key", "Read", in{"file_path": "certs/server.PEM"}, Ask},
		{"reading the workspace's neighbour by ..", "Read", in{"file_path": ws + "/../secret"}, Ask},
		{"reading a folder whose name only begins alike", "Read", in{"file_path": ws + "-other/x"}, Ask},
		{"reading through a link that leads out", "Read", in{"file_path": ws + "/out/secret"}, Ask},
		{"reading through a link that leads nowhere", "Read", in{"file_path": ws + "/dangling"}, Ask},
		{"reading below a link that leads nowhere", "Read", in{"file_path": ws + "/dangling/x"}, Ask},
		{"reading below a file", "Read", in{"file_path": ws + "/src/a.go/x"}, Ask},
		{"reading at home", "Read", in{"file_path": "~/x"}, Ask},
		{"reading with white space that the CLI removes", "Read", in{"file_path": " /etc/passwd"}, Ask},
		{"reading with a line break that the CLI removes", "Read", in{"file_path": "\n/etc/passwd"}, Ask},
		{"reading a name that the CLI normalizes", "Read", in{"file_path": "e\u0301"}, Ask},
		{"reading a name that nobody sees", "Read", in{"file_path": "src/\u202eog.a"}, Ask},
		{"reading a NUL", "Read", in{"file_path": "src/a\x00"}, Ask},
		{"reading the root", "Read", in{"file_path": "/etc/passwd"}, Ask},
		{"reading a path that is no string", "Read", in{"file_path": []string{"/etc/passwd"}}, Ask},
		{"reading nothing", "Read", in{}, Ask},
		{"reading with an input that is no object", "Read", []int{1}, Ask},
		{"searching without a path", "Grep", in{"pattern": "/etc/../x", "glob": "*.go"}, Allow},
		{"searching with an empty path", "Grep", in{"pattern": "x", "path": "", "glob": "*.go"}, Allow},
		{"searching with no path in so many words", "Grep", in{"pattern": "x", "path": nil, "glob": "*.go"}, Allow},
		{"searching elsewhere", "Grep", in{"pattern": "x", "path": "/etc"}, Ask},
		{"searching secrets", "Grep", in{"pattern": "x", "glob": ".env*"}, Ask},
		{"searching with a filter upwards", "Grep", in{"pattern": "x", "glob": "../*"}, Ask},
		{"searching one secret", "Grep", in{"pattern": "x", "path": ".env"}, Ask},
		{"globbing upwards", "Glob", in{"pattern": "../**"}, Ask},
		{"globbing upwards in braces", "Glob", in{"pattern": "{..,src}/*"}, Ask},
		{"globbing from the root", "Glob", in{"pattern": "/etc/*"}, Ask},
		{"globbing from the root in braces", "Glob", in{"pattern": "{/etc,src}/*"}, Ask},
		{"globbing at home", "Glob", in{"pattern": "~/*"}, Ask},
		{"globbing through a link that leads out", "Glob", in{"pattern": "out/*"}, Ask},
		{"globbing inside", "Glob", in{"pattern": "**/*.go"}, Allow},
		{"globbing inside by an absolute pattern", "Glob", in{"pattern": ws + "/src/*.go"}, Allow},
		{"listing, which the CLI no longer does", "LS", in{"path": ws}, Ask},
		{"editing", "Edit", in{"file_path": ws + "/src/a.go"}, Ask},
		{"writing", "Write", in{"file_path": ws + "/src/a.go", "content": "x"}, Ask},
		{"a command", "Bash", in{"command": "ls"}, Ask},
		{"no command", "Bash", in{}, Ask},
		{"an empty command", "Bash", in{"command": " "}, Ask},
		{"moving about", "Bash", in{"command": "cd src"}, Ask},
		{"what only a rule for the command allows", "Bash", in{"command": "cat < src/a.go"}, Ask},
		{"a redirection that reads a secret", "Bash", in{"command": "< .env"}, Ask},
		{"bookkeeping", "TodoWrite", in{}, Allow},
		{"bookkeeping without an input", "TaskList", "", Allow},
		{"bookkeeping with a name twice", "TodoWrite", `{"a":1,"a":2}`, Ask},
		{"a subagent", "Agent", in{"prompt": "x"}, Allow},
		{"a page", "WebFetch", in{"url": "https://go.dev"}, Ask},
		{"a tool that nobody knows", "Teleport", in{}, Ask},
		{"a question", "AskUserQuestion", in{}, Ask},
		{"a plan", "ExitPlanMode", in{}, Ask},
	} {
		d := (&Policy{}).Decide(call(t, ws, tt.tool, tt.input))
		if d.Verdict != tt.want || d.Rule == "" || !strings.HasPrefix(d.Rule, "default: ") {
			t.Errorf("%s: %s by %q (%s), want %s", tt.name, d.Verdict, d.Rule, d.Why, tt.want)
		}
		if d.Terms.Quorum != 1 || d.Terms.OnTimeout != Pause || d.Terms.Timeout != 24*time.Hour {
			t.Errorf("%s: the terms are %+v", tt.name, d.Terms)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	file := func(p string) in { return in{"file_path": p} }
	cmd := func(c string) in { return in{"command": c} }
	url := func(u string) in { return in{"url": u} }
	for _, tt := range []struct {
		rules string
		tool  string
		input any
		want  Verdict
	}{
		// The first that matches decides.
		{"deny mcp__prod__* | allow mcp__*", "mcp__prod__drop", in{}, Deny},
		{"deny mcp__prod__* | allow mcp__*", "mcp__dev__list", in{}, Allow},
		{"allow mcp__* | deny mcp__prod__*", "mcp__prod__drop", in{}, Allow},
		{"allow mcp__github", "mcp__github__get", in{}, Allow},
		{"allow mcp__github", "mcp__github2__get", in{}, Ask},
		{"ask Glob", "Glob", in{"pattern": "*"}, Ask},
		{"allow *", "AskUserQuestion", in{}, Ask},
		{"allow ExitPlanMode", "ExitPlanMode", in{}, Ask},
		{"deny ExitPlanMode", "ExitPlanMode", in{}, Deny},
		{"deny TodoWrite", "TodoWrite", in{}, Deny},
		{"allow WebSearch", "WebSearch", in{"query": "x"}, Allow},
		{"allow Teleport", "Teleport", `{"a":1,"a":2}`, Ask},
		{"deny Teleport", "Teleport", `{"a":1,"a":2}`, Deny},
		{"deny Bash", "Bash", `{`, Deny},
		{"deny Read", "Read", `[]`, Deny},
		// Families.
		{"allow Write", "Edit", file("src/a.go"), Allow},
		{"allow Edit", "NotebookEdit", in{"notebook_path": "src/a.ipynb"}, Allow},
		{"allow MultiEdit(src/**)", "Write", file("src/a.go"), Allow},
		{"deny Grep", "Read", file("src/a.go"), Deny},
		{"deny Read(src/**)", "Edit", file("src/a.go"), Ask},
		// Paths.
		{"allow Edit(src/**)", "Edit", file(ws + "/src/a.go"), Allow},
		{"allow Edit(src/**)", "Edit", file(ws + "/src/new/deep/a.go"), Allow},
		{"allow Edit(src/**)", "Edit", file(ws + "/srcs/a.go"), Ask},
		{"allow Edit(src/**)", "Edit", file(ws + "/src/../b.go"), Ask},
		{"allow Edit(src/*.go)", "Edit", file("src/a.go"), Allow},
		{"allow Edit(src/*.go)", "Edit", file("src/sub/a.go"), Ask},
		{"allow Edit(src/)", "Edit", file("src/sub/a.go"), Allow},
		{"allow Edit(./src/**)", "Edit", file("src/sub/a.go"), Allow},
		{"allow Edit(*.md)", "Edit", file("README.md"), Allow},
		{"allow Edit(*.md)", "Edit", file("src/README.md"), Ask},
		{"allow Edit(**/*.md)", "Edit", file("src/README.md"), Allow},
		{"allow Edit(**)", "Edit", file("/etc/passwd"), Ask},
		{"allow Edit(**)", "Edit", file(ws + "/out/secret"), Ask},
		{"allow Edit(**)", "Edit", file(ws + "/dangling"), Ask},
		{"allow Edit(link/**)", "Edit", file("link/a.go"), Ask}, // it is src/sub
		{"allow Edit(src/sub/**)", "Edit", file("link/a.go"), Allow},
		{"allow Edit", "Edit", file("/etc/passwd"), Ask},
		{"allow *", "Edit", file("/etc/passwd"), Ask},
		{"allow Read(/etc/**)", "Read", file("/etc/passwd"), Allow},
		{"allow Read(//etc/**)", "Read", file("/etc/passwd"), Allow},
		{"allow Read(/etc/**)", "Read", file("/etc/../root/x"), Ask},
		{"allow Read(/etc/**)", "Read", file("../../../../../../../etc/passwd"), Allow},
		{"allow Read(/**)", "Read", file(ws + "/dangling"), Ask},
		{"allow Read(.env)", "Read", file(".env"), Allow},
		{"allow Read(**)", "Read", file(".env"), Allow},
		{"allow Read(src/**)", "Read", file(".env"), Ask},
		{"deny Read(.env)", "Read", file(ws + "/.env"), Deny},
		{"deny Read(.env)", "Read", file("src/../.ENV"), Deny},
		{"deny Read(.env)", "Read", file("src/sub/.env"), Deny},
		{"deny Read(/.env)", "Read", file("src/.env"), Ask},
		{"deny Read(src)", "Read", file("src/sub/x"), Deny},
		{"deny Read(src/sub/**)", "Read", file("link/x"), Deny},
		{"deny Read(link/**)", "Read", file("link/x"), Deny},
		{"deny Read(src/**)", "Read", file("srcs/x"), Allow},
		{"deny Read(/etc/**)", "Read", file("/ETC/passwd"), Deny},
		{"deny Read(/etc/**)", "Read", file("src/../../../../../../../../etc/x"), Deny},
		{"deny Edit(**) | allow Edit", "Edit", file("src/a.go"), Deny},
		{"deny Edit(**) | allow Bash", "Bash", cmd("ls src"), Allow},
		{"deny Edit(**) | allow Bash", "Bash", cmd("ls > src/x"), Deny},
		// Searches.
		{"allow Read(src/**)", "Grep", in{"path": "src"}, Allow},
		{"allow Read(/etc/**)", "Grep", in{"path": "/etc/ssl"}, Allow},
		{"allow Read(/etc/*)", "Grep", in{"path": "/etc"}, Ask},
		{"deny Read(.env)", "Grep", in{"path": "src"}, Ask},
		{"deny Read(secrets/**)", "Grep", in{"path": "src"}, Allow},
		{"deny Read(src/sub/x)", "Grep", in{"path": "src"}, Ask},
		{"deny Read(src/sub/x)", "Grep", in{}, Ask},
		{"deny Read(src/**)", "Grep", in{"path": "src/sub"}, Deny},
		{"deny Read(**/*.pem)", "Grep", in{"glob": "*.go"}, Allow},
		{"deny Read(**/*.pem)", "Grep", in{"glob": "*.pem"}, Ask},
		{"deny Read(**/*.pem) | allow Read", "Glob", in{"pattern": "**/*"}, Ask},
		{"deny Read(**/*.pem) | allow Read", "Glob", in{"pattern": "**/*.go"}, Allow},
		// Places from which programs take orders.
		{"allow Edit(**)", "Edit", file(".git/hooks/pre-commit"), Ask},
		{"allow Edit(**)", "Edit", file(".GIT/config"), Ask},
		{"allow Edit(**)", "Edit", file("src/.git/config"), Ask},
		{"allow Edit(**)", "Write", file(".claude/settings.json"), Ask},
		{"allow Edit(**)", "Write", file(".mcp.json"), Ask},
		{"allow Edit(**)", "Write", file("src/.vscode/tasks.json"), Ask},
		{"allow Edit(**)", "Write", file(".github/workflows/ci.yml"), Ask},
		{"allow Edit(**)", "Write", file(".github/CODEOWNERS"), Ask},
		{"allow Edit(**)", "Write", file(".envrc"), Ask},
		{"allow Edit", "Write", file(".envrc"), Ask},
		{"allow *", "Write", file(".envrc"), Ask},
		{"allow Edit(.vscode/**)", "Write", file(".vscode/tasks.json"), Allow},
		{"allow Edit(.vscode/**)", "Write", file(".vscode/.git/x"), Ask},
		{"allow Edit(.github/workflows/*)", "Write", file(".github/workflows/ci.yml"), Allow},
		// Commands.
		{"allow Bash(go test *)", "Bash", in{"command": "go test", "dangerouslyDisableSandbox": true}, Ask},
		{"allow Bash(go test *)", "Bash", in{"command": "go test", "dangerouslyDisableSandbox": false, "timeout": 1, "description": "x", "run_in_background": false}, Allow},
		{"allow Bash(go test *)", "Bash", in{"command": "go test", "_simulatedSedEdit": in{"filePath": "/x"}}, Ask},
		{"allow Bash(go test *)", "Bash", `{"command":"rm x","command":"go test"}`, Ask},
		{"allow Bash(go test *)", "Bash", `{"command":"go test","comm\u0061nd":"rm x"}`, Ask},
		{"deny Bash(rm *) | allow Bash", "Bash", `{"command":"rm x","command":"go test"}`, Ask},
		{"allow Bash(go test *)", "Bash", `{"command":"go test","description":{"a":1,"a":2}}`, Ask},
		{"allow Bash(go test *)", "Bash", `{"command":"go test \ud800"}`, Ask},
		{"allow Bash(go test *)", "Bash", `{"command":["go test"]}`, Ask},
		{"allow Bash(go test *)", "Bash", `{"Command":"go test"}`, Ask},
		{"allow Bash(go test *)", "Bash", `{"command":"go test"} {"command":"rm"}`, Ask},
		{"allow Bash(go test *)", "Bash", `{"command":"go test","__proto__":{}}`, Ask},
		{"allow Bash(go test *)", "Bash", cmd("go test " + strings.Repeat("x", maxCommand)), Ask},
		{"allow Bash(go *) | deny Bash(go run *)", "Bash", cmd("go run x"), Deny},
		{"allow Bash(git *) | deny Bash(git push *)", "Bash", cmd("git push"), Deny}, // git * speaks for nothing that reaches out
		{"allow Bash(git push *) | deny Bash(git push *)", "Bash", cmd("git push"), Allow},
		{"ask Bash(git push *) | allow Bash(git *)", "Bash", cmd("git -C . push"), Ask},
		{"deny Bash(git push)", "Bash", cmd("git push origin main"), Deny},
		{"deny Bash(git push --force)", "Bash", cmd("git push origin --force"), Deny},
		{"deny Bash(git push -f)", "Bash", cmd("git push -uf origin"), Deny},
		{"deny Bash(rm -rf *)", "Bash", cmd("sudo rm -rf /"), Deny},
		{"allow Edit(src/**) | allow Bash(echo *)", "Bash", cmd("echo x > src/a"), Allow},
		{"allow Edit(src/**) | allow Bash(echo *)", "Bash", cmd("echo x > b"), Ask},
		{"deny Edit(src/**) | allow Edit | allow Bash(echo *)", "Bash", cmd("echo x > src/b"), Deny},
		{"ask Read(src/**) | allow Bash(cat *)", "Bash", cmd("cat < src/a.go"), Ask},
		// The web.
		{"allow WebFetch(domain:go.dev)", "WebFetch", url("https://go.dev/doc"), Allow},
		{"allow WebFetch(domain:go.dev)", "WebFetch", url("HTTPS://GO.DEV:443/doc"), Allow},
		{"allow WebFetch(domain:go.dev)", "WebFetch", url("https://pkg.go.dev/"), Ask},
		{"allow WebFetch(domain:*.go.dev)", "WebFetch", url("https://pkg.go.dev/"), Allow},
		{"allow WebFetch(domain:*.go.dev)", "WebFetch", url("https://go.dev/"), Ask},
		{"allow WebFetch(domain:*.go.dev)", "WebFetch", url("https://evilgo.dev/"), Ask},
		{"allow WebFetch", "WebFetch", url("https://example.com"), Allow},
		{"deny WebFetch(domain:evil.com) | allow WebFetch", "WebFetch", url("https://www.evil.com"), Deny},
		{"deny WebFetch(domain:evil.com) | allow WebFetch", "WebFetch", url("https://notevil.com"), Allow},
	} {
		t.Run(fmt.Sprint(tt.rules, "/", tt.tool, "/", tt.input), func(t *testing.T) {
			t.Parallel()
			p := rules(t, strings.Split(tt.rules, " | ")...)
			if d := p.Decide(call(t, ws, tt.tool, tt.input)); d.Verdict != tt.want || d.Rule == "" {
				t.Errorf("%s by %q (%s), want %s", d.Verdict, d.Rule, d.Why, tt.want)
			}
		})
	}
}

// Where the shell stands is where relative paths begin.
func TestTheShellsOwnFolder(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	p := rules(t, "deny Read(src/sub/key)", "allow Bash(cat *)", "allow Bash(git status)", "allow Edit(src/**)")
	for _, tt := range []struct {
		dir, tool string
		input     in
		want      Verdict
	}{
		{ws, "Bash", in{"command": "cat ../x"}, Ask},
		{ws + "/src", "Bash", in{"command": "cat ../x"}, Allow},
		{ws + "/src", "Bash", in{"command": "cat sub/key"}, Deny},
		{ws + "/src/sub", "Bash", in{"command": "cat key"}, Deny},
		{ws + "/src", "Bash", in{"command": "cat x > y"}, Allow},
		{ws, "Bash", in{"command": "cat x > y"}, Ask},
		{"/tmp", "Bash", in{"command": "cat x"}, Ask},
		{ws, "Bash", in{"command": "git status"}, Allow},
		{ws + "/src", "Bash", in{"command": "git status"}, Ask},
		{ws + "/src", "Edit", in{"file_path": "a.go"}, Allow},
		{ws, "Edit", in{"file_path": "a.go"}, Ask},
		{"/tmp", "Read", in{"file_path": "a.go"}, Ask},
		{"/tmp", "Grep", in{"pattern": "x"}, Ask},
	} {
		c := call(t, ws, tt.tool, tt.input)
		c.Dir = tt.dir
		if d := p.Decide(c); d.Verdict != tt.want {
			t.Errorf("in %s, %s %v: %s by %q (%s), want %s", tt.dir, tt.tool, tt.input, d.Verdict, d.Rule, d.Why, tt.want)
		}
	}
}

func TestRulesHoldWhereTheySay(t *testing.T) {
	t.Parallel()
	p := &Policy{Rules: []Rule{
		{Verdict: Deny, Patterns: []Pattern{mustParse("Bash")}, Channels: []string{"C1"}},
		{Verdict: Allow, Patterns: []Pattern{mustParse("Bash(ls)")}, Projects: []string{"web", "app"}},
	}}
	ws := workspace(t)
	for _, tt := range []struct {
		project, channel string
		want             Verdict
	}{{"web", "C2", Allow}, {"app", "", Allow}, {"other", "C2", Ask}, {"web", "C1", Deny}, {"", "", Ask}} {
		c := bash(t, ws, "ls")
		c.Project, c.Channel = tt.project, tt.channel
		if d := p.Decide(c); d.Verdict != tt.want {
			t.Errorf("%s in %s: %s, want %s", tt.project, tt.channel, d.Verdict, tt.want)
		}
	}
}

func TestTheTermsOfSeveralQuestionsAreTheStrictest(t *testing.T) {
	t.Parallel()
	ws, yes, no := workspace(t), true, false
	p := &Policy{Rules: []Rule{
		{Verdict: Ask, Patterns: []Pattern{mustParse("Bash(git push *)")}, Approvers: []string{"S1", "S2"}, RequesterMayApprove: &yes, Timeout: time.Hour, Because: "It leaves the house.", Source: "x:1"},
		{Verdict: Ask, Patterns: []Pattern{mustParse("Bash(terraform *)")}, Approvers: []string{"S2", "S3"}, Quorum: 2, RequesterMayApprove: &no, OnTimeout: DenyOnTimeout, Dangerous: true, Source: "x:2"},
		{Verdict: Ask, Patterns: []Pattern{mustParse("Bash(dropdb *)")}, Approvers: []string{"S4"}, Source: "x:3"},
		{Verdict: Allow, Patterns: []Pattern{mustParse("Bash(ls *)")}, Source: "x:4"},
		{Verdict: Deny, Patterns: []Pattern{mustParse("Bash(shred *)")}, Because: "It is gone for good.", Source: "x:5"},
	}, Default: Terms{Approvers: []string{"S0"}, Timeout: 2 * time.Hour}}
	house := Terms{[]string{"S1", "S2"}, 1, true, time.Hour, Pause, false, false, "It leaves the house."}
	others := Terms{Approvers: []string{"S0"}, Quorum: 1, Timeout: 2 * time.Hour, OnTimeout: Pause}
	gone := others
	gone.Because = "It is gone for good."
	for _, tt := range []struct {
		command string
		want    Decision
	}{
		{"make x", Decision{Verdict: Ask, Rule: defaultAsked, Why: "no rule allows make x; Bash(make x *) would", Terms: others, Grantable: true}},
		{"git push", Decision{Verdict: Ask, Rule: "ask Bash(git push *)", Source: "x:1", Terms: house, Grantable: true}},
		{"ls && git push", Decision{Verdict: Ask, Rule: "ask Bash(git push *)", Source: "x:1", Terms: house, Grantable: true}},
		{"make x; git push", Decision{Verdict: Ask, Rule: "ask Bash(git push *)", Source: "x:1", Terms: house, Grantable: true}},
		{"git push; make x", Decision{Verdict: Ask, Rule: "ask Bash(git push *)", Source: "x:1", Why: "no rule allows make x; Bash(make x *) would", Terms: house, Grantable: true}},
		{"terraform apply", Decision{Verdict: Ask, Rule: "ask Bash(terraform *)", Source: "x:2", Why: "it may show secrets among what lies there, or what git has kept from other times; name files that are there now, after --, or leave the content out (--stat)", Terms: Terms{[]string{"S2", "S3"}, 2, false, 2 * time.Hour, DenyOnTimeout, true, false, ""}}},
		{"git push; terraform apply", Decision{Verdict: Ask, Rule: "ask Bash(git push *)", Source: "x:1", Why: "it may show secrets among what lies there, or what git has kept from other times; name files that are there now, after --, or leave the content out (--stat)", Terms: Terms{[]string{"S2"}, 2, false, time.Hour, DenyOnTimeout, true, false, "It leaves the house."}}},
		{"ls", Decision{Verdict: Allow, Rule: "allow Bash(ls *)", Source: "x:4", Terms: others}},
		{"shred x", Decision{Verdict: Deny, Rule: "deny Bash(shred *)", Source: "x:5", Terms: gone}},
	} {
		if diff := cmp.Diff(tt.want, p.Decide(bash(t, ws, tt.command)), cmpopts.IgnoreUnexported(Decision{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.command, diff)
		}
	}
	if d := p.Decide(bash(t, ws, "git push; dropdb x")); d.Verdict != Deny || !strings.Contains(d.Why, "run them one by one") {
		t.Errorf("what nobody could decide about is %s (%s)", d.Verdict, d.Why)
	}
}

func TestAReasonIsASentence(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	p := rules(t, "allow Bash(go test *)", "allow Bash(ls *)", "allow Edit(src/**)", "deny Read(.env)", "deny Bash(rm *)", "allow WebFetch(domain:go.dev)")
	for _, tt := range []struct {
		tool      string
		input     in
		rule, why string
	}{
		{"Bash", in{"command": "go test $(x)"}, defaultAsked, "the command substitution $(…) can run anything"},
		{"Bash", in{"command": "go test $X"}, defaultAsked, "the variable $X is known only when it runs"},
		{"Bash", in{"command": "ls > /etc/passwd"}, defaultAsked, "the redirection writes /etc/passwd, outside the workspace"},
		{"Bash", in{"command": "ls > out/x"}, defaultAsked, "the redirection writes out/x, which leads out of the workspace by a symbolic link"},
		{"Bash", in{"command": "ls > x"}, defaultAsked, "the redirection writes x, which no rule allows; Edit(x) would allow it"},
		{"Bash", in{"command": "ls && make"}, defaultAsked, "no rule allows make; Bash(make) would allow just this"},
		{"Bash", in{"command": "ls /etc"}, defaultOutside, "ls looks at /etc, outside the workspace; Read(/etc) would allow it"},
		{"Bash", in{"command": "ls src nosuch*"}, "allow Bash(ls *)", ""},
		{"Bash", in{"command": "go test -exec x"}, defaultAsked, "nothing is known of the option -exec of go test; Bash(go test -exec x) would allow it, or Bash(go **)"},
		{"Bash", in{"command": "sudo ls"}, defaultAsked, "sudo can run other commands or change what they mean"},
		{"Bash", in{"command": "ls; rm x"}, "deny Bash(rm *)", "it runs rm x"},
		{"Bash", in{"command": "ls '"}, defaultAsked, "the command cannot be read as shell"},
		{"Edit", in{"file_path": "/etc/x"}, defaultAsked, "/etc/x is outside the workspace"},
		{"Grep", in{"pattern": "x"}, defaultAsked, "what it searches may hold files, which deny Read(.env) is about"},
		{"WebFetch", in{"url": "https://go.dev@evil.com"}, defaultAsked, "the address holds a user name, which makes it look like another"},
	} {
		d := p.Decide(call(t, ws, tt.tool, tt.input))
		if d.Rule != tt.rule || d.Why != tt.why {
			t.Errorf("%v: %q because %q, want %q because %q", tt.input, d.Rule, d.Why, tt.rule, tt.why)
		}
	}
}

// A fault of ours in reading a call allows nothing, ends nothing, and is told.
func TestAFaultIsAsked(t *testing.T) {
	t.Parallel()
	broken := Pattern{kind: kindBash, text: "Bash(broken)", cmd: &command{words: []pword{{}}}} // a word of no parts, which the parser never makes
	p := rules(t, "ask Bash(ls *)")
	p.Rules[0].Quorum = 2
	p.Rules = append([]Rule{{Verdict: Allow, Patterns: []Pattern{broken}}}, p.Rules...)
	call := bash(t, workspace(t), "ls")
	d := p.Decide(call)
	if d.Verdict != Ask || d.Grantable || d.Terms.Quorum != 2 || !strings.Contains(d.Fault, "policy.(*Policy).decide") || !strings.Contains(d.Why, "failed") {
		t.Errorf("%+v", d)
	}
	if ok, why := Covers(broken, call); ok || why == "" {
		t.Errorf("covered: %s", why)
	}
}
