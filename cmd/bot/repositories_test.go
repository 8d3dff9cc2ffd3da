package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/playground/forge"
)

// TestAThreadWorksInTwoRepositories: a thread changes two repositories of its project. Both show in the diff, go along
// to another machine, are pushed by a card each that names the repository, and become a pull request each. What git
// obeys of the further one no session writes. One whose forge has it no more is named to people.
func TestAThreadWorksInTwoRepositories(t *testing.T) {
	t.Parallel()
	w := pullWorld(t)
	w.start()
	config, lib := filepath.Join(w.dir, "deckhand.yaml"), filepath.Join(w.dir, "forge/lib.git")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := forge.Make(filepath.Join(w.dir, "forge"), "lib.git", filepath.Join(w.dir, "forge/boathouse.git")); err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "    workspace: worktree\n", fmt.Sprintf("    workspace: worktree\n    repos: {lib: %q}\n", w.URL+"/forge/lib.git"), 1)
	if err := os.WriteFile(config, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	bot := w.PIDs["bot"]
	if err := syscall.Kill(bot, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.renewed("bot", bot)

	ran := func(thread, command string) string {
		t.Helper()
		prompt := w.runs(linus, eng, thread, command)
		if thread == "" {
			thread = prompt
		}
		w.done(eng, thread, prompt)
		return thread
	}
	thread := ran("", `cd .deckhand/repos/lib
		for f in config hooks/pre-commit info/attributes objects/info/alternates; do echo x >> .git/$f; done
		mv .git other; mv ../lib ../other; mv ../../repos ../../others; mv ../../../.deckhand ../../../other
		echo counts > lib.txt; git add lib.txt; git commit -qm 'The lib counts'; echo later > later.txt
		cd ../../..; git status --porcelain > seen; echo shows > page.txt; git add page.txt; git commit -qm 'The page shows it'`)
	folder := w.text(`SELECT workspace FROM threads ORDER BY id LIMIT 1`)
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	if git := read(".deckhand/repos/lib/.git/config"); strings.Contains(git, "\nx\n") || read("seen") != "?? seen\n" {
		t.Errorf("it has written the settings of git, or its own git sees the other:\n%s\n%s", git, read("seen"))
	}
	offer := w.find(eng, thread, "an offer to open a pull request", func(m message) bool { return m.has("pull_open") })
	w.eventually("the diff to be kept", func() bool { return w.count(`SELECT count(*) FROM turns WHERE diff IS NOT NULL`) == 1 })
	if _, shown := w.opens(linus, eng, offer.TS, "diff"); !strings.Contains(shown, "2 files") || !strings.Contains(shown, "*The diff in `lib`*") || !strings.Contains(shown, "+counts") || !strings.Contains(shown, "+shows") {
		t.Errorf("the window of the diff: %s", shown)
	}

	w.eventually("the work in both is kept", func() bool { return w.count(`SELECT count(*) FROM work`) == 2 })
	w.anotherMachine(thread)
	ran(thread, "cat page.txt .deckhand/repos/lib/lib.txt .deckhand/repos/lib/later.txt > there; git -C .deckhand/repos/lib log -1 --format=%s >> there")
	if said := w.says(eng, thread, "This thread goes on on another machine. Its commits are back").all(); strings.Contains(said, ".deckhand") {
		t.Errorf("people are told %s", said)
	}
	w.says(eng, thread, "In the repository lib: This thread goes on on another machine. Its commits are back, and what was not committed")
	if got := read("there"); got != "shows\ncounts\nlater\nThe lib counts\n" {
		t.Errorf("on the other machine it has %q", got)
	}

	approved := func(prompt, says string, to ...string) message {
		t.Helper()
		card := w.card(eng, thread)
		for _, want := range to {
			if !strings.Contains(card.all(), want) {
				t.Errorf("the card does not say %q:\n%s", want, card.all())
			}
		}
		w.click(ada, eng, card.TS, "approve")
		w.done(eng, thread, prompt)
		return w.pull(thread, says)
	}
	refs := func(repository string) string {
		out, err := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(w.dir, "forge", repository), "for-each-ref", "--format=%(refname) %(subject)", "refs/heads/deckhand").CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		return string(out)
	}
	prompt := w.callsTool(linus, thread, "open_pull_request", map[string]any{"title": "Count", "body": "Text.", "repository": "lib"})
	approved(prompt, "`lib`: ", "of 1 commit from `"+w.branch()+"` into `main` of the repository `127.0.0.1:", "/forge/lib`: Count", "lib.txt")
	if own, further := refs("boathouse.git"), refs("lib.git"); own != "" || further != "refs/heads/"+w.branch()+" The lib counts\n" {
		t.Errorf("the forge has %q and %q", own, further)
	}
	prompt = w.callsTool(linus, thread, "open_pull_request", map[string]any{"title": "Show", "body": "Text."})
	approved(prompt, ": Show", "into `main` of sample: Show", "page.txt")
	if got := w.text(`SELECT string_agg(further || ' ' || title || ' ' || number, ', ' ORDER BY id) FROM pulls`); got != "lib Count 1,  Show 1" {
		t.Errorf("the pull requests are %s", got)
	}
	ran(thread, "cd .deckhand/repos/lib && git add later.txt && git commit -qm 'And later'")
	prompt = w.runs(linus, eng, thread, "git push origin HEAD:"+w.branch())
	approved(prompt, "`lib`: ", "Push 1 commit* to `"+w.branch()+"` of the repository `127.0.0.1:", "/forge/lib`", "And later")
	if further := refs("lib.git"); further != "refs/heads/"+w.branch()+" And later\n" {
		t.Errorf("the forge has %q", further)
	}
	w.must("POST", "/_control/forge/reviews?repo=lib", map[string]any{"number": 1, "user": "grace", "verdict": "approved", "body": "Good."}, nil)
	post := w.pull(thread, "approved by grace")
	prompt = w.callsTool(linus, thread, "merge_pull_request", map[string]any{"head": w.text(`SELECT head FROM pulls WHERE further = 'lib'`), "method": "squash", "repository": "lib"})
	card := w.card(eng, thread)
	if !strings.Contains(card.all(), "Merge pull request #1* into `main` of the repository `http://127.0.0.1:") {
		t.Errorf("the card of the merge:\n%s", card.all())
	}
	v, _ := w.opens(ada, eng, card.TS, "approve")
	w.submit(ada, v, map[string]any{"read": map[string]any{"read": []string{"yes"}}})
	w.done(eng, thread, prompt)
	if merged := w.pull(thread, "Merged"); merged.TS != post.TS {
		t.Errorf("the other repository's pull request is merged:\n%s", merged.all())
	}

	// Its repository is gone, and this machine has no copy.
	for _, gone := range []string{lib, filepath.Join(w.dir, "bot/repos/sample.lib")} {
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	thread = w.runs(linus, eng, "", "true")
	w.says(eng, thread, "The workspace is not ready: the repository lib of project sample could not be cloned: ")
	w.auditIsWhole()
}
