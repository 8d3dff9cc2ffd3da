package agent

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/forge"
)

// committed reports whether the turn that ends has made commits that could go to a forge.
func (w *worker) committed(ctx context.Context) bool {
	if w.turn == nil || w.session == nil || !w.project.ReachesForge() {
		return false
	}
	head := w.place.Head(ctx, w.thread.Workspace)
	return head != "" && head != w.turn.head
}

// opensPull reports whether a turn that has made commits offers to open a pull request: none is
// open.
func (w *worker) opensPull(ctx context.Context) bool {
	if w.pulls == nil || !w.project.OpensPulls() {
		return false
	}
	p, err := w.pulls.Store.PullOfThread(ctx, w.threadID)
	return err != nil || p.State != string(forge.Open)
}

// saveDiff keeps what a turn's commits would bring to the forge, for the window that shows it.
func (w *worker) saveDiff(ctx context.Context, proc place.Process, turnID int64, branch string) {
	ctx, cancel := context.WithTimeoutCause(ctx, ask.LookTimeout, fmt.Errorf("it took more than %s", ask.LookTimeout))
	defer cancel()
	push := proc.Outgoing(ctx, "", policy.Push{Specs: []policy.Refspec{{Src: "HEAD", Dst: branch}}})
	if push == nil || ctx.Err() != nil {
		return
	}
	if err := w.store.SaveDiff(ctx, turnID, push); err != nil && ctx.Err() == nil {
		w.log.Warn("save a turn's diff", zap.Int64("turn", turnID), zap.Error(err))
	}
}
