package agent

import (
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/forge"
	"deckhand/internal/store"
)

// askAboutPull has people asked about a pull request, once it was looked at: what its push
// would bring, if it pushes, and how it stands at the forge. onLooked follows.
func (w *worker) askAboutPull(ctx context.Context, a store.Approval, c policy.Call, leaves policy.Push) error {
	look := &check{requestID: a.RequestID, toolUseID: a.ToolUseID, call: c, asks: &a}
	ctx, look.cancel = context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf("it took more than %s", lookTimeout))
	w.session.checks[a.RequestID] = look
	proc, threadID, requester := w.session.proc, w.threadID, a.RequestedBy
	w.session.pump.Go(func() {
		defer look.cancel()
		var push *store.Push
		if len(leaves.Specs) > 0 {
			push = proc.Outgoing(ctx, "", leaves)
		}
		push, err := w.pulls.Look(ctx, threadID, requester, c, push)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		if err != nil {
			look.refused = "Nobody was asked: " + strings.TrimSuffix(err.Error(), ".") + "."
		}
		w.box.put(message{kind: messagePushRead, checked: look, push: push})
	})
	return nil
}

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
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf("it took more than %s", lookTimeout))
	defer cancel()
	push := proc.Outgoing(ctx, "", policy.Push{Specs: []policy.Refspec{{Src: "HEAD", Dst: branch}}})
	if push == nil || ctx.Err() != nil {
		return
	}
	if err := w.store.SaveDiff(ctx, turnID, push); err != nil && ctx.Err() == nil {
		w.log.Warn("save a turn's diff", zap.Int64("turn", turnID), zap.Error(err))
	}
}
