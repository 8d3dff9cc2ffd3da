package settings

import (
	"strings"
	"testing"
)

const ruled = `projects:
  web:
    dir: /srv/web
    mcp_servers: {github: {url: "https://mcp.example.com"}}
  api: {dir: /srv/api}
channels:
  C0WEB: web
  C0API: {project: api, roles: {approvers: [U3AB]}}
roles:
  approvers: [U1AB, U2AB]
  users: [U4AB]
policy:
  rules:
    - allow: Bash(go test *)
    - ask: Bash(git push *)
      because: it leaves
    - deny: [WebFetch, mcp__github__delete_*]
  quorum: 1
`

// A policy that cannot do what it says is refused where that lets something through or
// keeps a question from ever being decided, and is warned of elsewhere.
func TestPoliciesThatCannotDoWhatTheySay(t *testing.T) {
	t.Parallel()
	if c, err := ReadFile(write(t, ruled)); err != nil || len(c.Doubts) > 0 {
		t.Fatalf("%v, and doubts %q, of a policy that is right", err, c.Doubts)
	}
	const first = "    - allow: Bash(go test *)"
	for name, tt := range map[string]struct{ old, new, refused, doubted string }{
		"a tool that is not there":                     {"WebFetch,", "WebFecth,", ":17:14: policy.rules[2].deny[0]: WebFecth: there is no tool WebFecth; did you mean WebFetch?", ""},
		"a lone tool that is not there":                {"deny: [WebFetch, mcp__github__delete_*]", "deny: WebSerch", ":17:13: policy.rules[2].deny[0]: WebSerch: there is no tool WebSerch; did you mean WebSearch?", ""},
		"a server that is not there":                   {"mcp__github__", "mcp__gihtub__", ":17:24: policy.rules[2].deny[1]: mcp__gihtub__delete_*: no project where the rule holds has an MCP server gihtub; did you mean mcp__github__delete_*?", ""},
		"a server of another project":                  {"deny: [WebFetch, mcp__github__delete_*]", "deny: mcp__github\n      projects: api", "", "no project where the rule holds has an MCP server github"},
		"a tool that only an allowing rule has":        {"Bash(go test *)", "Teleport", "", ":14:14: policy.rules[0].allow[0]: Teleport: there is no tool Teleport"},
		"a rule that allows before one that asks":      {first, "    - allow: Bash(**)", ":15:12: policy.rules[1].ask[0]: Bash(git push *): the first rule that fits decides, and allow Bash(**) (", ""},
		"a rule that asks before one that denies":      {first, "    - ask: \"*\"", ":17:14: policy.rules[2].deny[0]: WebFetch: the first rule that fits decides, and ask *", ""},
		"a rule twice":                                 {first, first + "\n    - allow: Bash(go test **)\n    - allow: Bash(go test -run X)", "", ":16:14: policy.rules[2].allow[0]: Bash(go test -run X): no call reaches it"},
		"more people than may":                         {"quorum: 1", "quorum: 9", ":18:11: policy.quorum: 9 people must approve, but in C0API only 1 may decide (U3AB)", ""},
		"more people than may by the rule's own words": {"because: it leaves", "quorum: 2", ":16:15: policy.rules[1].quorum: 2 people must approve, but in C0API only 1 may decide", ""},
		"people of a channel that the rule is not for": {"because: it leaves", "quorum: 2\n      channels: [C0WEB]", "", ""},
		"more people than the rule names":              {"because: it leaves", "approvers: [U1AB, U1AB]\n      quorum: 2", ":17:15: policy.rules[1].quorum: 2 people must approve, but in C0API only 1 may decide (U1AB)", ""},
		"people who may be in a group":                 {"because: it leaves", "approvers: [S1AB]\n      quorum: 5", "", ""},
		"nobody but who asks":                          {"because: it leaves", "approvers: [U3AB]\n      channels: [C0API]\n      requester_may_approve: false", "", ":18:30: policy.rules[1].requester_may_approve: when U3AB asks for work in C0API, nobody can approve"},
		"nobody at all but who asks":                   {"users: [U4AB]\npolicy:\n  rules:", "users: []\npolicy:\n  requester_may_approve: false\n  rules:", ":13:26: policy.requester_may_approve: whoever asks for work in C0API may not decide about it, and of the others not 1 may", ""},
		"nobody who may decide":                        {"  approvers: [U1AB, U2AB]\n", "", "", "nobody may decide about what is asked in C0WEB"},
		"a channel that is not served":                 {"because: it leaves", "channels: [C0OTHER]", ":16:18: policy.rules[1].channels[0]: the bot does not work in C0OTHER", ""},
		"a channel that is not served, allowed":        {first, first + "\n      channels: [C0OTHER]", "", ":15:18: policy.rules[0].channels[0]: the bot does not work in C0OTHER"},
		"a channel of another project":                 {"because: it leaves", "channels: [C0WEB]\n      projects: [api]", ":16:17: policy.rules[1].channels: none of these channels works on a project that the rule is for", ""},
		"a project that is not there":                  {"because: it leaves", "projects: [wbe]", `:16:17: policy.rules[1].projects: there is no project "wbe"`, ""},
		"a list of no projects":                        {"because: it leaves", "projects: []", ":16:17: policy.rules[1].projects: the list is empty, which says nothing", ""},
		"a list of no channels":                        {"because: it leaves", "channels: []", "policy.rules[1].channels: the list is empty", ""},
		"a list of no approvers":                       {"because: it leaves", "approvers: []", "policy.rules[1].approvers: the list is empty", ""},
		"no time at all":                               {"because: it leaves", "timeout: 0s", ":16:16: policy.rules[1].timeout: write a duration of at least a second", ""},
		"no time at all, for all":                      {"quorum: 1", "approval_timeout: 0", ":18:21: policy.approval_timeout: write a duration of at least a second", ""},
		"a reminder that is never sent":                {"quorum: 1", "approval_timeout: 2h\n  reminders: [{after: 3h, to: thread}]", "", ":19:23: policy.reminders[0].after: no question waits as long as 3h0m0s"},
		"fewer than nobody":                            {"quorum: 1", "quorum: -1", "-1 people cannot approve", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(ruled, tt.old) {
				t.Fatalf("%q is not in the policy that is right", tt.old)
			}
			c, err := ReadFile(write(t, strings.Replace(ruled, tt.old, tt.new, 1)))
			switch {
			case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
				t.Errorf("it is refused for %v, want %q", err, tt.refused)
			case tt.refused == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case tt.doubted != "" && !strings.Contains(strings.Join(c.Doubts, "\n"), tt.doubted):
				t.Errorf("the doubts are %q, want %q", c.Doubts, tt.doubted)
			case tt.refused == "" && tt.doubted == "" && len(c.Doubts) > 0:
				t.Errorf("the doubts are %q, and nothing is wrong", c.Doubts)
			}
		})
	}
}
