package settings

import (
	"fmt"
	"slices"
	"strings"

	"deckhand/internal/agent/trust"
)

// untrusted is why a kind of what a repository may bring cannot be trusted, and what to write instead.
var untrusted = map[string]string{
	"hooks":         "hooks of a repository are not run: Claude Code would start their commands without a decision; write rules under policy, or setup for what is to run before the work",
	"mcp_servers":   "MCP servers of a repository are not started: a change of its .mcp.json would start another program; write them under mcp_servers, pinned",
	"output_styles": "output styles of a repository are not used: they would replace what Claude Code is told about its work; write append_system_prompt",
	"settings":      "settings of a repository are not loaded: they allow tools and start programs; write rules under policy, and env",
}

func (v *validation) trust(at string, p projectYAML) {
	if p.Trust == nil {
		return
	}
	if len(p.Trust) == 0 {
		v.add(at, "the list is empty, which says nothing; write %s, or leave it out", strings.Join(trust.Kinds, ", "))
	}
	if p.Workspace != "worktree" {
		v.add(at, "what is trusted is read from a branch that no session writes; write workspace: worktree, or leave trust out")
	}
	for i, kind := range p.Trust {
		why, known := untrusted[kind]
		switch at := fmt.Sprintf("%s[%d]", at, i); {
		case known:
			v.add(at, "%s", why)
		case !slices.Contains(trust.Kinds, kind):
			v.add(at, "%q is nothing that can be trusted; write %s", kind, strings.Join(trust.Kinds, ", "))
		case slices.Index(p.Trust, kind) < i:
			v.add(at, "%q stands here twice", kind)
		}
	}
}
