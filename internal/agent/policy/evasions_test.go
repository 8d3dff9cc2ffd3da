package policy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckhand/internal/needtest"
	"deckhand/internal/waittest"
)

// lines reads a list of commands: one to a line, # for comments, @ before a Go
// string.
func lines(t testing.TB, name string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	var out []string
	seen := map[string]bool{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := sc.Text()
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if q, ok := strings.CutPrefix(line, "@"); ok {
			if line, err = strconv.Unquote(q); err != nil {
				t.Fatalf("%s: %s: %v", name, q, err)
			}
		}
		if seen[line] {
			t.Errorf("%s holds %q twice", name, line)
		}
		seen[line] = true
		out = append(out, line)
	}
	return out
}

// workspace is a folder with some files, a link that leads out of it, one that
// leads nowhere, and one that leads to a folder inside.
func workspace(t testing.TB) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "ws")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "src", "sub"), 0o755),
		os.MkdirAll(filepath.Join(dir, "sub"), 0o755),
		os.WriteFile(filepath.Join(dir, "src", "a.go"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, ".env"), nil, 0o600),
		os.WriteFile(filepath.Join(top, "secret"), nil, 0o600),
		os.Symlink(top, filepath.Join(dir, "out")),
		os.Symlink("/nowhere/at/all", filepath.Join(dir, "dangling")),
		os.Symlink(filepath.Join(dir, "src", "sub"), filepath.Join(dir, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// rules reads rules written as a person would: "allow Bash(go test *)".
func rules(t testing.TB, written ...string) *Policy {
	t.Helper()
	var list []Rule
	for i, w := range written {
		verdict, text, _ := strings.Cut(w, " ")
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, Rule{Verdict: Verdict(verdict), Patterns: []Pattern{p}, Source: "deckhand.yaml:" + strconv.Itoa(i+1)})
	}
	return &Policy{Rules: list}
}

func bash(t testing.TB, ws, command string) Call {
	t.Helper()
	// As the CLI sends it: bytes as they are. Marshal would repair them.
	if !json.Valid([]byte(strconv.Quote(command))) {
		in := []byte(`{"command":"`)
		for i := range len(command) {
			switch b := command[i]; {
			case b == '"' || b == '\\':
				in = append(in, '\\', b)
			case b < ' ':
				in = append(in, []byte(`\u00`+string("0123456789abcdef"[b>>4])+string("0123456789abcdef"[b&15]))...)
			default:
				in = append(in, b)
			}
		}
		return Call{Tool: "Bash", Input: append(in, `"}`...), Workspace: ws}
	}
	in, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	return Call{Tool: "Bash", Input: in, Workspace: ws}
}

// prefixRules are what a team would write on its first day.
var prefixRules = []string{
	"allow Bash(go test *)", "allow Bash(git status)", "allow Bash(git diff *)", "allow Bash(git log *)", "allow Bash(ls *)",
	"allow Bash(npm test)", "allow Bash(npm run test:*)", "allow Bash(cat *)", "allow Bash(grep *)", "allow Bash(echo *)",
	"allow Bash(find *)", "allow Bash(rg *)", "allow Bash(sort *)", "allow Bash(tar *)", "allow Bash(make *)", "allow Edit(src/**)", "allow Edit(cover.out)", "allow Edit(src.tgz)",
}

func TestNothingSlipsPastAPrefixRule(t *testing.T) {
	t.Parallel()
	ws, p := workspace(t), rules(t, prefixRules...)
	n := 0
	for _, list := range []string{"evasions.shell.txt", "evasions.programs.txt"} {
		for _, cmd := range lines(t, list) {
			n++
			d := p.Decide(bash(t, ws, cmd))
			if d.Verdict == Allow {
				t.Errorf("%s: %q is allowed by %s", list, cmd, d.Rule)
			} else if d.Why == "" && d.Rule == "default: what no rule allows is asked" && strings.ContainsAny(cmd, ";|&$`>") {
				t.Errorf("%s: %q is %s without a reason", list, cmd, d.Verdict)
			}
		}
	}
	if n < 300 {
		t.Errorf("the lists hold %d evasions, want at least 300", n)
	}
	t.Logf("%d evasions", n)
}

// A rule for every command is no rule for what nobody can read.
func TestARuleForEveryCommandIsAsStrict(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	for _, rule := range []string{"allow Bash", "allow Bash(*)", "allow *"} {
		p := rules(t, rule, "allow Edit(**)")
		for _, cmd := range []string{
			"frobnicate", "frobnicate x", "ls --frobnicate", "grep -f", "sh", "curl https://x.y", "git push", "go test example.org/evil", "npm install x", "rm -rf .git", "cp x /etc/y", "touch .git/config",
			"ls $(touch x)", "ls `touch x`", "$x", "x=1 ls", "sh -c ls", "xargs ls", "sudo ls", "eval ls", "ls <(ls)", "ls > /etc/x", "/bin/ls", "./ls",
			"f() { ls; }; f", "for i in a; do ls; done", "cat /etc/passwd", "cd /", "python x.py", "git -c a=b status", "go test -exec x", "alias ls=x", "ls *", "[[ -v x ]]",
		} {
			if d := p.Decide(bash(t, ws, cmd)); d.Verdict != Ask || d.Why == "" {
				t.Errorf("%s: %q is %s (%s)", rule, cmd, d.Verdict, d.Why)
			}
		}
		for _, cmd := range []string{"ls", "rm -f src/a.go", "touch x && go vet ./...", "mkdir -p a/b"} {
			if d := p.Decide(bash(t, ws, cmd)); d.Verdict != Allow {
				t.Errorf("%s: %q is %s (%s)", rule, cmd, d.Verdict, d.Why)
			}
		}
	}
}

func TestWhatPeopleDoAllDayIsAllowed(t *testing.T) {
	t.Parallel()
	ws, p := workspace(t), rules(t, prefixRules...)
	if err := errors.Join(os.Mkdir(filepath.Join(ws, ".git"), 0o755), os.WriteFile(filepath.Join(ws, ".git", "HEAD"), nil, 0o600)); err != nil { // nothing was added to it
		t.Fatal(err)
	}
	list := lines(t, "benign.txt")
	for _, cmd := range list {
		if d := p.Decide(bash(t, ws, cmd)); d.Verdict != Allow {
			t.Errorf("%q: %s by %q: %s", cmd, d.Verdict, d.Rule, d.Why)
		}
	}
	if len(list) < 60 {
		t.Errorf("the list holds %d commands, want at least 60", len(list))
	}
}

// The evasions of the shell are real: bash runs their payload.
func TestTheEvasionsAreReal(t *testing.T) {
	t.Parallel()
	sh := needtest.Program(t, "bash")
	stubs := t.TempDir()
	for _, name := range []string{"go", "git", "npm", "rg"} {
		if err := os.WriteFile(filepath.Join(stubs, name), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	list := lines(t, "evasions.shell.txt")
	if testing.Short() {
		list = list[:40]
	}
	for _, cmd := range list {
		program := strings.FieldsFunc(cmd, func(r rune) bool { return strings.ContainsRune(" \t\n;|&", r) })
		needs := map[string]bool{"awk": true, "sed": true, "perl": true, "make": true, "tar": true, "split": true}
		if len(program) > 0 && needs[program[0]] {
			if _, err := exec.LookPath(program[0]); err != nil {
				continue
			}
		}
		if strings.Contains(cmd, "make ") {
			if _, err := exec.LookPath("make"); err != nil {
				continue
			}
		}
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "src"), 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
		c := exec.CommandContext(ctx, sh, "--norc", "-c", cmd)
		c.Dir = dir
		c.Env = []string{"PATH=" + stubs + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "LANG=C.UTF-8"}
		c.WaitDelay = time.Second
		out, _ := c.CombinedOutput() // how it ends is no matter
		cancel()
		if _, err := os.Lstat(filepath.Join(dir, "PWNED")); err != nil {
			t.Errorf("%q does nothing in bash:\n%s", cmd, out)
		}
	}
}
