package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestSteering: people steer a session from its thread, and what they chose outlives its
// process.
func TestSteering(t *testing.T) {
	t.Parallel()
	w := unstartedWorld(t)
	w.configure("    models: [sonnet, opus]\n"+demoSandbox(t.Context()), "")
	w.start()

	thread := w.post(linus, eng, "", "@deckhand model=opus say: one")
	w.done(eng, thread, thread)
	w.says(eng, thread, "chose the model opus ($4.00 in, $20.00 out). It answers from the next message on.")
	w.says(eng, thread, "opus 5.5")
	if n := w.count(`SELECT count(*) FROM inbox WHERE prompt LIKE '%model=%'`); n != 0 {
		t.Error("the choice of the model was given to the model")
	}
	answered := func(model string, n int64) {
		t.Helper()
		if got := w.count(`SELECT count(DISTINCT turn_id) FROM ledger WHERE kind = 'call' AND model LIKE '%` + model + `%'`); got != n {
			t.Errorf("%d turns were answered by %s, want %d", got, model, n)
		}
	}
	answered("opus", 1)

	// Another process of the bot goes on with what was chosen.
	w.stop()
	w.start()
	second := w.post(linus, eng, thread, "say: two, of model=gpt5") // which is what they write about
	w.done(eng, thread, second)
	answered("opus", 2)

	// The prices come before the choice, and a button makes it.
	w.post(linus, eng, thread, "@deckhand model")
	w.told(linus, eng, thread, "sonnet ($2.00 in, $10.00 out); opus ($4.00 in, $20.00 out), which answers now")
	w.post(linus, eng, thread, "@deckhand model haiku")
	w.told(linus, eng, thread, "The model “haiku” cannot be chosen here")
	asked := w.find(eng, thread, "the buttons", func(m message) bool { return m.EphemeralTo == linus && m.has("say:0") })
	w.click(linus, eng, asked.TS, "say:0")
	w.says(eng, thread, "chose the model sonnet")
	third := w.post(linus, eng, thread, "say: three")
	w.done(eng, thread, third)
	answered("sonnet", 1)
	for _, m := range w.messages(eng, thread) {
		if strings.Contains(m.all(), "Set model to") {
			t.Errorf("what the process says of the choice is shown as the turn's: %s", m.all())
		}
	}

	// Two people at once: both are told of, and the last one holds.
	var both sync.WaitGroup
	both.Go(func() { w.post(ada, eng, thread, "@deckhand model opus") })
	both.Go(func() { w.post(grace, eng, thread, "@deckhand effort high") })
	both.Wait()
	w.says(eng, thread, "Ada Admin chose the model opus")
	w.says(eng, thread, "chose high effort")
	w.post(mallory, eng, thread, "@deckhand model sonnet")
	w.told(mallory, eng, thread, "You don't have access")
	fourth := w.post(linus, eng, thread, "say: four")
	w.done(eng, thread, fourth)
	answered("opus", 3)
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'steered'`); n != 4 {
		t.Errorf("%d rows of the audit tell of what was chosen, want 4", n)
	}

	// A refused choice in a message begins nothing.
	for _, model := range []string{"haiku", "gpt5"} {
		refused := w.post(linus, eng, "", "@deckhand model="+model+" say: never")
		w.told(linus, eng, refused, "The model “"+model+"” cannot be chosen here. You can choose, at these prices per million tokens: sonnet ($2.00 in, $10.00 out); opus ($4.00 in, $20.00 out). Nothing was begun: send your message again.")
		w.post(linus, eng, refused, "@deckhand retry")
		w.told(linus, eng, refused, "There is no session in this thread yet")
	}
}

// TestPlanModeAndSessions: a plan is wanted once, a new session keeps the old one's record,
// and the last message is done again.
func TestPlanModeAndSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	thread := w.post(linus, eng, "", "@deckhand say: one")
	w.done(eng, thread, thread)

	w.post(linus, eng, thread, "plan")
	w.says(eng, thread, "wants a plan first")
	w.stop()
	w.start()
	planned := w.post(linus, eng, thread, "do it\ntool: ExitPlanMode {\"plan\":\"Say it.\"}\nsay: it is done")
	plan := w.card(eng, thread)
	if !strings.Contains(plan.all(), "begin work on its plan") {
		t.Errorf("the card is not the plan: %s", plan.all())
	}
	w.click(grace, eng, plan.TS, "approve")
	w.done(eng, thread, planned)
	if n := w.count(`SELECT count(*) FROM threads WHERE mode <> ''`); n != 0 {
		t.Error("a plan is wanted again after it was approved")
	}

	again := w.post(linus, eng, thread, "append\ntool: Bash {\"command\":\"echo x >> ran\"}\nsay: appended")
	w.click(grace, eng, w.card(eng, thread).TS, "approve")
	w.done(eng, thread, again)
	retried := w.post(linus, eng, thread, "retry")
	card := w.find(eng, thread, "the card of the retry", func(m message) bool { return m.TS > retried && m.has("approve") })
	w.post(ada, eng, thread, "retry")
	w.told(ada, eng, thread, "The last message is still being worked on")
	w.click(grace, eng, card.TS, "approve")
	w.done(eng, thread, retried)
	if b, err := os.ReadFile(filepath.Join(w.Workspace, "ran")); err != nil || string(b) != "x\nx\n" {
		t.Errorf("the command ran as %q, %v", b, err)
	}

	w.done(eng, thread, w.post(linus, eng, thread, "context"))
	w.says(eng, thread, "System prompt")
	w.done(eng, thread, w.post(linus, eng, thread, "new"))
	w.says(eng, thread, "A new session begins here")
	w.post(linus, eng, thread, "sessions")
	w.told(linus, eng, thread, "Sessions of this thread")
	list := w.find(eng, thread, "the list", func(m message) bool { return strings.Contains(m.all(), "Sessions of this thread") })
	if strings.Count(list.all(), "• ") < 2 || !strings.Contains(list.all(), "now · ") {
		t.Errorf("the list is %s", list.all())
	}
	last := w.post(linus, eng, thread, "say: in the new one")
	w.done(eng, thread, last)
	w.auditIsWhole()
}
