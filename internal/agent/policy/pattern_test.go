package policy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// mustParse is ParsePattern for constant patterns.
func mustParse(s string) Pattern {
	p, err := ParsePattern(s)
	if err != nil {
		panic(err)
	}
	return p
}

func TestAPatternThatIsWrongSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern string
		column  int
		says    string
	}{
		{"", 1, "it is empty"},
		{"  ", 1, "it is empty"},
		{"Bash(go test *", 15, "the parenthesis that opens at column 5 is not closed"},
		{"Bash(go test) ", 15, "not closed at the end"},
		{"Bash()", 6, "write Bash alone"},
		{"bash(go test *)", 1, "write Bash(go test *)"},
		{"BASH", 1, "write Bash"},
		{"Bahs(go test *)", 5, "write Bash(go test *)"},
		{"WebFecth(domain:go.dev)", 9, "write WebFetch(domain:go.dev)"},
		{"Teleport(x)", 9, "write Teleport"},
		{"edit(src/**)", 1, "write Edit(src/**)"},
		{"(go test)", 1, "write Bash(go test)"},
		{"go test *", 3, "cannot stand in a tool's name"},
		{"Bäsh", 2, "cannot stand in a tool's name"},
		{"Bash(go test * && ls)", 16, "names one simple command"},
		{"Bash(echo $HOME *)", 11, "names one simple command"},
		{"Bash(ls * 'a)", 11, "the quote is never closed"},
		{`Bash(ls * "$x")`, 11, "not literal"},
		{`Bash(ls * \)`, 11, "a backslash ends it"},
		{"Bash(ls\u202e *)", 6, "cannot see"},
		{"Bash(ls\u202e)", 6, "cannot see"},
		{"Edit(../x)", 6, "write the absolute path"},
		{"Edit(src/../x)", 10, "write the absolute path"},
		{"Edit(~/x)", 6, "instead of ~"},
		{`Edit(src\x)`, 9, "write / instead"},
		{"Edit(src/[a)", 10, "never closed"},
		{"Edit(src/{a)", 10, "never closed"},
		{"Edit(src/**.go)", 10, "write src/**/*.go"},
		{"Edit({/etc,src}/x)", 6, "write one rule for each"},
		{"Edit( src)", 6, "a space"},
		{"Edit(a\nb)", 6, "cannot see"},
		{"WebFetch(example.com)", 10, "write WebFetch(domain:example.com)"},
		{"WebFetch(domain:https://x.y)", 22, "without scheme"},
		{"WebFetch(domain:*)", 17, "beginning, before a dot"},
		{"WebFetch(domain:*.com)", 17, "top-level"},
		{"WebFetch(domain:a.*.com)", 19, "beginning, before a dot"},
		{"WebFetch(domain:bücher.example)", 17, "plain ASCII"},
		{"WebFetch(domain:example.com.)", 17, "plain ASCII"},
		{"WebFetch(domain:a b)", 17, "plain ASCII"},
		{"mcp__x__y(z)", 10, "write mcp__x__y"},
		{"Task(x)", 5, "write Task"},
		{"\xff", 1, "UTF-8"},
		{"Bash(" + strings.Repeat("a", maxPattern) + ")", maxPattern + 1, "shorter"},
	} {
		_, err := ParsePattern(tt.pattern)
		var bad *PatternError
		if !errors.As(err, &bad) {
			t.Errorf("%.40q is accepted", tt.pattern)
			continue
		}
		if bad.Column != tt.column || !strings.Contains(bad.Error(), tt.says) {
			t.Errorf("%.40q: column %d, %.200s; want column %d and %q", tt.pattern, bad.Column, bad, tt.column, tt.says)
		}
	}
}

func TestAPatternIsTextInConfigurations(t *testing.T) {
	t.Parallel()
	const text = `["Bash(go test *)","Edit(//etc/x/**)","WebFetch(domain:*.example.com)","mcp__prod__*","Write"]`
	var list []Pattern
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	if out, err := json.Marshal(list); err != nil || string(out) != text {
		t.Errorf("%s became %s (%v)", text, out, err)
	}
	if err := json.Unmarshal([]byte(`["bash"]`), &list); err == nil {
		t.Error("a wrong pattern is accepted")
	}
}

