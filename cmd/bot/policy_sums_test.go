package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"deckhand/internal/agent/policy"
	"deckhand/internal/settings"
)

// What adds up is said with both rules and where they stand, and what bounds it.
func TestPolicyCheckSaysWhatAddsUp(t *testing.T) {
	t.Parallel()
	c := readConfig(t, `projects:
  api: {repo: "https://git.example.org/api.git", sandbox: none}
  web: {repo: "https://git.example.org/web.git"}
channels: {C0123456789: web}
roles: {admins: [U0123456789]}
policy:
  rules:
    - allow: [Edit(src/**), Bash(ls **)]
    - allow: Bash(make *)
      projects: [api]
`)
	got := newSumLines(c)
	edit := halfLine{[]string{"Edit(src/**)"}, c.Name + ":8:7"}
	ls, run := halfLine{[]string{"Bash(ls **)"}, c.Name + ":8:7"}, halfLine{[]string{"Bash(make *)"}, c.Name + ":9:7"}
	want := []sumLine{
		{Project: "api", Write: edit, Run: ls},
		{Project: "api", Write: edit, Run: run},
		{Project: "web", Write: edit, Run: ls, BoundedBy: "bwrap, no network, 8 GiB, 2048 processes, 20 GiB disk"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(sumLine{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var out bytes.Buffer
	explainPolicy(&out, c)
	for _, want := range []string{
		"Bash(ls **): any further words, whatever they make the program do",
		"Edit(src/**) (" + c.Name + ":8:7) and Bash(make *) (" + c.Name + ":9:7)",
		"in api nothing bounds them", "in web its sandbox bounds them: bwrap, no network, 8 GiB",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// Rules that no call reaches are told in words and in JSON.
func TestPolicyCheckSaysWhatNoCallReaches(t *testing.T) {
	t.Parallel()
	c := readConfig(t, `projects: {api: {repo: "https://git.example.org/api.git"}}
channels: {C0123456789: api}
roles: {admins: [U0123456789]}
policy: {rules: [{deny: Bash}, {allow: Bash(ls *)}]}
`)
	want := c.Name + ":4:40: policy.rules[1].allow[0]: Bash(ls *): no call reaches it, since deny Bash (" + c.Name + ":4:19) comes before; move it above that, or leave it out"
	var out bytes.Buffer
	explainPolicy(&out, c)
	if !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
	if diff := cmp.Diff([]string{want}, newPolicyLines(c).Doubts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Claude Code fetches from inside: a rule for it takes a network there.
func TestPolicyCheckSaysWhatCannotBeFetched(t *testing.T) {
	t.Parallel()
	c := readConfig(t, `projects:
  api: {repo: "https://git.example.org/api.git", sandbox: none}
  open: {repo: "https://git.example.org/open.git", sandbox: {network: open}}
  web: {repo: "https://git.example.org/web.git"}
  far: {repo: "https://git.example.org/far.git"}
channels: {C0123456789: web}
roles: {admins: [U0123456789]}
policy:
  rules:
    - {deny: WebFetch, projects: [far]}
    - allow: [WebFetch(domain:go.dev), "Bash(ls *)"]
`)
	want := map[string][]string{"web": {"WebFetch(domain:go.dev) (" + c.Name + ":11:7)"}}
	if diff := cmp.Diff(want, newPolicyLines(c).Unreached); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var out bytes.Buffer
	explainPolicy(&out, c)
	if text := want["web"][0] + " can fetch nothing in web: its sandbox has no network: write the domains under network:"; !strings.Contains(out.String(), text) {
		t.Errorf("no %q in\n%s", text, out.String())
	}
}

// A rule for hosts does something where people are asked about hosts.
func TestPolicyCheckKnowsHosts(t *testing.T) {
	t.Parallel()
	c := readConfig(t, `projects:
  asks: {repo: "https://git.example.org/asks.git", sandbox: {network: ask}}
  web: {repo: "https://git.example.org/web.git", sandbox: {network: [go.dev]}}
channels: {C0123456789: web}
roles: {admins: [U0123456789]}
policy:
  rules:
    - {allow: "SandboxNetworkAccess(domain:*.go.dev)", projects: [web]}
    - allow: "SandboxNetworkAccess(domain:go.dev)"
`)
	want := []string{"SandboxNetworkAccess(domain:*.go.dev) (" + c.Name + ":8:8)"}
	if diff := cmp.Diff(want, newPolicyLines(c).Idle); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var out bytes.Buffer
	explainPolicy(&out, c)
	if text := want[0] + " lets nothing be reached, since nobody is asked about hosts in any project where it holds: write network: ask"; !strings.Contains(out.String(), text) {
		t.Errorf("no %q in\n%s", text, out.String())
	}
	for input, verdict := range map[string]policy.Verdict{"GO.dev": policy.Allow, "go.dev:80": policy.Allow, "go.dev:22": policy.Ask, "[2606:4700::1111]:443": policy.Ask, `{"host":"go.dev","port":443}`: policy.Allow} {
		call := policy.Call{Tool: policy.NetworkTool, Project: "asks"}
		if err := completeCall(c, &call, input); err != nil {
			t.Fatal(err)
		}
		if d := c.Policy.Decide(call); d.Verdict != verdict {
			t.Errorf("%s: %+v", input, d)
		}
	}
	if err := completeCall(c, &policy.Call{Tool: policy.NetworkTool}, "go.dev:https"); err == nil || !strings.Contains(err.Error(), "write one such as go.dev:443") {
		t.Error(err)
	}
}

// The configuration that people begin with allows nothing by two rules together.
func TestTheExampleDoesNotAddUp(t *testing.T) {
	t.Parallel()
	c, err := settings.ReadFile(filepath.Join("..", "..", "deploy", "deckhand.example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range newSumLines(c) {
		t.Errorf("in %s: %s", l.Project, l.text)
	}
}

func readConfig(t *testing.T, yaml string) settings.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "deckhand.yaml")
	if err := os.WriteFile(name, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := settings.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
