package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/store/transcripts"
)

// copiesOf are copies by their subagents, the session's own first.
type copiesOf []struct {
	agent, text string
	err         error
}

func (c copiesOf) Transcripts(context.Context, string) (out []transcripts.Transcript, _ error) {
	for i, one := range c {
		out = append(out, transcripts.Transcript{ID: int64(i), Agent: one.agent})
	}
	return out, nil
}

// ReadTranscript cuts the text where it happens to be.
func (c copiesOf) ReadTranscript(_ context.Context, t transcripts.Transcript, out io.Writer) error {
	for text := c[t.ID].text; text != ""; {
		n := min(len(text), 97)
		if _, err := out.Write([]byte(text[:n])); err != nil {
			return err
		}
		text = text[n:]
	}
	return c[t.ID].err
}

// gave is the line in which a tool gives something back.
func gave(id string, content any) string {
	b, err := json.Marshal(map[string]any{
		"type": "user", "uuid": "u", "isSidechain": false, "toolUseResult": map[string]string{"stdout": "x"},
		"message": map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": content}}},
	})
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func TestResultsAreFoundInTheCopies(t *testing.T) {
	t.Parallel()
	parts := []any{
		map[string]any{"type": "text", "text": "two"},
		map[string]any{"type": "text", "text": "parts"},
		map[string]any{"type": "image", "source": map[string]string{"type": "base64", "media_type": "image/png", "data": "AAAA"}},
	}
	own := `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"\"tool_result\""}}]}}` + "\n" +
		gave("toolu_1", "a first one") + gave("toolu_1", "line\nand <!channel>\n") + gave("toolu_2", parts) +
		gave("toolu_other", "it names toolu_3") + `{"type":"progress","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_3","content":"no result"}]}}` + "\n" +
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"toolu_3"` // is not finished
	copies := copiesOf{{text: own}, {agent: "agent-a", text: gave("toolu_4", "below"), err: transcripts.ErrDamaged}, {agent: "agent-b", text: gave("toolu_5", strings.Repeat("x", 1<<20))}}
	got, err := Results(t.Context(), copies, "s", []string{"toolu_1", "toolu_2", "toolu_3", "toolu_4", "toolu_5", ""})
	if err != nil {
		t.Fatal(err)
	}
	for id, r := range got.Results {
		if len(r.SHA256) != 64 {
			t.Errorf("%s: %q", id, r.SHA256)
		}
		r.SHA256, r.Text = "", r.Text[:min(len(r.Text), 30)]
		got.Results[id] = r
	}
	want := Found{Kept: true, Damaged: true, Results: map[string]Result{
		"toolu_1": {Text: "line\nand <!channel>\n"}, "toolu_2": {Text: "two\nparts", Pictures: 1}, "toolu_5": {Text: strings.Repeat("x", 30), Subagent: true},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	broken := errors.New("the database is away")
	if _, err := Results(t.Context(), copiesOf{{text: own, err: broken}}, "s", []string{"toolu_9"}); !errors.Is(err, broken) {
		t.Errorf("a copy that cannot be read: %v", err)
	}
	if got, err := Results(t.Context(), copiesOf{}, "s", []string{"toolu_1"}); err != nil || got.Kept || len(got.Results) > 0 {
		t.Errorf("no copies: %+v, %v", got, err)
	}
}

// BenchmarkResults looks for the results of ten uses in a copy of 5 MB, as the database has
// it, and says what that takes beside the database's own time.
func BenchmarkResults(b *testing.B) {
	var text strings.Builder
	for i := 0; text.Len() < 5<<20; i++ {
		text.WriteString(gave(fmt.Sprint("toolu_", 1000+i), strings.Repeat("a line of source code, as it is read\n", 100)))
	}
	uses := make([]string, 10)
	for i := range uses {
		uses[i] = fmt.Sprint("toolu_", 1010+10*i)
	}
	whole := wholeCopy(text.String())
	for b.Loop() {
		began := time.Now()
		got, err := Results(b.Context(), whole, "s", uses)
		if err != nil || len(got.Results) != len(uses) {
			b.Fatal(len(got.Results), err)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "ms")
	}
}

type wholeCopy string

func (c wholeCopy) Transcripts(context.Context, string) ([]transcripts.Transcript, error) {
	return []transcripts.Transcript{{}}, nil
}

func (c wholeCopy) ReadTranscript(_ context.Context, _ transcripts.Transcript, out io.Writer) error {
	_, err := io.WriteString(out, string(c))
	return err
}
