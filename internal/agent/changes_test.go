package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/agent/policy"
	"deckhand/internal/store"
)

// TestAChangeIsJudgedAsARequest: a person makes of a request only what they could have
// decided about as a request.
func TestAChangeIsJudgedAsARequest(t *testing.T) {
	t.Parallel()
	no := false
	rule := func(v policy.Verdict, pattern string) policy.Rule {
		return policy.Rule{Verdict: v, Patterns: []policy.Pattern{policy.MustParsePattern(pattern)}}
	}
	deploy, push, drop, fixed := rule(policy.Ask, "Bash(deploy *)"), rule(policy.Ask, "Bash(git push *)"), rule(policy.Ask, "Bash(dropdb *)"), rule(policy.Ask, "Bash(release *)")
	deploy.Approvers, push.RequesterMayApprove, drop.Dangerous, fixed.Edit = []string{"U1"}, &no, true, &no
	p, err := policy.New([]policy.Rule{rule(policy.Deny, "Bash(curl *)"), rule(policy.Deny, "Read(secret/**)"), rule(policy.Allow, "Bash(ls *)"), deploy, push, drop, fixed}, policy.Terms{RequesterMayApprove: true})
	if err != nil {
		t.Fatal(err)
	}
	ws := t.TempDir()
	if err := os.MkdirAll(filepath.Join(ws, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newSupervisor(nil, &shared{policy: p, limits: Limits{}.withDefaults()})
	plain := store.Approval{ToolName: "Bash", Workspace: ws, Terms: store.Terms{Quorum: 1, RequesterMay: true}}
	named := plain
	named.Terms.Approvers = []string{"U1"}
	inside := plain
	inside.Dir = filepath.Join(ws, "secret")
	for _, c := range []struct {
		name    string
		a       store.Approval
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
