package tools_test

import (
	"encoding/json"
	"testing"

	"deckhand/internal/agent/tools"
)

// TestAnInputIsReadByItsNames: what cards and forms show by a name is what runs, and nothing else.
func TestAnInputIsReadByItsNames(t *testing.T) {
	t.Parallel()
	for input, ok := range map[string]bool{
		`{"title":"shown","draft":false}`:     true,
		`{"title":"shown","draft":null}`:      true,
		`{"title":"shown","Title":"runs"}`:    false,
		`{"TITLE":"runs"}`:                    false,
		`{"title":"shown","draft":1}`:         false,
		`{"title":"shown","title":"runs"}`:    false,
		`{"title":"shown","other":1}`:         false,
		`{"title":"shown"}{"title":"runs"}`:   false,
		`{"title":"shown","\u017ftitle":"x"}`: false,
	} {
		var in struct {
			Title string `json:"title"`
			Draft *bool  `json:"draft"`
		}
		if err := tools.Read(json.RawMessage(input), &in); (err == nil) != ok || ok && in.Title != "shown" {
			t.Errorf("%s: %+v, %v", input, in, err)
		}
	}
}
