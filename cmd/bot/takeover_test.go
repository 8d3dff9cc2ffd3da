package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestSwitchesAreTakenOver: what people switch in a thread on one replica holds on the next, which
// has a folder of its own and the same database: after the first was killed, and after a restart.
func TestSwitchesAreTakenOver(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var dead atomic.Bool
	address := stockThatDies(t, &calls, &dead)
	w := unstartedWorld(t)
	w.env = []string{"STOCK_TOKEN=stock-canary"}
	w.configure("    workspace: worktree\n    models: [haiku, sonnet, opus]\n"+stockServer(address)+demoSandbox(t.Context()), "posture: contained\npolicy: {rules: [{allow: [mcp__stock__count]}]}\n")
	w.start()
	do := func(thread, text string) {
		t.Helper()
		w.done(eng, thread, w.post(linus, eng, thread, text))
	}
	say := func(thread, text, answer string) {
		t.Helper()
		w.post(linus, eng, thread, text)
		w.says(eng, thread, answer)
	}
	of := func(thread, column string) string {
		t.Helper()
		return w.text(`SELECT ` + column + ` FROM threads WHERE thread_ts = '` + thread + `'`)
	}
	answeredBy := func(thread, model string) {
		t.Helper()
		do(thread, "say: which model is it")
		if got := w.text(`SELECT string_agg(DISTINCT model, ' ') FROM ledger WHERE kind = 'call' AND turn_id = (SELECT max(r.id) FROM turns r JOIN threads t ON t.id = r.thread_id WHERE t.thread_ts = '` + thread + `')`); !strings.Contains(got, model) {
			t.Errorf("%s has answered, and not %s", got, model)
		}
	}
	has := func(thread, file, want string) {
		t.Helper()
		if b, err := os.ReadFile(filepath.Join(of(thread, "workspace"), file)); err != nil || string(b) != want {
			t.Errorf("%s is %q, %v; want %q", file, b, err, want)
		}
	}
	rows := []struct {
		name, first            string
		before, after, restart func(thread string)
	}{
		{
			"the model, switched twice", "say: one",
			func(thread string) {
				say(thread, "model opus", "chose the model opus")
				say(thread, "model sonnet", "chose the model sonnet")
			},
			func(thread string) {
				answeredBy(thread, "sonnet")
				say(thread, "model opus", "chose the model opus")
			},
			func(thread string) { answeredBy(thread, "opus") },
		},
		{
			"plan mode", "say: one",
			func(thread string) { say(thread, "plan", "wants a plan first") },
			func(thread string) {
				if got := of(thread, "mode"); got != "plan" {
					t.Errorf("the mode is %q", got)
				}
				planned := w.post(linus, eng, thread, "do it\ntool: ExitPlanMode {\"plan\":\"Say it.\"}\nsay: it is done")
				w.click(grace, eng, w.card(eng, thread).TS, "approve")
				w.done(eng, thread, planned)
			},
			func(thread string) {
				if got := of(thread, "mode"); got != "" {
					t.Errorf("the mode is %q after the plan was accepted", got)
				}
				do(thread, "say: after the plan")
			},
		},
		{
			"a fork", `tool: Bash {"command":"echo loose > b"}`,
			func(thread string) { say(thread, "fork", "forked this thread") },
			func(thread string) {
				forked := w.text(`SELECT f.thread_ts FROM threads f JOIN threads t ON t.id = f.forked_from WHERE t.thread_ts = '` + thread + `'`)
				do(forked, `tool: Bash {"command":"echo more >> b"}`)
				has(forked, "b", "loose\nmore\n")
			},
			func(thread string) {
				do(thread, `tool: Bash {"command":"echo other >> b"}`)
				has(thread, "b", "loose\nother\n")
			},
		},
		{
			"a retry", `tool: Bash {"command":"echo x >> ran"}`,
			func(string) {},
			func(thread string) {
				do(thread, "retry")
				has(thread, "ran", "x\nx\n")
			},
			func(thread string) {
				do(thread, "retry")
				has(thread, "ran", "x\nx\nx\n")
			},
		},
		{
			"an MCP server, switched off", `tool: mcp__stock__count {"of": "apples"}`,
			func(thread string) { say(thread, "mcp off stock", "switched the MCP server stock off") },
			func(thread string) {
				do(thread, `tool: mcp__stock__count {"of": "apples"}`)
				if n := calls.Load(); n != 1 {
					t.Errorf("it has heard %d calls", n)
				}
				say(thread, "mcp on stock", "switched the MCP server stock on")
			},
			func(thread string) {
				do(thread, `tool: mcp__stock__count {"of": "apples"}`)
				if n := calls.Load(); n != 2 {
					t.Errorf("it has heard %d calls", n)
				}
			},
		},
	}
	threads := make([]string, len(rows))
	for i, row := range rows {
		threads[i] = w.post(linus, eng, "", "@deckhand "+row.first)
	}
	for i, row := range rows {
		w.done(eng, threads[i], threads[i])
		row.before(threads[i])
	}
	w.eventually("the work of all threads is kept", func() bool {
		return w.count(`SELECT count(*) FROM threads t WHERE forked_from IS NULL AND NOT EXISTS (SELECT FROM work k WHERE k.thread_id = t.id AND k.saved_at > (SELECT max(ended_at) FROM turns r WHERE r.thread_id = t.id))`) == 0
	})
	was := w.text(`SELECT string_agg(id, ' ') FROM replicas WHERE alive`)
	w.anotherMachine(threads[0])
	for i, row := range rows {
		t.Log("taken over: " + row.name)
		row.after(threads[i])
	}
	if now := w.text(`SELECT string_agg(id, ' ') FROM replicas WHERE alive`); now == was || now == "" {
		t.Errorf("the replicas that live are %q, and were %q", now, was)
	}
	w.stop()
	w.start()
	for i, row := range rows {
		t.Log("restarted: " + row.name)
		row.restart(threads[i])
	}
	w.auditIsWhole()
}
