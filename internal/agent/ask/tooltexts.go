package ask

import (
	"context"
	"strings"

	"deckhand/internal/agent/tools"
	"deckhand/internal/store/approvals"
)

// What a tool of an MCP server does is known by what the model is told of it, which its server can
// change at any time. The gateway sees that in each call of the model, whether the server is
// reached by HTTP or by stdio. A tool that is told of as it was when it was allowed is decided as
// ever; of another, only a person can decide, whom the card shows both texts. Permissions are for
// the text for which they were given. Of a tool that Claude Code tells the model only when it
// searches for it, a process may have told nothing.

// toldTool is what a process has told the model of a tool. sum is zero where that is not one text.
type toldTool struct {
	sum    approvals.Sum
	change *approvals.ToolChange // nil: it is as it was allowed
}

// lookAtTool compares what the process tells the model of an MCP server's tool with what was
// allowed in the project.
func (d *Desk) lookAtTool(ctx context.Context, tool string) error {
	if !strings.HasPrefix(tool, "mcp__") || strings.HasPrefix(tool, tools.Prefix) {
		return nil
	}
	var told []approvals.ToolText
	for _, t := range d.Process.Offered(tool) {
		told = append(told, approvals.ToolText{SHA256: t.Sum, Description: t.Description, Schema: t.Schema})
	}
	if len(told) == 0 { // what the model was not told cannot have changed what it does
		delete(d.told, tool)
		return nil
	}
	change, err := d.Store.KnowTool(ctx, d.Worker.Lease(), tool, told)
	if err != nil {
		return err
	}
	is := toldTool{change: change}
	switch {
	case change != nil:
		is.sum = change.Now.SHA256
	case len(told) == 1:
		is.sum = told[0].SHA256
	}
	d.told[tool] = is
	return nil
}

// toldAsWhen reports whether the model is told of a tool what it was told when a grant was given,
// or nothing.
func (d *Desk) toldAsWhen(g approvals.LiveGrant, tool string) bool {
	_, looked := d.told[tool]
	return !looked || g.ToolSHA256 != (approvals.Sum{}) && g.ToolSHA256 == d.told[tool].sum
}
