package model

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// prompt is a request whose parts are 4 n bytes long; the ttl marks a cache
// breakpoint after that part.
func prompt(t *testing.T, parts ...string) []segment {
	t.Helper()
	var msgs []string
	for i, p := range parts {
		ttl, cache, _ := strings.Cut(p, " ")
		switch cache {
		case "5m":
			cache = `,"cache_control":{"type":"ephemeral"}`
		case "1h":
			cache = `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
		}
		text := strings.Repeat(fmt.Sprintf("%04d", i), 10)
		msgs = append(msgs, fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"%s%s"%s}]}`, text[:36], ttl, cache))
	}
	var r request
	if err := json.Unmarshal([]byte(`{"messages":[`+strings.Join(msgs, ",")+`]}`), &r); err != nil {
		t.Fatal(err)
	}
	return r.segments()
}

func TestPromptCache(t *testing.T) {
	t.Parallel()
	counted := func(input, read, write5m, write1h int) usage {
		return usage{
			InputTokens: input, CacheReadInputTokens: read, CacheCreationInputTokens: write5m + write1h,
			CacheCreation: cacheCreation{write5m, write1h}, ServiceTier: "standard",
		}
	}
	for _, tc := range []struct {
		name  string
		calls [][]string
		want  []usage
	}{
		{"no breakpoint: all is input", [][]string{{"aaaa", "bbbb"}, {"aaaa", "bbbb"}}, []usage{counted(20, 0, 0, 0), counted(20, 0, 0, 0)}},
		{"written, then read", [][]string{{"aaaa", "bbbb 5m"}, {"aaaa", "bbbb", "cccc 5m"}}, []usage{counted(1, 0, 20, 0), counted(1, 20, 10, 0)}},
		{"what follows the breakpoint is input", [][]string{{"aaaa 5m", "bbbb"}}, []usage{counted(10, 0, 10, 0)}},
		{"a change is written anew from there", [][]string{{"aaaa", "bbbb 5m"}, {"aaaa", "xxxx", "cccc 5m"}}, []usage{counted(1, 0, 20, 0), counted(1, 10, 20, 0)}},
		{"for an hour", [][]string{{"aaaa 1h", "bbbb 5m"}, {"aaaa", "bbbb", "cccc 1h"}}, []usage{counted(1, 0, 10, 10), counted(1, 20, 0, 10)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var c promptCache
			for i, parts := range tc.calls {
				if diff := cmp.Diff(tc.want[i], c.count(prompt(t, parts...))); diff != "" {
					t.Errorf("call %d (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}

func TestACacheIsBounded(t *testing.T) {
	t.Parallel()
	var c promptCache
	for i := range 3 * maxCached {
		c.count(prompt(t, fmt.Sprintf("%04d 5m", i)))
	}
	if len(c.seen) > maxCached+2 {
		t.Errorf("%d prompts kept", len(c.seen))
	}
}

func TestUsageOverride(t *testing.T) {
	t.Parallel()
	base := usage{InputTokens: 1, CacheCreationInputTokens: 7, CacheReadInputTokens: 3, CacheCreation: cacheCreation{4, 3}, OutputTokens: 5, ServiceTier: "standard"}
	for raw, change := range map[string]func(*usage){
		`{}`:                                   func(*usage) {},
		`{"input_tokens":9,"output_tokens":8}`: func(u *usage) { u.InputTokens, u.OutputTokens = 9, 8 },
		`{"cache_creation_input_tokens":10}`:   func(u *usage) { u.CacheCreationInputTokens, u.CacheCreation = 10, cacheCreation{10, 0} },
		`{"cache_creation":{"ephemeral_1h_input_tokens":6}}`:                                 func(u *usage) { u.CacheCreationInputTokens, u.CacheCreation = 6, cacheCreation{0, 6} },
		`{"cache_creation_input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":2}}`: func(u *usage) { u.CacheCreationInputTokens, u.CacheCreation = 2, cacheCreation{2, 0} },
		`{"server_tool_use":{"web_search_requests":2}}`:                                      func(u *usage) { u.ServerToolUse = &serverToolUse{2} },
	} {
		want := base
		change(&want)
		got, err := base.override(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

func TestBillRoundsOnce(t *testing.T) {
	t.Parallel()
	var l ledger
	for range 3 {
		l.add("s", "claude-haiku-5-5", "req_a", usage{InputTokens: 4}) // 400 nano-USD each
		l.add("s", "claude-sonnet-5-5", "req_b", usage{CacheReadInputTokens: 4})
	}
	l.add("r", "claude-opus-5-5", "req_c", usage{OutputTokens: 1, CacheCreationInputTokens: 3, CacheCreation: cacheCreation{1, 2}, ServerToolUse: &serverToolUse{1}})
	small := Tally{Calls: 3, Input: 12, NanoUSD: 1200, MicroUSD: 1}
	read := Tally{Calls: 3, CacheRead: 12, NanoUSD: 1200, MicroUSD: 1}
	other := Tally{Calls: 1, Output: 1, CacheWrite5m: 1, CacheWrite1h: 2, WebSearchRequests: 1, NanoUSD: 10_041_000, MicroUSD: 10_041, MeteredMicroUSD: 10_041}
	want := Bill{
		Sessions: []SessionBill{
			{SessionID: "r", Models: []ByModel{{"claude-opus-5-5", other}}, Total: other},
			{
				SessionID: "s", Models: []ByModel{{"claude-haiku-5-5", small}, {"claude-sonnet-5-5", read}},
				Total: Tally{Calls: 6, Input: 12, CacheRead: 12, NanoUSD: 2400, MicroUSD: 2},
			},
		},
		Total:    Tally{Calls: 7, Input: 12, Output: 1, CacheRead: 12, CacheWrite5m: 1, CacheWrite1h: 2, WebSearchRequests: 1, NanoUSD: 10_043_400, MicroUSD: 10_043, MeteredMicroUSD: 10_041},
		Requests: map[string]int64{"req_a": 0, "req_b": 0, "req_c": 10_041},
	}
	// The floats are compared with the CLI's own elsewhere.
	if diff := cmp.Diff(want, l.bill(), cmpopts.IgnoreFields(Tally{}, "USD")); diff != "" {
		t.Errorf("bill (-want +got):\n%s", diff)
	}
	b, err := json.Marshal(l.bill().Session("r"))
	if err != nil {
		t.Fatal(err)
	}
	const tally = `"calls":1,"input":0,"output":1,"cache_read":0,"cache_write_5m":1,"cache_write_1h":2,"web_search_requests":1,"micro_usd":10041,"nano_usd":10041000,"metered_micro_usd":10041,"usd":0.010041`
	const none = `"calls":0,"input":0,"output":0,"cache_read":0,"cache_write_5m":0,"cache_write_1h":0,"web_search_requests":0,"micro_usd":0,"nano_usd":0,"metered_micro_usd":0,"usd":0`
	want2 := `{"session_id":"r","models":[{"model":"claude-opus-5-5",` + tally + `}],"total":{` + tally + `},"probes":{` + none + `}}`
	if got := string(b); got != want2 {
		t.Errorf("JSON: %s\nwant: %s", got, want2)
	}
}

func TestBillNamesTheExactSumToo(t *testing.T) {
	t.Parallel()
	var l ledger
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		l.add("s", "claude-sonnet-5-5", "", usage{InputTokens: rnd.IntN(50), OutputTokens: rnd.IntN(5000), CacheReadInputTokens: rnd.IntN(99999), CacheCreationInputTokens: rnd.IntN(9999)})
		if got := l.bill().Total; math.Abs(got.USD*1e9-float64(got.NanoUSD)) > 1 {
			t.Fatalf("%v USD and %d nano-USD", got.USD, got.NanoUSD)
		}
	}
}
