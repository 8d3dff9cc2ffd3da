package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/gateway/gitway/forgetest"
)

// TestTheForgeIsReachedByTheBot: in bwrap without a network a thread's git fetches, and
// pushes what was allowed as a push, to branches below deckhand/. What opens the forge is
// nowhere inside, and the audit tells of all of it. New threads begin at what the forge has.
func TestTheForgeIsReachedByTheBot(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	w := unstartedWorld(t)
	w.env = []string{forgetest.TokenEnv + "=" + forgetest.Password}
	config := fmt.Sprintf(`git: {token_env: %s}
projects:
  web:
    repo: %q
    workspace: worktree
    setup: {run: "echo set up in $PWD; env; cat /proc/*/environ | tee set-up; exit 3", files: README.md}
channels: {%s: web}
roles: {admins: [%s], users: [%s]}
policy:
  rules:
    - allow: [Bash(git push origin HEAD:deckhand/ruled)]
`, forgetest.TokenEnv, f.URL("web"), eng, ada, linus)
	if err := os.WriteFile(filepath.Join(w.dir, "deckhand.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	allowed := func(thread, command string) string {
		ts := w.runs(linus, eng, thread, command)
		if thread == "" {
			thread = ts
		}
		w.click(ada, eng, w.card(eng, thread).TS, "approve")
		w.done(eng, thread, ts)
		return thread
	}
	thread := allowed("", "(git remote -v; git config --list --show-origin; env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline) > said 2>&1; true")
	f.Commit("web", "theirs")
	f.Git(f.Work("web"), "push", "-q", "origin", "HEAD:main")
	allowed(thread, "git -c user.name=x -c user.email=x@example.com commit -q --allow-empty -m mine; git fetch -q origin; git log -1 --format=%s origin/main > fetched; echo 'git push origin HEAD:deckhand/sneaked' > p.sh; sh p.sh > sneaked 2>&1; true")
	allowed(thread, "git push origin HEAD:deckhand/mine > pushed 2>&1; git push origin HEAD:feature > main 2>&1; true")
	ruled := w.runs(linus, eng, thread, "git push origin HEAD:deckhand/ruled")
	w.done(eng, thread, ruled)

	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(w.dir, "bot/workspaces/web/1", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if said := read("said"); !strings.Contains(said, "git://git.invalid/127.0.0.1:") || !strings.Contains(said, "DECKHAND_GIT_TOKEN=") {
		t.Errorf("what its git knows of the forge: %q", said)
	}
	if got := read("fetched"); got != "theirs\n" {
		t.Errorf("what it fetched: %q", got)
	}
	for name, want := range map[string]string{"sneaked": "Pushing needs a decision of its own", "pushed": "[new branch]", "main": "branches below deckhand/ alone"} {
		if got := read(name); !strings.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := f.Refs(); got != "refs/heads/deckhand/mine mine\nrefs/heads/deckhand/ruled mine\nrefs/heads/main theirs\n" {
		t.Errorf("the forge has\n%s", got)
	}
	w.eventually("the audit of every fetch and push", func() bool {
		return w.text(`SELECT coalesce(string_agg(details::json->>'act' || ' ' || coalesce(details::json#>>'{refs,0,ref}', '') || CASE WHEN details LIKE '%"refused"%' THEN ' refused' ELSE '' END, ', ' ORDER BY seq), '') FROM audit WHERE kind = 'git' AND turn_id > 0`) ==
			"fetch , push  refused, push refs/heads/deckhand/mine, push refs/heads/feature refused, push refs/heads/deckhand/ruled"
	})
	if n := w.count(`SELECT count(*) FROM audit WHERE details LIKE '%` + forgetest.Password + `%'`); n != 0 {
		t.Error("the audit has the password")
	}
	// Another thread begins at what the forge has now; when its folder is lost, its work is
	// not, even while its process lives.
	second := allowed("", "git log -1 --format=%s > base; true")
	folder := w.text(`SELECT workspace FROM threads WHERE thread_ts = '` + second + `'`)
	w.eventually("the thread's work is saved", func() bool {
		saved := "refs/deckhand/saved/" + filepath.Base(folder) + ":base"
		return exec.CommandContext(t.Context(), "git", "-C", filepath.Join(w.dir, "bot/repos/web"), "rev-parse", "--verify", "--quiet", saved).Run() == nil
	})
	if err := os.RemoveAll(folder); err != nil || filepath.Dir(folder) != filepath.Join(w.dir, "bot/workspaces/web") {
		t.Fatalf("%s: %v", folder, err)
	}
	w.says(eng, second, "Setting up the folder first: echo set up")
	w.says(eng, second, "The setup of project web (echo set up in $PWD; env; cat /proc/*/environ | tee set-up; exit 3) has failed: exit status 3.")
	w.find(eng, second, "what the setup has printed", func(m message) bool { return len(m.Files) == 1 && m.Files[0].Name == "setup.txt" })
	allowed(second, "cp base again; true")
	w.says(eng, second, "The folder that this thread worked in was gone. Its commits are back, and what was not committed, as it was at")
	if again, err := os.ReadFile(filepath.Join(folder, "again")); err != nil || string(again) != "theirs\n" {
		t.Errorf("the other thread has %q, %v", again, err)
	}
	allowed(second, "mv base committed; git add committed; git -c user.name=x -c user.email=x@example.com commit -q -m 'of a thread'; echo changed > again; true")
	w.anotherMachine(second)
	allowed(second, "cp again there; git log -2 --format=%s > log; true")
	w.says(eng, second, "was not run here: what it works on is the thread's own by now")
	w.says(eng, second, "This thread goes on on another machine. Its commits are back, and what was not committed, as it was at")
	for name, want := range map[string]string{"committed": "theirs\n", "again": "changed\n", "log": "of a thread\ntheirs\n"} {
		if b, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(b) != want {
			t.Errorf("on another machine %s has %q, %v", name, b, err)
		}
	}
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'setup' AND details::json->>'status' = '3'`); n != 3 { // two folders, and one made again
		t.Errorf("the audit has %d setups", n)
	}
	noFileHas(t, w.dir, forgetest.Password)
}

// anotherMachine has the bot die with its data folder, when a thread's work is kept, and
// another one go on with an empty one.
func (w *world) anotherMachine(thread string) {
	w.t.Helper()
	w.eventually("the thread's work is kept", func() bool {
		return w.text(`SELECT coalesce(bool_and(saved_at > (SELECT max(ended_at) FROM turns r WHERE r.thread_id = t.id))::text, '') FROM work JOIN threads t ON t.id = thread_id WHERE thread_ts = '`+thread+`'`) == "true"
	})
	bot := w.PIDs["bot"]
	if err := os.Rename(filepath.Join(w.dir, "bot"), filepath.Join(w.dir, "gone")); err != nil {
		w.t.Fatal(err)
	}
	if err := syscall.Kill(bot, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.dir, "gone")); err != nil {
		w.t.Fatal(err)
	}
	w.renewed("bot", bot)
	// The new one would find it silent, in some time.
	w.text(`
		WITH dead AS (UPDATE replicas SET alive = false WHERE life < (SELECT max(life) FROM replicas) RETURNING id),
			freed AS (UPDATE threads SET lease_owner = NULL WHERE lease_owner IN (SELECT id FROM dead) RETURNING id)
		SELECT count(*)::text FROM freed`)
}

// noFileHas searches a folder for a secret, but for copies of this program, which has it.
func noFileHas(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "git-way" {
			return nil //nolint:nilerr // it has gone meanwhile
		}
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), secret) {
			t.Errorf("%s has the secret", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
