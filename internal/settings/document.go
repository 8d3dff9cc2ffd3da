package settings

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/workspace"
)

// document is deckhand.yaml as it is written.
type document struct {
	Projects       map[string]projectYAML `yaml:"projects"`
	Channels       map[string]channelYAML `yaml:"channels"`
	DirectMessages string                 `yaml:"direct_messages"`
	// People are what is known of some, by their ids.
	People   map[string]personYAML `yaml:"people"`
	Sandbox  sandboxYAML           `yaml:"sandbox"`
	Provider *gateway.Provider     `yaml:"provider"`
	Git      gitYAML               `yaml:"git"`
	Roles    access.Roles          `yaml:"roles"`
	Policy   policyYAML            `yaml:"policy"`
	// Posture decides calls that no rule decides: contained or careful (the default). A project and a channel may
	// have their own; the nearest applies.
	Posture string `yaml:"posture"`
	// TimeZone is the team's, for the days and months of costs.
	TimeZone string       `yaml:"time_zone"`
	Reports  reportsYAML  `yaml:"reports"`
	Budgets  []budgetYAML `yaml:"budgets"`
	Prices   pricesYAML   `yaml:"prices"`
	// Workspaces bounds threads' folders and their stored work.
	Workspaces workspacesYAML `yaml:"workspaces"`
	// Transcripts bounds the stored conversations.
	Transcripts transcriptsYAML `yaml:"transcripts"`
	// Reactions are the emojis that do something: a name without its colons, and begin or stop.
	Reactions map[string]string `yaml:"reactions"`
	// Attachments bounds files attached to messages.
	Attachments attachmentsYAML `yaml:"attachments"`
}

// workspacesYAML are limits; none means no limit.
type workspacesYAML struct {
	MaxAge  duration `yaml:"max_age"`
	MaxSize string   `yaml:"max_size"`
	Keep    string   `yaml:"keep"`
}

func (w workspacesYAML) limits() workspace.Limits {
	most, _ := size(cmp.Or(w.MaxSize, noLimit)) // already validated
	keep, _ := size(cmp.Or(w.Keep, noLimit))
	return workspace.Limits{MaxAge: time.Duration(w.MaxAge), MaxBytes: most, KeepBytes: keep}
}

type projectYAML struct {
	// Team is the one that its costs are summed up with.
	Team      string `yaml:"team"`
	Dir       string `yaml:"dir"`
	Repo      string `yaml:"repo"`
	Workspace string `yaml:"workspace"`
	Base      string `yaml:"base"`
	// Repos are further repositories, by their short names.
	Repos map[string]repoYAML `yaml:"repos"`
	// Subdir is the folder of the repository that its threads work in.
	Subdir string `yaml:"subdir"`
	Model  string `yaml:"model"`
	// Models are those that people may choose, the default first; or Model alone.
	Models         []string `yaml:"models"`
	PermissionMode string   `yaml:"permission_mode"`
	// MaxTurns bounds the model's calls in a turn, and the lists its tools.
	MaxTurns           *int         `yaml:"max_turns"`
	AllowedTools       names        `yaml:"allowed_tools"`
	DisallowedTools    names        `yaml:"disallowed_tools"`
	Env                []string     `yaml:"env"`
	AppendSystemPrompt string       `yaml:"append_system_prompt"`
	Roles              access.Roles `yaml:"roles"`
	// MCPServers are by name.
	MCPServers map[string]mcpYAML `yaml:"mcp_servers"`
	// Git has the project's forge and the bot's access to it.
	Git gitYAML `yaml:"git"`
	// Sandbox takes precedence over the team's.
	Sandbox *sandboxYAML `yaml:"sandbox"`
	// Provider replaces the team's. They are never mixed: neither's account gets the other's key.
	Provider *gateway.Provider `yaml:"provider"`
	// Prices take precedence over the team's.
	Prices pricesYAML `yaml:"prices"`
	Setup  *setupYAML `yaml:"setup"`
	// Call is how approvers learn of a request: one of access.Calls.
	Call    string `yaml:"call"`
	Posture string `yaml:"posture"`
	// Preview is how its page is looked at.
	Preview *place.Preview `yaml:"preview"`
	// PullRequests say how its threads open pull requests.
	PullRequests *pullsYAML `yaml:"pull_requests"`
	// Trust are the kinds of what its repository brings that may be used, once an admin agrees.
	Trust names `yaml:"trust"`
}

// repoYAML is a repository's address, or a mapping with the branch that work starts from.
type repoYAML struct {
	Repo string `yaml:"repo"`
	Base string `yaml:"base"`
}

func (r *repoYAML) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&r.Repo) == nil {
		return nil
	}
	type plain repoYAML
	return unmarshal((*plain)(r))
}

func (p projectYAML) further() (out []place.Repository) {
	for _, name := range sorted(p.Repos) {
		out = append(out, place.Repository{Name: name, Repo: p.Repos[name].Repo, Base: p.Repos[name].Base})
	}
	return out
}

// models are those that people may choose, the default first. None leaves it to Claude Code.
func (p projectYAML) models() []string {
	if p.Models == nil && p.Model != "" {
		return []string{p.Model}
	}
	return p.Models
}

// pointed is what p points to, or the zero value for nil.
func pointed[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
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

// channelYAML is a project's name, or a project with the channel's own roles.
type channelYAML struct {
	// Project is that of threads that name none, and Projects are those that they may name.
	Project  string       `yaml:"project"`
	Projects names        `yaml:"projects"`
	Roles    access.Roles `yaml:"roles"`
	// Replies says which replies in its threads are for the bot.
	Replies string `yaml:"replies"`
	Posture string `yaml:"posture"`
}

// all are the projects that the channel's threads may work on, the usual one first.
func (c channelYAML) all() []string {
	if c.Project == "" && len(c.Projects) > 0 {
		return c.Projects
	}
	return append([]string{c.Project}, slices.DeleteFunc(slices.Clone(c.Projects), func(p string) bool { return p == c.Project })...)
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

type policyYAML struct {
	Rules []ruleYAML `yaml:"rules"`
	// Defaults for questions without a rule of their own.
	RequesterMayApprove *bool          `yaml:"requester_may_approve"`
	ApprovalTimeout     duration       `yaml:"approval_timeout"`
	OnTimeout           string         `yaml:"on_timeout"`
	Quorum              int            `yaml:"quorum"`
	Edit                *bool          `yaml:"edit"`
	Reminders           []reminderYAML `yaml:"reminders"`
}

// ruleYAML is a policy rule: exactly one verdict, with a pattern or a list of them, and the terms of a rule that
// asks.
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

// verdict is the rule's verdict and its patterns.
func (r ruleYAML) verdict() (v policy.Verdict, patterns names) {
	switch {
	case r.Allow != nil:
		return policy.Allow, r.Allow
	case r.Deny != nil:
		return policy.Deny, r.Deny
	}
	return policy.Ask, r.Ask
}

// reminderYAML is a reminder of a pending approval.
type reminderYAML struct {
	After duration `yaml:"after"`
	// To are thread, approvers (a direct message to each), and channel ids.
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
		return fmt.Errorf("%q is not a duration of at least a second and at most 2562047h, such as 24h", s)
	}
	*d = duration(v)
	return nil
}
