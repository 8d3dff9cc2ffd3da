package main

import (
	"strings"
	"testing"

	"deckhand/internal/playground/slack"
)

// TestAContainedChannelAsksAtTheExits: in a contained channel the demo's story runs without
// a question, every step of it is a decision on record, and a push is asked all the same.
// The same project in a careful channel asks.
func TestAContainedChannelAsksAtTheExits(t *testing.T) {
	t.Parallel()
	w := unstartedWorld(t)
	w.ownTrees()
	w.add("posture: contained\n")
	w.replace("  "+slack.ChannelGeneral+": sample", "  "+slack.ChannelGeneral+": {project: sample, posture: careful}")
	w.start()

	thread, prompt := w.begin(linus, eng, "@deckhand fix the failing test")
	w.done(eng, thread, prompt)
	w.find(eng, thread, "the answer, with what ran in the sandbox", func(m message) bool {
		return m.User == w.BotUser && strings.Contains(m.all(), "All green") && strings.Contains(m.all(), "6 steps in the sandbox")
	})
	if n := w.count(`SELECT count(*) FROM approvals WHERE tool_name NOT LIKE 'T%'`); n != 6 {
		t.Errorf("*Show steps* lists %d steps", n)
	}
	for _, m := range w.messages(eng, thread) {
		if m.has("approve") {
			t.Errorf("somebody was asked: %s", m.all())
		}
	}
	if n := w.count(`SELECT count(*) FROM approvals WHERE status = 'allowed' AND decided_via = 'rule' AND rule LIKE 'posture contained%' AND tool_name IN ('Bash', 'Edit')`); n != 3 {
		t.Errorf("%d decisions of the posture are on record, want those about two commands and an edit", n)
	}
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'decided' AND details::jsonb->>'rule' LIKE 'posture contained%' AND details::jsonb->>'input_sha256' <> ''`); n < 3 {
		t.Errorf("the audit has %d of them", n)
	}

	w.runs(linus, eng, thread, "git push origin HEAD:deckhand/boats")
	card := w.card(eng, thread)
	if !strings.Contains(card.all(), "git push") {
		t.Errorf("the push is not asked about: %s", card.all())
	}
	w.click(ada, eng, card.TS, "deny")

	careful := w.runs(linus, slack.ChannelGeneral, "", "npm test")
	w.click(ada, slack.ChannelGeneral, w.card(slack.ChannelGeneral, careful).TS, "deny")
	w.find(slack.ChannelGeneral, careful, "the end to say that nothing ran", func(m message) bool { return strings.Contains(m.all(), "Nothing ran · 1 step denied") })
	w.auditIsWhole()

	out, ok := w.bot("policy", "test", "--posture", "contained", "--config", w.dir+"/deckhand.yaml")
	if !ok || !strings.Contains(out, "ask → allow: 1") || !strings.Contains(out, "npm test") || !strings.Contains(out, "1 of these questions would not have been asked") {
		t.Errorf("the replay says\n%s", out)
	}
}
