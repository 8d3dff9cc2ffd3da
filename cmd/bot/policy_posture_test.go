package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"deckhand/internal/agent/policy"
	"deckhand/internal/store/audit"
)

// What a verdict owes to the posture is said, and a push is told as one, in whatever line it
// stands.
func TestAVerdictSaysThePosturesPart(t *testing.T) {
	t.Parallel()
	c := readConfig(t, `posture: contained
projects:
  api: {repo: "https://git.example.org/api.git", workspace: worktree}
  slow: {repo: "https://git.example.org/slow.git", workspace: worktree, posture: careful}
channels: {C0123456789: api}
roles: {admins: [U0123456789]}
policy: {rules: [{deny: "Bash(rm *)"}]}
`)
	const compound = "git add -A && git commit -m x && git push"
	var r replay
	for _, tt := range []struct {
		project, command string
		verdict          policy.Verdict
		push             bool
		says             []string
	}{
		{"api", "make", policy.Allow, false, []string{"posture contained: what stays inside the sandbox runs", "so the posture does: contained; careful would ask"}},
		{"slow", "make", policy.Ask, false, []string{"no rule decides, so the posture does: careful; contained would let it run"}},
		{"api", "rm x", policy.Deny, false, []string{"deny Bash(rm *)", "a rule decides, whatever the posture is (contained)"}},
		{"api", "git push origin HEAD", policy.Ask, true, []string{"what leaves the sandbox is asked", "it is a push", "so the posture does: contained; careful would ask"}},
		{"api", compound, policy.Deny, true, []string{"a push is approved for its exact commits", "run git push alone", "it is a push, in a longer command"}},
		{"slow", compound, policy.Ask, true, []string{"it is a push", "careful; contained would refuse it"}},
	} {
		call := policy.Call{Tool: "Bash", Project: tt.project, Workspace: t.TempDir()}
		if err := completeCall(c, &call, tt.command); err != nil {
			t.Fatal(err)
		}
		d := newDecision(&c, call)
		var out bytes.Buffer
		d.explain(&out)
		if d.Verdict != tt.verdict || d.Push != tt.push {
			t.Errorf("%s in %s: %s, a push: %t", tt.command, tt.project, d.Verdict, d.Push)
		}
		for _, want := range tt.says {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s in %s: no %q in\n%s", tt.command, tt.project, want, out.String())
			}
		}
		input, err := json.Marshal(map[string]string{"command": tt.command})
		if err != nil {
			t.Fatal(err)
		}
		r.add(&c, audit.RecordedCall{At: time.Now(), ToolName: "Bash", Input: input, Workspace: call.Workspace, Project: tt.project, Verdict: string(policy.Ask)})
	}
	r.sort(false)
	var out bytes.Buffer
	r.explain(&out)
	for _, want := range []string{"asked 6 time(s); 3 of these questions would not have been asked: 1 would have run, 2 would have been refused", "ask → allow: 1", "ask → deny: 2", compound + "\n", "it is a push\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
