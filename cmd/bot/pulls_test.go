package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"deckhand/internal/needtest"
	"deckhand/internal/playground/page/pagetest"
	"deckhand/internal/store/audit"
)

// pullWorld is a demo with its own forge, as people have it.
func pullWorld(t *testing.T) *world {
	t.Helper()
	w := unstartedWorld(t)
	if !strings.HasPrefix(sandboxHere(), "sandbox: bwrap") {
		needtest.Missing(t, "the demo is contained where bwrap works")
	}
	if err := os.Remove(filepath.Join(w.dir, "deckhand.yaml")); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "DECKHAND_FORGE_EVERY=1s")
	return w
}

// calls has the model call one of the bot's tools.
func (w *world) callsTool(user, thread, tool string, input map[string]any) string {
	raw, err := json.Marshal(input)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.post(user, eng, thread, "@deckhand\ntool: mcp__deckhand__"+tool+" "+string(raw))
}

// forgeRefs are the branches of the demo's forge, with their commits' subjects.
func (w *world) forgeRefs() string {
	out, err := exec.CommandContext(w.t.Context(), "git", "-C", filepath.Join(w.dir, "forge/boathouse.git"), "for-each-ref", "--format=%(refname) %(subject)", "refs/heads").CombinedOutput()
	if err != nil {
		w.t.Fatal(err, string(out))
	}
	return string(out)
}

// signs has the bot sign commits from its next start on, and returns a line of the key.
func (w *world) signs() (secret string) {
	w.t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		w.t.Fatal(err)
	}
	text, file, config := pem.EncodeToMemory(block), filepath.Join(w.dir, "signing"), filepath.Join(w.dir, "deckhand.yaml")
	was, err := os.ReadFile(config)
	if err = errors.Join(err, os.WriteFile(file, text, 0o600), os.WriteFile(config, fmt.Appendf(was, "git: {sign_key_file: %q, committer_email: deckhand@boathouse.example}\n", file), 0o600)); err != nil {
		w.t.Fatal(err)
	}
	return strings.Split(string(text), "\n")[2]
}

// branch is the first thread's.
func (w *world) branch() string {
	return w.text(`SELECT 'deckhand/' || id || CASE slug WHEN '' THEN '' ELSE '-' || slug END FROM threads ORDER BY id LIMIT 1`)
}

// forge tells the demo's forge what a person did there.
func (w *world) forge(what string, in map[string]any) {
	w.t.Helper()
	w.must(http.MethodPost, "/_control/forge/"+what, in, nil)
}

// pull waits until the message of the thread's pull request says something.
func (w *world) pull(thread, says string) message {
	w.t.Helper()
	return w.find(eng, thread, "the pull request to say "+says, func(m message) bool {
		return m.User == w.BotUser && strings.Contains(string(m.Blocks), `"pull:`) && strings.Contains(m.all(), says)
	})
}

// shots takes pictures of the end of a thread and, if make pictures wants them, of a message in it.
// Without DECKHAND_SCREENSHOTS it takes none.
func (w *world) shots(t *testing.T, thread string) func(name, ts string) {
	t.Helper()
	if os.Getenv("DECKHAND_SCREENSHOTS") == "" {
		return func(string, string) {}
	}
	tab := pagetest.Start(t).Open(t, w.URL, "/#/c/"+eng+"/t/"+thread+"?user="+grace)
	tab.Click(`[aria-label="Hide this note"]`)
	return func(name, ts string) {
		tab.See(`(m => m != null && (m.scrollIntoView({block: 'end'}), true))(document.querySelector('[data-testid="thread"] [data-ts="` + ts + `"]'))`)
		tab.Shot(name)
	}
}

