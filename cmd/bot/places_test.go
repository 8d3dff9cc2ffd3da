package main

import (
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
