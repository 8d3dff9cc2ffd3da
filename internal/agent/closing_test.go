package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/memstore"
	"deckhand/internal/store/threads"
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
		want  int
	}{
		"ends with words":          {[]claude.Item{said, tool, thought, said, said}, 2},
		"ends with a tool":         {[]claude.Item{said, tool}, 0},
		"ends with a blank":        {[]claude.Item{said, tool, blank}, 0},
		"is of words alone":        {[]claude.Item{said, said}, 0},
		"ends a subagent's words":  {[]claude.Item{tool, agents, said}, 2},
		"ends before it has begun": {nil, 0},
	} {
		if got := closing(c.items); got != c.want {
			t.Errorf("a turn that %s: %d, want %d", name, got, c.want)
		}
	}
}

// writtenIn are books that know who has written below a turn's message.
type writtenIn struct {
	*memstore.Store
	wrote    bool
	err      error
	from, to time.Time
}

func (b *writtenIn) WroteBelow(_ context.Context, _ threads.ThreadKey, _ int64, from, to time.Time) (bool, error) {
	b.from, b.to = from, to
	return b.wrote, b.err
}

// TestAnAnswerThatOthersWroteBelow: a short turn's answer is a message of its own only where
// somebody has written below the message that was posted before it.
func TestAnAnswerThatOthersWroteBelow(t *testing.T) {
	t.Parallel()
	said, tool := claude.Item{Kind: claude.ItemText, Text: "Done."}, claude.Item{Kind: claude.ItemToolUse}
	for name, c := range map[string]struct {
		took  time.Duration
		store writtenIn
		from  int
	}{
		"nobody wrote":       {took: LongTurn - time.Second},
		"somebody wrote":     {took: LongTurn - time.Second, store: writtenIn{wrote: true}, from: 2},
		"the books are away": {took: LongTurn - time.Second, store: writtenIn{wrote: true, err: errors.New("the database is away")}},
		"it was long":        {took: LongTurn, store: writtenIn{wrote: true}, from: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db := c.store
				db.Store = new(memstore.Store)
				h, turn := &leased{dependencies: &dependencies{store: &db}, log: zap.NewNop()}, &turn{}
				view := TurnView{StartedAt: time.Now()}
				items := []claude.Item{said, tool}
				var spoke time.Time
				for range 3 { // its answer grows
					time.Sleep(10 * time.Second)
					if items = append(items, said); spoke.IsZero() {
						spoke = time.Now()
					}
					turn.content.Items = items
					turn.closer.heed(items)
				}
				view.EndedAt = view.StartedAt.Add(c.took)
				if from := h.closing(t.Context(), turn, view); from != c.from {
					t.Errorf("%d, want %d", from, c.from)
				}
				if c.took < LongTurn && (!db.from.Equal(view.StartedAt) || !db.to.Equal(spoke)) {
					t.Errorf("asked from %v to %v, want %v, %v", db.from, db.to, view.StartedAt, spoke)
				}
			})
		})
	}
}
