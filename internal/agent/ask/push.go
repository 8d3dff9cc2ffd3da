package ask

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/forges"
)

// mostRan bounds the commands that are told beside a push.
const mostRan = 3

// RanSinceChange are the last commands of a turn since it changed a file last.
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
			command := gjson.GetBytes(item.Tool.Input, "command").String()
			command = strings.ReplaceAll(strings.ToValidUTF8(command[:min(len(command), 300)], ""), "\x00", "")
			ran = append([]forges.PushRan{{Command: command, Failed: item.Tool.State == claude.ToolFailed}}, ran...)
			if len(ran) == mostRan {
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
