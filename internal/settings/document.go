package settings

import (
	"cmp"
	"fmt"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/agent/policy"
	"deckhand/internal/workspace"
)

// document is deckhand.yaml as it is written.
type document struct {
	Projects       map[string]projectYAML `yaml:"projects"`
	Channels       map[string]channelYAML `yaml:"channels"`
	DirectMessages string                 `yaml:"direct_messages"`
	Sandbox        sandboxYAML            `yaml:"sandbox"`
	Provider       *providerYAML          `yaml:"provider"`
	Git            gitYAML                `yaml:"git"`
	Roles          rolesYAML              `yaml:"roles"`
	Policy         policyYAML             `yaml:"policy"`
	// Posture says what becomes of calls that no rule decides: contained or careful (the
	// default). A project and a channel may have their own; the nearest one holds.
	Posture string `yaml:"posture"`
	// TimeZone is the team's: days and months of costs begin in it.
	TimeZone string       `yaml:"time_zone"`
	Reports  reportsYAML  `yaml:"reports"`
	Budgets  []budgetYAML `yaml:"budgets"`
	Prices   pricesYAML   `yaml:"prices"`
	// Workspaces bounds the folders of threads, and what is kept of their work.
	Workspaces workspacesYAML `yaml:"workspaces"`
	// Transcripts are what the database keeps of conversations.
	Transcripts transcriptsYAML `yaml:"transcripts"`
	// Attachments bound the files that people attach to messages.
	Attachments attachmentsYAML `yaml:"attachments"`
}

// workspacesYAML are limits; none is none.
type workspacesYAML struct {
	MaxAge  duration `yaml:"max_age"`
	MaxSize string   `yaml:"max_size"`
	Keep    string   `yaml:"keep"`
}

func (w workspacesYAML) limits() workspace.Limits {
	most, _ := size(cmp.Or(w.MaxSize, noLimit)) // the validation has seen them
	keep, _ := size(cmp.Or(w.Keep, noLimit))
	return workspace.Limits{MaxAge: time.Duration(w.MaxAge), MaxBytes: most, KeepBytes: keep}
}

type projectYAML struct {
	Dir       string `yaml:"dir"`
	Repo      string `yaml:"repo"`
	Workspace string `yaml:"workspace"`
	Base      string `yaml:"base"`
	Model     string `yaml:"model"`
	// Models are those that people may choose, the default first; or Model alone.
	Models         []string `yaml:"models"`
	PermissionMode string   `yaml:"permission_mode"`
	// MaxTurns bounds the model's calls in a turn, and the lists its tools.
	MaxTurns           *int      `yaml:"max_turns"`
	AllowedTools       names     `yaml:"allowed_tools"`
	DisallowedTools    names     `yaml:"disallowed_tools"`
	Env                []string  `yaml:"env"`
	AppendSystemPrompt string    `yaml:"append_system_prompt"`
	Roles              rolesYAML `yaml:"roles"`
	// MCPServers are by their names.
	MCPServers map[string]mcpYAML `yaml:"mcp_servers"`
	// Git says where its forge is, and what the bot is known by there.
	Git gitYAML `yaml:"git"`
	// Sandbox comes before the team's.
	Sandbox *sandboxYAML `yaml:"sandbox"`
	// Provider takes the place of the team's.
	Provider *providerYAML `yaml:"provider"`
	// Prices come before the team's.
	Prices pricesYAML `yaml:"prices"`
	Setup  *setupYAML `yaml:"setup"`
	// Call is how those who may decide learn that a request waits: one of access.Calls.
	Call    string `yaml:"call"`
	Posture string `yaml:"posture"`
	// PullRequests say how its threads open pull requests.
	PullRequests *pullsYAML `yaml:"pull_requests"`
}

// models are those that people may choose, the default first. None leaves it to Claude Code.
func (p projectYAML) models() []string {
	if p.Models == nil && p.Model != "" {
		return []string{p.Model}
	}
	return p.Models
}

