package agent

import (
	"context"
	"fmt"
	"strings"

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
		if err != nil {
			look.refused = "Nobody was asked: " + strings.TrimSuffix(err.Error(), ".") + "."
		}
		w.box.put(message{kind: messagePushRead, checked: look, push: push})
	})
	return nil
}

// opensPull reports whether the turn that ends has made commits of which no pull request is
// open: then it offers to open one.
func (w *worker) opensPull(ctx context.Context, state TurnState) bool {
	if w.pulls == nil || state != TurnDone || !w.project.OpensPulls() || w.turn == nil {
		return false
	}
	head := w.place.Head(ctx, w.thread.Workspace)
	if head == "" || head == w.turn.head {
		return false
	}
	p, err := w.pulls.Store.PullOfThread(ctx, w.threadID)
	return err != nil || p.State != string(forge.Open)
}
