package ask

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/forges"
)

// A call that was approved with commits passes these; one that a rule allowed passes any.
func TestPassOf(t *testing.T) {
	t.Parallel()
	call := policy.Call{Tool: "Bash", Input: json.RawMessage(`{"command":"git push -f origin x"}`), Workspace: t.TempDir()}
	approved := &forges.Push{Repository: "forge/web", Refs: []forges.PushRef{{Name: "refs/heads/x", Old: "a", New: "b"}}}
	for name, tt := range map[string]struct {
		push *forges.Push
		want gitway.Pass
	}{
		"a rule":                   {nil, gitway.Pass{Force: true}},
		"what was approved":        {approved, gitway.Pass{Force: true, Repository: "forge/web", Refs: []gitway.Ref{{Name: "refs/heads/x", Old: "a", New: "b"}}}},
		"what nobody could see in": {&forges.Push{Unknown: "it took too long"}, gitway.Pass{Force: true}},
	} {
		got, pushes := PassOf(call, tt.push)
		if diff := cmp.Diff(tt.want, got); diff != "" || !pushes {
			t.Errorf("%s: %v %s", name, pushes, diff)
		}
	}
}

// What ran before the last edit proves nothing of what is pushed.
func TestRanSinceChange(t *testing.T) {
	t.Parallel()
	use := func(name, input string, s claude.ToolState) claude.Item {
		return claude.Item{Tool: &claude.ToolUse{Name: name, Input: json.RawMessage(input), State: s}}
	}
	o := claude.Output{Items: []claude.Item{
		use("Bash", `{"command":"before"}`, claude.ToolDone), use("Edit", `{}`, claude.ToolDone),
		use("Bash", `{"command":"one"}`, claude.ToolDone), use("Bash", `{"command":"two"}`, claude.ToolFailed),
		{Text: "said"},
		use("Bash", `{"command":"git push"}`, claude.ToolAsked),
	}}
	if diff := cmp.Diff([]forges.PushRan{{Command: "one"}, {Command: "two", Failed: true}}, RanSinceChange(o)); diff != "" {
		t.Error(diff)
	}
}
