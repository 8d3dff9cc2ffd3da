package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/needtest"
	"deckhand/internal/playground/slack"
)

// TestTheDemoRunsContained: with the demo's own configuration the fix and its tests run
// unasked in #engineering, and the push is the one thing that is asked, with what leaves. The
// forge has exactly what was approved. What is left running is named. #careful asks at each call.
func TestTheDemoRunsContained(t *testing.T) {
	t.Parallel()
	w := unstartedWorld(t)
	if !strings.HasPrefix(sandboxHere(), "sandbox: bwrap") {
		needtest.Missing(t, "the demo is contained where bwrap works")
	}
	if err := os.Remove(filepath.Join(w.dir, "deckhand.yaml")); err != nil {
		t.Fatal(err)
	}
	w.start()
	refs := func() string {
		out, err := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(w.dir, "forge/boathouse.git"), "log", "--all", "--format=%H %s%d").CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		return string(out)
	}

	thread, prompt := w.begin(linus, eng, "@deckhand fix the failing test")
	w.done(eng, thread, prompt)
	_, prompt = w.begin(linus, eng, "@deckhand push it")
	card := w.card(eng, thread)
	for _, want := range []string{"Push 1 commit", "deckhand/full-week", "A full week gets its discount", "1 file, +1 −1", "src/quote.js", "This thread has cost $", "git push origin HEAD:deckhand/full-week"} {
		if !strings.Contains(card.all(), want) {
			t.Errorf("the card does not say %q:\n%s", want, card.all())
		}
	}
	_, shown := w.opens(ada, eng, card.TS, "view_input")
	if !strings.Contains(shown, "+  const tier = tiers.find((t) => days >= t.days);") {
		t.Errorf("View all has no diff:\n%s", shown)
	}
	w.click(ada, eng, card.TS, "approve")
	w.done(eng, thread, prompt)
	if n := w.count(`SELECT count(*) FROM posts WHERE kind = 'card' AND audience = ''`); n != 1 {
		t.Errorf("%d cards were posted, want one", n)
	}
	approved := w.text(`SELECT push->'refs'->0->>'new' FROM approvals WHERE push IS NOT NULL`)
	if got := refs(); len(strings.Split(strings.TrimSpace(got), "\n")) != 2 || !strings.HasPrefix(got, approved+" A full week gets its discount (deckhand/full-week)\n") {
		t.Errorf("approved was %s, and the forge has\n%s", approved, got)
	}
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'asked' AND details::jsonb->'push'->>'refs/heads/deckhand/full-week' LIKE '%..` + approved + `'`); n != 1 {
		t.Errorf("the audit has %d requests with the commit", n)
	}

	// A branch that moves between the card and the click is another push.
	w.runs(linus, eng, thread, "git commit --allow-empty -qm second")
	w.runs(linus, eng, thread, "git push origin HEAD:deckhand/full-week")
	card = w.card(eng, thread)
	clone := w.text(`SELECT workspace FROM threads WHERE channel_id = '` + eng + `' ORDER BY id LIMIT 1`)
	commit := exec.CommandContext(t.Context(), "git", "-C", clone, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "--allow-empty", "-qm", "sneaked in")
	if out, err := commit.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	before := refs()
	w.click(ada, eng, card.TS, "approve")
	w.eventually("the push to be refused at the gateway", func() bool {
		return w.count(`SELECT count(*) FROM audit WHERE details::text LIKE '%it is another push%'`) > 0
	})
	if after := refs(); after != before {
		t.Errorf("the forge has\n%s", after)
	}

	// What cannot be looked at is denied, and says how it is done.
	asked := w.count(`SELECT count(*) FROM posts WHERE kind = 'card' AND audience = ''`)
	w.runs(linus, eng, thread, "git commit --allow-empty -qm third && git push origin HEAD:deckhand/full-week")
	w.eventually("the compound push to be denied", func() bool {
		return w.count(`SELECT count(*) FROM approvals WHERE status = 'denied' AND reason LIKE 'Commit first%'`) == 1
	})
	if n := w.count(`SELECT count(*) FROM posts WHERE kind = 'card' AND audience = ''`); n != asked {
		t.Error("it was asked")
	}

	// What a turn leaves running is named at its end.
	w.runs(linus, eng, thread, "sleep 3001 >/dev/null 2>&1 &")
	w.says(eng, thread, "Left running: `sleep 3001`")

	careful := w.runs(linus, slack.ChannelCareful, "", "npm test")
	w.click(ada, slack.ChannelCareful, w.card(slack.ChannelCareful, careful).TS, "deny")
	w.auditIsWhole()
}
