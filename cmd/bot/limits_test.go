package main

import "testing"

// TestWhatUsesTooMuchIsStopped: an allowed command takes more memory than a session may
// have. Its turn ends, the thread is told which limit it was and what to do, and the next
// message goes on in a new process.
func TestWhatUsesTooMuchIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, "sandbox: {limits: {memory: 1GiB}}", "")
	// Without a timeout of its own the CLI would end it after two minutes, which a busy machine takes.
	thread := w.post(linus, eng, "", `@deckhand tool: Bash {"command":"(head -c 2500M /dev/zero; sleep 1000) | tail","timeout":600000}`)
	w.click(ada, eng, w.card(eng, thread).TS, "approve")
	w.says(eng, thread, "of memory and may use 1 GiB. Write “continue” to go on from here with less; if the work needs more, ask an admin to raise sandbox.limits.memory")
	next := w.post(linus, eng, thread, "@deckhand hello again")
	w.done(eng, thread, next)
	w.doneWithAll()
}
