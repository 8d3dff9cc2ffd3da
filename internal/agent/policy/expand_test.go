package policy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"deckhand/internal/needtest"
)

var slashes = regexp.MustCompile(`/+`)

// What wildcards and braces stand for, asked of bash itself.
func TestBashExpandsWordsToTheSame(t *testing.T) {
	t.Parallel()
	sh := needtest.Program(t, "bash")
	dir := lay(t, "a", "b.go", "-x", ".hidden", ".git/config", "docs/x", "docs/y.md", "docs/deep/z.md", "we ird/q", "[", "a]b", "B")
	for _, l := range []struct{ to, name string }{{"..", "docs/up"}, {"nowhere", "docs/gone"}, {"docs", "link"}} {
		if err := os.Symlink(l.to, filepath.Join(dir, l.name)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t interface{ Fatalf(string, ...any) }, text string) {
		f, doubt := parseShell("x " + text)
		if doubt != "" || len(f.Stmts) != 1 || len(f.Stmts[0].Redirs) > 0 {
			return
		}
		call, ok := f.Stmts[0].Cmd.(*syntax.CallExpr)
		if !ok {
			return
		}
		r := reader{script: &script{root: root{dir, dir}}}
		var got []string
		for _, a := range call.Args[1:] {
			words := r.expand(a, []string{dir})
			if r.script.hard != "" && !strings.Contains(r.script.hard, "could not") || !words[0].known() {
				return // it is asked
			}
			for _, w := range words {
				got = append(got, w.text)
			}
		}
		c := exec.CommandContext(context.Background(), sh, "--norc", "-c", `printf '%s\0' x `+text)
		c.Dir = dir
		c.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", "HOME=/nonexistent"}
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")[1:]
		for _, list := range [][]string{got, want} { // some versions of bash leave one slash of several
			for i, path := range list {
				list[i] = slashes.ReplaceAllString(path, "/")
			}
			slices.Sort(list)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q is %q, and bash makes it %q", text, got, want)
		}
	}
	for _, text := range []string{
		"*", "*//", "?", "./*", "docs/*", "docs/*/", "docs/*/*", "docs/*/config", "./.[g]it/config", ".g?t/config", ".*", ".[!.]*", "[ab]*", "[!a]*", "[a-b]", "[[:upper:]]", "'*'", `\*`, "a*", "nosuch*", "*.{go,md}",
		`\.g*`, `\.g?t/config`, "'.'g*", "[.]g*", "\".g\"*", "{a,b}", "{a,b}{c,d}", "{a,*}", "{.git,docs}/*", "docs/up/*", "docs/up/docs/*", "we*", "'we ird'/*", `we\ ird/*`, "[", "a]*", "a[]]b", "*/../a", "link/*", "link/../*", "//*nosuch", "x{,y}", "{}", "{a}", "a{b", "{a,b", "a,b}", "{a..c}", "*'*'", `"*"*`, "-*", "--x=*", "**", "**/x", "[a/b]*",
	} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SampledFrom([]string{"*", "?", "[", "]", "!", "a", "b", ".", "..", "/", "docs", "x", "{", ",", "}", "-", "'*'", `\`, `"?"`, "git", "[a-z]", "[!a]", "=", "^", "up", "~"})
		check(t, strings.Join(rapid.SliceOfN(pieces, 1, 7).Draw(t, "pieces"), ""))
	})
}

// What a wildcard stands for is what is decided.
func TestResultsOfWildcardsAreDecided(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	top := filepath.Dir(ws)
	for _, name := range []string{"ws/docs/x", "ws/.git/config", "demo.json", "ws/opt/-rf", "ws/opt/a", "ws/plain/a.txt", "ws/plain/b.txt", "ws/payload/Makefile", "ws/Makefile", "ws/hooks/a", "ws/stash"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"docs/up": "../..", ".hooks-link": "hooks", "to-makefile": "Makefile"} {
		if err := os.Symlink(to, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	p := rules(t, "allow Bash(cat *)", "allow Bash(cp *)", "allow Bash(tee *)", "allow Bash(rm *)", "allow Bash(sort *)", "allow Bash(uniq *)", "allow Bash(touch *)", "allow Bash(wc *)", "allow Bash(ln *)", "allow Bash(mv *)", "allow Bash(mkdir *)", "allow Bash(ls *)", "allow Bash(git *)", "allow Bash(echo *)", "allow Edit(**)")
	for cmd, want := range map[string]Verdict{
		"cat docs/*/demo.json":               Ask, // through the link
		"cat docs/x":                         Allow,
		"cp docs/x ./.[g]it/config":          Ask,
		"cp docs/x ./.g*/config":             Ask,
		"cp docs/x .git/config":              Ask,
		"tee ./.g?t/config":                  Ask,
		"tee src/new.go":                     Allow,
		"cd opt && rm *":                     Ask, // -rf
		"cd opt && rm ./*":                   Allow,
		"cd opt && sort *":                   Ask,
		"wc -l plain/*":                      Allow,
		"uniq plain/*":                       Ask,
		"cp plain/{a,b}.txt docs":            Ask,
		"cp plain/{a,b}.txt plain/c":         Ask,
		"cp plain/a.txt .git":                Ask,
		"touch ./-o && sort *":               Ask, // files are made before the wildcard
		"touch plain/c; wc -l plain/*":       Ask,
		"wc -l plain/*; touch plain/c":       Allow,
		"wc -l plain/* | tee plain/c":        Ask,
		"wc -l plain/* > plain/c":            Allow,
		"ln -s plain p && cat p/a.txt":       Ask, // links are made before they are followed
		"mv plain elsewhere && cat docs/x":   Ask,
		"cat docs/x && mv plain elsewhere":   Ask,
		"cat {docs/x,/etc/passwd}":           Ask,
		"cat " + strings.Repeat("{a,b}", 12): Ask,
		"cat {1..9}":                         Ask,
		"cat ~/x":                            Ask,
		"cat plain/@(a|b).txt":               Ask,
		"cat $x/*":                           Ask,
		"cat plain/[!b]*":                    Ask,
		"cat nosuch/*":                       Ask,
		"rm -rf .git*":                       Ask,
		"rm -rf .":                           Ask, // .git is below
		"rm -rf docs":                        Ask,
		"mv plain .":                         Ask,
		"mv .git x":                          Ask,
		"cp -r .git x":                       Ask,
		"cp -r plain/. docs/y":               Ask,
		"cat docs/up/demo.json":              Ask,
	} {
		if d := p.Decide(bash(t, ws, cmd)); d.Verdict != want {
			t.Errorf("%s: %s by %s (%s), want %s", cmd, d.Verdict, d.Rule, d.Why, want)
		}
	}
}
