package agent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/store"
)

// With network: ask, a connection to a host that the project does not list waits until its
// host is decided about, as a tool call is: by the policy, by a grant, or by a person, with
// a row in the database that is bound to the host and its port. What was decided holds for
// every program of the session until the turn ends, and connections end with it, since
// nobody can be asked between turns. Under a grant each new connection is looked at again.

const (
	// reachedMost bounds the hosts of a turn that are decided about, each with a row;
	// asksMost those of them that people are asked about. A program that tries more of them
	// is told so.
	reachedMost = 500
	asksMost    = 20
)

// reach is what a turn knows of a host that somebody inside wanted to reach.
type reach struct {
	question *egress.Question // whose connections wait; nil: none does
	asked    string           // the approval that waits for people, or empty
	answer   *egress.Answer   // that holds for the turn; nil while there is none, and under a grant
	grants   map[int64]bool   // that have allowed it, which the database knows
}

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

func refusal(format string, args ...any) egress.Answer {
	return egress.Answer{Refusal: fmt.Sprintf(format, args...)}
}

// onReach decides about a host that connections of a session wait for, by rule or by
// grant, or has people asked.
func (w *worker) onReach(ctx context.Context, of *session, q *egress.Question) error {
	t := w.turn
	switch {
	case w.session != of:
		q.Answer(refusal("The session has ended."))
		return nil
	case t == nil:
		q.Answer(refusal("network: of project %s does not list %s, and no turn is running in this thread, so nobody can be asked. Wait for the next message.", w.project.Name, q))
		return nil
	case t.stopping():
		q.Answer(refusal(stopped))
		return nil
	}
	call := w.call(policy.NetworkTool, policy.NetworkInput(q.Host, q.Port), "")
	r := t.reached[string(call.Input)]
	switch {
	case r == nil && len(t.reached) >= reachedMost:
		q.Answer(refusal("This turn has tried %d hosts that network: of project %s does not list, and %s is one more: nothing is decided about it before the next message.", reachedMost, w.project.Name, q))
		return nil
	case r == nil:
		r = &reach{grants: map[int64]bool{}}
		t.reached[string(call.Input)] = r
	case r.answer != nil:
		q.Answer(*r.answer)
		return nil
	}
	if r.question = q; r.asked != "" {
		w.waiting.add(r.asked) // there are connections again that wait for it
		return nil
	}
	d := w.decide(call)
	c := &check{requestID: newApprovalID(), toolUseID: t.asksNow(), reach: r, call: call, decision: d}
	if d.Verdict != policy.Allow && d.Verdict != policy.Deny {
		return w.checkGrants(ctx, c)
	}
	a, err := w.decideByRule(ctx, c.requestID, c.toolUseID, call, d)
	if err != nil {
		return err
	}
	t.settle(r, t.answerOf(a))
	return nil
}

// settle keeps what was decided about a host for the turn, and tells it to who waits.
func (t *turn) settle(r *reach, a egress.Answer) {
	r.answer, r.asked = &a, ""
	r.tell(a)
}

func (r *reach) tell(a egress.Answer) {
	if r.question != nil {
		r.question.Answer(a)
		r.question = nil
	}
}

// answerOf is what becomes of connections by a decision.
func (t *turn) answerOf(a store.Approval) egress.Answer {
	if a.Status == store.ApprovalAllowed {
		return egress.Answer{Allow: true, During: t.span}
	}
	if a.DecidedVia == "rule" {
		return refusal("%s", a.Reason)
	}
	return refusal("%s", denial(a))
}

// askAboutHost has people asked about a host.
func (w *worker) askAboutHost(ctx context.Context, c *check) error {
	t, r := w.turn, c.reach
	switch {
	case r.question == nil || r.asked != "":
		return nil // nobody waits any more, or they are asked
	case t.asks == asksMost:
		t.settle(r, refusal("People were asked about %d hosts in this turn, and are asked about no more before the next message: %s is not reached.", asksMost, r.question))
		return nil
	}
	t.asks++
	a := w.request(c.requestID, c.toolUseID, c.call, c.decision)
	a.DecisionReason = t.whoAsks()
	if err := w.ask(ctx, a, c.call, r); err != nil {
		return err
	}
	w.show()
	return nil
}

// asksAbout is the host that an approval is about, or nil.
func (t *turn) asksAbout(approvalID string) *reach {
	for _, r := range t.reached {
		if r.asked == approvalID {
			return r
		}
	}
	return nil
}

// answerHost passes a decision on to the connections that wait for it. Where none does any
// more, the next one finds it.
func (w *worker) answerHost(r *reach, a, requested store.Approval) {
	t := w.turn
	sum := sha256.Sum256(requested.Input)
	switch {
	case t.stopping():
		t.settle(r, refusal(stopped))
	case sum != a.InputSHA256 || sum != sha256.Sum256(a.Input):
		w.log.Error("an approval does not match its request", zap.String("approval", a.ID))
		t.settle(r, refusal("The approval does not match this request. Ask again."))
	default:
		t.settle(r, t.answerOf(a))
	}
}

