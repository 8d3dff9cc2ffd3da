package policy

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Call is a tool call as the CLI asks for it.
type Call struct {
	Tool  string
	Input json.RawMessage
	// Workspace is the absolute path of the agent's folder. Without it relative rules allow no file tool and no
	// path.
	Workspace string
	// Dir is the current folder of the CLI's shell (the cwd of its PreToolUse callback): a cd lasts from one Bash
	// call to the next. Empty means the workspace.
	Dir              string
	Project, Channel string
	// Repositories are folders below the workspace, by their paths from there, whose git obeys no settings of an
	// agent's, as the workspace's own.
	Repositories []string
	// Home is the absolute path of the session's home, where Claude Code keeps its plan. Without it that file is
	// like any other outside the workspace.
	Home string
	// Changed says that what the model is told of the tool, an MCP server's, is not what it was when the tool was
	// allowed: then nothing but a person allows it.
	Changed bool
}

// Verdict is a policy's answer to a tool call.
type Verdict string

// The verdicts, from the loosest to the strictest.
const (
	Allow Verdict = "allow" // it runs
	Ask   Verdict = "ask"   // a person decides
	Deny  Verdict = "deny"  // it does not run, and the model is told why
)

// Stricter reports whether v leaves the agent less than w does.
func (v Verdict) Stricter(w Verdict) bool { return v.rank() > w.rank() }

// An unknown verdict counts as a denial.
func (v Verdict) rank() int {
	switch v {
	case Allow:
		return 0
	case Ask:
		return 1
	}
	return 2
}

// OnTimeout is what happens to an asked call that nobody decides in time.
type OnTimeout string

// What happens to such a call.
const (
	Pause         OnTimeout = "pause" // the turn waits, and the approvers are reminded
	DenyOnTimeout OnTimeout = "deny"
)

// Rule decides the calls that one of its patterns matches.
type Rule struct {
	Verdict  Verdict
	Patterns []Pattern
	// Projects and Channels say where the rule holds; empty means everywhere.
	Projects, Channels []string

	// The terms of an asked call; zero values take the policy's defaults. They mean nothing on a rule that allows
	// or denies.
	Approvers           []string
	Quorum              int
	RequesterMayApprove *bool
	Timeout             time.Duration
	OnTimeout           OnTimeout
	Dangerous           bool
	Edit                *bool

	Because string // the author's reason, shown to people and, on a refusal, to the model
	Source  string // where it is written, such as deckhand.yaml:12:5
}

// String is the rule for people: allow Bash(go test *), Edit(src/**).
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(string(r.Verdict))
	for i, p := range r.Patterns {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte(' ')
		b.WriteString(p.String())
	}
	return b.String()
}

func (r *Rule) holds(c *Call) bool {
	return (len(r.Projects) == 0 || slices.Contains(r.Projects, c.Project)) &&
		(len(r.Channels) == 0 || slices.Contains(r.Channels, c.Channel))
}

// Terms are the rule's terms, completed by the policy's defaults.
func (r *Rule) Terms(d Terms) Terms {
	if len(r.Approvers) > 0 {
		d.Approvers = r.Approvers
	}
	d.Quorum, d.Timeout, d.OnTimeout, d.Because = cmp.Or(r.Quorum, d.Quorum), cmp.Or(r.Timeout, d.Timeout), cmp.Or(r.OnTimeout, d.OnTimeout), cmp.Or(r.Because, d.Because)
	if r.RequesterMayApprove != nil {
		d.RequesterMayApprove = *r.RequesterMayApprove
	}
	d.Dangerous = d.Dangerous || r.Dangerous
	if r.Edit != nil {
		d.Fixed = !*r.Edit
	}
	return d
}

// Terms are how an asked call is decided.
type Terms struct {
	Approvers           []string // users and groups in the caller's words; empty means the project's approvers
	Quorum              int      // how many of them must agree; at least 1
	RequesterMayApprove bool     // whether the person whose prompt led to the call counts
	Timeout             time.Duration
	OnTimeout           OnTimeout
	Dangerous           bool // a second confirmation is required: the rule says so, or see Danger
	Fixed               bool // whoever decides may not change the input
	Because             string
}

// DefaultTimeout is how long an approval waits by default.
const DefaultTimeout = 24 * time.Hour

func (t Terms) normal() Terms {
	t.Quorum = max(t.Quorum, 1)
	if t.Timeout <= 0 {
		t.Timeout = DefaultTimeout
	}
	t.OnTimeout = cmp.Or(t.OnTimeout, Pause)
	return t
}

// Policy is an ordered list of rules and the defaults of their terms. The zero Policy is the safe default: see the
// package's comment. It must not be changed while in use; Decide is safe for concurrent use.
type Policy struct {
	Rules   []Rule
	Default Terms
	// Postures decide calls that no rule decides.
	Postures Postures
	// Reads are, by project, the full names of MCP tools that only read: they count as staying inside the sandbox.
	Reads map[string]map[string]bool
}

// Decision is a policy's answer to one call.
type Decision struct {
	Verdict Verdict
	Rule    string // for people: "allow Bash(go test *)", or "default: what no rule allows is asked"
	Source  string // of that rule, or empty
	// Why says in a sentence why a rule did not apply, or which part of the call decided. It is empty when the rule
	// says it all.
	Why   string
	Terms Terms // how it is decided, when it is asked
	// Contained says that the posture allowed it: no rule was about it, and it stays inside the sandbox.
	Contained bool
	// Grantable says whether a person's "always allow" may cover the call.
	Grantable bool
	// Fault describes a panic while reading the call, for the log. Such a call is asked, whatever the rules say.
	Fault string

	because string // the deciding rule's
}
