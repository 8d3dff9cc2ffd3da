package agent

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/store"
)

// With network: ask, a connection to a host that the project does not list waits until its
// host is decided about, as a tool call is: by the policy, by a grant, or by a person, with
// a row in the database that is bound to the host and its port. What was decided holds for
// every program of the session until the turn ends, and connections end with it, since
// nobody can be asked between turns. Under a grant each new connection is looked at again.

// asker has a session's worker asked about hosts.
type asker struct {
	box *mailbox
	of  *session
}

// Ask implements [egress.Asker].
func (a asker) Ask(q *egress.Question) {
	a.box.put(message{kind: messageReach, question: q, of: a.of})
}

// Left implements [egress.Asker].
func (a asker) Left(q *egress.Question) { a.box.put(message{kind: messageLeft, question: q}) }

// onReach decides about a host that connections of a session wait for, by rule or by
// grant, or has people asked.
func (w *worker) onReach(ctx context.Context, of *session, q *egress.Question) error {
	t := w.turn
	switch {
	case w.session != of:
		q.Answer(ask.Refusal("The session has ended."))
		return nil
	case t == nil:
		q.Answer(ask.Refusal("network: of project %s does not list %s, and no turn is running in this thread, so nobody can be asked. Wait for the next message.", w.project.Name, q))
		return nil
	case t.stopping():
		q.Answer(ask.Refusal(stopped))
		return nil
	}
	call := w.call(policy.NetworkTool, policy.NetworkInput(q.Host, q.Port), "")
	host, approvalID := t.hosts.Open(call.Input, q)
	if host == nil {
		return nil
	}
	if approvalID != "" {
		w.waiting.add(approvalID) // there are connections again that wait for it
		return nil
	}
	d := w.decide(call)
	c := &check{requestID: ask.NewID(), toolUseID: t.running.Only(), host: host, call: call, decision: d}
	if d.Verdict != policy.Allow && d.Verdict != policy.Deny {
		return w.checkGrants(ctx, c)
	}
	a, err := w.decideByRule(ctx, c.requestID, c.toolUseID, call, d)
	if err != nil {
		return err
	}
	t.hosts.Decide(host, a)
	return nil
}

// askAboutHost has people asked about a host.
func (w *worker) askAboutHost(ctx context.Context, c *check) error {
	if !w.turn.hosts.MayAsk(c.host) {
		return nil
	}
	a := w.request(c.requestID, c.toolUseID, c.call, c.decision)
	a.DecisionReason = w.turn.running.Described()
	if err := w.ask(ctx, a, c.call, c.host); err != nil {
		return err
	}
	w.show()
	return nil
}

// answerHost passes a decision on to the connections that wait for it.
func (w *worker) answerHost(host *ask.Host, a, requested store.Approval) {
	if t := w.turn; t.stopping() {
		t.hosts.RefuseHost(host, stopped)
	} else if !t.hosts.DecidePeople(host, a, requested) {
		w.log.Error("an approval does not match its request", zap.String("approval", a.ID))
	}
}

// hostUndecided ends the wait for a decision about a host whose time has run out.
func (w *worker) hostUndecided(ctx context.Context, host *ask.Host, a store.Approval, waited time.Duration) {
	t := w.turn
	if a.Terms.OnTimeout == store.TimeoutDeny {
		w.sayExpired(ctx, a)
		t.hosts.Expire(host, a, waited)
		w.show()
		return
	}
	t.expired = true
	t.hosts.RefuseHost(host, fmt.Sprintf("Nobody decided within %s. The turn is paused.", waited))
	w.interrupt(ctx)
}

// onLeft notes that no connection waits for a host any more.
func (w *worker) onLeft(q *egress.Question) {
	if w.turn == nil {
		return
	}
	if id := w.turn.hosts.Leave(q); id != "" {
		w.waiting.remove(id) // a decision has nobody to be delivered to
	}
}

// begins notes that a call may run now, and opens the way to the forge for one that was
// allowed as a push, to the commits that were approved, or to any; and to the provider's web
// search for one that was allowed as a search.
func (w *worker) begins(toolUseID string, c policy.Call, approved *store.Push) {
	if pass, push := ask.PassOf(c, approved); push {
		w.session.proc.AllowPush(toolUseID, pass)
	}
	if c.Tool == "WebSearch" {
		w.session.meter.BeginSearch(toolUseID)
	}
	w.turn.running.Begin(toolUseID, c)
}

// ends notes that a call has its result.
func (w *worker) ends(toolUseID string) {
	w.session.proc.EndPush(toolUseID)
	w.session.meter.EndSearch(toolUseID)
	if w.turn != nil {
		w.turn.running.End(toolUseID)
	}
}
