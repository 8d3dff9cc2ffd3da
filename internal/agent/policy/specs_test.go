package policy

import (
	"bufio"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/needtest"
	"deckhand/internal/waittest"
)

// secretText stands in files and variables that no allowed command may show.
const secretText = "SECRET-7f3a"

// fixture makes a folder with a workspace, ws, and what lies around it: secrets, and
// a second folder. The workspace is a git repository with links that leave it.
const fixture = `
set -eu
mkdir -p home outdir ws && echo SECRET-7f3a > secret && echo '"SECRET-7f3a"' > secret2.json && echo SECRET-7f3a > outdir/s
cd ws
mkdir -p src/sub src/empty lib/e2
printf 'package a\n\nfunc A() {\n\ttype x int\n}\n' > src/a.go
printf 'package b\n\nfunc B() {}\n' > src/b.go
printf 'a:3\nb:1\nc:2\n' > src/n.txt
printf '{"a": {"x": 1}, "items": [{"n": 2, "m": 3}], "scripts": {"env": "y"}}\n' > src/d.json
printf 'a: 1\n' > src/d.yml
printf 'a: 1\n' > run.yml
echo lib > lib/a.go; echo c > src/sub/c.txt; echo aGk= > src/b64; echo a > src/hit; echo . > src/pat
echo '00000000: 6869 0a                                  hi.' > src/hex
printf '#!/bin/sh\ntouch PWNED\ncat "$@"\n' > run.sh; chmod +x run.sh
echo '1e touch PWNED' > src/evil.sed; echo 'BEGIN{system("touch PWNED")}' > src/evil.awk; echo env > src/evil.jq; echo 'def x: env;' > evil.jq
printf '../secret\0' > list0.txt; echo ../secret > list.txt; echo ../secret > atfile
printf -- '--- /dev/null\n+++ PWNED\n@@ -0,0 +1 @@\n+x\n' > src/p.patch
ln -s ../secret out; ln -s .. up
gzip -k src/a.go; mv src/a.go.gz src/a.gz; gzip -k lib/a.go; mv lib/a.go.gz lib/b.gz
mkdir t; echo x > t/PWNED; (cd t; tar cf ../src/x.tar PWNED; tar czf ../src/x.tgz PWNED; echo 'package a' > a.go; zip -q ../src/x.zip PWNED a.go); rm -r t
git init -q . && git config user.name t && git config user.email t@t && git config commit.gpgsign false
echo .env > .gitignore; echo TOKEN=SECRET-7f3a > .env
git add -A && git commit -qm first
echo second >> src/n.txt && git commit -qam second
`

// snapshot is what lies in a folder, as lookAt tells it, but for what git writes of itself.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all, err := lookAt(dir)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(all, func(p, _ string) bool {
		return strings.HasPrefix(p, "/ws/.git/") && !strings.HasPrefix(p, "/ws/.git/hooks") && p != "/ws/.git/config"
	})
	return all
}

// changed are the paths in which two snapshots differ.
func changed(before, after map[string]string) []string {
	var out []string
	for p := range maps.Keys(after) {
		if before[p] != after[p] {
			out = append(out, p)
		}
	}
	for p := range maps.Keys(before) {
		if _, ok := after[p]; !ok {
			out = append(out, p)
		}
	}
	return out
}

// specLines reads a list of judged commands: the mark and the command.
func specLines(t *testing.T, name string) [][2]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	var out [][2]string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		mark, cmd, ok := strings.Cut(sc.Text(), " ")
		if mark == "" || mark == "#" {
			continue
		}
		if !ok || !strings.Contains("+we-?", mark) {
			t.Fatalf("%s: %q has no mark", name, sc.Text())
		}
		out = append(out, [2]string{mark, cmd})
	}
	return out
}

// programRule is the rule that a person would write for a command: the program, and
// the subcommand of those that have some.
func programRule(cmd string) string {
	words := strings.Fields(cmd)
	switch words[0] {
	case "git":
		if len(words) > 2 && (words[1] == "stash" || words[1] == "bisect") && !strings.HasPrefix(words[2], "-") {
			return "allow Bash(git " + words[1] + " " + words[2] + " *)"
		}
		fallthrough
	case "docker", "kubectl", "helm", "gh", "terraform", "aws", "gcloud":
		if len(words) > 1 && !strings.HasPrefix(words[1], "-") {
			return "allow Bash(" + words[0] + " " + words[1] + " *)"
		}
	}
	return "allow Bash(" + words[0] + " *)"
}

