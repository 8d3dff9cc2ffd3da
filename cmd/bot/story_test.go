package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// The people and places of the playground.
const (
	ada     = "U0ADA"     // admin
	grace   = "U0GRACE"   // approver
	linus   = "U0LINUS"   // user
	mallory = "U0MALLORY" // nobody
	guest   = "U0GUEST"
	eng     = "C0ENG"
	random  = "C0RANDOM" // no project
	shared  = "C0SHARED"
)

// TestTheDemoStory is the main job, end to end: mention, work, approve, result,
// cost, on in the same thread, and on after a restart, in the same session.
func TestTheDemoStory(t *testing.T) {
	t.Parallel()
	w := ownPostgres(t)
	if testsPass(t, w.Workspace) {
		t.Fatal("the sample's tests pass before the fix")
	}

	thread := w.post(linus, eng, "", "@deckhand fix the failing test")
	w.find(eng, thread, "the eyes", func(m message) bool { return m.TS == thread && m.reacted("eyes") })

	// Linus may ask, but not approve; he is told so, and nobody else is.
	card := w.card(eng, thread)
	if !strings.Contains(card.all(), "npm test") {
		t.Errorf("the card does not show the command: %s", card.all())
	}
	w.eventually("Grace to have the card", func() bool {
		return slices.ContainsFunc(w.notices(), func(n notice) bool { return n.User == grace && strings.Contains(n.Text, "npm test") })
	})
	if card = w.message(eng, card.TS); card.Edits != 0 || !strings.Contains(card.all(), "Sent to Ada Admin and Grace Approver") {
		t.Errorf("the card was not complete when it was posted: %d edits, %s", card.Edits, card.all())
	}
	w.click(linus, eng, card.TS, "approve")
	w.told(linus, eng, thread, "Only approvers can decide")
	if !w.card(eng, thread).has("approve") {
		t.Error("a refused click changed the card")
	}

	// Grace approves until the story is over.
	w.approveAll(grace, eng, thread)
	if !testsPass(t, w.Workspace) {
		t.Error("the sample's tests do not pass after the fix")
	}
	final := w.find(eng, thread, "the final message", func(m message) bool {
		return m.User == w.BotUser && strings.Contains(m.all(), "steps ·") && strings.Contains(m.all(), "$")
	})
	if final.has("stop") {
		t.Error("the final message still has a Stop button")
	}

	// The same process goes on.
	second := w.post(linus, eng, thread, "say: a second answer")
	w.says(eng, thread, "a second answer")
	w.done(eng, thread, second)

	// The costs are those of the model's own bill.
	w.post(linus, eng, thread, "@deckhand costs")
	w.says(eng, thread, "This thread")
	w.assertLedgerEqualsBill()
	if n := w.count(`SELECT count(*) FROM epochs`); n != 1 {
		t.Errorf("%d processes ran for two messages", n)
	}

	w.stop()
	w.start()
	again := w.post(linus, eng, thread, "say: after the restart")
	w.says(eng, thread, "after the restart")
	w.done(eng, thread, again)
	if s, e := w.count(`SELECT count(*) FROM sessions`), w.count(`SELECT count(*) FROM epochs`); s != 1 || e != 2 {
		t.Errorf("%d sessions and %d epochs; want one session in two processes", s, e)
	}

	// The demo starts its database again, and bot and CLI go on.
	bot, database := w.PIDs["bot"], w.PIDs["postgres"]
	if err := syscall.Kill(database, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.renewed("postgres", database)
	last := w.post(linus, eng, thread, "say: after the database")
	w.says(eng, thread, "after the database")
	w.done(eng, thread, last)
	if n := w.count(`SELECT count(*) FROM epochs`); n != 2 || w.PIDs["bot"] != bot {
		t.Errorf("%d processes ran for the session, and the bot is %d, was %d; want the same ones to go on", n, w.PIDs["bot"], bot)
	}
}

// aDenialReachesTheModel: the person's reason steers it, and nothing runs.
func aDenialReachesTheModel(t *testing.T, w *world) {
	thread, prompt := w.begin(ada, eng, "@deckhand do this\ntool: Bash {\"command\":\"touch forbidden\"}\nsay: I am done.")
	card := w.card(eng, thread)
	w.click(ada, eng, card.TS, "deny")
	w.find(eng, thread, "the card to say who denied", func(m message) bool {
		return m.TS == card.TS && strings.Contains(m.all(), "denied by") && strings.Contains(m.all(), ada) && !m.has("approve")
	})
	w.done(eng, thread, prompt)
	if _, err := os.Stat(filepath.Join(w.Workspace, "forbidden")); err == nil {
		t.Error("the denied command ran")
	}
}

// twoClicksAtOnce: the first wins, the other is told, the tool runs once.
func twoClicksAtOnce(t *testing.T, w *world) {
	thread, prompt := w.begin(linus, eng, "@deckhand go\ntool: Bash {\"command\":\"echo x >> ran\"}\nsay: ok")
	card := w.card(eng, thread)
	var wg sync.WaitGroup
	for _, who := range []string{ada, grace} {
		wg.Go(func() { w.click(who, eng, card.TS, "approve") })
	}
	wg.Wait()
	w.done(eng, thread, prompt)
	late := w.find(eng, thread, "the later one to be told", func(m message) bool { return strings.Contains(m.all(), "approved already") })
	if winner := w.count(`SELECT count(*) FROM approvals WHERE status = 'allowed' AND input LIKE '%>> ran%' AND decided_by <> '` + late.EphemeralTo + `'`); winner != 1 {
		t.Errorf("the one who was told is the one who won: %s", late.EphemeralTo)
	}
	if b, err := os.ReadFile(filepath.Join(w.Workspace, "ran")); err != nil || string(b) != "x\n" {
		t.Errorf("the command ran as %q, %v", b, err)
	}
}

// TestARestartInMidApproval: the bot is killed while a card is open. The card
// still works, the session goes on, the tool runs once.
func TestARestartInMidApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	thread := w.post(linus, eng, "", "@deckhand remember the word heron\nsay: I remember.")
	w.done(eng, thread, thread)
	second := w.post(linus, eng, thread, "go on\ntool: Bash {\"command\":\"echo x >> ran\"}\nsay: finished it")
	card := w.card(eng, thread)
	begun := w.begunAlready()

	old := w.PIDs["bot"]
	tree := descendants(old)
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.renewed("bot", old)
	w.connected()
	w.click(grace, eng, card.TS, "approve")
	w.says(eng, thread, "finished it")
	w.done(eng, thread, second)
	w.agentIs(eng, thread, "active")
	if b, err := os.ReadFile(filepath.Join(w.Workspace, "ran")); err != nil || string(b) != "x\n" {
		t.Errorf("the command ran as %q, %v", b, err)
	}
	w.beginsAgain(begun)
	if n := w.count(`SELECT count(*) FROM approvals WHERE input LIKE '%>> ran%'`); n != 1 {
		t.Errorf("%d cards for one command", n)
	}
	if n := w.count(`SELECT count(*) FROM sessions`); n != 2 {
		t.Errorf("%d sessions in two threads", n)
	}
	if len(tree) < 3 {
		t.Errorf("the bot had only %d processes: %v", len(tree), tree)
	}
	w.assertGone(tree)

	w.lastWords(thread, "the last words of one", false)
	w.lastWords(thread, "the last words of another", true)
	w.nobodyListens(thread)
	w.streamsAndEdits()
}

