package ask

import (
	"context"
	"fmt"
	"net"

	"github.com/tidwall/gjson"

	"deckhand/internal/gateway/egress"
	"deckhand/internal/store/approvals"
)

const (
	// mostHosts bounds the hosts of a turn that are decided about, each with a row;
	// mostAsked those of them that people are asked about. A program that tries more of them
	// is told so.
	mostHosts = 500
	mostAsked = 20
)

// Hosts are those that the programs of one turn wanted to reach and that the project does
// not list. What was decided about a host holds for every program of the session until the
// turn ends, and connections end with it. Under a grant each new connection is decided
// about again.
type Hosts struct {
	project string
	turn    context.Context  //nolint:containedctx // ends with the turn, and ends the connections
	known   map[string]*Host // by the input of the call that asks about each
	asked   int              // how many of them people were asked about
}

// Host is one of them.
type Host struct {
	question *egress.Question // whose connections wait; nil: none does
	approval string           // that waits for people, or empty
	answer   *egress.Answer   // that holds for the turn; nil while there is none, and under a grant
	grants   map[int64]bool   // that have allowed it, which the database knows
}

// NewHosts is for a turn that ends with ctx.
func NewHosts(turn context.Context, project string) *Hosts {
	return &Hosts{project: project, turn: turn, known: map[string]*Host{}}
}

// Refusal answers connections that are not allowed.
func Refusal(format string, args ...any) egress.Answer {
	return egress.Answer{Refusal: fmt.Sprintf(format, args...)}
}

// Open notes that connections wait for a host, whose call of policy.NetworkTool has this
// input. It returns nil when it could answer them itself, and the approval that they wait
// for if people are asked already.
func (h *Hosts) Open(input []byte, q *egress.Question) (host *Host, approvalID string) {
	host = h.known[string(input)]
	switch {
	case host == nil && len(h.known) >= mostHosts:
		q.Answer(Refusal("This turn has tried %d hosts that network: of project %s does not list, and %s is one more: nothing is decided about it before the next message.", mostHosts, h.project, q))
		return nil, ""
	case host == nil:
		host = &Host{grants: map[int64]bool{}}
		h.known[string(input)] = host
	case host.answer != nil:
		q.Answer(*host.answer)
		return nil, ""
	}
	host.question = q
	return host, host.approval
}

// MayAsk reports whether people are to be asked about a host now: a connection waits for
// it, they are not asked yet, and it is not one too many.
func (h *Hosts) MayAsk(host *Host) bool {
	if host.question == nil || host.approval != "" {
		return false
	}
	if h.asked == mostAsked {
		h.settle(host, Refusal("People were asked about %d hosts in this turn, and are asked about no more before the next message: %s is not reached.", mostAsked, host.question))
		return false
	}
	h.asked++
	return true
}

// Of is the host that an approval is about, or nil.
func (h *Hosts) Of(approvalID string) *Host {
	for _, host := range h.known {
		if host.approval == approvalID {
			return host
		}
	}
	return nil
}

// Decide passes a decision on to the connections that wait for the host. Where none does
// any more, the next one finds it.
func (h *Hosts) Decide(host *Host, a approvals.Approval) {
	switch {
	case a.Status == approvals.Allowed:
		h.settle(host, egress.Answer{Allow: true, During: h.turn})
	case a.DecidedVia == "rule":
		h.settle(host, Refusal("%s", a.Reason))
	default:
		h.settle(host, Refusal("%s", Denial(a)))
	}
}

// settle keeps what was decided about a host for the turn, and tells who waits.
func (h *Hosts) settle(host *Host, a egress.Answer) {
	host.answer, host.approval = &a, ""
	host.tell(a)
}

func (h *Host) tell(a egress.Answer) {
	if h.question != nil {
		h.question.Answer(a)
		h.question = nil
	}
}

// Leave notes that no connection waits for a host any more, and returns the approval that
// is open about it, or empty. The card stands, since programs come back: what is decided
// meanwhile they find.
func (h *Hosts) Leave(q *egress.Question) (approvalID string) {
	for _, host := range h.known {
		if host.question == q {
			host.question = nil
			return host.approval
		}
	}
	return ""
}

// Refuse tells all connections that wait why they wait in vain.
func (h *Hosts) Refuse(why string) {
	for _, host := range h.known {
		host.tell(Refusal("%s", why))
	}
}

// HostOf is host:port of a call of policy.NetworkTool.
func HostOf(a approvals.Approval) string {
	in := gjson.ParseBytes(a.Input)
	return net.JoinHostPort(in.Get("host").String(), in.Get("port").String())
}
