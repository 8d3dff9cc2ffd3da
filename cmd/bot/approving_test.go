package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/playground/slack"
)

// aRequestInADirectMessage reaches those who may decide, and ends where they see it.
func aRequestInADirectMessage(t *testing.T, w *world) {
	const im = "D0LINUS"
	thread := w.runs(linus, im, "", "git tag from-afar")
	w.card(im, thread)
	find := func(channel, what string, open bool) message {
		return w.find(channel, "", what, func(m message) bool {
			return strings.Contains(m.all(), "git tag from-afar") && m.has("approve") == open
		})
	}
	copied := find("D0GRACE", "the request, sent to Grace", true)
	if diff := cmp.Diff(map[string]string{grace: "direct"}, w.notified(copied.TS)); diff != "" {
		t.Error("who was notified of it (-want):", diff)
	}
	w.click(grace, "D0GRACE", copied.TS, "approve")
	w.done(im, thread, thread)
	if !w.exists(".git/refs/tags/from-afar") {
		t.Error("what was allowed did not run")
	}
	for _, channel := range []string{"D0GRACE", "D0ADA"} {
		find(channel, "how the request ended", false)
	}
}

// alwaysAllow: a grant applies where it was given and nowhere else, is listed
// and explained, and once it is revoked the same is asked again.
func alwaysAllow(t *testing.T, w *world) {
	thread := w.runs(linus, eng, "", "git tag one")
	card := w.card(eng, thread)
	if diff := cmp.Diff(map[string]string{linus: "thread"}, w.notified(card.TS)); diff != "" {
		t.Error("who was notified of the card (-want):", diff)
	}
	for user, im := range map[string]string{ada: "D0ADA", grace: "D0GRACE"} { // who are not in the thread
		copied := w.find(im, "", "the request, sent to an approver", func(m message) bool { return strings.Contains(m.all(), "git tag one") })
		if diff := cmp.Diff(map[string]string{user: "direct"}, w.notified(copied.TS)); diff != "" {
			t.Error("who was notified of a copy (-want):", diff)
		}
	}
	shown := w.alwaysAllow(grace, eng, card.TS, 1, "thread")
	if !strings.Contains(shown, "Bash(git tag *)") || strings.Contains(shown, "whole project") {
		t.Errorf("an approver is offered:\n%s", shown)
	}
	w.done(eng, thread, thread)

	second := w.runs(linus, eng, thread, "git tag two")
	w.done(eng, thread, second)
	if !w.exists(".git/refs/tags/one") || !w.exists(".git/refs/tags/two") {
		t.Fatal("what was allowed did not run")
	}
	if n := w.count(`SELECT count(*) FROM approvals WHERE decided_via = 'grant' AND decided_by = 'U0GRACE' AND status = 'allowed'`); n != 1 {
		t.Errorf("%d calls were allowed by the grant, not 1", n)
	}
	w.says(eng, thread, "rule of")

	third := w.runs(linus, eng, thread, "git tag three && touch sneaked-in")
	w.click(ada, eng, w.card(eng, thread).TS, "deny")
	w.done(eng, thread, third)
	elsewhere := w.runs(linus, eng, "", "git tag four")
	w.click(ada, eng, w.card(eng, elsewhere).TS, "deny")
	w.done(eng, elsewhere, elsewhere)
	if w.exists(".git/refs/tags/three") || w.exists("sneaked-in") || w.exists(".git/refs/tags/four") {
		t.Error("the grant was wider than what was shown")
	}

	w.post(linus, eng, thread, "@deckhand grants")
	w.told(linus, eng, thread, "Bash(git tag *)")
	home := w.home(grace)
	w.clickHome(grace, home, "revoke")
	w.eventually("the grant to be revoked", func() bool {
		return w.count(`SELECT count(*) FROM grants WHERE revoked_by = 'U0GRACE'`) == 1
	})
	fifth := w.runs(linus, eng, thread, "git tag five")
	w.card(eng, thread)
	w.approveAtHome(ada, w.text(`SELECT id FROM approvals WHERE status = 'pending' AND input LIKE '%git tag five%'`))
	w.done(eng, thread, fifth)
}