// begunAlready has a command approved that does not come to its end, and returns its thread.
func (w *world) begunAlready() (thread string) {
	w.t.Helper()
	thread = w.runs(linus, eng, "", "touch begun; tail -f /dev/null")
	card := w.card(eng, thread)
	w.click(grace, eng, card.TS, "approve")
	w.find(eng, thread, "the card to be decided", func(m message) bool { return m.TS == card.TS && !m.has("approve") })
	w.eventually("the command to run", func() bool { return w.exists("begun") })
	return thread
}

// beginsAgain: where the bot was killed while a command ran, whoever is asked for it again is
// told so.
func (w *world) beginsAgain(thread string) {
	w.t.Helper()
	card := w.card(eng, thread)
	if said := card.all(); !strings.Contains(said, "*It was approved before the restart*") || !strings.Contains(said, "Whether it ran to its end is not known.") {
		w.t.Errorf("the card does not tell what became of the command:\n%s", said)
	}
	w.click(grace, eng, card.TS, "deny")
	w.done(eng, thread, thread)
}

// nobodyListens: Slack gives up what it has to deliver while the bot is away, and while its
// sockets are. Each message is answered once, as its author left it.
func (w *world) nobodyListens(thread string) {
	w.t.Helper()
	fault := func(f map[string]any) { w.must(http.MethodPost, "/_control/faults", f, nil) }
	fault(map[string]any{"lose_events": 1000})
	mention := w.post(ada, eng, "", "@deckhand say: a mistake")
	w.must(http.MethodPost, "/_control/messages/edit", map[string]any{"user": ada, "channel": eng, "ts": mention, "text": "@deckhand say: found and corrected"}, nil)
	replies := []string{w.post(linus, eng, thread, "say: found first"), w.post(grace, eng, thread, "say: found second")}
	gone := w.post(linus, eng, thread, "say: a mistake too")
	w.must(http.MethodPost, "/_control/messages/delete", map[string]any{"user": linus, "channel": eng, "ts": gone}, nil)
	below := w.post(grace, eng, mention, "say: found below")
	w.must(http.MethodDelete, "/_control/faults", nil, nil)
	bot := w.PIDs["bot"]
	if err := syscall.Kill(bot, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	w.renewed("bot", bot)
	w.done(eng, mention, mention)
	w.done(eng, mention, below)
	for _, ts := range replies {
		w.done(eng, thread, ts)
	}

	fault(map[string]any{"lose_events": 1000})
	replies = append(replies, w.post(linus, eng, thread, "say: found third"))
	w.must(http.MethodDelete, "/_control/faults", nil, nil)
	fault(map[string]any{"disconnect": "refresh_requested"})
	w.done(eng, thread, replies[2])

	var order []string
	for _, m := range w.messages(eng, thread) {
		for _, text := range []string{"found first", "found second", "found third", "mistake"} {
			if m.User == w.BotUser && strings.Contains(m.Text, text) {
				order = append(order, text)
			}
		}
	}
	if !slices.Equal(order, []string{"found first", "found second", "found third"}) {
		w.t.Errorf("the thread was answered with %q", order)
	}
	if n := w.count(`SELECT count(*) FROM turns t JOIN inbox i ON i.turn_id = t.id WHERE i.prompt LIKE '%found %'`); n != 5 {
		w.t.Errorf("%d turns for five messages", n)
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE prompt LIKE '%mistake%'`); n != 0 {
		w.t.Errorf("%d messages were worked on that their authors had taken back", n)
	}
}

// lastWords has the bot die between a turn's end and Slack, which is away meanwhile. The
// next process says what there was to say, once, and marks the prompt: one of the same
// replica, or of another one.
func (w *world) lastWords(thread, words string, another bool) {
	w.t.Helper()
	for _, method := range []string{"chat.postMessage", "chat.update", "reactions.add"} {
		w.must(http.MethodPost, "/_control/faults", map[string]any{"method": method, "status": 503}, nil)
	}
	prompt := w.post(linus, eng, thread, "say: "+words)
	w.eventually("the turn to end in the books", func() bool {
		return w.count(`SELECT count(*) FROM outbox o JOIN turns r ON r.id = o.turn_id WHERE o.kind = 'turn' AND o.body LIKE '%`+words+`%'`) == 1
	})
	bot, folder := w.PIDs["bot"], filepath.Join(w.dir, "bot")
	if another {
		if err := os.Rename(folder, folder+"-gone"); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := syscall.Kill(bot, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	w.must(http.MethodDelete, "/_control/faults", nil, nil)
	w.renewed("bot", bot)
	w.says(eng, thread, words)
	w.done(eng, thread, prompt)
	w.eventually("nothing is left to be said", func() bool { return w.count(`SELECT count(*) FROM outbox`) == 0 })
	said := 0
	for _, m := range w.messages(eng, thread) {
		if strings.Contains(m.all(), "Working…") {
			w.t.Errorf("a message is left working: %s", m.all())
		}
		if m.User != linus && strings.Contains(m.all(), words) {
			said++
		}
	}
	if said != 1 {
		w.t.Errorf("%q was said %d times", words, said)
	}
}

// TestClear: a new session from nothing, in the same thread; the ledger follows. What
// goes on after a restart can be stopped.
func TestClear(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	thread := w.post(linus, eng, "", "@deckhand say: one")
	w.done(eng, thread, thread)
	cleared := w.post(linus, eng, thread, "@deckhand /clear")
	w.done(eng, thread, cleared)
	second := w.post(linus, eng, thread, "say: two")
	w.says(eng, thread, "two")
	w.done(eng, thread, second)
	w.assertLedgerEqualsBill()
	w.stop()
	w.start()
	third := w.post(linus, eng, thread, "say: three")
	w.says(eng, thread, "three")
	w.done(eng, thread, third)
	for _, m := range w.messages(eng, thread) {
		if strings.Contains(m.all(), "cannot be resumed") {
			t.Error("the session after the /clear could not be resumed")
		}
	}
	if n := w.count(`SELECT count(*) FROM sessions`); n != 2 {
		t.Errorf("%d sessions", n)
	}
	stop(t, w, thread)
}

// stop: by the button, and by Slack's own for whoever may press ours.
func stop(t *testing.T, w *world, thread string) {
	before := w.count(`SELECT count(DISTINCT turn_id) FROM ledger`)
	long := "slow: 40\nsay: " + strings.Repeat("This takes its time. ", 400)
	first := w.post(linus, eng, thread, long)
	live := w.find(eng, thread, "a Stop button", func(m message) bool { return m.has("stop") })
	w.click(linus, eng, live.TS, "stop")
	w.find(eng, thread, "the turn to say who stopped it", func(m message) bool {
		return m.TS == live.TS && strings.Contains(m.all(), "Stopped by") && !m.has("stop")
	})
	w.find(eng, thread, "the prompt to be marked as stopped, not as done", func(m message) bool {
		return m.TS == first && m.reacted("black_square_for_stop") && !m.reacted("white_check_mark")
	})
	w.post(linus, eng, thread, long)
	w.find(eng, thread, "another Stop button", func(m message) bool { return m.has("stop") })
	native := map[string]any{"user": mallory, "channel": eng, "thread_ts": thread}
	w.must(http.MethodPost, "/_control/stop", native, nil)
	w.told(mallory, eng, thread, "don't have access")
	w.find(eng, thread, "the thread to say what it is about, and what is being done", func(m message) bool {
		return m.Session.Status == "processing" && m.Session.Title == "say: one" && m.Status == "is writing"
	})
	native["user"] = linus
	w.must(http.MethodPost, "/_control/stop", native, nil)
	w.agentIs(eng, thread, "active")
	w.find(eng, thread, "the status line to end", func(m message) bool { return m.TS == thread && m.Status == "" })
	w.eventually("the second turn to end", func() bool { return w.count(`SELECT count(*) FROM turns WHERE state = 'interrupted'`) == 2 })
	last := w.post(linus, eng, thread, "say: still here")
	w.says(eng, thread, "still here")
	w.done(eng, thread, last)
	// What a stream that was cut off had cost is known to the provider alone, so
	// the bill is not compared here; what the CLI reported is in the ledger.
	if n := w.count(`SELECT count(DISTINCT turn_id) FROM ledger`) - before; n != 3 {
		t.Errorf("%d of three turns are in the ledger", n)
	}
}

// TestWhoMayNot: each is told, alone, and nothing happens. Nor does anything where the
// bot itself may not.
func TestWhoMayNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tests := []struct{ name, user, channel, text, told string }{
		{"a stranger", mallory, eng, "@deckhand say: hi", "don't have access"},
		{"a guest", guest, "C0GENERAL", "@deckhand say: hi", "Guests"},
		{"a channel without a project", linus, random, "@deckhand say: hi", "No project"},
		{"a channel shared with another company", ada, shared, "@deckhand say: hi", "shared with other companies"},
		{"a mention without a text", linus, eng, "@deckhand", "@"},
		{"an approval that is not there", ada, eng, "@deckhand approve AB2DE", "AB2DE"},
		{"a stop where nothing runs", linus, eng, "@deckhand stop", "Nothing is running"},
	}
	for _, tt := range tests {
		ts := w.post(tt.user, tt.channel, "", tt.text)
		m := w.find(tt.channel, ts, tt.name+" to be told", func(m message) bool { return m.EphemeralTo == tt.user })
		if !strings.Contains(m.all(), tt.told) {
			t.Errorf("%s was told %s", tt.name, m.all())
		}
	}
	if n := w.count(`SELECT count(*) FROM threads`); n != 0 {
		t.Errorf("%d threads were opened", n)
	}
	aWrongToken(t, w)
}

// aLongPaste: 40 KB come in whole, and 40 KB go out as a message and a file.
func aLongPaste(t *testing.T, w *world) {
	paste := strings.Repeat("All work and no play makes a dull log line.\n", 900)
	thread := w.post(linus, eng, "", "@deckhand say: read it\n"+paste)
	w.says(eng, thread, "read it")
	w.done(eng, thread, thread)
	again := w.post(linus, eng, thread, "say: "+strings.Repeat("lorem ipsum dolor ", 2500)+"THE-END")
	w.done(eng, thread, again)
	w.find(eng, thread, "the whole text as a file", func(m message) bool { return len(m.Files) == 1 })
	w.find(eng, thread, "its beginning in one message", func(m message) bool {
		return strings.Contains(m.all(), "lorem ipsum") && strings.Contains(m.all(), "more characters* are in the file") && len(m.all()) < 12_000
	})
}

func (w *world) approveAll(user, channel, thread string) {
	w.t.Helper()
	w.eventually("the story to end", func() bool {
		for _, m := range w.messages(channel, thread) {
			if m.TS == thread && m.reacted("white_check_mark") {
				return true
			}
			if m.has("approve") {
				w.click(user, channel, m.TS, "approve")
			}
		}
		return false
	})
}

func testsPass(t *testing.T, dir string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "--test") // what npm test runs
	cmd.Dir = dir
	return cmd.Run() == nil
}

// assertLedgerEqualsBill compares what we booked with what the model charged, to
// the micro-dollar. Money of calls that the CLI has not reported yet is reported
// with its next result, so the test must have ended a turn.
func (w *world) assertLedgerEqualsBill() {
	w.t.Helper()
	var bill struct {
		Total struct {
			MicroUSD int64 `json:"metered_micro_usd"`
		} `json:"total"`
	}
	w.must(http.MethodGet, "/_control/bill", nil, &bill)
	if got := w.count(`SELECT COALESCE(sum(micro_usd), 0)::bigint FROM ledger`); got != bill.Total.MicroUSD {
		w.t.Errorf("the ledger says %d micro-USD, the bill %d", got, bill.Total.MicroUSD)
	}
}

// descendants lists a process and all that come from it.
func descendants(pid int) []int {
	out := []int{pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		b, _ := os.ReadFile(file)
		for f := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				out = append(out, descendants(child)...)
			}
		}
	}
	return out
}

// assertGone waits for processes to end.
func (w *world) assertGone(pids []int) {
	w.t.Helper()
	for _, pid := range pids {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		w.eventually(fmt.Sprintf("process %d to be gone: %s", pid, status), func() bool { return !lives(pid) })
	}
}

// lives reports whether there is such a process, and it has not ended.
func lives(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}
