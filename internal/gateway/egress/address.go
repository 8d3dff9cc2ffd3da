package egress

import (
	"net"
	"net/netip"
	"slices"
)

// public6 is the globally routable part of IPv6. It contains no translations of IPv4.
var public6 = netip.MustParsePrefix("2000::/3")

// notPublic are the special-purpose ranges within the public addresses: IANA's registries, as of 2026-11.
var notPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// inHouse are the ranges that an admin may name as internal: private networks, loopback, and what providers share
// among their customers.
var inHouse = prefixes("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")

// metadata are the clouds' metadata addresses within ranges that would otherwise be reachable (Amazon, Google,
// Alibaba, Azure): they hand out the machine's credentials. They are always refused.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"),
}

func prefixes(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(all))
	for i, s := range all {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// Reachable reports whether a connection may go to an address: to a public one that is not this machine's, or to an
// internal one if internal.
func Reachable(addr netip.Addr, internal bool) bool {
	return reachable(addr, internal) && (internal || !ownAddress(addr))
}

// reachable reports whether an address may be connected to: a known public one, or an internal one if internal.
func reachable(addr netip.Addr, internal bool) bool {
	if addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	if slices.Contains(metadata, addr) {
		return false
	}
	if internal && in(inHouse, addr) {
		return true
	}
	return (addr.Is4() || public6.Contains(addr)) && !in(notPublic, addr)
}

func in(all []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// ownAddress reports whether an address is this machine's: a public one would bypass the machine's firewall. It is
// true if the addresses cannot be read.
func ownAddress(addr netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == addr.Unmap() {
			return true
		}
	}
	return false
}