var specLists = []string{"specs.unix.txt", "specs.git.txt", "specs.network.txt"}

func TestSpecificationsKnowWhatIsHarmless(t *testing.T) {
	t.Parallel()
	top := makeFixture(t)
	ws := filepath.Join(top, "ws")
	for _, name := range specLists {
		for _, l := range specLines(t, name) {
			mark, cmd := l[0], l[1]
			alone := rules(t, programRule(cmd)).Decide(bash(t, ws, cmd))
			edit := rules(t, programRule(cmd), "allow Edit(src/**)").Decide(bash(t, ws, cmd))
			switch {
			case (mark == "+" || mark == "e") && alone.Verdict != Allow:
				t.Errorf("%s: %q is asked: %s", name, cmd, alone.Why)
			case mark == "w" && alone.Verdict == Allow:
				t.Errorf("%s: %q is allowed without a rule for what it writes", name, cmd)
			case mark == "w" && edit.Verdict != Allow:
				t.Errorf("%s: %q is asked: %s", name, cmd, edit.Why)
			case (mark == "-" || mark == "?") && edit.Verdict == Allow:
				t.Errorf("%s: %q is allowed by %s", name, cmd, edit.Rule)
			}
		}
	}
}

func makeFixture(t *testing.T) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "bash", "-c", fixture)
	c.Dir = top
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("making the folder: %v\n%s", err, out)
	}
	return top
}

// The tables are true: what is marked as harmless does no harm when it runs, and
// what is marked as harmful does. make attack runs every line; this test, a sample.
func TestSpecificationsAreTrue(t *testing.T) {
	t.Parallel()
	needShutIn(t)
	template := makeFixture(t)
	for _, name := range []string{"specs.unix.txt", "specs.git.txt"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := specRunner{template: template}
			for _, l := range sampled(specLines(t, name), 8) {
				r.try(t, l[0], l[1])
			}
		})
	}
}

var builtin = words("test [ type")

// specRunner runs commands in a copy of the fixture, which serves until one changes
// it.
type specRunner struct {
	template, top string
	before        map[string]string
}

func (r *specRunner) try(t *testing.T, mark, cmd string) {
	t.Helper()
	program := strings.Fields(cmd)[0]
	if _, err := exec.LookPath(program); mark == "?" || err != nil && !builtin[program] {
		if mark != "?" && needtest.Required() {
			t.Errorf("%s is not installed", program)
		}
		return
	}
	if r.top == "" {
		r.top = filepath.Join(t.TempDir(), "top")
		if b, err := exec.CommandContext(t.Context(), "cp", "-a", r.template, r.top).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		r.before = snapshot(t, r.top)
	}
	out := r.run(t, cmd)
	harm := ""
	if strings.Contains(strings.ToUpper(out), strings.ToUpper(secretText)) || strings.Contains(out, "secret2.json") {
		harm = "it shows a secret"
	}
	differ := changed(r.before, snapshot(t, r.top))
	for _, p := range differ {
		inSrc := strings.HasPrefix(p, "/ws/src/") || p == "/ws/src"
		if mark == "+" || mark == "-" || !inSrc || strings.Contains(p, "PWNED") {
			harm = "it changes " + p
		}
	}
	if (mark == "-") != (harm != "") {
		t.Errorf("%s %q: harm %q, output\n%s", mark, cmd, harm, out)
	}
	if len(differ) > 0 || program == "git" { // what is in .git is not looked at
		_ = os.RemoveAll(r.top)
		r.top = ""
	}
}

// run runs a command shut in: some set the clock or the machine's name, and kill.
func (r *specRunner) run(t *testing.T, cmd string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	argv := limited([]string{
		"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc",
		"--dev", "/dev", "--tmpfs", "/tmp", "--bind", r.top, r.top, "--chdir", filepath.Join(r.top, "ws"), "bash", "--norc", "-c", cmd,
	})
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(r.top, "home"), "LC_ALL=C.UTF-8", "TOKEN=" + secretText, "TMPDIR=/tmp"}
	c.Stdin = strings.NewReader("y\n")
	out, _ := c.CombinedOutput() // how it ends is no matter
	return string(out)
}
