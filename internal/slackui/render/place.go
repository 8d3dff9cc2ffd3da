package render

import (
	"github.com/slack-go/slack"

	"deckhand/internal/agent"
)

// Place says where a thread stands in the queue for a session: how many are before it, or
// [agent.Served].
func Place(before int) Page {
	said := "⏳ Waits for a free session: " + count(before) + " before it."
	switch before {
	case agent.Served:
		said = "⏳ This waited for a free session."
	case 0:
		said = "⏳ Waits for a free session: it is the next."
	}
	return Page{Text: said, Blocks: []slack.Block{contextBlock("", said)}}
}
