package ask

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
)

// A call that the policy would ask for is allowed if somebody allowed the like of it
// before and could still decide about it: a grant is no wider than the right that it
// was given by. Who may decide is asked beside the worker's loop, since Slack takes its
// time; meanwhile the hook waits, and the worker handles everything else.

const (
	// CheckLimit bounds a look-up of people. After it, a person is asked.
	CheckLimit = 10 * time.Second
	// checkedMost bounds the people who are looked up for one call.
	checkedMost = 8
)

// check is a tool call that waits for a look-up of the people whose grants cover it: a
// hook's, or a connection's, which has a host. Or it is a push that is looked at, and what
// people are to be asked about it.
type check struct {
	requestID, toolUseID, cwd string

	host     *Host
	asks     *approvals.Approval
	call     policy.Call
	decision policy.Decision
	grants   []approvals.LiveGrant // that cover the call, by whomever
	cancel   context.CancelFunc
}

// checkGrants looks for grants that cover a call, and has their makers looked up; or
// has a person asked where there are none. onChecked follows.
func (d *Desk) checkGrants(ctx context.Context, c *check) error {
	a := d.request(c.requestID, c.toolUseID, c.call, c.decision)
	if c.decision.Grantable {
		live, err := d.liveGrants(ctx, c)
		if err != nil {
			return err
		}
		c.grants = slices.DeleteFunc(live, func(g approvals.LiveGrant) bool {
			return !slices.Equal(g.Approvers, a.Terms.Approvers) || !d.toldAsWhen(g, c.call.Tool) || !d.covers(g, c.call)
		})
	}
	if len(c.grants) == 0 {
		return d.askPerson(ctx, c)
	}
	a.ThreadKey, a.Project = d.Thread.Key(), d.Thread.Project
	ctx, c.cancel = context.WithTimeoutCause(ctx, CheckLimit, fmt.Errorf("look up who gave a permission: no answer in %s", CheckLimit))
	d.checks[c.requestID] = c
	d.Worker.Beside(func() {
		defer c.cancel()
		entitled := d.entitled(ctx, c.grants, a)
		d.Worker.Later(func(ctx context.Context) error { return d.onChecked(ctx, c, entitled) })
	})
	return nil
}

func (d *Desk) liveGrants(ctx context.Context, c *check) ([]approvals.LiveGrant, error) {
	return d.Store.LiveGrants(ctx, d.Worker.Lease(), d.SessionID, policy.Siblings(c.call.Tool), sha256.Sum256(c.call.Input))
}

// entitled are the makers of the grants who may decide about the request themselves,
// now. Each is looked up once, all at once.
func (d *Desk) entitled(ctx context.Context, grants []approvals.LiveGrant, a approvals.Approval) map[string]bool {
	var mu sync.Mutex
	var lookups sync.WaitGroup
	asked, out := map[string]bool{}, map[string]bool{}
	for _, g := range grants {
		user := g.CreatedBy
		if asked[user] || len(asked) == checkedMost {
			continue
		}
		asked[user] = true
		lookups.Go(func() {
			if d.Authoriser.MayDecide(ctx, user, a) {
				mu.Lock()
				defer mu.Unlock()
				out[user] = true
			}
		})
	}
	lookups.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		d.Log.Warn("check a permission", zap.Error(context.Cause(ctx)))
	}
	return out
}

// onChecked allows a call by the first grant that holds, or has a person asked. A call
// that nobody waits for any more, since it was refused or withdrawn meanwhile, is left
// alone.
func (d *Desk) onChecked(ctx context.Context, c *check, entitled map[string]bool) error {
	if d.checks[c.requestID] != c {
		return nil
	}
	d.drop(c.requestID)
	for _, g := range c.grants {
		if !entitled[g.CreatedBy] {
			continue
		}
		held, err := d.useGrant(ctx, c, g)
		if err != nil {
			return err
		}
		switch {
		case !held:
			continue
		case c.host != nil:
			c.host.tell(egress.Answer{Allow: true, During: d.Span}) // the next connections are decided about again
			return nil
		}
		d.granted[c.toolUseID] = Grant{By: g.CreatedBy, At: g.CreatedAt}
		d.begins(c.toolUseID, c.call, nil)
		return d.reply(d.Process.AnswerPreToolUse(c.requestID, claude.HookAllow, c.decision.Rule))
	}
	return d.askPerson(ctx, c)
}

// useGrant commits that a grant allows a call. held is false when it was revoked, or has
// expired, in this moment. Connections to a host under one grant have one row in a turn.
func (d *Desk) useGrant(ctx context.Context, c *check, g approvals.LiveGrant) (held bool, err error) {
	if c.host != nil && c.host.grants[g.ID] {
		live, err := d.liveGrants(ctx, c)
		return slices.ContainsFunc(live, func(l approvals.LiveGrant) bool { return l.ID == g.ID }), err
	}
	a := d.request(c.requestID, c.toolUseID, c.call, c.decision)
	a.Status, a.DecidedBy, a.DecidedVia, a.GrantID = approvals.Allowed, g.CreatedBy, "grant", g.ID
	_, err = d.record(ctx, a)
	if errors.Is(err, pg.ErrNotFound) {
		return false, nil
	}
	if err == nil && c.host != nil {
		c.host.grants[g.ID] = true
	}
	return err == nil, err
}

// askPerson has the CLI ask for the call, see [Desk.Permission]; or asks about the host.
func (d *Desk) askPerson(ctx context.Context, c *check) error {
	if c.host != nil {
		return d.askAboutHost(ctx, c)
	}
	if why := d.unseen(c.call); why != "" {
		if err := d.denyUnseen(ctx, d.request(c.requestID, c.toolUseID, c.call, c.decision), why); err != nil {
			return err
		}
		return d.reply(d.Process.AnswerPreToolUse(c.requestID, claude.HookDeny, why))
	}
	d.cwd[c.toolUseID] = c.cwd
	return d.reply(d.Process.AnswerPreToolUse(c.requestID, claude.HookAsk, ""))
}

func (d *Desk) covers(g approvals.LiveGrant, c policy.Call) bool {
	if g.Pattern == "" {
		return true // this very input
	}
	p, err := policy.ParsePattern(g.Pattern)
	if err != nil {
		d.Log.Error("a grant's pattern cannot be read", zap.Int64("grant", g.ID), zap.Error(err))
		return false
	}
	return policy.Grants(p, c)
}
