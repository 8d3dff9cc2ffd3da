package gateway

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatTheModelIsToldOfATool: of MCP servers' tools alone, wherever a call names them; one text
// in whatever order its schema is written; another text stays beside the first.
func TestWhatTheModelIsToldOfATool(t *testing.T) {
	t.Parallel()
	var s Session
	o := &s.offered
	told := func(body string) {
		t.Helper()
		said, err := check([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		o.note(said.tools)
	}
	told(`{"tools":[{"name":"Bash","description":"runs"},{"input_schema":{"b":1,"a":[2, 3]},"name":"mcp__x__look","description":"Looks.","defer_loading":true}]}`)
	told(`{"tools":[{"name":"mcp__x__look","description":"Looks.","input_schema":{"a":[2,3],"b":1}}]}`)
	if got := o.tools["mcp__x__look"]; len(got) != 1 || got[0].Description != "Looks." || got[0].Schema != `{"a":[2,3],"b":1}` || len(o.tools) != 1 {
		t.Fatalf("it is told %+v", o.tools)
	}
	told(`{"tools":[{"name":"mcp__x__look","description":"Looks.","input_schema":{"a":[2,3],"b":2}}]}`)
	told(`{"messages":[{"role":"user","content":[{"type":"tool_addition","tool":{"name":"mcp__x__look","description":"Looks\u0000 otherwise.","input_schema":{}}}]}]}`)
	if got := o.tools["mcp__x__look"]; len(got) != 3 || got[2].Description != "Looks� otherwise." {
		t.Errorf("it is told %+v", got)
	}
	long := strings.Repeat("é", toolTextMost)
	told(`{"tools":[{"name":"mcp__x__long","description":"` + long + `1"},{"name":"mcp__x__longer","description":"` + long + `2"}]}`)
	a, b := o.tools["mcp__x__long"][0], o.tools["mcp__x__longer"][0]
	if a.Sum == b.Sum || a.Description != b.Description || len(a.Description) > toolTextMost+3 {
		t.Error("what is cut counts for nothing, or is kept")
	}
	for i := range 2 * toldMost {
		told(fmt.Sprintf(`{"tools":[{"name":"mcp__x__look","description":"%d"}]}`, i))
	}
	got := s.Offered("mcp__x__look")
	if len(got) != toldMost+1 || got[toldMost].Sum != [32]byte{} || !strings.Contains(got[toldMost].Description, "not known") {
		t.Errorf("of a tool that is told of in too many ways is kept %+v", got)
	}
	if _, err := check([]byte(`{"tools":[{"name":"mcp__x__look","name":"mcp__x__other"}]}`)); err == nil {
		t.Error("a tool with two names is passed on")
	}
}
