package ask

import (
	"context"
	"fmt"
	"strings"
	"time"

	"deckhand/internal/agent/policy"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/forges"
)

// A push that people are asked about is looked at first: which commits it would bring to the
// forge, and what is in them. Their approval is for these commits: the gateway refuses others,
// whatever the branch names by then.

// LookTimeout bounds how long a push is looked at. Thousands of files take a while on a busy
// machine, and people rather decide late than about what is not known.
const LookTimeout = 3 * time.Minute

// unseen says why a call is denied about which people would decide without seeing what it is: of
// a tool that is told of otherwise than was allowed, in words that are not shown; and one that
// pushes what cannot be told before it runs, where the posture has people decide about exactly
// what leaves. It is empty for every other call.
func (d *Desk) unseen(c policy.Call) string {
	if change := d.told[c.Tool].change; change != nil && d.Front.Hides(change.Now.Description+"\n"+change.Now.Schema) {
		return "Nobody was asked about " + c.Tool + ": what you are told of it has changed since it was allowed, and has what looks like a secret, which people are not shown. Say so: an admin has to see what its server says of it."
	}
	if !d.ReachesForge || d.Policy.Postures.Of(c.Project, c.Channel) != policy.Contained {
		return ""
	}
	return policy.UnseenPush(c)
}

// denyUnseen commits that such a call is denied.
func (d *Desk) denyUnseen(ctx context.Context, a approvals.Approval, why string) error {
	a.Kind, a.Status, a.DecidedBy, a.DecidedVia, a.Reason = approvals.Tool, approvals.Denied, "rule", "rule", why
	_, err := d.record(ctx, a)
	return err
}

// askAboutPush has people asked about a push, once it was looked at. onLooked follows.
func (d *Desk) askAboutPush(ctx context.Context, a approvals.Approval, c policy.Call) error {
	plain, ok := policy.PlainPush(c)
	if !ok {
		a.Push = &forges.Push{Unknown: "It is part of a longer command, or not written plainly."}
		return d.ask(ctx, a, c, nil)
	}
	d.look(ctx, a, c, func(ctx context.Context) (*forges.Push, string) { return d.Process.Outgoing(ctx, c.Dir, plain), "" })
	return nil
}

// askAboutPull has people asked about a pull request, once it was looked at: what its push
// of the repository in a folder would bring, if it pushes, and how it stands at the forge. onLooked follows.
func (d *Desk) askAboutPull(ctx context.Context, a approvals.Approval, c policy.Call, leaves policy.Push, folder string) error {
	d.look(ctx, a, c, func(ctx context.Context) (*forges.Push, string) {
		var push *forges.Push
		if len(leaves.Specs) > 0 {
			push = d.Process.Outgoing(ctx, folder, leaves)
		}
		push, err := d.Pulls.Look(ctx, d.Thread.ID, a.RequestedBy, c, push)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		if err != nil {
			return push, "Nobody was asked: " + strings.TrimSuffix(err.Error(), ".") + "."
		}
		return push, ""
	})
	return nil
}

// look looks beside the loop at what people are to be asked about, and says why they are not.
func (d *Desk) look(ctx context.Context, a approvals.Approval, call policy.Call, see func(context.Context) (push *forges.Push, refused string)) {
	c := &check{requestID: a.RequestID, toolUseID: a.ToolUseID, call: call, asks: &a}
	ctx, c.cancel = context.WithTimeoutCause(ctx, LookTimeout, fmt.Errorf("it took more than %s", LookTimeout))
	d.checks[a.RequestID] = c
	d.Worker.Beside(func() {
		defer c.cancel()
		push, refused := see(ctx)
		d.Worker.Later(func(ctx context.Context) error { return d.onLooked(ctx, c, push, refused) })
	})
}

// onLooked asks about a push that was looked at, unless nobody waits for it any more.
func (d *Desk) onLooked(ctx context.Context, c *check, push *forges.Push, refused string) error {
	if d.checks[c.requestID] != c {
		return nil
	}
	d.drop(c.requestID)
	if d.Worker.Stopping() {
		return d.reply(d.Process.Deny(c.requestID, Stopped, true))
	}
	if refused == "" && push != nil && push.Pull == nil && len(push.Refs) == 0 && d.Policy.Postures.Of(c.call.Project, c.call.Channel) == policy.Contained {
		refused = push.Unknown + " " + policy.PushAlone // there is nothing to bind an approval to
	}
	if refused != "" {
		if err := d.denyUnseen(ctx, *c.asks, refused); err != nil {
			return err
		}
		return d.reply(d.Process.Deny(c.requestID, refused, false))
	}
	if push != nil {
		push.Ran = RanSinceChange(*d.Content)
		// Another push is another request. The words of a pull request may be others.
		c.asks.Terms.Fixed = c.asks.Terms.Fixed || push.Pull == nil || len(push.Refs) == 0
	}
	c.asks.Push = push
	return d.ask(ctx, *c.asks, c.call, nil)
}
