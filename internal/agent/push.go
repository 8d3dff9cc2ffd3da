package agent

import (
	"context"
	"fmt"
	"time"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/policy"
	"deckhand/internal/store"
)

// A push that people are asked about is looked at first: which commits it would bring to the
// forge, and what is in them. Their approval is for these commits: the gateway refuses others,
// whatever the branch names by then.

// lookTimeout bounds how long a push is looked at. Thousands of files take a while on a busy
// machine, and people rather decide late than about what is not known.
const lookTimeout = 3 * time.Minute

// unseen says why a call is denied that pushes what cannot be told before it runs, where the
// posture has people decide about exactly what leaves. It is empty for every other call.
func (w *worker) unseen(c policy.Call) string {
	if !w.project.ReachesForge() || w.policy.Postures.Of(c.Project, c.Channel) != policy.Contained {
		return ""
	}
	return policy.UnseenPush(c)
}

// denyUnseen commits that such a call is denied.
func (w *worker) denyUnseen(ctx context.Context, a store.Approval, why string) error {
	a.Kind, a.Status, a.DecidedBy, a.DecidedVia, a.Reason = store.ApprovalTool, store.ApprovalDenied, "rule", "rule", why
	_, err := w.record(ctx, a)
	return err
}

// askAboutPush has people asked about a push, once it was looked at. onLooked follows.
func (w *worker) askAboutPush(ctx context.Context, a store.Approval, c policy.Call) error {
	plain, ok := policy.PlainPush(c)
	if !ok {
		a.Push = &store.Push{Unknown: "It is part of a longer command, or not written plainly."}
		return w.ask(ctx, a, c, nil)
	}
	look := &check{requestID: a.RequestID, toolUseID: a.ToolUseID, call: c, asks: &a}
	ctx, look.cancel = context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf("it took more than %s", lookTimeout))
	w.session.checks[a.RequestID] = look
	proc := w.session.proc
	w.session.pump.Go(func() {
		defer look.cancel()
		w.box.put(message{kind: messagePushRead, checked: look, push: proc.Outgoing(ctx, c.Dir, plain)})
	})
	return nil
}

// onLooked asks about a push that was looked at, unless nobody waits for it any more.
func (w *worker) onLooked(ctx context.Context, c *check, push *store.Push) error {
	if w.session == nil || w.session.checks[c.requestID] != c {
		return nil
	}
	w.session.dropCheck(c.requestID)
	if w.turn == nil || w.turn.stopping() {
		return w.reply(w.session.proc.Deny(c.requestID, stopped, true))
	}
	if c.refused != "" {
		if err := w.denyUnseen(ctx, *c.asks, c.refused); err != nil {
			return err
		}
		return w.reply(w.session.proc.Deny(c.requestID, c.refused, false))
	}
	if push != nil && push.Pull == nil && len(push.Refs) == 0 && w.policy.Postures.Of(c.call.Project, c.call.Channel) == policy.Contained {
		why := push.Unknown + " " + policy.PushAlone // there is nothing to bind an approval to
		if err := w.denyUnseen(ctx, *c.asks, why); err != nil {
			return err
		}
		return w.reply(w.session.proc.Deny(c.requestID, why, false))
	}
	if push != nil {
		push.Ran = ask.RanSinceChange(w.turn.content)
		// Another push is another request. The words of a pull request may be others.
		c.asks.Terms.Fixed = c.asks.Terms.Fixed || push.Pull == nil || len(push.Refs) == 0
	}
	c.asks.Push = push
	return w.ask(ctx, *c.asks, c.call, nil)
}