func (p projectYAML) maxTurns() int {
	if p.MaxTurns == nil {
		return 0
	}
	return *p.MaxTurns
}

// setupYAML is a command that runs in a thread's folder before a session works there.
type setupYAML struct {
	Run     string   `yaml:"run"`
	Files   names    `yaml:"files"`
	Timeout duration `yaml:"timeout"`
}

func (s *setupYAML) setup() workspace.Setup {
	if s == nil {
		return workspace.Setup{}
	}
	return workspace.Setup{Run: s.Run, Files: s.Files, Timeout: time.Duration(s.Timeout)}
}

// channelYAML is a project's name, or a project with roles of the channel's own.
type channelYAML struct {
	Project string    `yaml:"project"`
	Roles   rolesYAML `yaml:"roles"`
	// Replies says which replies in its threads are for the bot: one of replies.
	Replies string `yaml:"replies"`
	Posture string `yaml:"posture"`
}

// The values of replies: all is the default.
const (
	repliesAll     = "all"
	repliesMention = "mention"
)

func (c *channelYAML) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&c.Project) == nil {
		return nil
	}
	type plain channelYAML
	return unmarshal((*plain)(c))
}

type rolesYAML struct {
	Admins    []string `yaml:"admins"`
	Approvers []string `yaml:"approvers"`
	Users     []string `yaml:"users"`
}

func (r rolesYAML) roles() access.Roles {
	return access.Roles{Admins: r.Admins, Approvers: r.Approvers, Users: r.Users}
}

type policyYAML struct {
	Rules []ruleYAML `yaml:"rules"`
	// What holds for every question that no rule says otherwise of.
	RequesterMayApprove *bool          `yaml:"requester_may_approve"`
	ApprovalTimeout     duration       `yaml:"approval_timeout"`
	OnTimeout           string         `yaml:"on_timeout"`
	Quorum              int            `yaml:"quorum"`
	Edit                *bool          `yaml:"edit"`
	Reminders           []reminderYAML `yaml:"reminders"`
}

// ruleYAML is one policy rule: exactly one verdict, with a pattern or a list of
// them; on a rule that asks, also how it is decided.
type ruleYAML struct {
	Allow names `yaml:"allow"`
	Ask   names `yaml:"ask"`
	Deny  names `yaml:"deny"`

	Projects names  `yaml:"projects"`
	Channels names  `yaml:"channels"`
	Because  string `yaml:"because"`

	Approvers           names    `yaml:"approvers"`
	Quorum              int      `yaml:"quorum"`
	RequesterMayApprove *bool    `yaml:"requester_may_approve"`
	Timeout             duration `yaml:"timeout"`
	OnTimeout           string   `yaml:"on_timeout"`
	Dangerous           bool     `yaml:"dangerous"`
	Edit                *bool    `yaml:"edit"`
}

// verdict is what the rule says, and of which patterns.
func (r ruleYAML) verdict() (v policy.Verdict, patterns names) {
	switch {
	case r.Allow != nil:
		return policy.Allow, r.Allow
	case r.Deny != nil:
		return policy.Deny, r.Deny
	}
	return policy.Ask, r.Ask
}

// reminderYAML tells people of an approval that waits.
type reminderYAML struct {
	After duration `yaml:"after"`
	// To are thread, approvers (a direct message to each), and channels' ids.
	To names `yaml:"to"`
}

// names is a name or a list of names.
type names []string

func (n *names) UnmarshalYAML(unmarshal func(any) error) error {
	var one string
	if unmarshal(&one) == nil {
		*n = names{one}
		return nil
	}
	return unmarshal((*[]string)(n))
}

type duration time.Duration

func (d *duration) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if err := unmarshal(&s); err != nil {
		return err
	}
	return d.read(s)
}

func (d *duration) read(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil || v < time.Second {
		return fmt.Errorf("%q is not a duration of at least a second, such as 24h", s)
	}
	*d = duration(v)
	return nil
}
