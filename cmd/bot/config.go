package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"deckhand/internal/agent"
	"deckhand/internal/slackui"
)

// config is deckhand.yaml: what a team agrees on.
type config struct {
	Projects       map[string]projectConfig `yaml:"projects"`
	Channels       map[string]string        `yaml:"channels"`
	DirectMessages string                   `yaml:"direct_messages"`
	Roles          struct {
		Admins    []string `yaml:"admins"`
		Approvers []string `yaml:"approvers"`
		Users     []string `yaml:"users"`
	} `yaml:"roles"`
	Policy struct {
		Rules               []ruleConfig `yaml:"rules"`
		RequesterMayApprove *bool        `yaml:"requester_may_approve"`
		ApprovalTimeout     duration     `yaml:"approval_timeout"`
	} `yaml:"policy"`
}

type projectConfig struct {
	Dir                string   `yaml:"dir"`
	Repo               string   `yaml:"repo"`
	Workspace          string   `yaml:"workspace"`
	Base               string   `yaml:"base"`
	Model              string   `yaml:"model"`
	PermissionMode     string   `yaml:"permission_mode"`
	Env                []string `yaml:"env"`
	AppendSystemPrompt string   `yaml:"append_system_prompt"`
}

// ruleConfig is one policy rule: exactly one key, with a tool or a list of them.
type ruleConfig struct {
	Allow names `yaml:"allow"`
	Ask   names `yaml:"ask"`
	Deny  names `yaml:"deny"`
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
	if err != nil || v < time.Minute {
		return fmt.Errorf("%q is not a duration of at least a minute, such as 24h", s)
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

// validation collects what is wrong with a configuration, with positions.
type validation struct {
	file  string
	tree  *ast.File
	wrong []string
}

func (v *validation) err() error {
	if len(v.wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(v.wrong, "\n"))
}

// add notes a problem at a path such as "$.projects.web.dir".
func (v *validation) add(at, format string, args ...any) {
	where := v.file
	for p := at; p != ""; p = parent(p) { // what is missing is told at its parent
		if pos, ok := v.position(p); ok {
			where = fmt.Sprintf("%s:%d:%d", v.file, pos[0], pos[1])
			break
		}
	}
	v.wrong = append(v.wrong, where+": "+strings.TrimPrefix(strings.TrimPrefix(at, "$"), ".")+": "+fmt.Sprintf(format, args...))
}

func parent(p string) string {
	i := strings.LastIndexAny(p, ".[")
	if i <= 0 {
		return ""
	}
	return p[:i]
}

func (v *validation) position(at string) ([2]int, bool) {
	p, err := yaml.PathString(at)
	if err != nil {
		return [2]int{}, false
	}
	node, err := p.FilterFile(v.tree)
	if err != nil || node == nil {
		return [2]int{}, false
	}
	pos := node.GetToken().Position
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		pos = m.Values[0].Key.GetToken().Position
	}
	return [2]int{pos.Line, pos.Column}, true
}

var (
	projectName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	channelID   = regexp.MustCompile(`^[CG][A-Z0-9]{2,}$`)
	memberID    = regexp.MustCompile(`^[UWS][A-Z0-9]{2,}$`)
	variable    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	toolPattern = regexp.MustCompile(`^[A-Za-z0-9_*?.:-]+$`)
)

// kept are variables that no project may hand to the agent.
func kept(name string) bool {
	return strings.HasPrefix(name, "SLACK_") || strings.HasPrefix(name, "PG") || name == "DATABASE_URL"
}

func (v *validation) check(c config) {
	if len(c.Projects) == 0 {
		v.add("$.projects", "there is no project; write one, with its dir or repo")
	}
	for _, name := range sorted(c.Projects) {
		v.project("$.projects."+name, name, c.Projects[name])
	}
	if len(c.Channels) == 0 && c.DirectMessages == "" {
		v.add("$.channels", "no channel has a project, so the bot would answer nowhere; write CHANNEL_ID: project")
	}
	for _, id := range sorted(c.Channels) {
		at := "$.channels." + id
		if !channelID.MatchString(id) {
			v.add(at, "%q is not a channel id; write the C… at the end of the channel's link", id)
		}
		if _, ok := c.Projects[c.Channels[id]]; !ok {
			v.add(at, "there is no project %q under projects", c.Channels[id])
		}
	}
	if c.DirectMessages != "" {
		if _, ok := c.Projects[c.DirectMessages]; !ok {
			v.add("$.direct_messages", "there is no project %q under projects", c.DirectMessages)
		}
	}
	for role, members := range map[string][]string{"admins": c.Roles.Admins, "approvers": c.Roles.Approvers, "users": c.Roles.Users} {
		for i, m := range members {
			if !memberID.MatchString(m) {
				v.add(fmt.Sprintf("$.roles.%s[%d]", role, i), "%q is not a user id (U…) or a user group id (S…); Slack shows it in the person's profile, under Copy member ID", m)
			}
		}
	}
	for i, r := range c.Policy.Rules {
		v.rule(fmt.Sprintf("$.policy.rules[%d]", i), r)
	}
}

func (v *validation) project(at, name string, p projectConfig) {
	if !projectName.MatchString(name) {
		v.add(at, "%q is not a project name; write small letters, digits, - and _", name)
	}
	if !slices.Contains([]string{"", "shared", "worktree", "scratch"}, p.Workspace) {
		v.add(at+".workspace", "%q is not a kind of workspace; write shared, worktree or scratch", p.Workspace)
	}
	switch {
	case p.Workspace == "scratch" && (p.Dir != "" || p.Repo != ""):
		v.add(at, "a scratch project starts empty; leave out dir and repo")
	case p.Workspace != "scratch" && (p.Dir == "") == (p.Repo == ""):
		v.add(at, "write either dir, a folder on this machine, or repo, a git URL")
	}
	if p.Dir != "" && !filepath.IsAbs(p.Dir) {
		v.add(at+".dir", "%q is not an absolute path", p.Dir)
	}
	if strings.HasPrefix(p.Repo, "-") || strings.HasPrefix(p.Base, "-") {
		v.add(at, "repo and base must not begin with -")
	}
	if !slices.Contains([]string{"", "default", "plan"}, p.PermissionMode) {
		v.add(at+".permission_mode", "%q is not a mode that Deckhand offers; write default or plan, and say under policy what may run unasked", p.PermissionMode)
	}
	for i, e := range p.Env {
		if !variable.MatchString(e) || kept(e) {
			v.add(fmt.Sprintf("%s.env[%d]", at, i), "%q cannot be passed on: write the name of a variable, none of Slack's or the database's", e)
		}
	}
}

func (v *validation) rule(at string, r ruleConfig) {
	set := 0
	for _, tools := range []names{r.Allow, r.Ask, r.Deny} {
		if tools == nil {
			continue
		}
		set++
		for _, t := range tools {
			if _, err := path.Match(t, ""); err != nil || !toolPattern.MatchString(t) {
				v.add(at, "%q is not a tool's name; write Bash, Edit, mcp__server__* and the like", t)
			}
		}
		if len(tools) == 0 {
			v.add(at, "the rule names no tool")
		}
	}
	if set != 1 {
		v.add(at, "a rule has one verdict; write allow, ask or deny, with a tool or a list of tools")
	}
}

// projects, roles and policy put the configuration into the terms of those who
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
		}
	}
	return out
}

func (c config) roles() slackui.Roles {
	return slackui.Roles{Admins: c.Roles.Admins, Approvers: c.Roles.Approvers, Users: c.Roles.Users}
}

func (c config) policy() agent.Policy {
	p := agent.Policy{Timeout: time.Duration(c.Policy.ApprovalTimeout), RequesterMayApprove: true}
	if c.Policy.RequesterMayApprove != nil {
		p.RequesterMayApprove = *c.Policy.RequesterMayApprove
	}
	for _, r := range c.Policy.Rules {
		for verdict, tools := range map[agent.Verdict]names{agent.Allow: r.Allow, agent.Ask: r.Ask, agent.Deny: r.Deny} {
			if tools != nil {
				p.Rules = append(p.Rules, agent.Rule{Verdict: verdict, Tools: tools})
			}
		}
	}
	return p
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
