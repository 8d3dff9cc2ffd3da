package agent

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
	"deckhand/internal/store"
)

// A call that the policy would ask for is allowed if somebody allowed the like of it
// before and could still decide about it: a grant is no wider than the right that it
// was given by. Who may decide is asked beside the worker's loop, since Slack takes its
// time; meanwhile the hook waits, and the worker hears everything else.

const (
	// checkLimit bounds a look-up of people. After it, a person is asked.
	checkLimit = 10 * time.Second
	// checkedMost bounds the people who are looked up for one call.
	checkedMost = 8
)

// check is a tool call that waits for a look-up of the people whose grants cover it.
type check struct {
	hook     *claude.HookCallback
	call     policy.Call
	decision policy.Decision
	grants   []store.LiveGrant // that cover the call, by whomever
	cancel   context.CancelFunc
}

// checkGrants looks for grants that cover a call, and has their makers looked up; or
// has a person asked where there are none. onChecked follows.
func (w *worker) checkGrants(ctx context.Context, h *claude.HookCallback, call policy.Call, d policy.Decision) error {
	c := &check{hook: h, call: call, decision: d}
	if d.Grantable {
		live, err := w.books.LiveGrants(ctx, w.heldLease(), w.session.id, call.Tool, sha256.Sum256(call.Input))
		if err != nil {
			return err
		}
		terms := w.request(h.RequestID, h.ToolUseID, call, d).Terms
		c.grants = slices.DeleteFunc(live, func(g store.LiveGrant) bool {
			return !slices.Equal(g.Approvers, terms.Approvers) || !w.covers(g, call)
		})
	}
	if len(c.grants) == 0 {
		return w.askPerson(c)
	}
	a := w.request(h.RequestID, h.ToolUseID, call, d)
	a.Thread, a.Project = w.thread.Key(), w.thread.Project
	ctx, c.cancel = context.WithTimeoutCause(ctx, checkLimit, fmt.Errorf("look up who gave a permission: no answer in %s", checkLimit))
	w.session.checks[h.RequestID] = c
	w.session.pump.Go(func() {
		defer c.cancel()
		w.box.put(letter{kind: letterChecked, checked: c, entitled: w.entitled(ctx, c.grants, a)})
	})
	return nil
}

// entitled are the makers of the grants who may decide about the request themselves,
// now. Each is looked up once, all at once.
func (w *worker) entitled(ctx context.Context, grants []store.LiveGrant, a store.Approval) map[string]bool {
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
			if w.authoriser.MayDecide(ctx, user, a) {
				mu.Lock()
				defer mu.Unlock()
				out[user] = true
			}
		})
	}
	lookups.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		w.log.Warn("check a permission", zap.Error(context.Cause(ctx)))
	}
	return out
}

// onChecked allows a call by the first grant that holds, or has a person asked. A call
// that nobody waits for any more, since it was refused or withdrawn meanwhile, is left
// alone.
func (w *worker) onChecked(ctx context.Context, c *check, entitled map[string]bool) error {
	requestID := c.hook.RequestID
	if w.session.checks[requestID] != c {
		return nil
	}
	w.session.dropCheck(requestID)
	for _, g := range c.grants {
		if !entitled[g.CreatedBy] {
			continue
		}
		a := w.request(requestID, c.hook.ToolUseID, c.call, c.decision)
		a.Status, a.DecidedBy, a.DecidedVia, a.GrantID = store.ApprovalAllowed, g.CreatedBy, "grant", g.ID
		a, err := w.books.Ask(ctx, w.heldLease(), a)
		if errors.Is(err, store.ErrNotFound) {
			continue // revoked, or expired, in this moment
		}
		if err != nil {
			return err
		}
		w.turn.granted[c.hook.ToolUseID] = Grant{By: g.CreatedBy, At: g.CreatedAt}
		w.mayPush(c.hook.ToolUseID, c.call)
		return w.reply(w.session.proc.AnswerPreToolUse(requestID, claude.HookAllow, a.Terms.Rule))
	}
	return w.askPerson(c)
}

// askPerson has the CLI ask for the call, see onCanUseTool.
func (w *worker) askPerson(c *check) error {
	w.turn.cwd[c.hook.ToolUseID] = c.hook.Cwd
	return w.reply(w.session.proc.AnswerPreToolUse(c.hook.RequestID, claude.HookAsk, ""))
}

// refuseChecks answers the calls that wait for a look-up: their turn ends.
func (w *worker) refuseChecks(why string) {
	if w.session == nil {
		return
	}
	for id := range w.session.checks {
		w.session.dropCheck(id)
		_ = w.reply(w.session.proc.AnswerPreToolUse(id, claude.HookDeny, why))
	}
}

// dropCheck forgets a call that waits for a look-up, if there is one.
func (s *session) dropCheck(requestID string) {
	if c, ok := s.checks[requestID]; ok {
		c.cancel()
		delete(s.checks, requestID)
	}
}

func (w *worker) covers(g store.LiveGrant, c policy.Call) bool {
	if g.Pattern == "" {
		return true // this very input
	}
	p, err := policy.ParsePattern(g.Pattern)
	if err != nil {
		w.log.Error("a grant's pattern cannot be read", zap.Int64("grant", g.ID), zap.Error(err))
		return false
	}
	ok, _ := policy.Covers(p, c)
	return ok
}
