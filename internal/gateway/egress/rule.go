package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"deckhand/internal/hostname"
)

// Rule is one entry of what a project may reach: a host, or all names below one, and its ports.
type Rule struct {
	host string     // in lower case, without the *.
	sub  bool       // any name below host, not host itself
	addr netip.Addr // of a host that is written as an address
	port uint16     // 0: 80 and 443
	// internal says that the host may have an address that is not public.
	internal bool
}

// internalMark is the prefix for a host with an address that is not public.
const internalMark = "internal:"

// ParseRule reads an entry: a host's name, *.name for all names below it, or an address,
// each with a port or without, and "internal:" before it if its address is not public:
//
//	registry.npmjs.org    *.golang.org:443    internal:artifacts.corp.example:8443    internal:10.1.2.3
//
// Its error says what to write.
func ParseRule(text string) (Rule, error) {
	var r Rule
	rest, internal := strings.CutPrefix(text, internalMark)
	r.internal = internal
	switch {
	case text == "*" || rest == "*":
		return r, errors.New("it would be every domain; write open instead of a list, if that is meant")
	case strings.Contains(rest, "://"):
		return r, errors.New("it is an address of a page; write the host alone, such as " + hostOf(rest))
	case strings.ContainsAny(rest, "/@?#"):
		return r, errors.New("a host has neither path nor user; write it alone, such as registry.npmjs.org or registry.npmjs.org:443")
	}
	host, port, err := splitPort(rest)
	if err != nil {
		return r, err
	}
	r.port = port
	if addr, err := netip.ParseAddr(host); err == nil {
		return r.literal(addr)
	}
	r.host, r.sub = strings.CutPrefix(strings.ToLower(host), "*.")
	switch {
	case strings.Contains(r.host, "*"):
		return r, errors.New("a * stands at the beginning, before a dot; write *." + strings.TrimLeft(r.host[strings.LastIndexByte(r.host, '*')+1:], "."))
	case strings.HasSuffix(r.host, ".") && hostname.Plain(r.host[:len(r.host)-1]):
		return r, errors.New("a host has no dot at its end; write " + r.host[:len(r.host)-1])
	case !hostname.Plain(r.host):
		if ascii, err := idna.Lookup.ToASCII(r.host); err == nil && hostname.Plain(ascii) {
			return r, errors.New("a host is written as it is sent; write " + ascii)
		}
		return r, errors.New("this is no host's name; write one such as registry.npmjs.org, *.golang.org or proxy.golang.org:443")
	case hostname.Numeric(r.host):
		return r, errors.New("this is no address; write four numbers, such as 192.0.2.1")
	case r.sub && !strings.Contains(r.host, "."):
		return r, fmt.Errorf("it would be all of .%s; write at least two names after the *, such as *.example.%[1]s", r.host)
	}
	return r, nil
}

// literal is the rule for an address.
func (r Rule) literal(addr netip.Addr) (Rule, error) {
	r.addr = addr
	switch {
	case addr.Is4In6() || addr.Zone() != "":
		return r, errors.New("an address is written plainly; write " + addr.WithZone("").Unmap().String())
	case !reachable(addr, r.internal) && reachable(addr, true):
		return r, errors.New("it is not a public address; write " + internalMark + addr.String() + " if sessions are to reach it")
	case !reachable(addr, r.internal):
		return r, errors.New("nobody reaches this address by the gateway: it belongs to the machine, its cloud or its link; leave it out")
	}
	return r, nil
}

// hostOf is the host of a URL, or an example.
func hostOf(text string) string {
	_, rest, _ := strings.Cut(text, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	if rest = rest[strings.LastIndexByte(rest, '@')+1:]; rest == "" {
		return "registry.npmjs.org"
	}
	return rest
}

// splitPort splits off a port, 0 if there is none. IPv6 addresses with a port stand in brackets.
func splitPort(text string) (host string, port uint16, err error) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		host, rest, closed := strings.Cut(inner, "]")
		if _, err := netip.ParseAddr(host); err != nil || !closed || !strings.Contains(host, ":") {
			return "", 0, errors.New("in brackets stands an address of IPv6; write [2001:db8::1]:443")
		}
		if rest == "" {
			return host, 0, nil
		}
		port, err = parsePort(strings.TrimPrefix(rest, ":"))
		return host, port, err
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return text, 0, nil
	}
	host, digits, has := strings.Cut(text, ":")
	if !has {
		return host, 0, nil
	}
	port, err = parsePort(digits)
	return host, port, err
}

func parsePort(digits string) (uint16, error) {
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 || digits[0] == '+' || digits[0] == '0' {
		return 0, fmt.Errorf("%q is no port; write a number from 1 to 65535", digits)
	}
	return uint16(n), nil
}

// covers reports whether the rule names a target.
func (r Rule) covers(t target) bool {
	if r.port != t.port && (r.port != 0 || t.port != 80 && t.port != 443) {
		return false
	}
	switch {
	case t.addr.IsValid() || r.addr.IsValid():
		return t.addr == r.addr
	case r.sub:
		return strings.HasSuffix(t.host, "."+r.host)
	}
	return t.host == r.host
}

// Rules are what a project may reach.
type Rules []Rule

// ParseRules reads entries, see [ParseRule].
func ParseRules(texts []string) (Rules, error) {
	var out Rules
	for _, text := range texts {
		r, err := ParseRule(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// allow reports whether a target may be reached, and whether its address may be internal.
func (all Rules) allow(t target) (ok, internal bool) {
	for _, r := range all {
		if r.covers(t) {
			ok, internal = true, internal || r.internal
		}
	}
	return ok, internal
}

// target is where a call wants to go.
type target struct {
	host string     // lower case; an address as written
	addr netip.Addr // if host is an address
	port uint16
}

func (t target) String() string {
	if t.addr.Is6() {
		return "[" + t.addr.String() + "]:" + strconv.Itoa(int(t.port))
	}
	return t.host + ":" + strconv.Itoa(int(t.port))
}

// readTarget reads host:port so that no two programs disagree about the host. usual is the port if the authority
// has none; 0 refuses that.
func readTarget(authority string, usual uint16) (target, error) {
	host, port, err := splitPort(authority)
	switch {
	case err != nil:
		return target{}, err
	case port == 0 && usual == 0:
		return target{}, errors.New("it names no port")
	case port == 0:
		port = usual
	}
	t := target{host: strings.ToLower(host), port: port}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Is4In6() || addr.Zone() != "" {
			return target{}, errors.New("its address is not written plainly")
		}
		t.addr, t.host = addr, addr.String()
		return t, nil
	}
	if !hostname.Plain(t.host) || hostname.Numeric(t.host) {
		return target{}, errors.New("its host is not written plainly")
	}
	return t, nil
}
