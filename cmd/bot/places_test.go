package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/gateway/gitway/forgetest"
)

// TestAChannelOfSeveralProjects: people say which one their work is for, or choose it, also after
// the bot was gone, and each project's own roles count. A thread starts from the branch that its
// first message names. Nothing is begun in a place that there is not.
func TestAChannelOfSeveralProjects(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	f.Git(f.Work("web"), "checkout", "-q", "-b", "release/2.1")
	f.Commit("web", "released")
	f.Git(f.Work("web"), "push", "-q", "origin", "release/2.1")
	w := unstartedWorld(t)
	w.env = []string{forgetest.TokenEnv + "=" + forgetest.Password}
	config := fmt.Sprintf(`git: {token_env: %[1]s}
%[7]s
projects:
  web: {repo: %[2]q, workspace: worktree, roles: {users: [%[4]s, %[5]s]}}
  api: {repo: %[3]q, workspace: worktree, roles: {users: [%[4]s]}}
  other: {repo: %[3]q, workspace: worktree}
channels: {%[6]s: {projects: [web, api]}}
roles: {admins: [%[8]s], users: []}
`, forgetest.TokenEnv, f.URL("web"), f.URL("other"), linus, grace, eng, sandboxHere(), ada)
	if err := os.WriteFile(filepath.Join(w.dir, "deckhand.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	project := func(thread string) string {
		return w.text(`SELECT COALESCE((SELECT project || ' ' || base FROM threads WHERE thread_ts = '` + thread + `'), 'none')`)
	}

	asked := w.post(linus, eng, "", "@deckhand say: which")
	picker := w.find(eng, asked, "the question", func(m message) bool { return m.has("pick_project:1") })
	w.stop()
	w.start()
	w.click(grace, eng, picker.TS, "pick_project:1")
	w.told(grace, eng, asked, "Whoever wrote the message chooses")
	w.click(linus, eng, picker.TS, "pick_project:1")
	w.done(eng, asked, asked)
	w.says(eng, asked, "This is for the project api.")
	if got := project(asked); got != "api " {
		t.Errorf("it works on %q", got)
	}
	none := w.post(linus, eng, "", "@deckhand say: nothing")
	picker = w.find(eng, none, "the question", func(m message) bool { return m.has("pick_project:2") })
	w.click(linus, eng, picker.TS, "pick_project:2")
	w.says(eng, none, "Nothing was begun.")

	// Whoever may use one of them is not asked, and not let into the other.
	only := w.post(grace, eng, "", "@deckhand say: mine")
	w.done(eng, only, only)
	if got := project(only); got != "web " {
		t.Errorf("it works on %q", got)
	}
	w.told(grace, eng, w.post(grace, eng, "", "@deckhand in api: say: not mine"), "Ask an admin")

	released := w.post(linus, eng, "", "@deckhand in web: say: released branch=release/2.1")
	w.done(eng, released, released)
	if got := project(released); got != "web release/2.1" {
		t.Errorf("it works on %q", got)
	}
	clone := w.text(`SELECT workspace FROM threads WHERE base <> ''`)
	if got := f.Git(clone, "log", "-1", "--format=%s %D"); !strings.HasPrefix(got, "released HEAD -> deckhand/") || !strings.Contains(got, "-say-released") {
		t.Errorf("it began at %s", got)
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE prompt LIKE '%branch=%' OR prompt LIKE '%in web%'`); n != 0 {
		t.Error("the place was given to the model")
	}
	for text, want := range map[string]string{
		"in other: say: x":        "cannot be chosen here. There is web, api.",
		"repo=nothing say: x":     "The project “nothing” cannot be chosen here.",
		"in web: say: x branch=2": "Project web has no branch “2”.",
		"repo=web branch=a..b x":  "plain name",
	} {
		ts := w.post(linus, eng, "", "@deckhand "+text)
		w.told(linus, eng, ts, want)
		if got := project(ts); got != "none" {
			t.Errorf("%q began in %s", text, got)
		}
	}
	w.post(linus, eng, released, "@deckhand in api: say: too late")
	w.told(linus, eng, released, "This thread works on the project web.")
	w.post(linus, eng, released, "@deckhand say: too late branch=main")
	w.told(linus, eng, released, "This thread has begun already.")
}

// TestAFolderOfALargerRepository: sessions work in a project's subfolder, and so does its setup; rules name files from
// the top. Nothing else is checked out, nor lost: not by a push, and not on another machine.
func TestAFolderOfALargerRepository(t *testing.T) {
	t.Parallel()
	f := forgetest.New(t)
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(f.Work("web"), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("services/web/main.go", "package main\n")
	put("services/web/CLAUDE.md", "Be kind.\n")
	put("libs/lib.go", "package libs\n")
	f.Git(f.Work("web"), "add", ".")
	f.Commit("web", "folders")
	f.Git(f.Work("web"), "push", "-q", "origin", "HEAD:main")
	w := unstartedWorld(t)
	w.env = []string{forgetest.TokenEnv + "=" + forgetest.Password}
	write := func(subdir string) {
		t.Helper()
		config := fmt.Sprintf(`git: {token_env: %s}
projects:
  web:
    repo: %q
    workspace: worktree
    subdir: %s
    setup: {run: "pwd > set-up", files: main.go}
channels: {%s: web}
roles: {admins: [%s], users: [%s]}
policy: {rules: [{allow: Edit(services/web/**)}]}
`, forgetest.TokenEnv, f.URL("web"), subdir, eng, ada, linus)
		if err := os.WriteFile(filepath.Join(w.dir, "deckhand.yaml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("services/wbe")
	w.start()
	none := w.post(linus, eng, "", "@deckhand say: nothing")
	w.says(eng, none, "The workspace is not ready: no working tree could be made of the repository of project web: what it starts from has no folder services/wbe; correct subdir. Ask an admin")
	w.stop()
	write("services/web")
	w.start()
	allowed := func(thread, command string) string {
		t.Helper()
		ts := w.runs(linus, eng, thread, command)
		if thread == "" {
			thread = ts
		}
		w.click(ada, eng, w.card(eng, thread).TS, "approve")
		w.done(eng, thread, ts)
		return thread
	}
	thread := allowed("", "pwd > where; ls ../.. > there; true")
	folder := w.text(`SELECT workspace FROM threads WHERE thread_ts = '` + thread + `'`)
	has := func(name, want string) {
		t.Helper()
		if b, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(b) != want {
			t.Errorf("%s has %q, %v", name, b, err)
		}
	}
	has("services/web/where", folder+"/services/web\n")
	has("services/web/set-up", folder+"/services/web\n")
	if b, _ := os.ReadFile(filepath.Join(folder, "services/web/there")); strings.Contains(string(b), "libs") || !strings.Contains(string(b), "services\n") {
		t.Errorf("checked out is\n%s", b)
	}
	ruled := w.post(linus, eng, thread, `tool: Write {"file_path": "`+folder+`/services/web/new.go", "content": "package main\n"}`)
	w.done(eng, thread, ruled)
	has("services/web/new.go", "package main\n")
	asked := w.post(linus, eng, thread, `tool: Write {"file_path": "`+folder+`/services/other.go", "content": "package services\n"}`)
	w.click(ada, eng, w.card(eng, thread).TS, "approve")
	w.done(eng, thread, asked)
	allowed(thread, "git rm -q --cached CLAUDE.md; git add new.go; git -c user.name=x -c user.email=x@example.com commit -q -m mine; git push -q origin HEAD:deckhand/mine > pushed 2>&1; true")
	if got := f.Git(f.Bare("web"), "diff", "--name-status", "main", "deckhand/mine"); strings.TrimSpace(got) != "D\tservices/web/CLAUDE.md\nA\tservices/web/new.go" {
		t.Errorf("pushed is\n%s", got)
	}
	w.anotherMachine(thread)
	allowed(thread, "cat ../other.go CLAUDE.md > again; git status --porcelain > status; true")
	w.says(eng, thread, "This thread goes on on another machine. Its commits are back, and what was not committed, as it was at")
	has("services/web/again", "package services\nBe kind.\n")
	if b, err := os.ReadFile(filepath.Join(folder, "services/web/status")); err != nil || strings.Contains(string(b), " D") || strings.Contains(string(b), "libs") {
		t.Errorf("on another machine git says %s, %v", b, err)
	}
}