// TestAThreadsWorkBecomesAMergedPullRequest: a fix, a pull request by one card for push and
// pull request, a red check that is mended in the same session by itself, a green one, a review,
// and a merge in two steps. The message of the pull request stays up to date in its place, and
// the audit joins all of it.
func TestAThreadsWorkBecomesAMergedPullRequest(t *testing.T) {
	t.Parallel()
	w := pullWorld(t)
	w.start()
	thread, prompt := w.begin(linus, eng, "@deckhand fix the failing test")
	w.done(eng, thread, prompt)
	prompt = w.runs(linus, eng, thread, "git commit -aqm 'A full week gets its discount'")
	w.done(eng, thread, prompt)
	offer := w.find(eng, thread, "an offer to open a pull request", func(m message) bool { return m.has("pull_open") })
	w.eventually("the diff to be kept", func() bool { return w.count(`SELECT count(*) FROM turns WHERE diff IS NOT NULL`) == 1 })
	if v, shown := w.opens(linus, eng, offer.TS, "diff"); v.ID == "" || !strings.Contains(shown, "1 file, +1 −1") || !strings.Contains(shown, "diff --git a/src/quote.js") {
		t.Errorf("the window of the diff: %s", shown)
	}
	w.click(mallory, eng, offer.TS, "pull_open")
	w.told(mallory, eng, thread, "")
	w.click(linus, eng, offer.TS, "pull_open")

	card := w.card(eng, thread)
	shot := w.shots(t, thread)
	shot("pull-card", card.TS)
	if got := w.branch(); got != "deckhand/1-fix-the-failing-test" {
		t.Errorf("the branch is %s", got)
	}
	for _, want := range []string{"Open a draft pull request", "of 1 commit from `" + w.branch() + "` into `main` of sample: A full week gets its discount", "src/quote.js", "exactly seven days", "This thread has cost $"} {
		if !strings.Contains(card.all(), want) {
			t.Errorf("the card does not say %q:\n%s", want, card.all())
		}
	}
	if refs := w.forgeRefs(); strings.Contains(refs, "deckhand/") {
		t.Fatalf("before anybody decided the forge has\n%s", refs)
	}
	w.click(ada, eng, card.TS, "approve")
	post := w.pull(thread, "no checks yet")
	first := w.text(`SELECT head FROM pulls`)

	w.forge("checks", map[string]any{"branch": w.branch(), "name": "lint", "state": "failure", "summary": "three days are not covered", "log": "no test for exactly three days"})
	w.pull(thread, "1 check has failed")
	w.says(eng, thread, "Deckhand begins this by itself: Pull request #1 of this thread: checks have failed.")
	card = w.find(eng, thread, "the card of the mended work", func(m message) bool { return m.TS > card.TS && m.has("approve") })
	for _, want := range []string{"Push 1 commit to pull request #1", "A test for exactly three days"} {
		if !strings.Contains(card.all(), want) {
			t.Errorf("the card does not say %q:\n%s", want, card.all())
		}
	}
	w.click(grace, eng, card.TS, "approve")
	w.eventually("the pull request to have another head", func() bool { return w.text(`SELECT head FROM pulls`) != first })
	if n := w.count(`SELECT count(*) FROM inbox WHERE event_id LIKE 'pull/%'`); n != 1 {
		t.Errorf("the red check woke the thread %d times", n)
	}
	w.forge("checks", map[string]any{"branch": w.branch(), "name": "lint", "state": "success"})
	w.forge("reviews", map[string]any{"number": 1, "user": "grace", "verdict": "approved", "body": "Good."})
	w.pull(thread, "approved by grace")
	if again := w.pull(thread, "1 check has passed"); again.TS != post.TS {
		t.Errorf("the pull request is shown by %s and %s", post.TS, again.TS)
	}

	w.click(linus, eng, post.TS, "pull_merge")
	w.told(linus, eng, thread, "approve")
	w.click(grace, eng, post.TS, "pull_merge")
	card = w.find(eng, thread, "the card of the merge", func(m message) bool { return m.TS > card.TS && m.has("approve") })
	if !strings.Contains(card.all(), "Merge pull request #1") || !strings.Contains(card.all(), "approved by grace") {
		t.Errorf("the card of the merge:\n%s", card.all())
	}
	// What has happened since is not on the card, and is at the second step.
	w.forge("checks", map[string]any{"branch": w.branch(), "name": "ci", "state": "pending"})
	w.pull(thread, "1 check runs")
	v, shown := w.opens(ada, eng, card.TS, "approve")
	for _, want := range []string{"It is a draft, and would be marked as ready.", "Checks that have not ended: ci."} {
		if !strings.Contains(shown, want) {
			t.Errorf("the second step does not say %q:\n%s", want, shown)
		}
	}
	w.submit(ada, v, map[string]any{"read": map[string]any{"read": []string{"yes"}}})
	w.pull(thread, "Merged")
	shot("pull-merged", post.TS)
	if refs := w.forgeRefs(); !strings.Contains(refs, "refs/heads/main A full week gets its discount (#1)") {
		t.Errorf("the forge has\n%s", refs)
	}
	said, err := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(w.dir, "forge/boathouse.git"), "log", "-1", "--format=%(trailers)", "main").CombinedOutput()
	for _, want := range []string{"Requested-by: Linus", "Approved-by: Ada", "Deckhand-Thread: http", "Co-authored-by: Linus"} {
		if err != nil || !strings.Contains(string(said), want) {
			t.Errorf("the merge does not say %q: %v\n%s", want, err, said)
		}
	}
	if m := w.message(eng, offer.TS); m.has("pull_open") || !m.has("diff") {
		t.Errorf("the turn whose offer was taken has the buttons of %s", m.Blocks)
	}
	w.followsMerge(w.text(`SELECT merged_commit FROM pulls`))
	got := w.text(`SELECT string_agg(details::json->>'act', ' ' ORDER BY seq) FROM audit WHERE kind = 'pull'`)
	if got != "opened red woken pushed review merged" {
		t.Errorf("the audit has %s", got)
	}
	w.auditIsWhole()
}

