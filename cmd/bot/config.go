package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/agent/policy"
)

// config is deckhand.yaml: what a team agrees on.
type config struct {
	Projects       map[string]projectConfig `yaml:"projects"`
	Channels       map[string]channelConfig `yaml:"channels"`
	DirectMessages string                   `yaml:"direct_messages"`
	Roles          rolesConfig              `yaml:"roles"`
	Policy         policyConfig             `yaml:"policy"`
	// TimeZone is the team's: days and months of costs begin in it.
	TimeZone string         `yaml:"time_zone"`
	Reports  reportsConfig  `yaml:"reports"`
	Budgets  []budgetConfig `yaml:"budgets"`
	Prices   pricesConfig   `yaml:"prices"`

	file   string
	sha256 [sha256.Size]byte
	// positions of the rules, for the policy's explanations
	rulesAt []string
}

type projectConfig struct {
	Dir                string      `yaml:"dir"`
	Repo               string      `yaml:"repo"`
	Workspace          string      `yaml:"workspace"`
	Base               string      `yaml:"base"`
	Model              string      `yaml:"model"`
	PermissionMode     string      `yaml:"permission_mode"`
	Env                []string    `yaml:"env"`
	AppendSystemPrompt string      `yaml:"append_system_prompt"`
	Roles              rolesConfig `yaml:"roles"`
	// Prices come before the team's.
	Prices pricesConfig `yaml:"prices"`
}

// channelConfig is a project's name, or a project with roles of the channel's own.
type channelConfig struct {
	Project string      `yaml:"project"`
	Roles   rolesConfig `yaml:"roles"`
}

func (c *channelConfig) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&c.Project) == nil {
		return nil
	}
	type plain channelConfig
	return unmarshal((*plain)(c))
}

type rolesConfig struct {
	Admins    []string `yaml:"admins"`
	Approvers []string `yaml:"approvers"`
	Users     []string `yaml:"users"`
}

func (r rolesConfig) roles() access.Roles {
	return access.Roles{Admins: r.Admins, Approvers: r.Approvers, Users: r.Users}
}

type policyConfig struct {
	Rules []ruleConfig `yaml:"rules"`
	// What holds for every question that no rule says otherwise of.
	RequesterMayApprove *bool            `yaml:"requester_may_approve"`
	ApprovalTimeout     duration         `yaml:"approval_timeout"`
	OnTimeout           string           `yaml:"on_timeout"`
	Quorum              int              `yaml:"quorum"`
	Reminders           []reminderConfig `yaml:"reminders"`
}

// ruleConfig is one policy rule: exactly one verdict, with a pattern or a list of
// them; on a rule that asks, also how it is decided.
type ruleConfig struct {
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
}

// verdict is what the rule says, and of which patterns.
func (r ruleConfig) verdict() (v policy.Verdict, patterns names) {
	switch {
	case r.Allow != nil:
		return policy.Allow, r.Allow
	case r.Deny != nil:
		return policy.Deny, r.Deny
	}
	return policy.Ask, r.Ask
}

// reminderConfig tells people of an approval that waits.
type reminderConfig struct {
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
	v, err := time.ParseDuration(s)
	if err != nil || v < time.Second {
		return fmt.Errorf("%q is not a duration of at least a second, such as 24h", s)
	}
	*d = duration(v)
	return nil
}

// readConfig reads and checks deckhand.yaml. Its error lists everything that is
// wrong, each with the file's line and column.
func readConfig(file string) (config, error) {
	var c config
	source, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return c, fmt.Errorf("DECKHAND_CONFIG: there is no file %s; start from deploy/deckhand.example.yaml", file)
	}
	if err != nil {
		return c, fmt.Errorf("read the configuration: %w", err)
	}
	tree, err := parser.ParseBytes(source, 0)
	if err != nil {
		return c, positioned(file, err)
	}
	if err := yaml.UnmarshalWithOptions(source, &c, yaml.Strict()); err != nil {
		return c, positioned(file, err)
	}
	v := validation{file: file, tree: tree}
	v.check(c)
	c.file, c.sha256 = file, sha256.Sum256(source)
	for i := range c.Policy.Rules {
		c.rulesAt = append(c.rulesAt, v.where(fmt.Sprintf("$.policy.rules[%d]", i)))
	}
	return c, v.err()
}

