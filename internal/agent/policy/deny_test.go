package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNothingHidesFromADenyRule(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	for _, name := range []string{"alias.env", "link.txt"} {
		if err := os.Symlink(filepath.Join(ws, ".env"), filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	p := rules(t, "deny Bash(rm *)", "deny Bash(git push *)", "deny Bash(curl *)", "deny Read(.env)", "deny Edit(vendor/**)", "allow Bash", "allow Edit(**)")
	n := 0
	for _, line := range lines(t, "evasions.deny.txt") {
		n++
		want, cmd, _ := strings.Cut(line, " ")
		d := p.Decide(bash(t, ws, cmd))
		if d.Verdict == Allow || want == "deny" && d.Verdict != Deny {
			t.Errorf("%q: %s by %q (%s), want %s", cmd, d.Verdict, d.Rule, d.Why, want)
		}
	}
	if n < 80 {
		t.Errorf("the list holds %d commands, want at least 80", n)
	}
	t.Logf("%d commands", n)
}

// A deny rule is wide, but not so wide that work stops.
func TestADenyRuleLeavesOtherCommandsAlone(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	git(t, ws, "init", "-q")
	git(t, ws, "add", "src")
	p := rules(t, "deny Bash(rm *)", "deny Bash(git push *)", "deny Bash(curl *)", "deny Read(.env)", "deny Edit(vendor/**)", "allow Bash(git commit *)", "allow Bash(git stash *)", "allow Bash", "allow Edit(**)")
	for _, cmd := range []string{
		"ls", "ls rm", "echo rm x", "echo 'rm -rf /'", "git log push", "git stash", "git commit -m 'rm push curl'", "go test ./...", "rmdir x", "cat .env.example", "cat src/a.go",
		"ls vendor", "cat vendor/x.go", "grep x src/a.go", "grep -r x src/a.go && ls", "go test ./... > out.txt", "touch vendored", "cat env", "find . -name rm", "git diff",
	} {
		if d := p.Decide(bash(t, ws, cmd)); d.Verdict != Allow {
			t.Errorf("%q: %s by %q (%s), want allow", cmd, d.Verdict, d.Rule, d.Why)
		}
	}
}

// Words that would take long to compare with the files cost no time, whatever the files are called.
func TestManyBracesAndWildcardsTakeNoTime(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	if err := os.WriteFile(filepath.Join(ws, strings.Repeat("a", 60)+".env"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := rules(t, "deny Read(*.env)", "allow Bash")
	for _, word := range []string{strings.Repeat("{a,a}", 60), strings.Repeat("{a,", 60) + strings.Repeat("}", 60), strings.Repeat("*a", 60) + "b", strings.Repeat("**/", 60) + "b"} {
		if d := p.Decide(bash(t, ws, "cat "+word)); d.Verdict == Allow {
			t.Errorf("%.20s…: %s", word, d.Verdict)
		}
	}
}
