package agent

import (
	"testing"
	"time"

	"deckhand/internal/agent/claude"
)

func TestClosing(t *testing.T) {
	t.Parallel()
	said := claude.Item{Kind: claude.ItemText, Text: "Done."}
	blank := claude.Item{Kind: claude.ItemText, Text: "\n"}
	tool := claude.Item{Kind: claude.ItemToolUse}
	agents := claude.Item{Kind: claude.ItemText, Text: "mine", ParentID: "toolu_1"}
	thought := claude.Item{Kind: claude.ItemThinking, Text: "hm"}
	for name, c := range map[string]struct {
		items []claude.Item
		took  time.Duration
		want  int
	}{
		"long":                     {[]claude.Item{said, tool, thought, said, said}, longTurn, 2},
		"short":                    {[]claude.Item{said, tool, said}, longTurn - 1, 0},
		"with a tool at its end":   {[]claude.Item{said, tool}, time.Hour, 0},
		"that ends with a blank":   {[]claude.Item{said, tool, blank}, time.Hour, 0},
		"of words alone":           {[]claude.Item{said, said}, time.Hour, 0},
		"after a subagent's words": {[]claude.Item{tool, agents, said}, time.Hour, 2},
		"of nothing":               {nil, time.Hour, 0},
	} {
		if got := closing(c.items, c.took); got != c.want {
			t.Errorf("a turn %s: %d, want %d", name, got, c.want)
		}
	}
}
