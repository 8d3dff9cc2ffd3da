package egress

import (
	"net/netip"
	"strings"
	"testing"

	"deckhand/internal/hostname"
)

func rules(t testing.TB, texts ...string) Rules {
	t.Helper()
	out, err := ParseRules(texts)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, target   string
		usual          uint16
		want, internal bool
	}{
		{"registry.npmjs.org", "registry.npmjs.org:443", 0, true, false},
		{"registry.npmjs.org", "registry.npmjs.org", 80, true, false},
		{"Registry.NPMjs.org", "REGISTRY.npmjs.ORG:443", 0, true, false},
		{"registry.npmjs.org", "registry.npmjs.org:8443", 0, false, false},
		{"registry.npmjs.org", "x.registry.npmjs.org:443", 0, false, false},
		{"registry.npmjs.org", "registry.npmjs.org.evil.com:443", 0, false, false},
		{"registry.npmjs.org", "evilregistry.npmjs.org:443", 0, false, false},
		{"*.golang.org:443", "proxy.golang.org:443", 0, true, false},
		{"*.golang.org:443", "a.b.golang.org:443", 0, true, false},
		{"*.golang.org:443", "golang.org:443", 0, false, false},
		{"*.golang.org:443", "evilgolang.org:443", 0, false, false},
		{"*.golang.org:443", "proxy.golang.org:80", 0, false, false},
		{"internal:db.corp.example:5432", "db.corp.example:5432", 0, true, true},
		{"internal:db.corp.example:5432", "db.corp.example:443", 0, false, false},
		{"93.184.216.34", "93.184.216.34:80", 0, true, false},
		{"93.184.216.34", "93.184.216.35:80", 0, false, false},
		{"[2606:2800:220:1::1]:443", "[2606:2800:220:1:0:0:0:1]:443", 0, true, false},
		{"internal:10.1.2.3", "10.1.2.3:443", 0, true, true},
		{"internal:[::1]:8080", "[::1]:8080", 0, true, true},
		{"*.example.com", "127.0.0.1:80", 0, false, false},
	} {
		got, err := readTarget(c.target, c.usual)
		if err != nil {
			t.Errorf("%s: %v", c.target, err)
			continue
		}
		if ok, internal := rules(t, c.rule).allow(got); ok != c.want || internal != c.internal {
			t.Errorf("%s, %s: %v, internal %v", c.rule, c.target, ok, internal)
		}
	}
}

// There is one spelling of a host that is taken, so that nobody who reads it later can
// take it for another.
func TestTargetsAreReadInOneWay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "example.com", ":443", "example.com:", "example.com:0", "example.com:65536", "example.com:99999999999999999999", "example.com:+443", "example.com:0443",
		"example.com:443:443", "example.com:https", "example.com.:443", ".example.com:443", "ex..ample.com:443", "-example.com:443",
		"user@example.com:443", "user:pw@example.com:443", "example.com/path:443", "example.com:443/", "exam ple.com:443", "example.com:443 ", "example.com\x00:443",
		"exämple.com:443", "example。com:443", "ｅxample.com:443", "example.com%00:443", "example.com%2eevil.com:443", "*.example.com:443",
		"127.1:80", "2130706433:80", "0x7f000001:80", "0x7f.0.0.1:80", "0177.0.0.1:80", "127.0.0.1.:80", "1.2.3:80", "127.0.0.01:80",
		"[::ffff:127.0.0.1]:80", "[::ffff:7f00:1]:80", "[fe80::1%eth0]:80", "[fe80::1%25eth0]:80", "[127.0.0.1]:80", "[::1]", "[::1:80", "::1]:80", "[example.com]:443", "[]:443", "::1",
		strings.Repeat("a", 64) + ".com:443", strings.Repeat("a.", 127) + "com:443",
	} {
		if got, err := readTarget(text, 0); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}

func TestRulesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "no host's name",
		"*":                         "write open",
		"internal:*":                "write open",
		"*.com":                     "write at least two names after the *, such as *.example.com",
		"a.*.com":                   "write *.com",
		"*golang.org":               "write *.golang.org",
		"https://user@go.dev/x":     "write the host alone, such as go.dev",
		"go.dev/x":                  "write it alone",
		"go.dev:0":                  "write a number from 1 to 65535",
		"go.dev:http":               `"http" is no port`,
		"go.dev.":                   "write go.dev",
		"bücher.example":            "write xn--bcher-kva.example",
		"127.1":                     "write four numbers",
		"10.1.2.3":                  "write internal:10.1.2.3",
		"127.0.0.1:8080":            "write internal:127.0.0.1",
		"[fd00::1]:443":             "write internal:fd00::1",
		"::ffff:10.1.2.3":           "write 10.1.2.3",
		"fe80::1%eth0":              "write fe80::1",
		"[go.dev]:443":              "in brackets stands an address of IPv6",
		"169.254.169.254":           "leave it out",
		"internal:169.254.169.254":  "leave it out",
		"internal:[fd00:ec2::254]":  "leave it out",
		"internal:100.100.100.200":  "leave it out",
		"internal:0.0.0.0":          "leave it out",
		"internal:224.0.0.1":        "leave it out",
		"internal:64:ff9b::a01:203": "leave it out",
	} {
		if _, err := ParseRule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
}

