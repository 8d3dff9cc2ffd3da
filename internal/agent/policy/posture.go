package policy

import (
	"cmp"
	"slices"
)

// Posture decides calls that no rule decides.
type Posture string

// The postures. The empty one is [Careful].
const (
	// Careful asks a person about every call that is not known to be harmless.
	Careful Posture = "careful"
	// Contained runs what stays inside the sandbox, and asks a person about what leaves it.
	Contained Posture = "contained"
)

// Postures are the team's posture, and those of projects and channels. The channel's comes first, then the
// project's, then the team's.
type Postures struct {
	Team     Posture
	Projects map[string]Posture // by project
	Channels map[string]Posture // by channel id
}

// Of is the posture of a project in a channel.
func (p Postures) Of(project, channel string) Posture {
	return cmp.Or(p.Channels[channel], p.Projects[project], p.Team, Careful)
}

// Texts for decisions of the contained posture.
const (
	containedRuns  = "posture contained: what stays inside the sandbox runs"
	containedAsked = "default: what leaves the sandbox is asked"
)

// contained reports whether a call runs because it stays inside the sandbox. It lists what is known to stay:
// commands except git push, reads, edits, the agent's own bookkeeping and subagents, a language server, and MCP
// tools that the project declares as reading. A call with an unknown input does not count.
func (p *Policy) contained(req *request) bool {
	if p.Postures.Of(req.call.Project, req.call.Channel) != Contained || req.leaves != "" {
		return false
	}
	switch t, known := tools[req.call.Tool]; {
	case req.kind == kindBash:
		push, _ := req.pushes()
		return !push && (req.readable() || !p.guardsCommands(req.call))
	case req.kind == kindRead, req.kind == kindEdit:
		return true
	case !known:
		return req.call.Tool == ownPreview || p.Reads[req.call.Project][req.call.Tool]
	default:
		return (t.does == ownState || t.inside) && req.odd == ""
	}
}

// guardsCommands reports whether a rule denies or asks about commands where a call is made. An unreadable command
// may be one of them.
func (p *Policy) guardsCommands(c *Call) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool {
		return r.Verdict != Allow && r.holds(c) && slices.ContainsFunc(r.Patterns, func(p Pattern) bool { return p.kind == kindBash })
	})
}

// readable reports whether a command's text names everything that it starts.
func (req *request) readable() bool {
	return req.script.hard == "" && !slices.ContainsFunc(req.script.units, func(u unit) bool { return u.soft != "" || u.wrap != "" })
}
