package policy

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// trackedSecret is a repository that tracks .env, and that once held another secret which
// nothing in the folder tells of.
const trackedSecret = `set -eu
git init -q ws && cd ws && git config user.name t && git config user.email t@t && git config commit.gpgsign false
mkdir -p src old && echo TOKEN=SECRET-7f3a > old/settings.txt && mv old/settings.txt old/.env && echo a > src/a.go && git add -Af && git commit -qm first
git rm -qr old && echo b >> src/a.go && git commit -qam second
echo TOKEN=SECRET-7f3a > .env && git add -f .env && git commit -qm third && echo '# x' >> .env && echo c >> src/a.go && git stash -q && git stash apply -q
`

// What git tracks is shown no more freely than the files are: a rule for git shows no
// content of a file that looks like a secret, be it from another time.
func TestGitShowsNoSecretThatItTracks(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := func(dir, cmd string) (string, error) {
		c := exec.CommandContext(t.Context(), "bash", "-c", cmd)
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run(top, trackedSecret); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ws := filepath.Join(top, "ws")
	p := rules(t, "allow Bash(git *)", "allow Bash(git log *)", "allow Bash(git show *)", "allow Bash(git diff *)", "allow Bash(git grep *)", "allow Bash(git stash show *)", "allow Bash(git cat-file *)",
		"allow Bash(git archive *)", "allow Bash(git format-patch *)", "allow Bash(git status *)")
	for cmd, want := range map[string]Verdict{
		"cat .env": Ask, "git log -p": Ask, "git log -p -- .": Ask, "git log -p -- old": Ask, "git log -p --all": Ask, "git log -S TOKEN": Ask, "git log -G TOKEN=S": Ask, "git log -S TOKEN -p -- src": Ask, "git log -U1": Ask,
		"git show": Ask, "git show HEAD --": Ask, "git diff HEAD~1 --": Ask, "git diff HEAD~2 HEAD~1 --": Ask, "git diff --": Ask, "git show HEAD~2 -- HEAD": Ask, "git show HEAD": Ask, "git show HEAD~2": Ask, "git show HEAD:.env": Ask, "git show HEAD~2:old/.env": Ask, "git show HEAD~2 -- old": Ask, "git show --stat -p": Ask, "git show stash@{0}": Ask,
		"git diff": Ask, "git diff HEAD": Ask, "git diff HEAD~1": Ask, "git diff -- .": Ask, "git diff .env": Ask, "git diff -- .env": Ask, "git diff HEAD~2 HEAD~1 -- old": Ask, "git diff --stat -p": Ask, "git diff --cached": Ask,
		"git grep TOKEN": Ask, "git grep TOKEN -- .env": Ask, "git grep TOKEN HEAD~2": Ask, "git grep TOKEN HEAD~2 -- old": Ask, "git grep -l TOKEN": Ask, "git grep --cached TOKEN": Ask, "git grep --untracked TOKEN -- src": Ask,
		"git stash show -p": Ask, "git cat-file -p HEAD:.env": Ask, "git cat-file blob HEAD:.env": Ask, "git cat-file -p HEAD^{tree}": Ask, "git archive HEAD": Ask, "git format-patch --stdout HEAD~1": Ask, "git status -v": Ask,
		"git blame .env": Ask, "git blame HEAD -- .env": Ask, "git log -L 1,1:.env": Ask, "git diff-tree -p HEAD": Ask, "git whatchanged -p": Ask, "git log -p --follow -- src/a.go": Ask,

		"git log": Allow, "git log --stat": Allow, "git log --oneline -5": Allow, "git log --name-status -- src": Allow, "git log -p -- src/a.go": Ask, "git show --stat": Allow, "git show HEAD -- src/a.go": Allow, "git status": Allow,
		"git diff --stat": Allow, "git diff --stat HEAD~1": Allow, "git diff -- src": Allow, "git diff src": Allow, "git diff HEAD~1 -- src/a.go": Allow, "git diff src/a.go": Allow, "git diff --name-only HEAD~2": Allow,
		"git grep b -- src": Ask, "git show HEAD:src/a.go": Allow, "git blame src/a.go": Allow, "git stash show": Ask, "git stash list": Allow, "git ls-files": Allow, "git ls-tree -r HEAD": Ask, "git cat-file -t HEAD": Ask,
	} {
		d := p.Decide(bash(t, ws, cmd))
		if d.Verdict != want {
			t.Errorf("%q is %s, want %s: %s", cmd, d.Verdict, want, d.Why)
		}
		if out, _ := run(ws, cmd); d.Verdict == Allow && strings.Contains(out, secretText) {
			t.Errorf("%q is allowed and shows the secret:\n%s", cmd, out)
		}
	}
	// Where nothing that looks like a secret is tracked, git diff and git grep ask nothing.
	if out, err := run(ws, "git rm -qf --cached .env && rm .env && git commit -qm fourth"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, cmd := range []string{"git diff", "git diff --cached", "git diff -- src"} {
		if d := p.Decide(bash(t, ws, cmd)); d.Verdict != Allow {
			t.Errorf("%q is %s: %s", cmd, d.Verdict, d.Why)
		}
	}
}