// followsMerge goes from a prompt by the export's rows to the merge: the commit that a call made
// is the one with which the pull request was opened, and its number the merge's.
func (w *world) followsMerge(merged string) {
	w.t.Helper()
	out, ok := w.bot("audit", "export")
	if !ok {
		w.t.Fatal(out)
	}
	commit, number := "", int64(0)
	var acts []string
	for line := range strings.Lines(out) {
		var c audit.ToolCall
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			w.t.Fatalf("%v in %s", err, line)
		}
		if c.Commit != "" {
			commit = c.Commit
		}
		if c.PullAct == "" {
			continue
		}
		acts = append(acts, c.PullAct)
		if number == 0 {
			number = c.PullNumber
		}
		if c.Prompt == "" || c.ApprovalID == "" || len(c.Votes) < 3 && c.DecidedBy == "" || c.PullHead != commit || c.PullNumber != number || c.PullURL == "" || c.PullAct == "merged" && c.MergeCommit != merged {
			w.t.Errorf("after the commit %s the export has %s", commit, line)
		}
	}
	if got := strings.Join(acts, " "); got != "opened pushed merged" {
		w.t.Errorf("the export follows %q", got)
	}
}

// TestAPullRequestIsForItsCommits: a branch that moves between the card and the click is neither
// pushed nor opened, and is asked about again; what a bot has pushed that died before it opened
// is found, and doubles nothing; a merge is for the head that it names. The forge's token, and
// the key that signs commits, are nowhere in the sandbox.
func TestAPullRequestIsForItsCommits(t *testing.T) {
	t.Parallel()
	w := pullWorld(t)
	w.start()
	w.stop()
	key := w.signs()
	w.start()
	thread := w.runs(linus, eng, "", "env > said; cat /proc/[0-9]*/environ >> said; git commit -q --allow-empty -m one; true")
	w.done(eng, thread, thread)
	clone := w.text(`SELECT workspace FROM threads ORDER BY id LIMIT 1`)
	if said, err := os.ReadFile(filepath.Join(clone, "said")); err != nil || strings.Contains(string(said), "playground-deckhand") || strings.Contains(string(said), key) {
		t.Errorf("the sandbox has the token, or the key: %v\n%s", err, said)
	}
	git := func(dir string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@y"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		return strings.TrimSpace(string(out))
	}
	// Each turn's commits are by whoever asked for it, in one process.
	for _, turn := range [][2]string{{grace, "two\n\nFixes: #1"}, {ada, "three"}} {
		prompt := w.runs(turn[0], eng, thread, "git commit -q --allow-empty -m '"+turn[1]+"'; git commit -q --amend --no-edit; true")
		w.done(eng, thread, prompt)
	}
	log := git(clone, "log", "--reverse", "--format=%an by %cn: %s %(trailers:key=Requested-by,key=Fixes,separator=%x2c ) %(trailers:key=Deckhand-Thread,valueonly)", "-3")
	for i, want := range []string{
		"Linus Engineer by Deckhand: one Requested-by: Linus Engineer <linus@boathouse.example> http", "Grace Approver by Deckhand: two Fixes: #1, Requested-by: Grace Approver <grace@boathouse.example> http",
		"Ada Admin by Deckhand: three Requested-by: Ada Admin <ada@boathouse.example> http",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("commit %d is not %q:\n%s", i, want, log)
		}
	}
	for _, commit := range []string{"HEAD", "HEAD~1", "HEAD~2"} {
		if text := git(clone, "cat-file", "commit", commit); !strings.Contains(text, "\ngpgsig -----BEGIN SSH SIGNATURE-----\n") || !strings.Contains(text, "\ncommitter Deckhand <deckhand@boathouse.example> ") {
			t.Errorf("%s is not signed:\n%s", commit, text)
		}
	}
	begun := w.forgeRefs()
	opening := map[string]any{"title": "One", "body": "Text."}
	prompt := w.callsTool(linus, thread, "open_pull_request", opening)
	card := w.card(eng, thread)
	git(clone, "commit", "-q", "--allow-empty", "-m", "sneaked in")
	w.click(ada, eng, card.TS, "approve")
	w.done(eng, thread, prompt)
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'git' AND details LIKE '%not where it was when it was approved%'`); n != 1 || w.forgeRefs() != begun {
		t.Fatalf("%d refusals, and the forge has\n%s", n, w.forgeRefs())
	}

	// As a bot leaves it that dies between the push and the pull request.
	forge := filepath.Join(w.dir, "forge/boathouse.git")
	git(clone, "push", "-q", forge, "HEAD:refs/heads/"+w.branch())
	prompt = w.callsTool(linus, thread, "open_pull_request", opening)
	card = w.card(eng, thread)
	w.click(ada, eng, card.TS, "approve")
	w.done(eng, thread, prompt)
	w.pull(thread, ": One")
	if n := w.count(`SELECT count(*) FROM pulls`); n != 1 {
		t.Fatalf("there are %d pull requests", n)
	}

	// Another head is another merge, and nobody is asked about one that is not the head's.
	cards := w.count(`SELECT count(*) FROM posts WHERE kind = 'card' AND audience = ''`)
	prompt = w.callsTool(linus, thread, "merge_pull_request", map[string]any{"head": strings.Repeat("a", 40), "method": "merge"})
	w.done(eng, thread, prompt)
	head := git(clone, "rev-parse", "HEAD")
	prompt = w.callsTool(linus, thread, "merge_pull_request", map[string]any{"head": head, "method": "merge"})
	card = w.card(eng, thread)
	w.eventually("one card for two merges", func() bool { // which is in Slack before it is in the books
		return w.count(`SELECT count(*) FROM posts WHERE kind = 'card' AND audience = ''`) == cards+1
	})
	git(clone, "commit", "-q", "--allow-empty", "-m", "after the card")
	git(clone, "push", "-q", forge, "HEAD:refs/heads/"+w.branch())
	v, _ := w.opens(ada, eng, card.TS, "approve")
	w.submit(ada, v, map[string]any{"read": map[string]any{"read": []string{"yes"}}})
	w.done(eng, thread, prompt)
	if got := w.text(`SELECT state FROM pulls`); got != "open" || strings.Contains(w.forgeRefs(), "refs/heads/main Merge") {
		t.Errorf("a head that nobody approved was merged: %s\n%s", got, w.forgeRefs())
	}
	w.auditIsWhole()
}