func TestReachable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"93.184.216.34": "public", "1.1.1.1": "public", "2606:2800:220:1:248:1893:25c8:1946": "public", "::ffff:1.1.1.1": "public", "192.0.1.1": "public",
		"10.0.0.1": "internal", "172.31.255.255": "internal", "192.168.0.1": "internal", "100.64.0.1": "internal", "127.0.0.1": "internal", "127.255.0.1": "internal",
		"::1": "internal", "fd12::1": "internal", "::ffff:10.0.0.1": "internal",
		"169.254.169.254": "no", "::ffff:169.254.169.254": "no", "fd00:ec2::254": "no", "fd20:ce::254": "no", "100.100.100.200": "no", "168.63.129.16": "no", "192.0.0.192": "no",
		"169.254.1.1": "no", "fe80::1": "no", "fec0::1": "no", "0.0.0.0": "no", "0.1.2.3": "no", "::": "no", "255.255.255.255": "no", "224.0.0.1": "no", "ff02::1": "no", "240.0.0.1": "no",
		"192.0.2.1": "no", "198.18.0.1": "no", "198.51.100.1": "no", "203.0.113.1": "no", "192.88.99.1": "no",
		"2002:a00:1::": "no", "64:ff9b::a00:1": "no", "64:ff9b:1::a00:1": "no", "::a00:1": "no", "2001::1": "no", "2001:db8::1": "no", "3fff::1": "no", "100::1": "no", "5f00::1": "no", "fe80::1%eth0": "no",
	} {
		addr := netip.MustParseAddr(text)
		got := "no"
		switch {
		case reachable(addr, false):
			got = "public"
		case reachable(addr, true):
			got = "internal"
		}
		if got != want || reachable(addr, false) && !reachable(addr, true) {
			t.Errorf("%s is %s, not %s", text, got, want)
		}
	}
}

// FuzzTarget holds that a host that is taken is one of those that a rule names, letter by
// letter, whatever stands around it.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"registry.npmjs.org:443", "a.golang.org:443", "user@registry.npmjs.org:443", "[::1]:80", "registry.npmjs.org.:443", "127.1:80", "a。golang.org:443"} {
		f.Add(s)
	}
	all := rules(f, "registry.npmjs.org", "*.golang.org")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readTarget(text, 0)
		if err != nil {
			return
		}
		if low := strings.ToLower(text); !got.addr.IsValid() && low != got.String() {
			t.Fatalf("%q is taken for %s", text, got)
		}
		again, err := readTarget(got.String(), 0)
		if err != nil || again != got {
			t.Fatalf("%q is taken for %s, which is taken for %s (%v)", text, got, again, err)
		}
		if ok, internal := all.allow(got); ok && (internal || got.addr.IsValid() || got.host != "registry.npmjs.org" && !strings.HasSuffix(got.host, ".golang.org") || got.port != 80 && got.port != 443) {
			t.Fatalf("%q is allowed", text)
		}
	})
}

// FuzzRule holds that a rule that is taken covers no more than what it spells.
func FuzzRule(f *testing.F) {
	for _, s := range []string{"registry.npmjs.org", "*.golang.org:443", "internal:10.1.2.3:80", "[2606:2800:220:1::1]:443", "*.com", "bücher.example"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		if r.addr.IsValid() {
			if !reachable(r.addr, r.internal) {
				t.Fatalf("%q reaches %s", text, r.addr)
			}
			return
		}
		if !hostname.Plain(r.host) || !strings.Contains(strings.ToLower(text), r.host) || r.sub != strings.Contains(text, "*") || r.sub && !strings.Contains(r.host, ".") {
			t.Fatalf("%q is taken for %+v", text, r)
		}
		if r.covers(target{host: "evil.example.net", port: 443}) && !strings.Contains(text, "example.net") {
			t.Fatalf("%q covers another host", text)
		}
	})
}
