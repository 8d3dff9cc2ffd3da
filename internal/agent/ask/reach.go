package ask

import (
	"context"
	"time"

	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/store/approvals"
)

// With network: ask, a connection to a host that the project does not list waits until its
// host is decided about, as a tool call is: by the policy, by a grant, or by a person, with
// a row in the database that is bound to the host and its port. What was decided holds for
// every program of the session until the turn ends, and connections end with it, since
// nobody can be asked between turns. Under a grant each new connection is looked at again.

// Reach decides about a host that connections of a session wait for, by rule or by
// grant, or has people asked.
func (d *Desk) Reach(ctx context.Context, q *egress.Question) error {
	if d.Worker.Stopping() {
		q.Answer(Refusal(Stopped))
		return nil
	}
	call := d.call(policy.NetworkTool, policy.NetworkInput(q.Host, q.Port), "")
	host, approvalID := d.hosts.Open(call.Input, q)
	if host == nil {
		return nil
	}
	if approvalID != "" {
		d.Waiting.Store(approvalID, nil) // there are connections again that wait for it
		return nil
	}
	by := d.decide(call)
	c := &check{requestID: NewID(), toolUseID: d.running.Only(), host: host, call: call, decision: by}
	if by.Verdict != policy.Allow && by.Verdict != policy.Deny {
		return d.checkGrants(ctx, c)
	}
	a, err := d.decideByRule(ctx, c.requestID, c.toolUseID, call, by)
	if err != nil {
		return err
	}
	d.hosts.Decide(host, a)
	return nil
}

// askAboutHost has people asked about a host.
func (d *Desk) askAboutHost(ctx context.Context, c *check) error {
	if !d.hosts.MayAsk(c.host) {
		return nil
	}
	a := d.request(c.requestID, c.toolUseID, c.call, c.decision)
	a.DecisionReason = d.running.Described()
	if err := d.ask(ctx, a, c.call, c.host); err != nil {
		return err
	}
	d.Worker.Show()
	return nil
}

// answerHost passes a decision on to the connections that wait for it.
func (d *Desk) answerHost(host *Host, a, requested approvals.Approval) {
	switch {
	case d.Worker.Stopping():
		d.hosts.settle(host, Refusal(Stopped))
	case !d.matches(a, requested):
		d.hosts.settle(host, Refusal("The approval does not match this request. Ask again."))
	default:
		d.hosts.Decide(host, a)
	}
}

// hostUndecided ends the wait for a decision about a host whose time has run out.
func (d *Desk) hostUndecided(ctx context.Context, host *Host, a approvals.Approval, waited time.Duration) {
	if a.Terms.OnTimeout == approvals.TimeoutDeny {
		SayExpired(ctx, d.Worker.Say, a)
		d.hosts.settle(host, Refusal("Nobody decided about %s within %s, %s", HostOf(a), waited, takenAsNo))
		d.Worker.Show()
		return
	}
	d.hosts.settle(host, Refusal("Nobody decided within %s. The turn is paused.", waited))
	d.Worker.Expire(ctx, false)
}

// Left notes that no connection waits for a host any more.
func (d *Desk) Left(q *egress.Question) {
	if id := d.hosts.Leave(q); id != "" {
		d.Waiting.Delete(id) // a decision has nobody to be delivered to
	}
}
