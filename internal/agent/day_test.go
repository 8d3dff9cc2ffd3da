package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/agent/policy"
	"deckhand/internal/settings"
)

// step is a tool call of a task. Of one that leaves the sandbox somebody has to decide.
type step struct {
	tool   string
	input  any
	leaves bool
}

type args map[string]any

func sh(command string) step { return step{tool: "Bash", input: args{"command": command}} }
func read(path string) step  { return step{tool: "Read", input: args{"file_path": path}} }
func edit(path string) step {
	return step{tool: "Edit", input: args{"file_path": path, "old_string": "a", "new_string": "b"}}
}

func write(path string) step {
	return step{tool: "Write", input: args{"file_path": path, "content": "text\n"}}
}

func call(tool string, in args) step { return step{tool: tool, input: in} }

func leaves(s step) step {
	s.leaves = true
	return s
}

func host(name string) step {
	return step{tool: policy.NetworkTool, input: policy.NetworkInput(name, 443), leaves: true}
}

// day is what an engineer's day gives: twenty tasks, each with the calls that an agent makes
// for it.
var day = []struct {
	task  string
	steps []step
}{
	{"fix a failing test", []step{sh("npm test"), read("src/quote.js"), edit("src/quote.js"), sh("npm test")}},
	{"… and push it", []step{sh("git add -A"), sh("git commit -m 'A full week gets its discount'"), leaves(sh("git push origin HEAD:deckhand/full-week"))}},
	{"rename a function in ten files", []step{
		sh("grep -rn oldName src"), edit("src/a.js"), edit("src/b.js"), edit("src/c.js"), edit("src/d.js"), edit("src/e.js"),
		edit("src/f.js"), edit("src/g.js"), edit("src/h.js"), edit("src/i.js"), edit("test/a.test.js"), sh("npm test"),
	}},
	{"say why production logs an error", []step{sh("ls logs"), sh("tail -n 200 logs/app.log"), sh("grep -n ERROR logs/app.log | sort | uniq -c | sort -rn | head -20"), read("src/server.js")}},
	{"add a dependency", []step{edit("package.json"), host("registry.npmjs.org"), sh("npm install"), sh("npm ls left-pad"), sh("npm test")}},
	{"run the linters and mend what they say", []step{sh("npm run lint"), edit("src/a.js"), sh("npx prettier --write src"), sh("npm run lint")}},
	{"explain how a module works", []step{call("Glob", args{"pattern": "src/**/*.js"}), call("Grep", args{"pattern": "discount", "path": "src"}), read("src/quote.js"), sh("git log --oneline -20")}},
	{"look up a library's documentation", []step{leaves(call("WebFetch", args{"url": "https://nodejs.org/api/fs.html", "prompt": "how is a folder watched?"})), edit("src/watch.js")}},
	{"search the web for an error message", []step{leaves(call("WebSearch", args{"query": "ERR_REQUIRE_ESM vitest"})), edit("vitest.config.js"), sh("npm test")}},
	{"read an issue and fix it", []step{call("mcp__tracker__list_issues", args{"mine": true}), leaves(call("mcp__tracker__get_issue", args{"id": "WEB-7"})), edit("src/form.js"), sh("npm test -- form")}},
	{"… and comment on it", []step{leaves(call("mcp__tracker__comment", args{"id": "WEB-7", "text": "Fixed."}))}},
	{"write a migration and try it", []step{write("migrations/0007_index.sql"), sh("createdb scratch"), sh("psql scratch -f migrations/0007_index.sql"), sh("dropdb scratch")}},
	{"find the commit that broke it", []step{sh("git log --oneline -50"), sh("git bisect start HEAD v1.2.0"), sh("git bisect run npm test"), sh("git bisect reset")}},
	{"write documentation", []step{read("README.md"), write("docs/quotes.md"), edit("README.md"), sh("git diff --stat")}},
	{"make a build faster", []step{read("vite.config.js"), sh("time npm run build"), edit("vite.config.js"), sh("time npm run build"), sh("du -sh dist")}},
	{"mend the pipeline, and push it", []step{read(".github/workflows/ci.yml"), edit(".github/workflows/ci.yml"), sh("git commit -am 'The pipeline caches'"), leaves(sh("git push origin HEAD:deckhand/cache"))}},
	{"write a script that counts", []step{write("scripts/count.py"), sh("python3 scripts/count.py data/*.csv > out.txt"), read("out.txt")}},
	{"take a picture of a page, and post it in #design", []step{sh("npm run storybook:build"), sh("node scripts/shot.js"), leaves(call("mcp__slack__upload_file", args{"channel": "C0DESIGN", "path": "shot.png"}))}},
	{"bring the branch up to date", []step{sh("git fetch origin"), sh("git rebase origin/main"), sh("npm test"), leaves(sh("git push --force-with-lease origin HEAD:deckhand/full-week"))}},
	{"start the server and try a route", []step{sh("npm run dev & sleep 2; curl -s localhost:3000/health; kill %1"), edit("src/server.js"), sh("npm test")}},
}

