package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/store"
)

// announces is the line in which an answer asks for a use of a tool.
func announces(answer, id, file string) string {
	b, err := json.Marshal(map[string]any{
		"type": "assistant", "uuid": "u", "message": map[string]any{"id": answer, "role": "assistant", "content": []any{
			map[string]any{"type": "tool_use", "id": id, "name": "Write", "input": map[string]string{"file_path": file}},
		}},
	})
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func TestAnnouncedIsWhatTheSameAnswerAsksForNext(t *testing.T) {
	t.Parallel()
	own := announces("msg_0", "toolu_0", "/w/earlier") + gave("toolu_0", "written") +
		announces("msg_1", "toolu_1", "/w/1") + announces("msg_1", "toolu_2", "/w/2") + announces("msg_1", "toolu_3", strings.Repeat("/long", 1000)) +
		strings.Replace(announces("msg_1", "toolu_4", "/w/a-user-said-it"), `"type":"assistant"`, `"type":"user"`, 1) +
		announces("msg_1", "toolu_2", "/w/told-twice") + announces("", "toolu_5", "/w/of-nobody") + announces("msg_1", "", "/w/without-id") +
		gave("toolu_1", "it names toolu_2") + announces("msg_2", "toolu_6", "/w/later") +
		strings.TrimSuffix(announces("msg_1", "toolu_7", "/w/unfinished"), "\n")
	below := announces("msg_3", "toolu_8", "/w/8") + announces("msg_3", "toolu_9", "/w/9") + gave("toolu_9", "written") + announces("msg_3", "toolu_10", "/w/10")
	resumed := announces("msg_4", "toolu_11", "/w/11") + announces("msg_4", "toolu_12", "/w/12")
	copies := copiesOf{
		{text: own}, {agent: "agent-a", text: announces("msg_9", "toolu_8", "/w/damaged"), err: store.ErrDamaged}, {agent: "agent-b", text: below}, {agent: "agent-c", text: resumed + resumed},
	}
	for use, want := range map[string][]string{
		"toolu_0": nil, "toolu_1": {"toolu_2", "toolu_3"}, "toolu_2": nil, "toolu_3": {"toolu_2"}, "toolu_5": nil, "toolu_6": nil,
		"toolu_7": nil, "toolu_8": {"toolu_10"}, "toolu_11": {"toolu_12"}, "toolu_unknown": nil, "": nil,
	} {
		found, err := Announced(t.Context(), copies, "s", use)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range found {
			if got = append(got, u.ID); u.Name != "Write" || !json.Valid(u.Input) {
				t.Errorf("after %s: %+v", use, u)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", use, diff)
		}
	}

	many := announces("msg_1", "toolu_1", "/w/1")
	for i := range 3 * announcedMost {
		many += announces("msg_1", fmt.Sprint("toolu_x", i), "/w/x")
	}
	if got, err := Announced(t.Context(), copiesOf{{text: many}}, "s", "toolu_1"); err != nil || len(got) != announcedMost {
		t.Errorf("of many: %d, %v", len(got), err)
	}
	broken := errors.New("the database is away")
	if _, err := Announced(t.Context(), copiesOf{{text: own, err: broken}}, "s", "toolu_1"); !errors.Is(err, broken) {
		t.Errorf("a copy that cannot be read: %v", err)
	}
}
