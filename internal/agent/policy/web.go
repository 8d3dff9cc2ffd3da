package policy

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"deckhand/internal/hostname"
)

// domain is the argument of a WebFetch pattern.
type domain struct {
	host string // lower case, without the *.
	sub  bool   // any name below host, not host itself
}

func parseDomain(arg string) (*domain, *syntaxError) {
	host, ok := strings.CutPrefix(arg, "domain:")
	if !ok {
		return nil, &syntaxError{problem: "WebFetch is decided by domain", advice: "write WebFetch(domain:example.com) or WebFetch(domain:*.example.com)"}
	}
	at := len("domain:")
	if strings.ContainsAny(host, "/:@") {
		return nil, &syntaxError{at: at + strings.IndexAny(host, "/:@"), problem: "a domain is a host's name alone", advice: "write it without scheme, port and path: domain:example.com"}
	}
	d := &domain{}
	host = strings.ToLower(host)
	d.host, d.sub = strings.CutPrefix(host, "*.")
	if strings.Contains(d.host, "*") {
		return nil, &syntaxError{at: at + strings.LastIndexByte(host, '*'), problem: "a * in a domain stands only at the beginning, before a dot", advice: "write domain:*.example.com"}
	}
	if !hostname.Plain(d.host) {
		return nil, &syntaxError{at: at, problem: "it is not a host's name in plain ASCII", advice: "write it as browsers send it, such as example.com or xn--bcher-kva.example"}
	}
	if d.sub && !strings.Contains(d.host, ".") {
		return nil, &syntaxError{at: at, problem: "it would cover a whole top-level domain", advice: "write at least two names after the *: domain:*.example.com"}
	}
	return d, nil
}

func (d *domain) covers(host string) bool {
	if d.sub {
		return strings.HasSuffix(host, "."+d.host)
	}
	return host == d.host
}

// hits is for rules that deny or ask: the host and all below it.
func (d *domain) hits(host string) bool {
	return host == d.host && !d.sub || strings.HasSuffix(host, "."+d.host)
}

// link is a web address: the host that it certainly leads to or why that is uncertain, and the hosts that it may
// lead to.
type link struct {
	host string
	why  string
	may  []string
}

// readLink parses an address so that no two parsers disagree about its host.
func readLink(s string) link {
	l := link{may: mayHosts(s)}
	rest := s
	switch low := strings.ToLower(s[:min(len(s), 8)]); {
	case strings.HasPrefix(low, "https://"):
		rest = s[8:]
	case strings.HasPrefix(low, "http://"):
		rest = s[7:]
	default:
		l.why = "the address begins with neither https:// nor http://"
		return l
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || s[i] == '\\' {
			l.why = "the address holds characters that programs read differently"
			return l
		}
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if strings.Contains(authority, "@") {
		l.why = "the address holds a user name, which makes it look like another"
		return l
	}
	host, port, hasPort := strings.Cut(authority, ":")
	if hasPort && port != "443" && port != "80" {
		l.why = "the address names a port of its own"
		return l
	}
	host = strings.ToLower(host)
	if !hostname.Plain(host) {
		l.why = "the address does not name its host plainly"
		return l
	}
	u, err := url.Parse(s)
	if err != nil || !strings.EqualFold(u.Hostname(), host) {
		l.why = "the address cannot be read"
		return l
	}
	l.host = host
	return l
}

// covered reports whether a pattern for a domain, or for all pages, certainly covers an address.
func (l *link) covered(d *domain) (bool, string) {
	switch {
	case d != nil && (l.host == "" && !slices.ContainsFunc(l.may, d.covers) || l.host != "" && !d.covers(l.host)):
		return false, ""
	case l.why == "" && d == nil && hostname.Numeric(l.host):
		return false, "the address names its host by number"
	case l.why == "" && (d == nil || d.sub) && strings.Contains(l.host, "xn--"):
		return false, "the host is spelled in other letters, which may imitate another"
	}
	return l.why == "", l.why
}

// mayHosts are the hosts that some parser may read in an address, so that a denying rule finds its host behind user
// names, backslashes and full-width letters.
func mayHosts(s string) []string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r <= ' ' || r == 0x7f || deceptive(r) && r != 0x3000:
			return -1
		case r == '\\':
			return '/'
		case r == '。' || r == '．' || r == '｡':
			return '.'
		}
		return r
	}, norm.NFKC.String(s))
	s = strings.ToLower(s)
	if _, rest, ok := strings.Cut(s, ":"); ok {
		s = rest
	}
	s = strings.TrimLeft(s, "/")
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		s = s[:i]
	}
	var out []string
	for part := range strings.SplitSeq(s, "@") {
		if h, err := url.PathUnescape(part); err == nil {
			part = strings.ToLower(norm.NFKC.String(h))
		}
		host, _, _ := strings.Cut(part, ":")
		if host = strings.TrimRight(host, "."); host != "" {
			out = append(out, host)
		}
	}
	return out
}
