package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Rules that do nothing, or less than they say, are told: as dangerous (!) where calls are
// decided by less than the rule says, as idle (~) where nothing depends on it.
func TestMistakes(t *testing.T) {
	t.Parallel()
	servers := map[string][]string{"web": {"github", "linear"}, "api": {"prod"}}
	for _, tt := range []struct{ rules, want string }{
		// Names that no tool has.
		{"deny WebSerch", "! there is no tool WebSerch; did you mean WebSearch?"},
		{"ask Bahs", "! there is no tool Bahs; did you mean Bash?"},
		{"deny Teleport", "! there is no tool Teleport; correct the name"},
		{"allow Teleport", "~ there is no tool Teleport in the Claude Code"},
		{"deny Web_*", "! no tool has a name like Web_*"},
		{"deny websearch*", "! no tool has a name like websearch*; did you mean WebSearch?"},
		{"deny Task", "! there is no tool Task any more: its name is Agent"},
		{"deny Web* | deny *Edit | deny Agent | ask m* | deny NotebookRead | ask SandboxNetworkAccess | deny Monitor | deny *", ""},
		{"deny mcp__githbu__*", "! no project where the rule holds has an MCP server githbu; did you mean mcp__github__*?"},
		{"ask mcp__linaer", "! no project where the rule holds has an MCP server linaer; did you mean mcp__linear?"},
		{"allow mcp__githbu__get", "~ no project where the rule holds has an MCP server githbu; did you mean mcp__github__get?"},
		{"deny Bash(gti push *)", "~ Deckhand knows no gti; did you mean git?"},
		{"ask Bash(git psuh *)", "~ Deckhand knows no psuh; did you mean push?"},
		{"deny Bash(git * x) | deny Bash(*) | allow Bash(git pushh)", "~ Deckhand knows no pushh; did you mean push?"},
		{"deny Bash(frob *) | allow Bash(./deploy.sh *) | allow Bash(git submodule *) | allow Bash(npm run tets)", ""},
		{"deny mcp__payments__*", "~ no project where the rule holds has an MCP server payments, so it is about no call"},
		{"deny mcp__prod__*@web", "~ no project where the rule holds has an MCP server prod"},
		{"deny mcp__prod__* | ask mcp__linear | deny mcp__git*__delete | deny mcp__*", ""},

		// What comes after a rule that allows it.
		{"allow Bash(**) | ask Bash(git push *)", "! comes before: what this rule is about is decided there; move this one above it"},
		{"allow Bash(git **) | deny Bash(git push --force *)", "! allow Bash(git **)"},
		{"allow Bash(git **) | ask Bash(git * --force *)", "! allow Bash(git **)"},
		{"allow Bash(**) | deny Bash(a && b)", "! allow Bash(**)"},
		{"allow Bash(**) | deny Bash(* --force)", "! allow Bash(**)"},
		{"allow Bash(ls *) | deny Bash(ls -R *)", "! allow Bash(ls *)"},
		{"allow Bash | deny Bash(ls -R *)", "! allow Bash"},
		{"allow * | deny Bash(ls -R *)", "! allow *"},
		{"allow Bash(rm *) | ask Bash(rm -rf *)", "! allow Bash(rm *)"},
		{"allow Bash(git push) | ask Bash(git push)", "! allow Bash(git push)"},
		{"allow Bash(git status *) | deny Bash(git status --short)", "! allow Bash(git status *)"},
		{"allow Bash(go test *) | deny Bash(go test ./...)", "! allow Bash(go test *)"},
		{"allow Bash(git *) | ask Bash(git push *)", ""},
		{"allow Bash(git push) | ask Bash(git push *)", ""},
		{"allow Bash(git push *) | ask Bash(git push *)", ""}, // what is not known of it is asked by those whom the rule names
		{"allow Bash(git push *) | ask Bash(git push --force *)", ""},
		{"allow Bash(npm run *) | ask Bash(npm run deploy *)", "! allow Bash(npm run *)"},
		{"allow Bash(npm *) | deny Bash(npm publish *)", ""},
		{"allow Bash(curl *) | ask Bash(curl https://x.example/ *)", ""},
		{"allow Bash(**)@web | ask Bash(git push *)", ""},
		{"allow Bash(**)@web | ask Bash(git push *)@web", "! allow Bash(**)"},
		{"allow Bash(**)@web,api | ask Bash(git push *)@web", "! allow Bash(**)"},
		{"allow Bash(**) | ask Bash(git push *)@web", "! allow Bash(**)"},
		{"ask Bash(git push *) | allow Bash(**)", ""},
		{"allow Read(**) | deny Read(.env)", "! allow Read(**)"},
		{"allow Read | deny Read(secrets/**)", "! allow Read"},
		{"allow Grep | ask Read(*.pem)", "! allow Grep"},
		{"allow * | deny Read(.env)", "! allow *"},
		{"allow Read(src/**) | deny Read(src/secrets/**)", "! allow Read(src/**)"},
		{"allow Read(src/**) | deny Read(.env)", ""},
		{"allow Read(src/**) | deny Read(**)", ""},
		{"allow Read(**) | deny Read(/etc/**)", ""},
		{"allow Read(/etc/**) | deny Read(/etc/ssl/**)", "! allow Read(/etc/**)"},
		{"allow Edit(**) | ask Edit(docs/**)", "! allow Edit(**)"},
		{"allow Edit | deny Edit(**/*.sql)", "! allow Edit"},
		{"allow Edit(**) | deny Edit(.github/**)", ""}, // programs take orders from it, so the first one leaves it
		{"allow Edit(**) | deny Edit(**/package.json)", ""},
		{"allow Edit(.github/**) | deny Edit(.github/workflows/**)", ""},
		{"allow Edit(src/**) | ask Edit(src/**)", ""}, // of what the first one leaves
		{"allow WebFetch | deny WebFetch(domain:evil.example)", "! allow WebFetch"},
		{"allow WebFetch(domain:*.go.dev) | ask WebFetch(domain:pkg.go.dev)", "! allow WebFetch(domain:*.go.dev)"},
		{"allow WebFetch(domain:go.dev) | ask WebFetch(domain:*.go.dev)", ""},
		{"allow SandboxNetworkAccess | deny SandboxNetworkAccess(domain:evil.example)", "! allow SandboxNetworkAccess"},
		{"allow SandboxNetworkAccess(domain:go.dev) | ask SandboxNetworkAccess(domain:go.dev:22)", ""},
		{"allow mcp__* | deny mcp__prod__*", "! allow mcp__*"},
		{"allow mcp__github | ask mcp__github__delete_*", "! allow mcp__github"},
		{"allow * | deny WebSearch", "! allow *"},
		{"allow Web* | deny WebSearch", "! allow Web*"},
		{"allow mcp__github__get | ask mcp__github", ""},
		{"allow Web* | deny WebFetch", "! allow Web*"},
		{"allow * | deny WebFetch", "! allow *"},
		{"allow * | deny Edit", "! allow *"},
		{"allow * | ask Bash", "! allow *"},
		{"allow *e* | deny Read", "! allow *e*"},
		{"allow * | deny SandboxNetworkAccess", "! allow *"},
		{"allow WebFetch | deny WebFetch", "! allow WebFetch"},
		{"allow SandboxNetworkAccess | ask SandboxNetworkAccess", "! allow SandboxNetworkAccess"},
		{"allow WebFetch(domain:go.dev) | deny WebFetch", ""},
		{"allow W* | deny Edit", ""},
		{"allow Bash | ask Bash", ""}, // of what the first one leaves
		{"allow Bash(**) | ask Bash", ""},
		{"allow Read | deny Read", ""},
		{"allow * | allow Edit", "~ no call reaches it"},
		{"allow Bash(**) | deny Read(.env)", "~ a command may touch the files all the same"},

		// What comes after a rule that asks or denies.
		{"ask Bash(git *) | deny Bash(git push --force *)", "! ask Bash(git *)"},
		{"ask Edit(**) | deny Edit(.github/**)", "! ask Edit(**)"},
		{"ask * | deny WebSearch", "! ask *"},
		{"ask WebFetch(domain:example.com) | deny WebFetch(domain:a.example.com)", "! ask WebFetch"},
		{"deny Bash | allow Bash(go test *)", "~ no call reaches it, since deny Bash comes before"},
		{"deny Bash(git *) | allow Bash(git log *)", "~ no call reaches it"},
		{"deny Bash(git push) | ask Bash(git push --force *)", "~ no call reaches it"}, // a rule that denies is about further words, too
		{"ask Bash(git *) | ask Bash(git push *)", "~ no call reaches it"},
		{"deny Read(src/**) | allow Read(src/a.go)", "~ no call reaches it"},
		{"deny Read(.env) | allow Read(src/a.go)", ""},
		{"deny mcp__prod | allow mcp__prod__list", "~ no call reaches it"},
		{"deny Bash(git push *) | allow Bash(git *) | allow Bash(git log *)", "~ no call reaches it, since allow Bash(git *)"},
		{"allow Edit(src/**) | allow Edit(src/a.go)", "~ no call reaches it"},
		{"allow Edit(src/**) | allow Edit(src/package.json)", ""},
	} {
		var list []Rule
		for text := range strings.SplitSeq(tt.rules, " | ") {
			text, projects, scoped := strings.Cut(text, "@")
			verdict, pattern, _ := strings.Cut(text, " ")
			r := Rule{Verdict: Verdict(verdict), Patterns: []Pattern{mustParse(pattern)}}
			if scoped {
				r.Projects = strings.Split(projects, ",")
			}
			list = append(list, r)
		}
		var got []string
		for _, m := range (&Policy{Rules: list}).Mistakes(servers) {
			got = append(got, map[bool]string{true: "! ", false: "~ "}[m.Opens]+m.Text)
			if m.Rule != len(list)-1 {
				t.Errorf("%s: it is said of rule %d", tt.rules, m.Rule)
			}
		}
		switch {
		case tt.want == "" && len(got) > 0:
			t.Errorf("%s: %q, and nothing is wrong", tt.rules, got)
		case tt.want != "" && (len(got) != 1 || got[0][:2] != tt.want[:2] || !strings.Contains(got[0], tt.want[2:])):
			t.Errorf("%s: %q, want %q", tt.rules, got, tt.want)
		}
	}
}

