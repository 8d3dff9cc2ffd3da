package render

import (
	"encoding/json"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"deckhand/internal/agent/policy"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

// isHost reports whether somebody inside wants to reach a host, with network: ask.
func isHost(a approvals.Approval) bool {
	return a.Kind == approvals.Tool && a.ToolName == policy.NetworkTool
}

// host takes the input of such a request apart: a host and a port, which is what is
// dialled.
func (r *request) host(s *view.FieldSet) bool {
	host, ok := s.Text("host")
	var port uint16
	if raw := s.Raw("port"); !ok || raw == nil || json.Unmarshal(raw, &port) != nil {
		return false
	}
	s.Used = append(s.Used, "port")
	r.verb, r.object = "reach", net.JoinHostPort(host, strconv.Itoa(int(port)))
	r.pre = r.object
	r.facts = append(r.facts, "Approve holds for every program in the sandbox until this turn ends", "addresses that are not public stay shut whatever is decided")
	if strings.Contains(host, "xn--") {
		r.cautions = append(r.cautions, "The name has letters that are not shown here (xn--): it may imitate another.")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		r.cautions = append(r.cautions, "The host is named by its address. That does not say who owns it.")
	}
	return true
}

// asker says which command wanted to reach a host, in about most units.
func (c *asking) asker(most int) string {
	reason := c.o.redact(c.a.DecisionReason)
	if reason == "" {
		return ""
	}
	head, command, found := strings.Cut(reason, ": ")
	if !found {
		return "Asked " + mrkdwn.EscapeWithin(plaintext.OneLine(reason), most)
	}
	// On one line, two commands must not read as one.
	return "Asked " + mrkdwn.EscapeWithin(plaintext.OneLine(head), most) + ": " + mrkdwn.CodeWithin(strings.ReplaceAll(command, "\n", " ⏎ "), most)
}
