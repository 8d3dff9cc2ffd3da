package render

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
)

func TestPicturesOfTools(t *testing.T) {
	t.Parallel()
	call := func(id, name, input string) claude.Item {
		return claude.Item{Kind: claude.ItemToolUse, ID: id, Tool: &claude.ToolUse{ID: id, Name: name, Input: json.RawMessage(input)}}
	}
	picture := func(id, parent string) claude.Item {
		return claude.Item{Kind: claude.ItemImage, ID: id, ParentID: parent, Data: "AAAA"}
	}
	view := agent.TurnView{Workspace: "/ws", Content: claude.Output{Items: []claude.Item{
		call("t1", "Read", `{"file_path":"/ws/docs/xoxb-1-secret/plan.png"}`), picture("t1/image0", ""),
		call("t2", "mcp__browser__screenshot", `{"file_path":"x"}`), picture("t2/image0", ""), picture("t2/image1", ""),
		call("t3", "Read", `{"file_path":"/ws/.deckhand/inbox/1/2/photo.jpg"}`), picture("t3/image0", ""),
		picture("t4:t5/image0", "t4"),
		{Kind: claude.ItemImage, ID: "t6/image0"},
		{Kind: claude.ItemText, Text: "x"},
	}}}
	o := Options{Redact: func(s string) string {
		if s == "docs/xoxb-1-secret/plan.png" {
			return "docs/[redacted]/plan.png"
		}
		return s
	}}
	want := []Picture{
		{Title: "plan.png", Alt: "A picture that Read has returned: docs/[redacted]/plan.png", Data: "AAAA"},
		{Title: "browser · screenshot", Alt: "A picture that browser · screenshot has returned", Data: "AAAA"},
		{Title: "browser · screenshot", Alt: "A picture that browser · screenshot has returned", Data: "AAAA"},
	}
	if diff := cmp.Diff(want, Pictures(view, o, 0, ".deckhand")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Pictures(view, o, 4, ".deckhand"); len(got) != 1 {
		t.Errorf("from the fifth item on: %+v", got)
	}
	if got := Pictures(view, o, 99, ".deckhand"); got != nil {
		t.Errorf("behind the last item: %+v", got)
	}
}