// positioned puts the position of a YAML error where editors expect it.
func positioned(file string, err error) error {
	var y yaml.Error
	if errors.As(err, &y) && y.GetToken() != nil {
		p := y.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", file, p.Line, p.Column, y.GetMessage())
	}
	return fmt.Errorf("%s: %s", file, strings.TrimSpace(yaml.FormatError(err, false, false)))
}

// projects and those that follow put the configuration into the terms of those who
// use it.
func (c config) projects() map[string]agent.Project {
	out := make(map[string]agent.Project, len(c.Projects))
	for name, p := range c.Projects {
		kind := agent.WorkspaceKind(p.Workspace)
		if kind == "" {
			kind = agent.WorkspaceShared
		}
		out[name] = agent.Project{
			Name: name, Dir: p.Dir, Repo: p.Repo, Workspace: kind, Base: p.Base, Model: p.Model,
			PermissionMode: p.PermissionMode, Env: p.Env, AppendSystemPrompt: p.AppendSystemPrompt,
			Prices: p.Prices.prices(),
		}
	}
	return out
}

// access are the roles, and where people work.
func (c config) access() access.Rules {
	a := access.Rules{
		Roles: c.Roles.roles(), Projects: map[string]access.Roles{}, Channels: map[string]access.Roles{},
		Places: access.Places{Channels: map[string]string{}, DirectMessages: c.DirectMessages},
	}
	for name, p := range c.Projects {
		a.Projects[name] = p.Roles.roles()
	}
	for id, ch := range c.Channels {
		a.Channels[id], a.Places.Channels[id] = ch.Roles.roles(), ch.Project
	}
	return a
}

// anybody reports whether somebody may use the bot somewhere.
func (c config) anybody() bool {
	n := 0
	count := func(r rolesConfig) { n += len(r.Admins) + len(r.Approvers) + len(r.Users) }
	count(c.Roles)
	for _, p := range c.Projects {
		count(p.Roles)
	}
	for _, ch := range c.Channels {
		count(ch.Roles)
	}
	return n > 0
}

// policy panics on a pattern that does not parse: readConfig has refused those.
func (c config) policy() *policy.Policy {
	p := &policy.Policy{Default: policy.Terms{
		RequesterMayApprove: c.Policy.RequesterMayApprove == nil || *c.Policy.RequesterMayApprove,
		Timeout:             time.Duration(c.Policy.ApprovalTimeout),
		OnTimeout:           policy.OnTimeout(c.Policy.OnTimeout),
		Quorum:              c.Policy.Quorum,
	}}
	for i, r := range c.Policy.Rules {
		verdict, patterns := r.verdict()
		rule := policy.Rule{
			Verdict: verdict, Projects: r.Projects, Channels: r.Channels, Because: r.Because,
			Approvers: r.Approvers, Quorum: r.Quorum, RequesterMayApprove: r.RequesterMayApprove,
			Timeout: time.Duration(r.Timeout), OnTimeout: policy.OnTimeout(r.OnTimeout), Dangerous: r.Dangerous,
			Source: c.rulesAt[i],
		}
		for _, text := range patterns {
			pattern, err := policy.ParsePattern(text)
			if err != nil {
				panic(fmt.Sprintf("%s: %v", c.rulesAt[i], err))
			}
			rule.Patterns = append(rule.Patterns, pattern)
		}
		p.Rules = append(p.Rules, rule)
	}
	return p
}

// defaultReminders are those of a configuration that names none: nobody should find
// out in the evening that an agent has waited since the morning.
var defaultReminders = []reminderConfig{
	{After: duration(time.Hour), To: names{"thread"}},
	{After: duration(4 * time.Hour), To: names{"thread", "approvers"}},
}

// reminders are when, and whom, to tell of an approval that waits.
func (c config) reminders() (after []time.Duration, to [][]string) {
	list := c.Policy.Reminders
	if list == nil {
		list = defaultReminders
	}
	for _, r := range list {
		after = append(after, time.Duration(r.After))
		to = append(to, r.To)
	}
	return after, to
}

func sorted[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
