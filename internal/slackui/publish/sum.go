package publish

import (
	"encoding/json"
	"fmt"
	"hash/maphash"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render"
)

var sumSeed = maphash.MakeSeed()

// contentSum identifies content for Slack; it is never 0. Blocks of text pages are not encoded, since unchanged
// pages are shown repeatedly.
func contentSum(p render.Page) (uint64, error) {
	var h maphash.Hash
	h.SetSeed(sumSeed)
	for _, b := range p.Blocks {
		if err := addBlock(&h, b); err != nil {
			return 0, err
		}
	}
	addString(&h, p.Text)
	return h.Sum64() | 1, nil
}

// addString adds a text and a separator. A maphash never fails.
func addString(h *maphash.Hash, s string) {
	_, _ = h.WriteString(s)
	_ = h.WriteByte(0xff)
}

func addBlock(h *maphash.Hash, b slack.Block) error {
	switch b := b.(type) {
	case *slack.MarkdownBlock:
		_ = h.WriteByte('m')
		addString(h, b.BlockID)
		addString(h, b.Text)
		return nil
	case *slack.ContextBlock:
		if len(b.ContextElements.Elements) != 1 {
			break
		}
		if t, ok := b.ContextElements.Elements[0].(*slack.TextBlockObject); ok && t.Emoji == nil {
			_ = h.WriteByte('c')
			addString(h, b.BlockID)
			addString(h, t.Type)
			addString(h, t.Text)
			if t.Verbatim {
				_ = h.WriteByte('v')
			}
			return nil
		}
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("encode block: %w", err)
	}
	_, _ = h.Write(raw)
	_ = h.WriteByte(0xff)
	return nil
}
