package policy

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/needtest"
	"deckhand/internal/waittest"
)

// buildLine is a command of testdata/build.txt, under the rules before it.
type buildLine struct {
	mark    byte // + - or !
	command string
	rules   []string // "allow Bash(go test *)"
}

func buildLines(t testing.TB) []buildLine {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "build.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	var out []buildLine
	var under []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := sc.Text()
		switch {
		case line == "" || line[0] == '#':
		case strings.HasPrefix(line, "rule "):
			under = nil
			for pattern := range strings.SplitSeq(line[len("rule "):], "; ") {
				under = append(under, "allow "+pattern)
			}
		case len(line) > 2 && strings.IndexByte("+-!", line[0]) >= 0 && line[1] == ' ':
			out = append(out, buildLine{line[0], line[2:], under})
		default:
			t.Fatalf("build.txt: what is %q?", line)
		}
	}
	return out
}

// Under the rule that a team writes for a tool, what it is for is allowed, and no
// option makes it do something else.
func TestBuildToolsDoWhatTheirRulesSay(t *testing.T) {
	t.Parallel()
	ws := manyLanguages(t)
	if err := os.Symlink(filepath.Dir(ws), filepath.Join(ws, "out")); err != nil {
		t.Fatal(err)
	}
	harmful := 0
	for _, l := range buildLines(t) {
		d := rules(t, l.rules...).Decide(bash(t, ws, l.command))
		switch {
		case l.mark == '+' && d.Verdict != Allow:
			t.Errorf("%v: %s is %s: %s (%s)", l.rules, l.command, d.Verdict, d.Why, d.Rule)
		case l.mark != '+' && d.Verdict == Allow:
			t.Errorf("%v: %s is allowed by %s", l.rules, l.command, d.Rule)
		case l.mark != '+' && d.Why == "":
			t.Errorf("%v: %s is asked without a reason", l.rules, l.command)
		}
		if l.mark != '+' {
			harmful++
		}
	}
	t.Logf("%d harmful lines", harmful)
}

// What is marked with ! is no theory: the program does it. make attack runs every line;
// this test, a sample.
func TestBuildEvasionsAreReal(t *testing.T) {
	t.Parallel()
	ran := 0
	harmful := slices.DeleteFunc(buildLines(t), func(l buildLine) bool { return l.mark != '!' })
	for _, l := range sampled(harmful, 8) {
		name, _, _ := strings.Cut(l.command, " ")
		if _, err := exec.LookPath(name); err != nil {
			if needtest.Required() && strings.Contains(" go gofmt node npm ", " "+name+" ") {
				t.Fatal(err)
			}
			continue
		}
		ran++
		t.Run(l.command, func(t *testing.T) {
			t.Parallel()
			top := hostile(t)
			ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
			defer cancel()
			c := exec.CommandContext(ctx, "bash", "--norc", "-c", l.command)
			c.Dir = filepath.Join(top, "ws")
			c.Env = append(os.Environ(), "SHELL=/bin/bash", "CANARY="+filepath.Join(top, "PWNED"), "GOFLAGS=", "GOPROXY=off", "CARGO_NET_OFFLINE=true", "PYTHONDONTWRITEBYTECODE=1")
			out, _ := c.CombinedOutput() // how it ends is no matter
			if _, err := os.Lstat(filepath.Join(top, "PWNED")); err != nil {
				t.Errorf("it does no harm:\n%s", out)
			}
		})
	}
	t.Logf("%d run", ran)
}

// hostile is a folder with a workspace, ws, and beside and in it what an evasion
// may name. All of it makes $CANARY when it runs.
func hostile(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	const (
		js     = "require('fs').writeFileSync(process.env.CANARY, '')\n"
		python = "import os; open(os.environ['CANARY'], 'w').close()\n"
		mk     = "$(shell touch $(CANARY))\nall test:\n\t@true\n"
		pom    = "<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version><packaging>pom</packaging></project>\n"
		cargo  = "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"
	)
	for name, text := range map[string]string{
		"ws/x":       "#!/bin/sh\ntouch \"$CANARY\"\nexit 1\n",
		"ws/evil.js": js, "ws/evil.mjs": "import fs from 'fs'; fs.writeFileSync(process.env.CANARY, ''); export default async function*() {}\n", "ws/src/app.js": "1\n",
		"ws/package.json":   `{"name": "a", "version": "1.0.0", "scripts": {"test": "true", "args": "node"}}`,
		"evil/package.json": `{"name": "b", "version": "1.0.0", "scripts": {"test": "touch \"$CANARY\""}}`, "evil/evil.test.js": js,
		"ws/evil.py": python, "evil/evil.py": python, "evil/__main__.py": python, "ws/src/app.py": "1\n",
		"ws/evil.mk": mk, "ws/Makefile": "test:\n\t@true\n", "evil/Makefile": mk,
		"ws/go.mod": "module example.com/a\n\ngo 1.24\n", "ws/a.go": "package main\n\nfunc main() {}\n", "ws/src/b.go": "package src\n",
		"ws/a_test.go": "package main\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n",
		"evil/go.mod":  "module example.com/b\n\ngo 1.24\n", "evil/b_test.go": "package b\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestB(t *testing.T) { os.WriteFile(os.Getenv(\"CANARY\"), nil, 0o600) }\n",
		"ws/go.work":    "go 1.24\n\nuse .\nuse ../evil\n",
		"ws/Cargo.toml": cargo, "ws/src/lib.rs": "", "ws/src/main.rs": "fn main() {}\n", "ws/evil.toml": "[build]\nrustc-wrapper = \"./x\"\n",
		"evil/Cargo.toml": cargo, "evil/src/lib.rs": "", "evil/build.rs": "fn main() { std::fs::write(std::env::var(\"CANARY\").unwrap(), \"\").unwrap() }\n",
		"ws/pom.xml": pom, "evil/pom.xml": pom,
	} {
		file := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil { //nolint:gosec // some are programs
			t.Fatal(err)
		}
	}
	if err := os.Symlink(top, filepath.Join(top, "ws", "out")); err != nil {
		t.Fatal(err)
	}
	return top
}
