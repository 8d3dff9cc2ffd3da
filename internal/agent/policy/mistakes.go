package policy

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/spelling"
)

// Mistake is a pattern that does not do what its rule says: no call reaches it, or the tool does not exist.
type Mistake struct {
	Rule, Pattern int // which pattern of which rule, from 0
	// Opens says that calls that the rule asks about or denies are decided less strictly. Otherwise the pattern is
	// harmless.
	Opens bool
	Text  string // the problem and its cure
}

// Mistakes are the patterns known to do nothing, or less than they say. servers are the names of the MCP servers by
// project.
func (p *Policy) Mistakes(servers map[string][]string) []Mistake {
	var out []Mistake
	for j := range p.Rules {
		for k := range p.Rules[j].Patterns {
			opens, text := p.Rules[j].strange(&p.Rules[j].Patterns[k], servers)
			if text == "" {
				opens, text = p.unreached(j, k)
			}
			if text != "" {
				out = append(out, Mistake{j, k, opens, text})
			}
		}
	}
	return out
}

// strange explains why a pattern that is a tool's name matches no tool.
func (r *Rule) strange(p *Pattern, servers map[string][]string) (opens bool, text string) {
	head, _, wild := strings.Cut(p.name, "*")
	if p.kind == kindBash {
		return false, p.slip()
	}
	if p.kind != kindName || wild && strings.HasPrefix("mcp__", head) {
		return false, ""
	}
	if rest, ok := strings.CutPrefix(p.name, "mcp__"); ok {
		return r.noServer(rest, servers)
	}
	known := toolNames()
	if slices.ContainsFunc(known, p.names) {
		return false, ""
	}
	text = "there is no tool " + p.name
	if now := renamed[p.name]; now != "" {
		return r.Verdict != Allow, text + " any more: its name is " + now + ", so write that"
	}
	if wild {
		text = "no tool has a name like " + p.name
	}
	switch near := spelling.Nearest(strings.Trim(p.name, "*"), known); {
	case near != "":
		text += "; did you mean " + near + "?"
	case r.Verdict == Allow:
		text += " in the Claude Code that Deckhand is made for; correct the name, or leave it out"
	default:
		text += "; correct the name, or leave it out: what no rule allows is asked anyway"
	}
	return r.Verdict != Allow, text
}

// slip names the program, or the subcommand, that a pattern for commands is one slip of a finger away from. There may
// be one of its name all the same.
func (p *Pattern) slip() string {
	if p.cmd == nil || len(p.cmd.words) == 0 || !p.cmd.words[0].literal() {
		return ""
	}
	name, known := p.cmd.words[0].text, slices.Sorted(maps.Keys(programs()))
	if is := specification(name); is != nil {
		if len(is.subs) == 0 || len(p.cmd.words) < 2 || !p.cmd.words[1].literal() {
			return ""
		}
		name, known = p.cmd.words[1].text, nil
		for sub := range is.subs {
			word, _, _ := strings.Cut(sub, " ")
			known = append(known, word)
		}
		slices.Sort(known)
	}
	if near := spelling.Slip(name, known); near != "" {
		return "Deckhand knows no " + name + "; did you mean " + near + "?"
	}
	return ""
}

// toolNames are the names that a pattern may begin with.
func toolNames() []string {
	return append(slices.Sorted(maps.Keys(tools)), slices.Sorted(maps.Keys(families))...)
}

// renamed are old tool names that the CLI still accepts, and replaces before it asks.
var renamed = map[string]string{
	"Task": "Agent", "KillShell": "TaskStop", "KillBash": "TaskStop", "ListPeers": "ListAgents", "Brief": "SendUserMessage",
	"ListMcpResources": "ListMcpResourcesTool", "ReadMcpResource": "ReadMcpResourceTool", "ReadMcpResourceDir": "ReadMcpResourceDirTool",
}

// noServer explains that no project to which the rule applies has the MCP server of a name.
func (r *Rule) noServer(name string, servers map[string][]string) (opens bool, text string) {
	server, _, _ := strings.Cut(name, "__")
	known := []string{ownServer}
	for _, project := range slices.Sorted(maps.Keys(servers)) {
		if len(r.Projects) == 0 || slices.Contains(r.Projects, project) {
			known = append(known, servers[project]...)
		}
	}
	if slices.ContainsFunc(known, func(s string) bool { return wild(server, s) }) {
		return false, ""
	}
	if near := spelling.Nearest(server, known); near != "" {
		return r.Verdict != Allow, "no project where the rule holds has an MCP server " + server + "; did you mean mcp__" + near + strings.TrimPrefix(name, server) + "?"
	}
	return false, "no project where the rule holds has an MCP server " + server + ", so it is about no call; write it under mcp_servers, or leave the rule out"
}