// Which words a command's pattern matches, for a rule that allows.
func TestWordsOfACommand(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	for _, tt := range []struct {
		pattern, command string
		want             bool
	}{
		{"Bash(go test *)", "go test", true},
		{"Bash(go test *)", "go test ./...", true},
		{"Bash(go test *)", "go tests", false},
		{"Bash(go test *)", "go", false},
		{"Bash(go test *)", "go vet", false},
		{"Bash(go test *)", "GO test", false},
		{"Bash(go test:*)", "go test -v", true},
		{"Bash(npm run test:*)", "npm run test", true},
		{"Bash(npm run test:*)", "npm run test:unit", false},
		{"Bash(npm run test:unit)", "npm run test:unit", true},
		{"Bash(npm run test*)", "npm run test:unit", true},
		{"Bash(npm run test*)", "npm run test x", false},
		{"Bash(npm run *)", "npm run build", true},
		{"Bash(go test)", "go test", true},
		{"Bash(go test)", "go test x", false},
		{"Bash(go test)", "go  test", true},
		{"Bash(go test)", "go 'test'", true},
		{"Bash(go test)", "cd src && go test", true},
		{"Bash(* --version)", "frobnicate --version", false}, // nothing is known of it
		{"Bash(* --version)", "git --version", true},
		{"Bash(* --version)", "git x --version", false},
		{"Bash(git * main)", "git diff main", true},
		{"Bash(git * main)", "git push main x", false},
		{"Bash(git diff src/*.go)", "git diff src/a.go", true},
		{"Bash(git diff src/*.go)", "git diff src/a.c", false},
		{`Bash(grep "a b" *)`, "grep 'a b' src", true},
		{`Bash(grep "a b" *)`, "grep a b src", false},
		{`Bash(echo '*' *)`, `echo '*' x`, true},
		{`Bash(echo '*' *)`, "echo a x", false},
		{`Bash(echo \* *)`, `echo \* x`, true},
		{"Bash(*)", "frobnicate", false}, // every command that is known
		{"Bash", "frobnicate", false},
		{"Ba*", "frobnicate", false},
		{"*", "frobnicate", false},
		{"Bash(*)", "ls -l", true},
		{"Bash", "ls -l", true},
		{"Ba*", "ls -l", true},
		{"*", "ls -l", true},
		{"Bash(**)", "frobnicate -x", true},
		{"Bash(frobnicate **)", "frobnicate -x", true},
		{"Bash(frobnicate **)", "frobnicate $x", false},
		{"Bash(frobnicate *)", "frobnicate", true},
		{"Bash(frobnicate *)", "frobnicate x", false},
		{"Bash(frobnicate -x *)", "frobnicate -x", true},
		{"Bash(frobnicate x*)", "frobnicate xyz", false},
		{"Bash(frobnicate -*)", "frobnicate -x", false},
		{"Bash(frobnicate src/*)", "frobnicate src/a.go", false},
		{"Bash(frobnicate src/*)", "frobnicate src/../../x", false},
		{"Bash(sudo **)", "sudo ls", true},
		{"Bash(xargs rm **)", "xargs rm -f", true},
		{"Bash(a && b)", "a && b", true},
		{"Bash(a && b)", "a", false},
		{"Bash(a && b)", "a && b && c", false},
		{"Bash(sudo ls)", "sudo ls", true},
		{"Bash(sudo ls)", "sudo ls; true", false},
		{"Bash(sudo ls)", "sudo  ls", false},
		{"Bash(sudo *)", "sudo ls", false},
		{"Bash(sh -c 'ls')", "sh -c 'ls'", true},
		{"Bash(sh -c 'ls')", `sh -c "ls"`, true}, // the same words
		{"Bash(sh *)", "sh", false},              // it runs what it reads
		{"Bash(A=b make)", "A=b make", true},
		{"Bash(echo $(date))", "echo $(date)", false},
		{"Bash(echo $HOME)", "echo $HOME", false},
		{`Bash(ls ./src/\*.go)`, "ls ./src/*.go", true},
		{"Bash(timeout 5 ls)", "timeout 5 ls", true},
		{"Bash(timeout 5 ls *)", "timeout 5 ls -l", true},
		{"Bash(timeout *)", "timeout 5 ls", false},
		{"Bash(timeout 5 *)", "timeout 5 ls", false},
		{"Bash(env *)", "env ls", false},
		{"Bash(nice *)", "nice ls", false},
		{"Bash(ls *)", "nice timeout 5 ls -l", true},
		{"Bash(./gradlew test *)", "./gradlew test --info", true},
		{"Bash(./gradlew test *)", "gradlew test", false},
		{"Bash(./gradlew *)", "../gradlew", false},
		{"Bash(cat /etc/hosts)", "cat /etc/hosts", true},
		{"Bash(cat /var/log/*)", "cat /var/log/syslog", false},
		{"Bash(cat /var/log/*)", "cat /var/log/../../etc/passwd", false},
		{"Bash(cat *)", "cat /etc/hosts", false},
		{"Bash(python -m pytest *)", "python -m pytest -q", true},
		{"Bash(python -m *)", "python -m pytest", false},
		{"Bash(python *)", "python x.py", false},
		{"Bash(python scripts/lint.py *)", "python scripts/lint.py src", false},
		{"Bash(python3 *)", "python3 -c 1", false},
		{"Bash(node scripts/x.js *)", "node scripts/x.js", true},
		{"Bash(node -e *)", "node -e 1", false},
		{"Bash(bash scripts/ci.sh *)", "bash scripts/ci.sh unit", false},
		{"Bash(bash -c *)", "bash -c ls", false},
		{"Bash(go test -exec x *)", "go test -exec x ./...", false},
		{"Bash(go test -o=bin/* *)", "go test -o=bin/u ./...", false},
		{"Bash(git -C sub status)", "git -C sub status", true},
		{"Bash(git *)", "git status", true},
		{"Bash(git *)", "git config x y", false},
		{"Bash(git config *)", "git config user.name", false},
		{"Bash(git submodule *)", "git submodule foreach ls", false},
		{"Bash(find *)", "find . -exec ls ;", false},
		{"Bash(cd *)", "cd src", true},
		{"Bash(cd *)", "cd /", false},
		{"Bash(echo *)", "echo x > src/out", false},
		{"Bash(echo x > src/out)", "echo x > src/out", true},
		{"Bash(echo x > /etc/out)", "echo x > /etc/out", false},
		{"Bash(echo x > .git/config)", "echo x > .git/config", false},
		{"Edit(src/**)", "echo x > src/out", false},
		{"WebFetch", "ls", false},
	} {
		ok, why := Covers(mustParse(tt.pattern), bash(t, ws, tt.command))
		if ok != tt.want || !ok && why == "" {
			t.Errorf("%s covers %q: %v (%s), want %v", tt.pattern, tt.command, ok, why, tt.want)
		}
	}
}
