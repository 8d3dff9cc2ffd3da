package policy

import (
	"strings"
	"testing"
)

func TestAHostIsDecidedAsItIsConnectedTo(t *testing.T) {
	t.Parallel()
	p := rules(t,
		"deny SandboxNetworkAccess(domain:evil.example)", "deny SandboxNetworkAccess(domain:shop.example:22)",
		"allow SandboxNetworkAccess(domain:go.example)", "allow SandboxNetworkAccess(domain:*.go.example:8443)",
		"allow SandboxNetworkAccess(domain:[2606:4700::1111]:53)", "allow SandboxNetworkAccess(domain:93.184.216.34)",
		"allow SandboxNetworkAccess(domain:xn--bcher-kva.example)", "allow WebFetch(domain:pages.example)", "allow WebFetch", "allow Bash")
	every := rules(t, "allow SandboxNetworkAccess")
	for _, tt := range []struct {
		host        string
		port        uint16
		want, every Verdict
	}{
		{"go.example", 443, Allow, Allow},
		{"go.example", 80, Allow, Allow},
		{"go.example", 22, Ask, Allow},
		{"www.go.example", 443, Ask, Allow},
		{"www.go.example", 8443, Allow, Allow},
		{"go.example", 8443, Ask, Allow},
		{"xgo.example", 443, Ask, Allow},
		{"go.example.evil.example", 443, Deny, Allow},
		{"evil.example", 5432, Deny, Allow},
		{"shop.example", 22, Deny, Allow},
		{"a.shop.example", 22, Deny, Allow},
		{"shop.example", 443, Ask, Allow},
		{"pages.example", 443, Ask, Allow}, // a page that may be fetched opens no network
		{"2606:4700::1111", 53, Allow, Ask},
		{"2606:4700::1111", 443, Ask, Ask},
		{"93.184.216.34", 443, Allow, Ask},
		{"xn--bcher-kva.example", 443, Allow, Ask},
		{"xn--bcher-kva.go.example", 8443, Ask, Ask},
		{"GO.example", 443, Ask, Ask},
		{"go.example.", 443, Ask, Ask},
		{"go.example", 0, Ask, Ask},
		{"0x7f.1", 443, Ask, Ask},
		{"user@go.example", 443, Ask, Ask},
		{"go.example\n", 443, Ask, Ask},
		{"", 443, Ask, Ask},
	} {
		c := Call{Tool: NetworkTool, Input: NetworkInput(tt.host, tt.port), Workspace: "/ws"}
		if d := p.Decide(c); d.Verdict != tt.want || d.Fault != "" {
			t.Errorf("%q port %d: %s by %q (%s), want %s", tt.host, tt.port, d.Verdict, d.Rule, d.Why, tt.want)
		}
		if d := every.Decide(c); d.Verdict != tt.every {
			t.Errorf("%q port %d by a rule for every host: %s by %q (%s), want %s", tt.host, tt.port, d.Verdict, d.Rule, d.Why, tt.every)
		}
	}
}

// What is not written as the gateway writes it is asked, and becomes no grant.
func TestAHostIsAskedInOneSpelling(t *testing.T) {
	t.Parallel()
	every := rules(t, "allow SandboxNetworkAccess", "allow SandboxNetworkAccess(domain:go.example)", "allow *")
	for _, raw := range []string{
		`{"host":"go.example"}`, `{"host":"go.example","port":443,"also":1}`, `{"port":443,"host":"go.example"}`, `{"host": "go.example", "port": 443}`,
		`{"Host":"go.example","port":443}`, `{"host":"evil.example","host":"go.example","port":443}`, `{"host":"go.example","port":"443"}`,
		`{"host":"go.example","port":65979}`, `[]`, `null`, ``, `{"host":null,"port":443}`,
	} {
		d := every.Decide(Call{Tool: NetworkTool, Input: []byte(raw)})
		if d.Verdict != Ask || d.Grantable || d.Fault != "" || len(Suggest(Call{Tool: NetworkTool, Input: []byte(raw)})) != 0 {
			t.Errorf("%s: %+v", raw, d)
		}
	}
}

func TestWhatIsOfferedForAHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		host string
		port uint16
		want string
	}{
		{"go.example", 443, "SandboxNetworkAccess(domain:go.example:443) SandboxNetworkAccess(domain:go.example)"},
		{"go.example", 8443, "SandboxNetworkAccess(domain:go.example:8443)"},
		{"2606:4700::1111", 80, "SandboxNetworkAccess(domain:[2606:4700::1111]:80) SandboxNetworkAccess(domain:[2606:4700::1111])"},
		{"xn--bcher-kva.example", 443, "SandboxNetworkAccess(domain:xn--bcher-kva.example:443) SandboxNetworkAccess(domain:xn--bcher-kva.example)"},
	} {
		var got []string
		for _, s := range Suggest(Call{Tool: NetworkTool, Input: NetworkInput(tt.host, tt.port)}) {
			got = append(got, s.Pattern.String())
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s %d: %q", tt.host, tt.port, got)
		}
	}
}

func TestAWrongPatternForAHostSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	for pattern, says := range map[string]string{
		"SandboxNetworkAccess(go.dev)":                   "write SandboxNetworkAccess(domain:example.com)",
		"SandboxNetworkAccess(domain:*)":                 "a * in a domain stands only at the beginning, before a dot",
		"SandboxNetworkAccess(domain:*.com)":             "whole top-level domain",
		"SandboxNetworkAccess(domain:go.dev:)":           "write a number from 1 to 65535",
		"SandboxNetworkAccess(domain:go.dev:0443)":       "write a number from 1 to 65535",
		"SandboxNetworkAccess(domain:go.dev:65536)":      "write a number from 1 to 65535",
		"SandboxNetworkAccess(domain:go.dev:+1)":         "write a number from 1 to 65535",
		"SandboxNetworkAccess(domain:[::1)":              "write domain:[2001:db8::1]",
		"SandboxNetworkAccess(domain:[10.0.0.1]:80)":     "write domain:[2001:db8::1]",
		"SandboxNetworkAccess(domain:[2606:4700::1]x)":   "write a number from 1 to 65535",
		"SandboxNetworkAccess(domain:bücher.example)":    "not a host's name in plain ASCII",
		"SandboxNetworkAccess(domain:https://go.dev/)":   "write a number from 1 to 65535",
		"SandboxNetworkAccess(domain:me@go.dev)":         "a host's name alone",
		"sandboxnetworkaccess(domain:go.dev)":            "write SandboxNetworkAccess(domain:go.dev)",
		"SandboxNetworkAccess(domain:go.dev:443, x:443)": "write a number from 1 to 65535",
	} {
		if _, err := ParsePattern(pattern); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, not %q", pattern, err, says)
		}
	}
}

func TestRulesThatReach(t *testing.T) {
	t.Parallel()
	p := rules(t, "allow SandboxNetworkAccess(domain:go.dev)", "deny SandboxNetworkAccess", "allow SandboxNetworkAccess(domain:x.dev)")
	if got := p.Reaching("web"); len(got) != 1 || !strings.HasPrefix(got[0], "SandboxNetworkAccess(domain:go.dev)") {
		t.Errorf("%q", got)
	}
}
