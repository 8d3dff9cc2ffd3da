package place

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/gateway/gitway"
	"deckhand/internal/sandbox"
	"deckhand/internal/store/threads"
	"deckhand/internal/workspace"
)

// profiles are people by their ids: a name and an address.
type profiles map[string][2]string

func (p profiles) AuthorOf(_ context.Context, user string) (name, email string) {
	return p[user][0], p[user][1]
}

func (profiles) LinkTo(k threads.ThreadKey) string { return "https://slack.example.com/" + k.ThreadTS }

// A profile is data, whatever is written there; a repository's own settings run nothing at a
// commit; and a message that says it already says it once.
func TestCommitsAreByWhoeverAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := &Host{DataDir: filepath.Join(dir, "data"), People: profiles{
		"U1": {"Ada \"the\" \\ $(touch ran)\n[core]", "ada@example.com"}, "U2": {"Grace <x@y>", ""}, "U3": {}, "U4": {"Linus; `touch ran` #", "linus@example.com\n\tpager = touch ran"},
	}}
	p := Project{Name: "web", Workspace: workspace.Worktree}
	thread := threads.Thread{ID: 7, ThreadTS: "17.1", OwnerID: "U1"}
	clone := filepath.Join(dir, "clone")
	git := func(env []string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = clone, append(append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.Mkdir(clone, 0o700); err != nil {
		t.Fatal(err)
	}
	git(nil, "init", "--quiet")
	git(nil, "config", "trailer.evil.command", "touch "+filepath.Join(clone, "ran"))
	git(nil, "config", "user.name", "Somebody else")
	var s sandbox.Session
	settings, err := h.commits(t.Context(), thread, p, &s, [][2]string{{"core.hooksPath", os.DevNull}})
	if err != nil {
		t.Fatal(err)
	}
	env := append(s.Env, gitway.Settings(settings)...)
	for user, want := range map[string]string{
		"U1": `Ada "the" \ $(touch ran)[core] <ada@example.com>`, "U2": "Grace x@y (via Deckhand) <deckhand@deckhand.invalid>",
		"U3": "U3 (via Deckhand) <deckhand@deckhand.invalid>", "U4": "Linus; `touch ran` # (via Deckhand) <deckhand@deckhand.invalid>",
	} {
		if err := h.AskedBy(t.Context(), thread, p, user); err != nil {
			t.Fatal(err)
		}
		git(env, "commit", "--quiet", "--allow-empty", "--message", "Fix it\n\nWhy.\n\nCloses: #1")
		git(env, "commit", "--quiet", "--amend", "--allow-empty", "--no-edit")
		got := git(nil, "log", "-1", "--format=%an <%ae>%n%cn <%ce>%n%B")
		if want = want + "\nDeckhand <deckhand@deckhand.invalid>\nFix it\n\nWhy.\n\nCloses: #1\nRequested-by: " + want + "\nDeckhand-Thread: https://slack.example.com/17.1"; got != want {
			t.Errorf("%s: a commit is\n%s\nand should be\n%s", user, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(clone, "ran")); err == nil {
		t.Error("a program of the profile's or of the repository's ran")
	}
}