// approveForThisSession: the very same command is not asked again in this thread.
func approveForThisSession(t *testing.T, w *world) {
	thread := w.runs(linus, eng, "", "mkdir -p again")
	w.alwaysAllow(ada, eng, w.card(eng, thread).TS, 0, "session") // Grace has a grant of her own to revoke
	w.done(eng, thread, thread)
	again := w.runs(linus, eng, thread, "mkdir -p again")
	w.done(eng, thread, again)
	other := w.runs(linus, eng, thread, "mkdir -p other")
	w.click(ada, eng, w.card(eng, thread).TS, "deny")
	w.done(eng, thread, other)
	if w.exists("other") {
		t.Error("another command was covered")
	}
}

const quorumOfTwo = `policy:
  rules:
    - allow: Bash(ls *)
    - ask: Bash(mkdir *)
      approvers: [U0ADA, U0GRACE]
      quorum: 2
      because: folders are forever
    - ask: Bash(touch *)
      dangerous: true
    - deny: Bash(curl *)
      because: nothing leaves the house
`

// quorum: two people, each once, and nobody who was not named.
func quorum(t *testing.T, w *world) {
	thread := w.runs(linus, eng, "", "mkdir both")
	card := w.card(eng, thread)
	if card.has("always") {
		t.Error("one person could allow for good what takes two")
	}
	w.click(linus, eng, card.TS, "approve")
	w.told(linus, eng, thread, "not among them")
	w.click(ada, eng, card.TS, "approve")
	w.told(ada, eng, thread, "One more person")
	w.says(eng, thread, "1 of 2")
	w.click(ada, eng, card.TS, "approve")
	w.told(ada, eng, thread, "already")
	if w.exists("both") {
		t.Fatal("it ran with one vote")
	}
	// The votes outlive the bot.
	old := w.PIDs["bot"]
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.renewed("bot", old)
	w.connected()
	w.click(grace, eng, card.TS, "approve")
	w.done(eng, thread, thread)
	if !w.exists("both") {
		t.Error("it did not run with two votes")
	}
	w.find(eng, thread, "both names on the card", func(m message) bool {
		return m.TS == card.TS && strings.Contains(m.all(), ada) && strings.Contains(m.all(), grace) && !m.has("approve")
	})
	w.auditIsWhole()
}

// theTwoStepsOfSomethingDangerous: neither a click nor a reply is enough alone.
func theTwoStepsOfSomethingDangerous(t *testing.T, w *world) {
	thread := w.runs(linus, eng, "", "touch by-modal")
	card := w.card(eng, thread)
	v, text := w.opens(ada, eng, card.TS, "approve")
	if !strings.Contains(text, "touch by-modal") {
		t.Errorf("the second step does not show what will run:\n%s", text)
	}
	if w.exists("by-modal") {
		t.Fatal("one click was enough")
	}
	w.submit(ada, v, map[string]any{"read": map[string]any{"read": []string{"yes"}}})
	w.done(eng, thread, thread)

	second := w.runs(linus, eng, thread, "touch by-reply")
	card = w.card(eng, thread)
	_, code, _ := strings.Cut(card.all(), "approve ")
	w.post(grace, eng, thread, "approve "+code[:5])
	w.told(grace, eng, thread, "confirm")
	if w.exists("by-reply") {
		t.Fatal("one reply was enough")
	}
	w.post(grace, eng, thread, "approve "+code[:5]+" confirm")
	w.done(eng, thread, second)
	if !w.exists("by-modal") || !w.exists("by-reply") {
		t.Error("it did not run")
	}
}

