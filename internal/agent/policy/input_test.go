package policy

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAnInputThatParsersReadDifferently(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, maxDepth+2) + "1" + strings.Repeat("}", maxDepth+2)
	for _, tt := range []struct{ raw, says string }{
		{`{"a":1,"a":1}`, "twice"},
		{`{"a":1,"\u0061":1}`, "twice"},
		{`{"x":[{"a":1,"b":{"c":1,"c":2}}]}`, "twice"},
		{`{"__proto__":1}`, "__proto__"},
		{`{"a":{"__proto__":1}}`, "__proto__"},
		{`{"a":"\ud800"}`, "half"},
		{`{"a":"\udc00"}`, "half"},
		{`{"a":"\ud800\u0041"}`, "half"},
		{`{"a":"\uD83D x"}`, "half"},
		{"{\"a\":\"\xff\"}", "not valid text"},
		{`{"a":1`, "not valid JSON"},
		{`{"a":1}{"b":2}`, "not valid JSON"},
		{`{'a':1}`, "not valid JSON"},
		{`{"a":1,}`, "not valid JSON"},
		{`["a"]`, "not an object"},
		{`"a"`, "not an object"},
		{`null`, "not an object"},
		{`{"a":` + deep + `}`, "deeply"},
		{`{"a":"` + strings.Repeat("x", maxInput) + `"}`, "too large"},
	} {
		if _, bad := readInput([]byte(tt.raw)); !strings.Contains(bad, tt.says) {
			t.Errorf("%.60s: %q, want %q", tt.raw, bad, tt.says)
		}
	}
	for _, raw := range []string{"", " \n", "{}", ` { "a" : [ 1 , {"b":2}, "x\"y\\" ] , "c" : {"a":null} } `, `{"a":"\ud83d\ude00"}`, `{"a":-1.5e3,"b":true}`, `{"a":[],"b":{}}`} {
		got, bad := readInput([]byte(raw))
		want := map[string]json.RawMessage{}
		if strings.TrimSpace(raw) != "" {
			if err := json.Unmarshal([]byte(raw), &want); err != nil {
				t.Fatal(err)
			}
		}
		if bad != "" || len(got) != len(want) {
			t.Errorf("%s: %v, %q", raw, got, bad)
		}
		for k, v := range want {
			if strings.TrimSpace(string(v)) != string(got[k]) {
				t.Errorf("%s: %s is %s, want %s", raw, k, got[k], v)
			}
		}
	}
}