// hostUndecided ends the wait for a decision about a host whose time has run out.
func (w *worker) hostUndecided(ctx context.Context, r *reach, a store.Approval, waited time.Duration) {
	t := w.turn
	if a.Terms.OnTimeout == store.TimeoutDeny {
		host := hostOf(a)
		w.sayExpired(ctx, a)
		t.settle(r, refusal("Nobody decided about %s within %s, and this team's policy takes that as a no. Do not try to get around it; go on without it, or say why it is needed.", host, waited))
		w.show()
		return
	}
	t.expired = true
	t.settle(r, refusal("Nobody decided within %s. The turn is paused.", waited))
	w.interrupt(ctx)
}

// hostOf is host:port of a call of policy.NetworkTool.
func hostOf(a store.Approval) string {
	in := gjson.ParseBytes(a.Input)
	return net.JoinHostPort(in.Get("host").String(), in.Get("port").String())
}

// onLeft notes that no connection waits for a host any more. Its card stands, since
// programs come back: what is decided meanwhile they find.
func (w *worker) onLeft(q *egress.Question) {
	if w.turn == nil {
		return
	}
	for _, r := range w.turn.reached {
		if r.question != q {
			continue
		}
		r.question = nil
		if r.asked != "" {
			w.waiting.remove(r.asked) // a decision has nobody to be delivered to
		}
	}
}

// refuseHosts tells all connections that wait why they wait in vain.
func (t *turn) refuseHosts(why string) {
	for _, r := range t.reached {
		r.tell(refusal("%s", why))
	}
}

// use is a tool call that runs.
type use struct {
	id, what string
	input    [sha256.Size]byte
}

// useMost bounds what is kept of a command, in bytes. A card shows less of it.
const useMost = 2000

// begins notes that a call may run now, and opens the way to the forge for one that was
// allowed as a push, to the commits that were approved, or to any; and to the provider's web
// search for one that was allowed as a search.
func (w *worker) begins(toolUseID string, c policy.Call, approved *store.Push) {
	if pass, push := passOf(c, approved); push {
		w.session.proc.AllowPush(toolUseID, pass)
	}
	if c.Tool == "WebSearch" {
		w.session.meter.BeginSearch(toolUseID)
	}
	if w.turn.runs(toolUseID) {
		return
	}
	what := c.Tool
	switch c.Tool {
	case "Agent", "Task":
		return // its own calls run
	case "Bash":
		what += ": " + gjson.GetBytes(c.Input, "command").String()
	case "WebFetch":
		what += ": " + gjson.GetBytes(c.Input, "url").String()
	}
	what = strings.ToValidUTF8(what[:min(len(what), useMost)], "")
	w.turn.uses = append(w.turn.uses, use{toolUseID, strings.ReplaceAll(what, "\x00", ""), sha256.Sum256(c.Input)})
}

// runsWith reports whether a call has begun with exactly this input and has no result yet.
func (t *turn) runsWith(toolUseID string, input []byte) bool {
	return slices.ContainsFunc(t.uses, func(u use) bool { return u.id == toolUseID && u.input == sha256.Sum256(input) })
}

// runs reports whether a call has begun and has no result yet.
func (t *turn) runs(toolUseID string) bool {
	return slices.ContainsFunc(t.uses, func(u use) bool { return u.id == toolUseID })
}

// ends notes that a call has its result.
func (w *worker) ends(toolUseID string) {
	w.session.proc.EndPush(toolUseID)
	w.session.meter.EndSearch(toolUseID)
	if w.turn != nil {
		w.turn.uses = slices.DeleteFunc(w.turn.uses, func(u use) bool { return u.id == toolUseID })
	}
}

// asksNow is the tool use whose program asks for a host, if only one runs.
func (t *turn) asksNow() string {
	if len(t.uses) == 1 {
		return t.uses[0].id
	}
	return ""
}

// whoAsks says for a card which tool uses run while a host is asked for. Which of their
// programs it was cannot be told.
func (t *turn) whoAsks() string {
	switch len(t.uses) {
	case 0:
		return "by a program in the background, while no tool use of this turn ran"
	case 1:
		return "while this ran: " + t.uses[0].what
	}
	const most = 3
	var list []string
	for i, u := range t.uses {
		if i == most {
			list = append(list, fmt.Sprintf("and %d more", len(t.uses)-most))
			break
		}
		list = append(list, strings.ToValidUTF8(u.what[:min(len(u.what), useMost/most)], ""))
	}
	return "while one of these ran: " + strings.Join(list, " | ")
}
