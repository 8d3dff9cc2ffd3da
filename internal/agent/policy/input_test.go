package policy

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
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
		{`{"\u005f_proto__":1}`, "__proto__"},
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

// FuzzReadInput: what is found to be good, the strict reader of encoding/json/v2
// and the lenient one of encoding/json read alike.
func FuzzReadInput(f *testing.F) {
	for _, raw := range []string{`{"a":1,"\u0061":1}`, `{"x":[{"c":1,"c":2}]}`, `{"__proto__":1}`, `{"a":"\ud800"}`, `{"\ud83d\ude00":[]}`, ` { "a" : [ 1 , {"b":2}, "x\"y\\" ] } `} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, bad := readInput(raw)
		if bad != "" || len(in) == 0 {
			return
		}
		var strict, lenient map[string]any
		if err := jsonv2.Unmarshal(raw, &strict); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if err := json.Unmarshal(raw, &lenient); err != nil || !cmp.Equal(strict, lenient) || len(in) != len(strict) {
			t.Fatalf("%q: %v, %v, %v, %v", raw, in, strict, lenient, err)
		}
		for name, want := range strict {
			var got any
			if err := json.Unmarshal(in[name], &got); err != nil || !cmp.Equal(got, want) {
				t.Fatalf("%q: %s is %s, want %v", raw, name, in[name], want)
			}
			if s, ok := in.str(name); ok != (reflect.ValueOf(want).Kind() == reflect.String) || ok && s != want {
				t.Fatalf("%q: %s is the text %q, %v", raw, name, s, ok)
			}
		}
	})
}

// What else is wrong with an input keeps nobody's deny from being found.
func TestABadInputIsReadAsFarAsItCanBe(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{"x":{"a":1,"a":1},"command":"rm -rf /"}`, `{"x":"\ud800","command":"rm -rf /"}`, `{"__proto__":{},"command":"rm -rf /"}`} {
		in, bad := readInput([]byte(raw))
		if s, ok := in.str("command"); bad == "" || !ok || s != "rm -rf /" {
			t.Errorf("%s: %q, %q", raw, s, bad)
		}
	}
	if s, ok := (input{"command": []byte(`"rm \ud800"`)}).str("command"); !ok || s != "rm \ufffd" {
		t.Errorf("half a character is read as %q, %v", s, ok)
	}
}