// unreached names an earlier rule that takes the calls that a pattern is about.
func (p *Policy) unreached(j, k int) (opens bool, text string) {
	later, q := &p.Rules[j], &p.Rules[j].Patterns[k]
	for i := range p.Rules[:j] {
		r := &p.Rules[i]
		if !within(r.Projects, later.Projects) || !within(r.Channels, later.Channels) {
			continue
		}
		for n := range r.Patterns {
			before := &r.Patterns[n]
			taken := r.takes(before, q)
			name := r.Verdict.of(before)
			if r.Source != "" {
				name += " (" + r.Source + ")"
			}
			switch {
			case taken && later.Verdict.Stricter(r.Verdict):
				return true, "the first rule that fits decides, and " + name + " comes before: what this rule is about is decided there; move this one above it"
			case taken:
				return false, "no call reaches it, since " + name + " comes before; move it above that, or leave it out"
			case r.Verdict == Allow && later.Verdict != Allow && before.anyWords() && len(before.cmd.words) == 0 && (q.kind == kindRead || q.kind == kindEdit):
				text = first(text, "a command may touch the files all the same, since "+name+" comes before; move this one above it")
			}
		}
	}
	return false, text
}

// within reports whether a rule for some places applies wherever one for others does; nil means everywhere.
func within(places, others []string) bool {
	return len(places) == 0 || len(others) > 0 && !slices.ContainsFunc(others, func(o string) bool { return !slices.Contains(places, o) })
}

// takes reports whether one of the rule's patterns decides the calls of a later pattern: it tries a sample. An
// allowing rule may leave some calls to an equally wide later one: unknown words, and protected places.
// A rule for many tools before one for a whole tool leaves it nothing.
func (r *Rule) takes(before, q *Pattern) bool {
	c := q.sample()
	req := readIn(&c, root{nowhere, nowhere})
	if r.Verdict != Allow {
		for i := range req.parts() {
			if hit, _ := req.hits(before, i); hit {
				return true
			}
		}
		return false
	}
	wide := q.kind == kindBash && (q.cmd == nil || q.cmd.rest)
	switch same := before.text == q.text; {
	case q.kind != kindName && q.text == q.name && before.kind == kindName:
		return before.names(q.name)
	case q.text == q.name && (q.kind == kindBash || q.kind == kindRead || q.kind == kindEdit), same && q.kind == kindEdit:
		return false
	case wide && !before.anyWords():
		if ok, _ := req.covers(before, 0); !ok || same {
			return false
		}
		return before.cmd == nil || before.cmd.rest && len(before.cmd.words) < len(q.cmd.words)
	}
	ok, _ := req.covered(before)
	return ok
}

// A sample uses a folder that does not exist and names that nobody has.
const (
	nowhere = "/deckhand-nowhere"
	anyName = "deckhand-any"
)

var anyNames = strings.NewReplacer("**", anyName+"/"+anyName, "*", anyName, "?", "x")

// sample is a call that the pattern is about.
func (p *Pattern) sample() Call {
	c := Call{Workspace: nowhere, Tool: anyNames.Replace(p.name)}
	field, value := "", ""
	switch p.kind {
	case kindBash:
		c.Tool, field, value = "Bash", "command", anyName
		if p.cmd != nil && p.cmd.words == nil {
			value = first(p.cmd.text, anyName)
		} else if p.cmd != nil {
			value = p.cmd.spelt(len(p.cmd.words))
		}
	case kindRead, kindEdit:
		c.Tool, field, value = map[kind]string{kindRead: "Read", kindEdit: "Edit"}[p.kind], "file_path", anyName
		if p.glob != nil {
			value = alternatives(anyNames.Replace(p.glob.text))[0]
		}
	case kindWeb:
		field, value = "url", "https://"+anyName+".example/"
		if p.web != nil {
			value = "https://" + p.web.sample() + "/"
		}
	case kindNet:
		host, port := anyName+".example", uint16(443)
		if p.net != nil {
			host, port = p.net.sample(), cmp.Or(p.net.port, 443)
		}
		c.Input = NetworkInput(host, port)
		return c
	default:
		if server, ok := strings.CutPrefix(p.name, "mcp__"); ok && !strings.Contains(server, "__") {
			c.Tool += "__" + anyName
		}
		return c
	}
	c.Input, _ = json.Marshal(map[string]string{field: value}) // a text
	return c
}

func (d *domain) sample() string {
	if d.sub {
		return anyName + "." + d.host
	}
	return d.host
}