// rulesDecide: what the rules allow and deny asks nobody, and what hides in an
// allowed command is asked.
func rulesDecide(t *testing.T, w *world) {
	thread := w.runs(linus, eng, "", "ls -la")
	w.done(eng, thread, thread)
	denied := w.runs(linus, eng, thread, "ls; sh -c 'curl -O x'")
	w.done(eng, thread, denied)
	w.says(eng, thread, "nothing leaves the house")
	smuggled := w.runs(linus, eng, thread, "ls $(touch smuggled)")
	card := w.card(eng, thread)
	w.click(ada, eng, card.TS, "deny")
	w.done(eng, thread, smuggled)
	if w.exists("smuggled") {
		t.Error("a substitution ran under an allow rule")
	}
	if n := w.count(`SELECT count(*) FROM approvals WHERE decided_via = 'rule' AND status = 'denied' AND rule LIKE 'deny%'`); n != 1 {
		t.Errorf("%d denials by rule", n)
	}
}

// oneCardForSeveralRequests: what was asked without a word between stands on
// one card, a row each, also what the model still writes when the first is asked.
func oneCardForSeveralRequests(t *testing.T, w *world) {
	thread := w.post(linus, eng, "", "@deckhand slow: 15\n"+`tools: [{"name":"Bash","input":{"command":"mkdir row-1"}},{"name":"Bash","input":{"command":"mkdir row-2"}},{"name":"Bash","input":{"command":"mkdir row-3"}}]`)
	card := w.card(eng, thread)
	for i, name := range []string{"row-1", "row-2", "row-3"} {
		w.find(eng, thread, "a row for "+name, func(m message) bool {
			return m.TS == card.TS && strings.Contains(m.all(), "mkdir "+name) && m.has("approve")
		})
		action := "approve"
		if i == 1 {
			action = "deny"
		}
		w.clickOn(grace, eng, card.TS, action, w.pendingID("mkdir "+name))
		w.eventually(name+" to be decided", func() bool {
			return w.count(`SELECT count(*) FROM approvals WHERE status <> 'pending' AND input LIKE '%mkdir row-%'`) == int64(i+1)
		})
	}
	w.done(eng, thread, thread)
	if !w.exists("row-1") || w.exists("row-2") || !w.exists("row-3") {
		t.Error("the wrong ones ran")
	}
	if n := w.count(`SELECT count(DISTINCT card_id) FROM approvals WHERE input LIKE '%mkdir row-%'`); n != 1 {
		t.Errorf("%d cards for one answer's requests", n)
	}
	w.find(eng, thread, "the card with three endings", func(m message) bool {
		return m.TS == card.TS && !m.has("approve") && strings.Count(m.all(), "approved by") >= 2 && strings.Contains(m.all(), "denied by")
	})

	// What the CLI does at once is asked at once, and decided together: what is not ticked is denied.
	// It reads files at once. Commands that only read it runs at once too, but if the machine is busy
	// it gives up looking into one, and runs that one after the others.
	next := w.post(linus, eng, thread, `@deckhand tools: [{"name":"Read","input":{"file_path":"/etc/hosts"}},{"name":"Read","input":{"file_path":"/etc/passwd"}},{"name":"Read","input":{"file_path":"/etc/group"}}]`)
	card = w.card(eng, thread)
	card = w.find(eng, thread, "a row for each", func(m message) bool {
		return m.TS == card.TS && strings.Contains(m.all(), "/etc/group") && m.has("approve_ticked")
	})
	all := w.untick(ada, eng, card, w.pendingID("/etc/passwd"))
	w.clickOn(ada, eng, card.TS, "approve_ticked", all)
	w.done(eng, thread, next)
	if n := w.count(`SELECT 10 * count(*) FILTER (WHERE status = 'allowed' AND input NOT LIKE '%/etc/passwd%') + count(*) FILTER (WHERE status = 'denied' AND input LIKE '%/etc/passwd%')
		FROM approvals WHERE decided_by = 'U0ADA' AND decided_via = 'together' AND input LIKE '%/etc/%'`); n != 21 {
		t.Errorf("decided together: %d", n)
	}
	w.find(eng, thread, "the card with two approved and one denied", func(m message) bool {
		return m.TS == card.TS && strings.Count(m.all(), "approved by") == 2 && strings.Count(m.all(), "denied by") == 1
	})
}

