package policy

import (
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"

	"deckhand/internal/hostname"
)

// NetworkTool is the tool name for a connection to a host that the project's network: does not list. The CLI's own
// sandbox asks by the same name, so no later tool of the CLI can have it, and a rule means one thing whoever asks.
const NetworkTool = "SandboxNetworkAccess"

// defaultHost applies where no rule is about a host.
const defaultHost = "default: a host that network: does not list is asked"

// NetworkInput is the input of a call of [NetworkTool]: a host in the spelling in which it
// is connected to (lower case, ASCII, an address without brackets), and a port.
func NetworkInput(host string, port uint16) json.RawMessage {
	raw, _ := json.Marshal(networkInput{host, port}) // a text and a number always encode
	return raw
}

type networkInput struct {
	Host string `json:"host"`
	Port uint16 `json:"port"`
}

// reach is the argument of a NetworkTool pattern: domain:HOST, domain:*.HOST or
// domain:ADDRESS, each with :PORT or without, which is 80 and 443.
type reach struct {
	domain
	port uint16
}

func parseReach(arg string) (*reach, *syntaxError) {
	text, ok := strings.CutPrefix(arg, "domain:")
	if !ok {
		return nil, &syntaxError{problem: "the network is decided by domain", advice: "write " + NetworkTool + "(domain:example.com) or " + NetworkTool + "(domain:*.example.com:8443)"}
	}
	at := len("domain:")
	var r reach
	if inner, ok := strings.CutPrefix(text, "["); ok {
		host, rest, closed := strings.Cut(inner, "]")
		addr, err := netip.ParseAddr(host)
		if !closed || err != nil || !addr.Is6() || addr.Is4In6() || addr.Zone() != "" {
			return nil, &syntaxError{at: at, problem: "in brackets stands an address of IPv6", advice: "write domain:[2001:db8::1] or domain:[2001:db8::1]:8443"}
		}
		r.host, text = addr.String(), rest
	} else {
		host, _, _ := strings.Cut(text, ":")
		d, bad := parseDomain("domain:" + host)
		if bad != nil {
			return nil, bad
		}
		r.domain, text = *d, text[len(host):]
	}
	digits, has := strings.CutPrefix(text, ":")
	switch n, err := strconv.ParseUint(digits, 10, 16); {
	case text == "":
	case !has || err != nil || n == 0 || digits[0] == '0' || digits[0] == '+':
		return nil, &syntaxError{at: len(arg) - len(text), problem: "after a host stands nothing, or its port", advice: "write a number from 1 to 65535, as in domain:example.com:8443"}
	default:
		r.port = uint16(n)
	}
	return &r, nil
}

// covers reports whether the pattern certainly names a host.
func (r *reach) covers(h networkInput) bool {
	return r.domain.covers(h.Host) && (r.port == h.Port || r.port == 0 && (h.Port == 80 || h.Port == 443))
}

// hits is for rules that deny or ask: the host and all below it; without a port, every port.
func (r *reach) hits(h networkInput) bool {
	return r.domain.hits(h.Host) && (r.port == 0 || r.port == h.Port)
}

// host reads the input of a call of NetworkTool. It comes from the gateway; anything unexpected is asked.
func (req *request) host(in input) {
	err := json.Unmarshal(req.call.Input, &req.to)
	switch addr, notAddr := netip.ParseAddr(req.to.Host); {
	case err != nil || len(in) != 2 || string(NetworkInput(req.to.Host, req.to.Port)) != string(req.call.Input):
		req.setBad("it is not spelled as the gateway asks: a host and a port")
	case req.to.Port == 0:
		req.setBad("it names no port")
	case notAddr == nil && addr.String() == req.to.Host && addr.Zone() == "" && !addr.Is4In6():
	case !hostname.Plain(req.to.Host) || hostname.Numeric(req.to.Host):
		req.setBad("it does not name its host plainly")
	}
}

// coversHost is covers for a host. A bare pattern covers plain ASCII names only.
func (req *request) coversHost(p *Pattern) (bool, string) {
	_, err := netip.ParseAddr(req.to.Host)
	switch {
	case p.net != nil && !p.net.covers(req.to):
		return false, ""
	case req.bad != "":
		return false, req.bad
	case p.net == nil && err == nil:
		return false, "the host is named by its address"
	case (p.net == nil || p.net.sub) && strings.Contains(req.to.Host, "xn--"):
		return false, "the host is spelled in other letters, which may imitate another"
	}
	return true, ""
}

// suggestHost suggests the host on this port, and on both web ports if it is one of them.
func (req *request) suggestHost(add func(text, sentence string)) {
	host := req.to.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	port := strconv.Itoa(int(req.to.Port))
	add(NetworkTool+"(domain:"+host+":"+port+")", "Connections of every program in the sandbox to "+host+" on port "+port+", whatever they carry. Whoever can be written to there gets what they send.")
	add(NetworkTool+"(domain:"+host+")", "Connections of every program in the sandbox to "+host+" on the ports 80 and 443, whatever they carry. Whoever can be written to there gets what they send.")
}
