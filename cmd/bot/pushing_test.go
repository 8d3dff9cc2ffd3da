package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/gateway/gitway/forgetest"
	"deckhand/internal/workspace"
)

// TestAPushOfTwoPeople: what two people approve is one push. When the branch moves after the
// first of them has approved, or after both have, it is another push: it is asked again, and
// nobody has approved it. Of 400 files the card names first the one that pipelines run, and
// links and submodules as what they are. A clone of a further repository is pushed alike.
func TestAPushOfTwoPeople(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	w := unstartedWorld(t)
	w.env = []string{forgetest.TokenEnv + "=" + forgetest.Password}
	config := fmt.Sprintf(`git: {token_env: %s}
posture: contained
projects: {web: {repo: %q, workspace: worktree, git: {also: [%q]}}}
channels: {%s: web}
roles: {admins: [%s], approvers: [%s], users: [%s]}
policy: {rules: [{ask: Bash(git push *), quorum: 2}]}
`, forgetest.TokenEnv, f.URL("web"), f.URL("other"), eng, ada, grace, linus)
	if err := os.WriteFile(filepath.Join(w.dir, "deckhand.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	begun := f.Refs()
	thread := w.runs(linus, eng, "", "true")
	w.done(eng, thread, thread)

	clone := w.text(`SELECT workspace FROM threads ORDER BY id LIMIT 1`)
	moves := func(how ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", clone, "-c", "user.name=x", "-c", "user.email=x@y"}, how...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	for name, text := range map[string]string{".github/workflows/x.yml": "run: evil\n", "data/400": "x\n"} {
		if err := os.MkdirAll(filepath.Join(clone, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(clone, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 399 {
		if err := os.WriteFile(filepath.Join(clone, fmt.Sprintf("data/%d", i+1)), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(clone, "data/0")); err != nil {
		t.Fatal(err)
	}
	moves("add", "--all")
	moves("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("5b", 20)+",data/00")
	moves("commit", "-qm", "four hundred")
	refused := int64(0)
	isRefused := func() {
		refused++
		w.eventually("the push to be refused at the gateway", func() bool {
			return w.count(`SELECT count(*) FROM audit WHERE kind = 'git' AND details::text LIKE '%it is another push%'`) == refused
		})
		if got := f.Refs(); got != begun {
			t.Fatalf("the forge has\n%s", got)
		}
	}
	pushes := func(want ...string) message {
		w.runs(linus, eng, thread, "git push origin HEAD:deckhand/two")
		card := w.card(eng, thread)
		for _, text := range append(want, "2 people have to approve") {
			if !strings.Contains(card.all(), text) {
				t.Errorf("the card does not say %q:\n%s", text, card.all())
			}
		}
		if n := w.count(`SELECT count(*) FROM votes v JOIN approvals a ON a.id = v.approval_id WHERE a.status = 'pending'`); n != 0 {
			t.Errorf("a push that is asked for the first time has %d votes", n)
		}
		return card
	}
	voted := func(n int64) {
		w.eventually(fmt.Sprintf("%d votes", n), func() bool {
			return w.count(`SELECT count(*) FROM votes`) == n
		})
	}

	card := pushes("Push 1 commit", "1 file that gives orders to others", ".github/workflows/x.yml", "403 files", "link to `/etc/passwd`", "submodule at `5b5b5b5b5b`")
	if said := card.all(); min(strings.Index(said, "data/"), strings.Index(said, "four hundred")) < strings.Index(said, ".github/workflows/x.yml") {
		t.Errorf("the workflow is not first:\n%s", said)
	}
	w.click(ada, eng, card.TS, "approve")
	voted(1)
	moves("commit", "--allow-empty", "-qm", "between the two")
	w.click(grace, eng, card.TS, "approve")
	voted(2)
	isRefused()

	card = pushes("Push 2 commits", "between the two")
	w.click(ada, eng, card.TS, "approve")
	voted(3)
	w.click(grace, eng, card.TS, "deny") // one approval alone was none
	voted(4)
	if got := f.Refs(); got != begun {
		t.Fatalf("the forge has\n%s", got)
	}

	card = pushes("Push 2 commits")
	moves("commit", "--amend", "--allow-empty", "-qm", "put in its place")
	w.click(ada, eng, card.TS, "approve")
	voted(5)
	w.click(grace, eng, card.TS, "approve")
	voted(6)
	isRefused()

	card = pushes("put in its place")
	w.click(ada, eng, card.TS, "approve")
	voted(7)
	w.click(grace, eng, card.TS, "approve")
	w.eventually("the push to arrive", func() bool { return strings.Contains(f.Refs(), "refs/heads/deckhand/two put in its place") })

	// What cannot be named cannot be bound to commits: nobody is asked.
	w.runs(linus, eng, thread, "git push origin nowhere:deckhand/two")
	w.eventually("a push of nothing that is known to be denied", func() bool {
		return w.count(`SELECT count(*) FROM approvals WHERE status = 'denied' AND decided_via = 'rule' AND reason LIKE '%there is no branch nowhere. Commit first%'`) == 1
	})
	// A further repository is pushed from its clone, by a card that names it.
	w.done(eng, thread, w.runs(linus, eng, thread, "git clone -q "+f.URL("other")+" other && cd other && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m 'in the other'"))
	if got := workspace.Head(filepath.Join(clone, "other")); got == "" || got == strings.TrimSpace(f.Git(f.Bare("other"), "rev-parse", "main")) {
		t.Fatalf("the clone is at %q:\n%s", got, w.messages(eng, thread)[len(w.messages(eng, thread))-1].all())
	}
	card = pushes("Push 1 commit", "of the repository", "team/other", "in the other")
	w.click(ada, eng, card.TS, "approve")
	voted(9)
	w.click(grace, eng, card.TS, "approve")
	w.eventually("the push to arrive", func() bool {
		return strings.Contains(f.Git(f.Bare("other"), "for-each-ref", "--format=%(refname) %(subject)"), "refs/heads/deckhand/two in the other")
	})
	w.auditIsWhole()
}
