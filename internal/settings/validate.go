package settings

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"deckhand/internal/access"
	"deckhand/internal/agent/policy"
	"deckhand/internal/sandbox"
)

// validation collects problems of a configuration, with positions.
type validation struct {
	file   string
	tree   *ast.File
	wrong  Problems
	doubts []string // not errors
}

func (v *validation) err() error {
	if len(v.wrong) == 0 {
		return nil
	}
	return v.wrong
}

// add adds a problem at a path such as "$.projects.web.dir".
func (v *validation) add(at, format string, args ...any) {
	v.wrong = append(v.wrong, v.where(at)+": "+keyOf(at)+fmt.Sprintf(format, args...))
}

// where is the position of a path; a missing key has its parent's.
func (v *validation) where(at string) string {
	for p := at; p != ""; p = parent(p) {
		if pos, ok := v.position(p); ok {
			return fmt.Sprintf("%s:%d:%d", v.file, pos[0], pos[1])
		}
	}
	return v.file
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
	serversTool = regexp.MustCompile(`^mcp__[A-Za-z0-9_-]+$`)
	modelName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/\[\]-]{0,127}$`)
	variable    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// secretsName is the name of a secret's variable. It admits no lower-case letters, so that a pasted token is
	// not taken for a name.
	secretsName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
	// accessKeyID is an AWS key id, which consists of capitals.
	accessKeyID = regexp.MustCompile(`^A[KS]IA[A-Z0-9]{16}$`)
)

// secretVariable checks that a secret is given as a variable's name. It does not repeat other values.
func (v *validation) secretVariable(at, name string) {
	if !secretsName.MatchString(name) || accessKeyID.MatchString(name) {
		v.add(at, "write the name of a variable of the bot's environment, such as WEB_ANTHROPIC_KEY, in capitals; the secret itself does not belong here")
	}
}

// kept reports whether no project may pass a variable to the agent.
func kept(name string) bool {
	return strings.HasPrefix(name, "SLACK_") || strings.HasPrefix(name, "PG") || name == "DATABASE_URL" || name == "DECKHAND_TOKEN_KEY" || name == "ANTHROPIC_ADMIN_KEY"
}

// emojiName is an emoji as Slack names it.
var emojiName = regexp.MustCompile(`^[a-z0-9][a-z0-9_+'-]{0,99}$|^[+-]1$`)

func (v *validation) check(c document) {
	if len(c.Projects) == 0 {
		v.add("$.projects", "there is no project; write one, with its dir or repo")
	}
	credentials := c.credentials()
	for _, name := range sorted(c.Projects) {
		at, p := "$.projects."+name, c.Projects[name]
		if p.Team != strings.TrimSpace(p.Team) || len(p.Team) > 80 || strings.ContainsFunc(p.Team, func(r rune) bool { return !unicode.IsPrint(r) }) {
			v.add(at+".team", "%q is no team's name; write a short one, such as Platform", p.Team)
		}
		v.project(at, name, p)
		v.provider(at+".provider", p.Provider)
		v.passedOn(at+".env", p.Env, credentials)
		v.forge(at, name, c, p)
		v.pulls(at, c, p)
		v.preview(at+".preview", c, p)
		if p.Sandbox != nil {
			v.sandbox(at+".sandbox", *p.Sandbox, p.Sandbox.over(c.Sandbox))
		}
		v.servers(at+".mcp_servers", p, sandbox.Kind(p.Sandbox.over(c.Sandbox).Kind), credentials)
	}
	if len(c.Channels) == 0 && c.DirectMessages == "" {
		v.add("$.channels", "no channel has a project, so the bot would answer nowhere; write CHANNEL_ID: project")
	}
	for _, id := range sorted(c.Channels) {
		at := "$.channels." + id
		if !channelID.MatchString(id) {
			v.add(at, "%q is not a channel id; write the C… at the end of the channel's link", id)
		}
		for _, name := range c.Channels[id].all() {
			if _, ok := c.Projects[name]; !ok {
				v.add(at, "there is no project %q under projects", name)
			}
		}
		v.roles(at+".roles", c.Channels[id].Roles)
		if r := c.Channels[id].Replies; r != "" && r != repliesAll && r != repliesMention {
			v.add(at+".replies", "%q is neither %s (every reply in its threads is for the bot, unless it begins with somebody else's name) nor %s (those that mention it)", r, repliesAll, repliesMention)
		}
	}
	if c.DirectMessages != "" {
		if _, ok := c.Projects[c.DirectMessages]; !ok {
			v.add("$.direct_messages", "there is no project %q under projects", c.DirectMessages)
		}
	}
	for _, name := range sorted(c.Reactions) {
		at, does := "$.reactions."+name, c.Reactions[name]
		if !emojiName.MatchString(name) {
			v.add(at, "%q is not an emoji's name; write it as Slack does, without the colons, such as octagonal_sign", name)
		}
		if does != "begin" && does != "stop" {
			v.add(at, "%q is nothing that an emoji does; write begin or stop", does)
		}
	}
	v.people(c)
	v.sandbox("$.sandbox", c.Sandbox, c.Sandbox)
	v.provider("$.provider", c.Provider)
	v.teamsGit(c)
	v.roles("$.roles", c.Roles)
	v.policy(c)
	v.postures(c)
	v.budgets(c)
	v.reports(c)
	v.transcripts(c.Transcripts)
	v.attachments(c.Attachments)
	v.prices("$.prices", c.Prices)
	for key, text := range map[string]string{"max_size": c.Workspaces.MaxSize, "keep": c.Workspaces.Keep} {
		if text == "" {
			continue
		}
		if n, err := size(text); err != nil {
			v.add("$.workspaces."+key, "%v", err)
		} else if (n > 0 || key == "keep") && n < 1<<20 {
			v.add("$.workspaces."+key, "%s is too small; write 1MiB or more, or leave it out", text)
		}
	}
	if age := time.Duration(c.Workspaces.MaxAge); age > 0 && age < time.Hour {
		v.add("$.workspaces.max_age", "%s is too short: a folder that was put away has to be made again; write 1h or more, such as 720h", age)
	}
}

func (v *validation) roles(at string, r access.Roles) {
	v.members(at+".admins", r.Admins)
	v.members(at+".approvers", r.Approvers)
	v.members(at+".users", r.Users)
}

func (v *validation) members(at string, list []string) {
	for i, m := range list {
		if !memberID.MatchString(m) {
			v.add(fmt.Sprintf("%s[%d]", at, i), "%q is not a user id (U…) or a user group id (S…); Slack shows it in the person's profile, under Copy member ID", m)
		}
	}
}

func (v *validation) policy(c document) {
	const at = "$.policy"
	v.onTimeout(at+".on_timeout", c.Policy.OnTimeout)
	if c.Policy.Quorum < 0 {
		v.add(at+".quorum", "%d people cannot approve; write 1 or more", c.Policy.Quorum)
	}
	for i, r := range c.Policy.Reminders {
		at := fmt.Sprintf("%s.reminders[%d]", at, i)
		if r.After <= 0 {
			v.add(at, "a reminder says after how long, such as after: 1h")
		}
		if len(r.To) == 0 {
			v.add(at, "a reminder says whom to tell: to: thread, approvers or a channel's id")
		}
		for _, to := range r.To {
			if to != "thread" && to != "approvers" && !channelID.MatchString(to) {
				v.add(at+".to", "%q cannot be told; write thread, approvers or a channel's id (C…)", to)
			}
		}
	}
	for i, r := range c.Policy.Rules {
		v.rule(fmt.Sprintf("%s.rules[%d]", at, i), c, r)
	}
}

func (v *validation) onTimeout(at, action string) {
	if !slices.Contains([]string{"", string(policy.Pause), string(policy.DenyOnTimeout)}, action) {
		v.add(at, "%q is not what can happen; write pause, or deny", action)
	}
}

func (v *validation) project(at, name string, p projectYAML) {
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
	switch {
	case p.Subdir == "":
	case p.Workspace != "worktree":
		v.add(at+".subdir", "a subfolder is checked out for each thread; write workspace: worktree, or name the folder itself as dir")
	case !fs.ValidPath(p.Subdir) || p.Subdir == "." || strings.ContainsFunc(p.Subdir, unicode.IsControl) || slices.Contains(strings.Split(strings.ToLower(p.Subdir), "/"), ".git"):
		v.add(at+".subdir", "%q is no folder of the repository; write its path from the top, such as services/web", p.Subdir)
	}
	if p.Call != "" && !slices.Contains(access.Calls, p.Call) {
		v.add(at+".call", "%q is not a way to call those who may decide; write auto, thread, dm or channel", p.Call)
	}
	if p.Setup != nil {
		if err := p.Setup.setup().Check(); err != nil {
			v.add(at+".setup", "%v", err)
		}
		if p.Dir != "" && p.Workspace != "worktree" {
			v.add(at+".setup", "threads share this folder, which is yours; set it up by hand")
		}
	}
	if p.Model != "" && p.Models != nil {
		v.add(at+".model", "there are models as well; write them alone, the default first")
	}
	for i, m := range p.Models {
		if !modelName.MatchString(m) {
			v.add(fmt.Sprintf("%s.models[%d]", at, i), "%q is not a model's name; write one such as sonnet, or the model's id", m)
		} else if slices.Index(p.Models, m) < i {
			v.add(fmt.Sprintf("%s.models[%d]", at, i), "%q stands here twice", m)
		}
	}
	if p.MaxTurns != nil && *p.MaxTurns < 1 {
		v.add(at+".max_turns", "%d calls of the model are no turn; write 1 or more, or leave it out", *p.MaxTurns)
	}
	v.tools(at+".allowed_tools", p.AllowedTools, false)
	v.tools(at+".disallowed_tools", p.DisallowedTools, true)
	v.trust(at+".trust", p)
	v.roles(at+".roles", p.Roles)
	v.prices(at+".prices", p.Prices)
	if p.Dir != "" && !filepath.IsAbs(p.Dir) {
		v.add(at+".dir", "%q is not an absolute path", p.Dir)
	}
	if strings.HasPrefix(p.Repo, "-") || strings.HasPrefix(p.Base, "-") {
		v.add(at, "repo and base must not begin with -")
	}
	if !slices.Contains([]string{"", "default", "plan"}, p.PermissionMode) {
		v.add(at+".permission_mode", "%q is not a mode that Deckhand offers; write default or plan, and say under policy what may run unasked", p.PermissionMode)
	}
}

// preview checks how a project's page is looked at: by a browser that reaches nothing else.
func (v *validation) preview(at string, d document, p projectYAML) {
	if p.Preview == nil {
		return
	}
	if err := p.Preview.Check(); err != nil {
		v.add(at, "%v", err)
	}
	if kind := p.Sandbox.over(d.Sandbox).spec().Kind; kind == sandbox.None || kind == sandbox.Command {
		v.add(at, "the page and its browser run in a sandbox without a network, and sandbox: %s is none; write bwrap, gvisor or container, or leave preview out", kind)
	}
}

// tools checks names of Claude Code's tools, and where it says so of MCP servers'.
func (v *validation) tools(at string, list names, servers bool) {
	if list != nil && len(list) == 0 {
		v.add(at, "the list is empty, which says nothing; name some tools, or leave it out")
	}
	for i, name := range list {
		if policy.Offers(name) || servers && serversTool.MatchString(name) {
			continue
		}
		v.add(fmt.Sprintf("%s[%d]", at, i), "%q is no tool that Claude Code is offered with; write a name such as Bash, Edit, Read or WebFetch", name)
	}
}

func (v *validation) rule(at string, c document, r ruleYAML) {
	set := 0
	for key, patterns := range map[string]names{"allow": r.Allow, "ask": r.Ask, "deny": r.Deny} {
		if patterns == nil {
			continue
		}
		set++
		for _, text := range patterns {
			if _, err := policy.ParsePattern(text); err != nil {
				v.add(at+"."+key, "%v", err)
			}
		}
		if len(patterns) == 0 {
			v.add(at, "the rule names no tool")
		}
	}
	if set != 1 {
		v.add(at, "a rule has one verdict; write allow, ask or deny, with a pattern or a list of patterns")
	}
	for _, p := range r.Projects {
		if _, ok := c.Projects[p]; !ok {
			v.add(at+".projects", "there is no project %q under projects", p)
		}
	}
	for _, ch := range r.Channels {
		if !channelID.MatchString(ch) {
			v.add(at+".channels", "%q is not a channel id; write the C… at the end of the channel's link", ch)
		}
	}
	asks := r.Approvers != nil || r.Quorum != 0 || r.RequesterMayApprove != nil || r.Timeout != 0 || r.OnTimeout != "" || r.Dangerous || r.Edit != nil
	if asks && r.Ask == nil {
		v.add(at, "approvers, quorum, requester_may_approve, timeout, on_timeout, dangerous and edit belong to a rule that asks")
	}
	v.members(at+".approvers", r.Approvers)
	v.onTimeout(at+".on_timeout", r.OnTimeout)
	if r.Quorum < 0 {
		v.add(at+".quorum", "%d people cannot approve; write 1 or more", r.Quorum)
	}
	for key, list := range map[string]names{"projects": r.Projects, "channels": r.Channels, "approvers": r.Approvers} {
		if list != nil && len(list) == 0 {
			v.add(at+"."+key, "the list is empty, which says nothing; name some, or leave %s out", key)
		}
	}
}
