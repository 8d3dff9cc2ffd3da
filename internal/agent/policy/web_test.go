package policy

import "testing"

func TestAnAddressMustLeadWhereItSeemsTo(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	allow := rules(t, "allow WebFetch(domain:example.com)", "allow WebFetch(domain:*.example.com)", "allow WebFetch(domain:xn--bcher-kva.example)", "allow WebFetch(domain:127.0.0.1)")
	most := rules(t, "deny WebFetch(domain:evil.com)", "allow WebFetch")
	for _, tt := range []struct {
		url         string
		allow, most Verdict // by the rules for a domain, and by those for all but one
	}{
		{"https://example.com", Allow, Allow},
		{"http://example.com/a?b#c", Allow, Allow},
		{"https://example.com:443/", Allow, Allow},
		{"https://docs.example.com/@x", Allow, Allow},
		{"https://example.com?u=evil.com", Allow, Allow},
		{"https://example.com#@evil.com", Allow, Allow},
		{"https://xn--bcher-kva.example/", Allow, Ask},
		{"https://127.0.0.1/", Allow, Ask},
		{"https://xn--e1afmkfd.example.com/", Ask, Ask},
		{"https://example.com.evil.org/", Ask, Allow},
		{"https://evil.com/", Ask, Deny},
		{"https://www.EVIL.com/", Ask, Deny},
		{"https://evil.com./", Ask, Deny},
		{"https://example.com@evil.com/", Ask, Deny},
		{"https://evil.com@example.com/", Ask, Deny},
		{"https://example.com:pw@evil.com/", Ask, Deny},
		{`https://evil.com\@example.com/`, Ask, Deny},
		{`https:\\evil.com/`, Ask, Deny},
		{"https:/evil.com", Ask, Deny},
		{"https:evil.com", Ask, Deny},
		{"https:///evil.com", Ask, Deny},
		{"//evil.com", Ask, Deny},
		{"evil.com", Ask, Deny},
		{"ht\ntps://ev\til.com", Ask, Deny},
		{" https://evil.com", Ask, Deny},
		{"https://evil.com:8443/", Ask, Deny},
		{"https://ｅｖｉｌ.com/", Ask, Deny},
		{"https://evil。com/", Ask, Deny},
		{"https://%65vil.com/", Ask, Deny},
		{"https://evil\u00ad.com/", Ask, Deny},
		{"https://evil%2ecom/", Ask, Deny},
		{"https://example.com./", Ask, Ask},
		{"https://example.com:80443/", Ask, Ask},
		{"https://example.com:8080/", Ask, Ask},
		{"https://example.com:/", Ask, Ask},
		{"https://example.com\\.evil.org/", Ask, Ask},
		{"https://ex\u0430mple.com/", Ask, Ask},
		{"https://2130706433/", Ask, Ask},
		{"https://0x7f.1/", Ask, Ask},
		{"https://10.0.0.1/", Ask, Ask},
		{"https://[::1]/", Ask, Ask},
		{"https://-x.com/", Ask, Ask},
		{"https://x..com/", Ask, Ask},
		{"https://", Ask, Ask},
		{"", Ask, Ask},
		{"ftp://example.com/", Ask, Ask},
		{"file:///etc/passwd", Ask, Ask},
		{"javascript:alert(1)", Ask, Ask},
		{"https://example.com/a b", Ask, Ask},
		{"https://example.com/\u202e", Ask, Ask},
		{"https://example.com/%zz", Ask, Ask},
	} {
		c := call(t, ws, "WebFetch", in{"url": tt.url, "prompt": "x"})
		if d := allow.Decide(c); d.Verdict != tt.allow {
			t.Errorf("%q by domain: %s by %q (%s), want %s", tt.url, d.Verdict, d.Rule, d.Why, tt.allow)
		}
		if d := most.Decide(c); d.Verdict != tt.most {
			t.Errorf("%q by all but evil.com: %s by %q (%s), want %s", tt.url, d.Verdict, d.Rule, d.Why, tt.most)
		}
	}
}
