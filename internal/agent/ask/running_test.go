package ask

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"deckhand/internal/agent/policy"
)

// A card says which tool uses run when a host is asked for.
func TestWhoAsks(t *testing.T) {
	t.Parallel()
	call := func(tool, input string) policy.Call { return policy.Call{Tool: tool, Input: json.RawMessage(input)} }
	for name, tt := range map[string]struct {
		calls     []policy.Call
		over      int // how many of them have their results
		want, use string
	}{
		"nothing":         {nil, 0, "by a program in the background, while no tool use of this turn ran", ""},
		"a command":       {[]policy.Call{call("Bash", `{"command":"curl -sS x.example\nrm x"}`)}, 0, "while this ran: Bash: curl -sS x.example\nrm x", "0"},
		"over":            {[]policy.Call{call("Bash", `{"command":"sleep 1 &"}`)}, 1, "by a program in the background, while no tool use of this turn ran", ""},
		"a page":          {[]policy.Call{call("WebFetch", `{"url":"https://x.example/","prompt":"p"}`)}, 0, "while this ran: WebFetch: https://x.example/", "0"},
		"in a subagent":   {[]policy.Call{call("Agent", `{}`), call("Bash", `{"command":"go mod tidy"}`)}, 0, "while this ran: Bash: go mod tidy", "1"},
		"two":             {[]policy.Call{call("Bash", `{"command":"a"}`), call("mcp__x__y", `{}`)}, 0, "while one of these ran: Bash: a | mcp__x__y", ""},
		"many":            {[]policy.Call{call("Bash", `{"command":"a"}`), call("Bash", `{"command":"b"}`), call("Bash", `{"command":"c"}`), call("Bash", `{"command":"d"}`)}, 0, "while one of these ran: Bash: a | Bash: b | Bash: c | and 1 more", ""},
		"nothing is told": {[]policy.Call{call("Bash", `{"command":"a\u0000b"}`)}, 0, "while this ran: Bash: ab", "0"},
		"much":            {[]policy.Call{call("Bash", `{"command":"`+strings.Repeat("ü", 5000)+`"}`)}, 0, "while this ran: Bash: " + strings.Repeat("ü", 997), "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r Running
			for i, c := range tt.calls {
				r.Begin(fmt.Sprint(i), c)
				r.Begin(fmt.Sprint(i), c)
			}
			for i := range tt.over {
				r.End(fmt.Sprint(i))
			}
			if got := r.Described(); got != tt.want || r.Only() != tt.use {
				t.Errorf("%.200q of %q", got, r.Only())
			}
		})
	}
}
