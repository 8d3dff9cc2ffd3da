package render

import (
	"path"
	"strings"

	"github.com/tidwall/gjson"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
)

// Picture is a picture that a tool has returned, as people are shown it.
type Picture struct {
	Title string
	Alt   string // for who cannot see it: where it comes from
	Data  string // base64, as the tool has returned it
}

// altMost bounds what is said of a picture, in units. Slack takes 1,000.
const altMost = 300

// Pictures are those that tools have returned in the turn's items from an index on: not
// those of subagents, and not what people attached themselves (below skip, a folder of the
// workspace).
func Pictures(t agent.TurnView, o Options, from int, skip string) (out []Picture) {
	for _, it := range t.Content.Items[min(from, len(t.Content.Items)):] {
		if it.Kind != claude.ItemImage || it.Data == "" || it.ParentID != "" {
			continue
		}
		p := Picture{Title: "Picture", Alt: "A picture of a tool", Data: it.Data}
		call, _, _ := strings.Cut(it.ID, "/image")
		if of, ok := t.Content.Tool(call); ok && of.Tool != nil {
			p.Title = view.ToolName(of.Tool.Name)
			p.Alt = "A picture that " + p.Title + " has returned"
			if k := view.Tools[of.Tool.Name]; k.File {
				file := relative(gjson.GetBytes(of.Tool.Input, k.Subject).String(), t.Workspace)
				if strings.HasPrefix(path.Clean(file), skip) {
					continue
				}
				file = plaintext.OneLine(plaintext.Visible(o.redact(plaintext.Prefix(file, redactMax))))
				p.Title, p.Alt = path.Base(file), p.Alt+": "+file
			}
		}
		p.Title, p.Alt = plaintext.Clip(p.Title, argMax), plaintext.Clip(p.Alt, altMost)
		out = append(out, p)
	}
	return out
}
