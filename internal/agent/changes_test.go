package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/policy"
	"deckhand/internal/store/approvals"
)

// TestAChangeIsJudgedAsARequest: a person makes of a request only what they could have
// decided about as a request.
func TestAChangeIsJudgedAsARequest(t *testing.T) {
	t.Parallel()
	no := false
	rule := func(v policy.Verdict, pattern string) policy.Rule {
		p, err := policy.ParsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return policy.Rule{Verdict: v, Patterns: []policy.Pattern{p}}
	}
	deploy, push, drop, fixed := rule(policy.Ask, "Bash(deploy *)"), rule(policy.Ask, "Bash(git push *)"), rule(policy.Ask, "Bash(dropdb *)"), rule(policy.Ask, "Bash(release *)")
	deploy.Approvers, push.RequesterMayApprove, drop.Dangerous, fixed.Edit = []string{"U1"}, &no, true, &no
	p := &policy.Policy{
		Rules:   []policy.Rule{rule(policy.Deny, "Bash(curl *)"), rule(policy.Deny, "Read(secret/**)"), rule(policy.Allow, "Bash(ls *)"), deploy, push, drop, fixed},
		Default: policy.Terms{RequesterMayApprove: true},
	}
	ws := t.TempDir()
	if err := os.MkdirAll(filepath.Join(ws, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newSupervisor(nil, &dependencies{policy: p}, &bounds{})
	plain := approvals.Approval{Request: approvals.Request{ToolName: "Bash"}, Origin: approvals.Origin{Workspace: ws}, Terms: approvals.Terms{Quorum: 1, RequesterMay: true}}
	named := plain
	named.Terms.Approvers = []string{"U1"}
	inside := plain
	inside.Dir = filepath.Join(ws, "secret")
	for _, c := range []struct {
		name    string
		a       approvals.Approval
		command string
		why     string // empty: it may run
	}{
		{"another one that is asked", plain, "make x", ""},
		{"one that is allowed", plain, "ls -l", ""},
		{"one that is allowed, of other people's", named, "ls -l", ""},
		{"of the same people", named, "deploy staging", ""},
		{"denied", plain, "curl example.com", "does not allow"},
		{"denied, hidden", plain, "make x && $(curl example.com)", "does not allow"},
		{"denied, in other letters", plain, "CURL example.com", "does not allow"},
		{"denied by where it runs", inside, "cat key", "does not allow"},
		{"of other people", plain, "deploy staging", "stricter terms"},
		{"beside one of other people", plain, "make x; deploy staging", "stricter terms"},
		{"of everybody, by those who are named", named, "make x", "stricter terms"},
		{"not the requester", plain, "git push origin main", "stricter terms"},
		{"dangerous", plain, "dropdb live", "stricter terms"},
		{"not to be changed", plain, "release 1", "stricter terms"},
	} {
		input, err := json.Marshal(map[string]string{"command": c.command})
		if err != nil {
			t.Fatal(err)
		}
		e, why := s.Change(c.a, input)
		if (c.why == "") != (why == "") || !strings.Contains(why, c.why) || (c.why == "") != (string(e.Input) == string(input)) {
			t.Errorf("%s: %q, %s", c.name, why, e.Input)
		}
	}
	if e, why := s.Change(plain, json.RawMessage(`{"command":"rm -rf build"}`)); why != "" || !slices.Contains(e.Risks, string(policy.RiskDeletes)) || !strings.Contains(string(e.Touches), `"path":"build"`) {
		t.Errorf("what is known of a change: %v, %s, %s", e.Risks, e.Touches, why)
	}
}

// TestTheModelIsToldWhatRan: once, with what came of the call, and of no other call.
func TestTheModelIsToldWhatRan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		awaiting(s, toolWrite) // as use2
		d := approvals.Decision{ApprovalID: s.pending(here), Status: approvals.Allowed, By: "U2", Via: "edited", Edit: &approvals.Edit{Input: json.RawMessage(`{"of":"a < b && c"}`)}}
		s.decided(s.sup.Decide(t.Context(), d))
		d.By, d.Via, d.Edit, d.Seen = "U3", "button", nil, 1
		s.decided(s.sup.Decide(t.Context(), d))
		synctest.Wait()
		p := s.process(here)
		s.heard()
		told := func(event, use string) string {
			p.has(event, use)
			synctest.Wait()
			return strings.Join(s.heard()[p.name], "; ")
		}
		if other := told("PostToolUse", "use1"); other != "post: " {
			t.Errorf("of a call that nobody changed: %q", other)
		}
		if said := told("PostToolUseFailure", "use2"); !strings.Contains(said, "changed it first") || !strings.Contains(said, `{"of":"a < b && c"}`) {
			t.Errorf("of the changed one: %q", said)
		}
		if again := told("PostToolUse", "use2"); again != "post: " {
			t.Errorf("a second time: %q", again)
		}
		stop(s)
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
	asked := approvals.Approval{Input: json.RawMessage(`{"file_path":"a.go","content":"x"}`), Edited: approvals.Edited{Times: 1, Input: json.RawMessage(`{"file_path":"a.go","content":"y"}`)}}
	if said := ask.ChangeNote(asked); strings.Contains(said, "file_path") || !strings.Contains(said, `{"content":"y"}`) {
		t.Errorf("what nobody changed is told, too: %s", said)
	}
}
