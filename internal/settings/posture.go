package settings

import (
	"cmp"
	"fmt"
	"slices"

	"deckhand/internal/agent/policy"
	"deckhand/internal/sandbox"
	"deckhand/internal/workspace"
)

// postures are the configured postures; the nearest applies.
func (d document) postures() policy.Postures {
	p := policy.Postures{Team: policy.Posture(d.Posture), Projects: map[string]policy.Posture{}, Channels: map[string]policy.Posture{}}
	for name, project := range d.Projects {
		p.Projects[name] = policy.Posture(project.Posture)
	}
	for id, channel := range d.Channels {
		p.Channels[id] = policy.Posture(channel.Posture)
	}
	return p
}

// reads are the MCP tools that projects declare as reading, by full name.
func (d document) reads() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for name, p := range d.Projects {
		for server, s := range p.MCPServers {
			for _, tool := range s.Reads {
				if out[name] == nil {
					out[name] = map[string]bool{}
				}
				out[name]["mcp__"+server+"__"+tool] = true
			}
		}
	}
	return out
}

// postures checks that each posture is known, and that the requirements of a contained one are met in each of its
// projects.
func (v *validation) postures(d document) {
	at := func(path, posture string) {
		if p := policy.Posture(posture); p != "" && p != policy.Careful && p != policy.Contained {
			v.add(path+".posture", "%q is no posture; write contained (what stays inside the sandbox runs, what leaves it is asked) or careful (what no rule allows is asked)", posture)
		}
	}
	at("$", d.Posture)
	for _, name := range sorted(d.Projects) {
		at("$.projects."+name, d.Projects[name].Posture)
	}
	for _, id := range sorted(d.Channels) {
		at("$.channels."+id, d.Channels[id].Posture)
	}
	all, told := d.postures(), map[string]bool{}
	check := func(project, channel string) {
		p, ok := d.Projects[project]
		if !ok || all.Of(project, channel) != policy.Contained {
			return
		}
		path := "$.posture"
		switch {
		case d.Channels[channel].Posture != "":
			path = "$.channels." + channel + ".posture"
		case p.Posture != "":
			path = "$.projects." + project + ".posture"
		}
		if why := uncontained(p, p.Sandbox.over(d.Sandbox)); why != "" && !told[path+project] {
			told[path+project] = true
			v.add(path, "project %s cannot be contained: %s; or write posture: careful for it", project, why)
		}
	}
	for _, id := range sorted(d.Channels) {
		for _, project := range d.Channels[id].all() {
			check(project, id)
		}
	}
	for _, name := range sorted(d.Projects) {
		check(name, "") // direct messages, and future channels
	}
}

// Contained reports whether a project has a contained posture in any channel.
func (f File) Contained(project string) bool {
	if f.Policy.Postures.Of(project, "") == policy.Contained {
		return true
	}
	for id, channel := range f.document.Channels {
		if slices.Contains(channel.all(), project) && f.Policy.Postures.Of(project, id) == policy.Contained {
			return true
		}
	}
	return false
}

// Uncontained says why a project cannot have a contained posture, with the cure; empty if it can.
func (f File) Uncontained(project string) string {
	p := f.document.Projects[project]
	return uncontained(p, p.Sandbox.over(f.document.Sandbox))
}

// uncontained says why a project's sandbox is too weak to run contained calls without asking, with the cure; empty
// if it is not.
func uncontained(p projectYAML, s sandboxYAML) string {
	switch kind := cmp.Or(sandbox.Kind(s.Kind), sandbox.Bwrap); kind {
	case sandbox.Bwrap, sandbox.GVisor, sandbox.Container:
	case sandbox.None:
		return "sandbox: none confines nothing; choose bwrap, gvisor or container"
	default:
		return fmt.Sprintf("Deckhand cannot see what sandbox: %s confines; choose bwrap, gvisor or container", kind)
	}
	switch {
	case cmp.Or(workspace.Kind(p.Workspace), workspace.Shared) == workspace.Shared:
		return "its threads share one folder, which is the project's own; write workspace: worktree, or scratch"
	case s.Network.network() == sandbox.Open:
		return "network: open lets everything leave; list the domains, or write network: ask"
	case len(s.Caches) > 0:
		return "its threads share the caches, so that one could leave a program there for another to run; leave caches out (caches: [])"
	}
	return ""
}
