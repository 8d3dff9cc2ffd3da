package agent

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/policy"
	"deckhand/internal/forge"
)

// madeCommits reports whether the turn that ends has made commits that could go to a forge.
func (s *session) madeCommits(ctx context.Context, t *turn) bool {
	if s == nil || !s.project.ReachesForge() {
		return false
	}
	head := s.place.Head(ctx, s.thread.Workspace)
	return head != "" && head != t.head
}

// opensPull reports whether a turn that has made commits offers to open a pull request: none is
// open.
func (h *leased) opensPull(ctx context.Context) bool {
	if h.pulls == nil || !h.project.OpensPulls() {
		return false
	}
	p, err := h.pulls.Store.PullOfThread(ctx, h.threadID)
	return err != nil || p.State != string(forge.Open)
}

// saveDiff keeps what a turn's commits would bring to the forge, for the window that shows it.
func (s *session) saveDiff(ctx context.Context, turnID int64, branch string) {
	ctx, cancel := context.WithTimeoutCause(ctx, ask.LookTimeout, fmt.Errorf("it took more than %s", ask.LookTimeout))
	defer cancel()
	push := s.proc.Outgoing(ctx, "", policy.Push{Specs: []policy.Refspec{{Src: "HEAD", Dst: branch}}})
	if push == nil || ctx.Err() != nil {
		return
	}
	if err := s.store.SaveDiff(ctx, turnID, push); err != nil && ctx.Err() == nil {
		s.log.Warn("save a turn's diff", zap.Int64("turn", turnID), zap.Error(err))
	}
}
