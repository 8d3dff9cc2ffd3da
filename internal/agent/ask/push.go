package ask

import (
	"slices"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/forges"
)

// RanSinceChange are the last commands of a turn since it changed a file last. [approvals.Store.Ask]
// adds those of earlier turns.
func RanSinceChange(o claude.Output) (ran []forges.PushRan) {
	for _, item := range slices.Backward(o.Items) {
		if item.Tool == nil || item.ParentID != "" {
			continue
		}
		switch item.Tool.Name {
		case "Edit", "Write", "NotebookEdit":
			return ran
		case "Bash":
			if item.Tool.State != claude.ToolDone && item.Tool.State != claude.ToolFailed {
				continue
			}
			r, ok := forges.RanOf(item.Tool.Input, item.Tool.State == claude.ToolFailed)
			if !ok {
				continue
			}
			if ran = append([]forges.PushRan{r}, ran...); len(ran) == forges.MostRan {
				return ran
			}
		}
	}
	return ran
}

// PassOf is what pushes of an approved call may do.
func PassOf(c policy.Call, approved *forges.Push) (p gitway.Pass, pushes bool) {
	pushes, p.Force = policy.Pushes(c)
	if approved == nil || len(approved.Refs) == 0 {
		return p, pushes
	}
	p.Repository = approved.Repository
	for _, r := range approved.Refs {
		p.Refs = append(p.Refs, gitway.Ref{Name: r.Name, Old: r.Old, New: r.New})
	}
	return p, pushes
}