// TestTimeIsUp: silence pauses the turn, or counts as a no where the policy says
// so, and in both cases the thread is told and nothing runs.
func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, `policy:
  rules:
    - ask: Bash(mkdir *)
      timeout: 3s
    - ask: Bash(touch *)
      timeout: 3s
      on_timeout: deny
  reminders:
    - after: 1s
      to: [thread, approvers, C0GENERAL]
`)
	thread := w.runs(linus, eng, "", "mkdir paused")
	card := w.card(eng, thread)
	w.says(eng, thread, "is paused")
	w.find(eng, thread, "the card to say that it expired", func(m message) bool {
		return m.TS == card.TS && strings.Contains(m.all(), "expired") && !m.has("approve")
	})

	second := w.runs(linus, eng, "", "touch denied")
	w.done(eng, second, second)
	w.says(eng, second, "takes that as a no")
	if w.exists("paused") || w.exists("denied") {
		t.Error("silence let something run")
	}
	if n := w.count(`SELECT count(*) FROM approvals WHERE status = 'expired'`); n != 2 {
		t.Errorf("%d approvals expired, not 2", n)
	}
	// Reminders may be overtaken by the end of what they are about, on a slow machine.
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'reminded'`); n > 0 {
		w.find(slack.ChannelGeneral, "", "a reminder in the channel", func(m message) bool {
			return m.User == w.BotUser && strings.Contains(m.all(), "waiting")
		})
	}
	w.auditIsWhole()
}

// TestTheAuditTellsTheWholeStory: from the prompt to the commit, and it shows when
// somebody changed it.
func TestTheAuditTellsTheWholeStory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	thread := w.runs(linus, eng, "", "git -c user.name=x -c user.email=x@example.com commit --allow-empty -m story")
	w.click(mallory, eng, w.card(eng, thread).TS, "approve")
	w.told(mallory, eng, thread, "Only approvers can decide")
	w.click(grace, eng, w.card(eng, thread).TS, "approve")
	w.done(eng, thread, thread)
	commit, err := exec.CommandContext(t.Context(), "git", "-C", w.Workspace, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}

	out, ok := w.bot("audit", "export")
	var call struct {
		Prompt      string `json:"prompt"`
		RequestedBy string `json:"requested_by"`
		DecidedBy   string `json:"decided_by"`
		Status      string `json:"status"`
		ResultError *bool  `json:"result_error"`
		Cost        int64  `json:"turn_cost_micro_usd"`
		Commit      string `json:"commit"`
	}
	if err := json.Unmarshal([]byte(out), &call); err != nil || !ok {
		t.Fatalf("export: %v\n%s", err, out)
	}
	if !strings.Contains(call.Prompt, "--allow-empty") || call.RequestedBy != linus || call.DecidedBy != grace || call.Status != "allowed" ||
		call.ResultError == nil || *call.ResultError || call.Cost <= 0 || call.Commit != strings.TrimSpace(string(commit)) {
		t.Errorf("the export tells another story:\n%s", out)
	}
	if out, ok := w.bot("audit", "export", "--format", "csv"); !ok || !strings.HasPrefix(out, "asked_at,") {
		t.Errorf("as CSV: %s", out)
	}
	if out, ok := w.bot("audit", "export", "--events"); !ok || !strings.Contains(out, `"refused"`) || !strings.Contains(out, mallory) {
		t.Errorf("the events have no refusal: %s", out)
	}
	if out, ok := w.bot("audit", "export", "--format", "xml"); ok || !strings.Contains(out, "jsonl or csv") {
		t.Errorf("a format that is none: %s", out)
	}

	anchors, ok := w.bot("audit", "anchors")
	if !ok {
		t.Fatal(anchors)
	}
	kept := filepath.Join(t.TempDir(), "anchors")
	if err := os.WriteFile(kept, []byte(anchors), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, ok := w.bot("audit", "verify", "--anchors", kept); !ok || !strings.Contains(out, "agree") {
		t.Errorf("verify: %s", out)
	}
	for _, tampering := range []struct{ what, sql, undo, want string }{
		{"another decider", `UPDATE audit SET actor = 'U0ADA' WHERE kind = 'decided'`, `UPDATE audit SET actor = 'U0GRACE' WHERE kind = 'decided'`, "was changed"},
		{"an approval without a decision", `UPDATE approvals SET decided_by = 'U0ADA'`, `UPDATE approvals SET decided_by = 'U0GRACE'`, "the audit says"},
	} {
		if err := w.tamper(tampering.sql); err == nil {
			t.Errorf("%s: the database let it happen", tampering.what)
		}
		if err := w.tamper(`SET session_replication_role = replica; ` + tampering.sql); err != nil {
			t.Fatal(err)
		}
		if out, ok := w.bot("audit", "verify"); ok || !strings.Contains(out, tampering.want) {
			t.Errorf("%s is not found: %s", tampering.what, out)
		}
		if err := w.tamper(`SET session_replication_role = replica; ` + tampering.undo); err != nil {
			t.Fatal(err)
		}
	}
	w.auditIsWhole()
	if err := w.tamper(`SET session_replication_role = replica; DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)`); err != nil {
		t.Fatal(err)
	}
	if out, ok := w.bot("audit", "verify", "--anchors", kept); ok || !strings.Contains(out, "cut off") {
		t.Errorf("a chain that was cut off: %s", out)
	}
}

// policyCommands: what an admin tries before a file goes live.
func policyCommands(t *testing.T, w *world) {
	thread := w.runs(linus, eng, "", "mkdir recorded")
	w.click(ada, eng, w.card(eng, thread).TS, "deny")
	w.done(eng, thread, thread)
	for _, tt := range []struct {
		args []string
		ok   bool
		want []string
	}{
		{[]string{"policy", "check"}, true, []string{"ask Bash(mkdir *)", "2 must allow", "U0ADA, U0GRACE", "folders are forever", "deckhand.yaml:"}},
		{[]string{"policy", "check", "--tool", "Bash", "--input", "ls && curl x", "--project", "sample"}, true, []string{"deny", "curl"}},
		{[]string{"policy", "check", "--tool", "Bash", "--input", "ls $(id)", "--project", "sample"}, true, []string{"ask", "substitution"}},
		{[]string{"policy", "check", "--tool", "Edit", "--input", "/etc/passwd", "--project", "sample"}, true, []string{"ask", "outside"}},
		{[]string{"policy", "check", "--tool", "Bash", "--project", "nowhere"}, false, []string{"no project"}},
		{[]string{"policy", "test"}, true, []string{"1 recorded call", "1 decided as before"}},
		{[]string{"policy", "test", "--since", "yesteryear"}, false, []string{"is no time"}},
		{[]string{"policy"}, false, []string{"bot policy check or test"}},
	} {
		out, ok := w.bot(tt.args...)
		for _, want := range tt.want {
			if ok != tt.ok || !strings.Contains(out, want) {
				t.Errorf("bot %s: no %q in\n%s", strings.Join(tt.args, " "), want, out)
			}
		}
	}
	file := filepath.Join(w.dir, "deckhand.yaml")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "changed.yaml")
	if err := os.WriteFile(changed, bytes.Replace(old, []byte("- allow: Bash(ls *)"), []byte("- allow: [Bash(ls *), Bash(mkdir *), Edit(**)]"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, ok := w.bot("policy", "test", "--config", changed); !ok || !strings.Contains(out, "ask → allow: 1") || !strings.Contains(out, "mkdir recorded") {
		t.Errorf("the replay: %s", out)
	}
}

// reportOnApproving: admins see who decides how.
func reportOnApproving(t *testing.T, w *world) {
	thread := w.runs(linus, eng, "", "mkdir reported")
	w.click(grace, eng, w.card(eng, thread).TS, "approve")
	w.done(eng, thread, thread)
	for user, want := range map[string]string{ada: grace, grace: "Only admins can do this"} {
		if got := w.slash(user, eng, "approvals 7 days"); !strings.Contains(got, want) {
			t.Errorf("/deckhand approvals as %s: %s", user, got)
		}
	}
}
