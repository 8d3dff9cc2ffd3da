package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
)

// LongTurn is from when on nobody is taken to watch a turn any more.
const LongTurn = time.Minute

// closer is where the answer of a turn begins, if it ended now, and since when.
type closer struct {
	from int // 0: it has said nothing yet
	at   time.Time
}

// heed notes what was said since.
func (c *closer) heed(items []claude.Item) {
	if from := closing(items); from != c.from {
		*c = closer{from: from, at: time.Now()}
	}
}

// closing is the place after the last tool use, if something is said there; else 0.
func closing(items []claude.Item) int {
	said := false
	for i, it := range slices.Backward(items) {
		if it.Kind == claude.ItemToolUse || it.ParentID != "" {
			if !said {
				return 0
			}
			return i + 1
		}
		said = said || it.Kind == claude.ItemText && strings.TrimSpace(it.Text) != ""
	}
	return 0 // there is nothing else
}

// closing is TurnView.Closing of a turn that is done. The answer of a short one stays in the
// message in which it grew, unless that was posted before it began, and somebody has written
// below it since: they would have to look for it there.
func (h *leased) closing(ctx context.Context, t *turn, view TurnView) (from int) {
	from = closing(t.content.Items)
	if from == 0 || view.EndedAt.Sub(view.StartedAt) >= LongTurn {
		return from
	}
	below, err := h.store.WroteBelow(ctx, view.Thread, view.ID, view.StartedAt, t.closer.at)
	if err != nil {
		h.log.Warn("look for what was written below a turn's message", zap.Error(err))
	}
	if err != nil || !below {
		return 0
	}
	return from
}