// What is called a mistake that opens something is one: a call that the later rule spells
// is decided by less.
func TestMistakesThatOpenAreTrue(t *testing.T) {
	t.Parallel()
	ws := makePlanted(t) + "/ws"
	for _, tt := range []struct{ first, later, tool, input string }{
		{"allow Bash(**)", "ask Bash(git push *)", "Bash", "git push --force"},
		{"allow Bash(ls *)", "deny Bash(ls -R *)", "Bash", "ls -R src"},
		{"allow Bash(git status *)", "deny Bash(git status --short)", "Bash", "git status --short"},
		{"allow Bash(npm run *)", "ask Bash(npm run deploy *)", "Bash", "npm run deploy"},
		{"allow Read(**)", "deny Read(.env)", "Read", ".env"},
		{"ask Bash(git *)", "deny Bash(git push --force *)", "Bash", "git push --force"},
		{"allow WebFetch(domain:*.go.dev)", "ask WebFetch(domain:pkg.go.dev)", "WebFetch", "https://pkg.go.dev/x"},
		{"allow Web*", "deny WebFetch", "WebFetch", "https://pkg.go.dev/x"},
		{"allow *", "deny Bash", "Bash", "ls"},
		{"allow *", "deny Read", "Read", "a.go"},
	} {
		decide := func(list ...string) Verdict {
			field := map[string]string{"Bash": "command", "Read": "file_path", "WebFetch": "url"}[tt.tool]
			return rules(t, list...).Decide(call(t, ws, tt.tool, in{field: tt.input})).Verdict
		}
		wrong, right := decide(tt.first, tt.later), decide(tt.later, tt.first)
		mistakes := rules(t, tt.first, tt.later).Mistakes(nil)
		if !right.Stricter(wrong) || !slices.ContainsFunc(mistakes, func(m Mistake) bool { return m.Opens }) {
			t.Errorf("%s before %s: %s for %s, the other way round %s, mistakes %s", tt.first, tt.later, tt.input, wrong, right, fmt.Sprint(mistakes))
		}
		if left := rules(t, tt.later, tt.first).Mistakes(nil); len(left) > 0 {
			t.Errorf("%s before %s: %v", tt.later, tt.first, left)
		}
	}
}
