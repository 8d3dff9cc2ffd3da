package policy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What engineers and agents type all day, decided under the rules of a team that
// works in these languages. The golden file says of every line what becomes of it,
// and of what is asked why: a change that costs people questions shows here, with
// the sentences that they would read.
func TestTheEveryday(t *testing.T) {
	t.Parallel()
	ws, p := manyLanguages(t), rulesOf(t, "everyday.rules.yaml")
	var all tally
	var out strings.Builder
	for _, g := range everyday(t) {
		var of tally
		var said strings.Builder
		for _, cmd := range g.commands {
			d := p.Decide(bash(t, ws, cmd))
			of.add(d.Verdict)
			all.add(d.Verdict)
			fmt.Fprintf(&said, "%-6s %s\n", d.Verdict, shown(cmd))
			switch why := strings.ReplaceAll(d.Why, ws, "WORKSPACE"); {
			case d.Verdict == Allow:
			case why == "":
				fmt.Fprintf(&said, "       %s\n", d.Rule)
			default:
				fmt.Fprintf(&said, "       %s\n", why)
			}
		}
		fmt.Fprintf(&out, "\n## %s: %s\n%s", g.name, of, said.String())
	}
	if n := all.allowed + all.asked + all.denied; n < 300 {
		t.Errorf("the list holds %d commands, want at least 300", n)
	}
	t.Log(all)
	golden(t, "everyday.golden", []byte(all.String()+"\n"+out.String()))
}

type tally struct{ allowed, asked, denied int }

func (n *tally) add(v Verdict) {
	switch v {
	case Allow:
		n.allowed++
	case Ask:
		n.asked++
	default:
		n.denied++
	}
}

func (n tally) String() string {
	return fmt.Sprintf("%d allowed, %d asked, %d denied", n.allowed, n.asked, n.denied)
}

// shown is a command on one line, as it stands in the list.
func shown(cmd string) string {
	if strings.Contains(cmd, "\n") {
		return "@" + strconv.Quote(cmd)
	}
	return cmd
}

// group is what stands in a list of commands below a line "# -- name".
type group struct {
	name     string
	commands []string
}

func everyday(t testing.TB) []group {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "everyday.txt"))
	if err != nil {
		t.Fatal(err)
	}
	commands := lines(t, "everyday.txt")
	var out []group
	for line := range strings.Lines(string(source)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "# -- "); ok {
			out = append(out, group{name: name})
			continue
		}
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		g := &out[len(out)-1]
		g.commands = append(g.commands, commands[0])
		commands = commands[1:]
	}
	return out
}

// rulesOf reads the policy of a file in the form of deckhand.yaml.
func rulesOf(t testing.TB, name string) *Policy {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Policy struct {
			Rules []struct {
				Allow, Ask, Deny any // a pattern, or several
				Because          string
			}
		}
	}
	if err := yaml.UnmarshalWithOptions(source, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	var list []Rule
	for i, r := range file.Policy.Rules {
		rule := Rule{Because: r.Because, Source: fmt.Sprintf("%s:%d", name, i+1)}
		for verdict, patterns := range map[Verdict]any{Allow: r.Allow, Ask: r.Ask, Deny: r.Deny} {
			var texts []any
			switch v := patterns.(type) {
			case nil:
				continue
			case string:
				texts = []any{v}
			default:
				texts = v.([]any)
			}
			rule.Verdict = verdict
			for _, text := range texts {
				rule.Patterns = append(rule.Patterns, mustParse(text.(string)))
			}
		}
		list = append(list, rule)
	}
	return &Policy{Rules: list}
}

// manyLanguages is a workspace that holds a little of everything that the
// everyday commands name.
func manyLanguages(t testing.TB) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "ws")
	for name := range strings.FieldsSeq(`.git/HEAD README.md go.mod go.sum main.go package.json tsconfig.json pyproject.toml setup.py
		requirements.txt manage.py Cargo.toml pom.xml build.gradle gradlew mvnw Gemfile Rakefile composer.json artisan Makefile
		CMakeLists.txt justfile Taskfile.yml Dockerfile config.ini names.txt other.txt data.csv data.bin server.log fix.patch
		src/main.go src/a.go src/b.go src/c.go src/app.ts src/app.test.ts src/app.js src/app.py src/old.go src/main.rs src/App.java
		src/App.php src/a.c src/logo.png src/widgets/w.go internal/parser/p.go cmd/app/main.go core/x.go tests/test_app.py
		tests/Unit/x.php test/app_test.rb test/app.test.js tests/login.spec.ts docs/notes.md docs/a.md spec/models/user_spec.rb
		app/models/user.rb scripts/build.sh scripts/test.sh scripts/build.js scripts/build.py web/package.json
		build/ninja.build k8s/web.yaml charts/web/Chart.yaml bin/rails bin/rspec vendor/bin/phpunit vendor/bin/phpstan
		node_modules/.bin/tsc node_modules/.bin/eslint .venv/bin/python .venv/bin/pytest`) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s has changed (-want +got); if that is right, run the test with -update\n%s", file, diff)
	}
}
