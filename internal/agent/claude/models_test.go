package claude

import "testing"

func TestModelsThatAreKnownByName(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{
		"sonnet": true, "opus[1m]": true, "default": true, "claude-opus-5-5": true, "claude-sonnet-4-5-20250929": true,
		"eu.anthropic.claude-opus-4-5-20251101-v1:0": true, "claude-sonnet-5-5[1m]": true,
		"sonet": false, "gpt-4": false, "claude": false, "": false,
	} {
		if got := KnowsModel(model); got != want {
			t.Errorf("%q: %v, want %v", model, got, want)
		}
	}
	for _, model := range KnownModels() {
		if !KnowsModel(model) {
			t.Errorf("%q is in the list, and unknown", model)
		}
	}
}