// TestADay: in a day of twenty everyday tasks, under the policy of a new install, a contained
// project asks where something leaves and seldom elsewhere; a careful one asks at most
// calls. Whatever leaves is decided about in both.
func TestADay(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../../deploy/deckhand.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	postures := []policy.Posture{policy.Careful, policy.Contained}
	policies := map[policy.Posture]*policy.Policy{}
	for _, posture := range postures {
		file := filepath.Join(t.TempDir(), "deckhand.yaml")
		text := strings.Replace(string(example), "\nposture: contained\n", "\nposture: "+string(posture)+"\n", 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := settings.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Policy.Postures.Of("web", "C0123456789"); got != posture {
			t.Fatalf("the example is %s, want %s", got, posture)
		}
		policies[posture] = f.Policy
		policies[posture].Reads = map[string]map[string]bool{"web": {"mcp__tracker__list_issues": true}} // as reads: under mcp_servers
	}
	workspace := t.TempDir()
	for _, s := range []string{"src", "test", "docs", "logs", "data", "migrations", "scripts", ".github/workflows"} {
		if err := os.MkdirAll(filepath.Join(workspace, s), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%-50s %5s %7s %9s %5s", "task", "calls", "careful", "contained", "exits")
	sum := map[policy.Posture]int{}
	calls, exits, denied := 0, 0, 0
	for _, task := range day {
		asked, left := map[policy.Posture]int{}, 0
		for _, s := range task.steps {
			raw, err := json.Marshal(s.input)
			if err != nil {
				t.Fatal(err)
			}
			c := policy.Call{Tool: s.tool, Input: raw, Workspace: workspace, Home: t.TempDir(), Project: "web", Channel: "C0123456789"}
			for _, posture := range postures {
				d := policies[posture].Decide(c)
				if d.Verdict == policy.Ask {
					asked[posture]++
				}
				if d.Verdict == policy.Deny && posture == policy.Contained {
					denied++
				}
				switch {
				case s.leaves && d.Verdict != policy.Ask && d.Verdict != policy.Deny:
					t.Errorf("%s, %s: %s %s leaves unasked: %s (%s)", task.task, posture, s.tool, raw, d.Verdict, d.Rule)
				case !s.leaves && d.Verdict == policy.Deny:
					t.Errorf("%s, %s: %s %s is denied: %s", task.task, posture, s.tool, raw, d.Rule)
				case !s.leaves && posture == policy.Contained && d.Verdict == policy.Ask:
					t.Logf("   asked inside: %s: %s", raw, d.Why)
				}
			}
			if s.leaves {
				left++
			}
		}
		t.Logf("%-50s %5d %7d %9d %5d", task.task, len(task.steps), asked[policy.Careful], asked[policy.Contained], left)
		calls, exits = calls+len(task.steps), exits+left
		for _, posture := range postures {
			sum[posture] += asked[posture]
		}
	}
	t.Logf("%-50s %5d %7d %9d %5d (%d denied by a rule)", "all", calls, sum[policy.Careful], sum[policy.Contained], exits, denied)
	if sum[policy.Contained]*3 > sum[policy.Careful] {
		t.Errorf("contained asks %d times, careful %d: it spares people too little", sum[policy.Contained], sum[policy.Careful])
	}
}
