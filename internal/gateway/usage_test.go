package gateway

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"deckhand/internal/price"
)

const (
	start = `{"type":"message_start","message":{"model":"m","usage":{"input_tokens":10,"cache_creation_input_tokens":7,"cache_read_input_tokens":5,"cache_creation":{"ephemeral_1h_input_tokens":4},"output_tokens":1}}}`
	last  = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":42}}`
)

// read reads messages of a stream.
func read(messages ...string) Answer {
	var r reading
	for _, m := range messages {
		r.read("", []byte(m))
	}
	return r.answer()
}

func TestUsageIsReadAsTheCLIDoes(t *testing.T) {
	t.Parallel()
	known := price.Usage{Input: 10, Output: 42, CacheRead: 5, CacheWrite5m: 3, CacheWrite1h: 4}
	with := func(change func(*price.Usage)) price.Usage {
		u := known
		change(&u)
		return u
	}
	end := func(usage string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + usage + `}`
	}
	for _, tc := range []struct {
		name     string
		messages []string
		usage    price.Usage
		whole    bool
	}{
		{"as usual", []string{start, last}, known, true},
		{"zeros do not take the prompt back", []string{start, end(`{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":42}`)}, known, true},
		{"the prompt is told at the end", []string{`{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}`, end(`{"input_tokens":9,"output_tokens":2}`)}, price.Usage{Input: 9, Output: 2}, true},
		{"no end", []string{start}, with(func(u *price.Usage) { u.Output = 1 }), false},
		{"a count on the way", []string{start, `{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":20}}`}, with(func(u *price.Usage) { u.Output = 20 }), false},
		{"an end without a reason", []string{start, `{"type":"message_delta","delta":{},"usage":{"output_tokens":42}}`, `{"type":"message_stop"}`}, known, true},
		{"an end without usage", []string{start, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`}, with(func(u *price.Usage) { u.Output = 1 }), false},
		{"fast, in the US", []string{start, end(`{"output_tokens":42,"speed":"fast","inference_geo":"us"}`)}, with(func(u *price.Usage) { u.Fast, u.US = true, true }), true},
		{"writes of unknown duration are short", []string{`{"type":"message_start","message":{"usage":{"cache_creation_input_tokens":7}}}`, end(`{"output_tokens":1}`)}, price.Usage{Output: 1, CacheWrite5m: 7}, true},
		{"more for an hour than in all", []string{`{"type":"message_start","message":{"usage":{"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_1h_input_tokens":9}}}}`, end(`{"output_tokens":1}`)}, price.Usage{Output: 1, CacheWrite1h: 7}, true},
		{"a negative count", []string{start, end(`{"output_tokens":-42}`)}, with(func(u *price.Usage) { u.Output = 1 }), false},
		{"an absurd count", []string{start, end(`{"output_tokens":1e300}`)}, with(func(u *price.Usage) { u.Output = 1 }), false},
		{"half a token", []string{start, end(`{"output_tokens":4.5}`)}, with(func(u *price.Usage) { u.Output = 1 }), false},
		{"a count that is a text", []string{start, end(`{"output_tokens":"42","input_tokens":11}`)}, with(func(u *price.Usage) { u.Output, u.Input = 1, 11 }), false},
		{"a count that is null", []string{start, end(`{"output_tokens":42,"input_tokens":null}`)}, known, true},
		{"usage is no object", []string{start, end(`[1]`)}, with(func(u *price.Usage) { u.Output = 1 }), false},
		{"two messages", []string{start, start, last}, known, false},
		{"no message", []string{`{"type":"message_start"}`, last}, price.Usage{Output: 42}, false},
		{"unknown kinds", []string{`{"type":"ping"}`, start, `{"type":"something_new","usage":{"output_tokens":1}}`, last}, known, true},
	} {
		if got := read(tc.messages...); got.Usage != tc.usage || got.Complete != tc.whole {
			t.Errorf("%s: %+v, complete %v; want %+v, %v", tc.name, got.Usage, got.Complete, tc.usage, tc.whole)
		}
	}
}

func TestRunsOfModelsAreToldApart(t *testing.T) {
	t.Parallel()
	usage := func(iterations string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":100,"output_tokens":30,"cache_creation_input_tokens":8,"cache_creation":{"ephemeral_1h_input_tokens":5},"server_tool_use":{"web_search_requests":1},"iterations":[` + iterations + `]}}`
	}
	const first, second = `{"type":"message","input_tokens":60,"output_tokens":10,"cache_creation_input_tokens":2,"cache_creation":{"ephemeral_1h_input_tokens":1}}`, `{"type":"message","input_tokens":40,"output_tokens":20,"cache_creation_input_tokens":6}`
	advice := Run{Model: "claude-opus-5-5", Usage: price.Usage{Input: 7, Output: 3}, Apart: true}
	const advised = `{"type":"advisor_message","model":"claude-opus-5-5","input_tokens":7,"output_tokens":3}`
	for _, tc := range []struct {
		name       string
		iterations string
		model      string
		want       []Run
	}{
		{"one", first, "m", nil},
		{"two", first + "," + second, "m", []Run{
			// What was written for an hour goes to the first that it fits into.
			{Usage: price.Usage{Input: 60, Output: 10, CacheWrite1h: 2, WebSearches: 1}},
			{Usage: price.Usage{Input: 40, Output: 20, CacheWrite5m: 3, CacheWrite1h: 3}},
		}},
		{"two that are not all", first + "," + first, "m", nil},
		{"advice", advised, "m", []Run{advice}},
		{"another model in its place", `{"type":"message","input_tokens":60},{"type":"fallback_message","model":"claude-sonnet-5-5","input_tokens":100,"output_tokens":30}`, "claude-sonnet-5-5", []Run{
			{Model: "claude-sonnet-5-5", Usage: price.Usage{Input: 100, Output: 30, WebSearches: 1}},
		}},
	} {
		got := read(`{"type":"message_start","message":{"model":"m","usage":{}}}`, usage(tc.iterations))
		if diff := cmp.Diff(tc.want, got.Runs); diff != "" || got.Model != tc.model || !got.Complete {
			t.Errorf("%s: %s, complete %v; runs (-want +got):\n%s", tc.name, got.Model, got.Complete, diff)
		}
	}
}

func TestNamesAreFitForTheLedger(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"claude": "claude", "a\x00b\nc": "abc", "\xff\xfeé": "é", strings.Repeat("é", 150): strings.Repeat("é", 100)} {
		if got := printableName(in); got != want {
			t.Errorf("printableName(%q) = %q", in, got)
		}
	}
}

// sse are messages as a stream of server-sent events.
func sse(messages ...string) string {
	var out strings.Builder
	for _, m := range messages {
		name, _, _ := strings.Cut(strings.TrimPrefix(m, `{"type":"`), `"`)
		fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", name, m)
	}
	return out.String()
}

func TestAStreamIsReadWhereverItIsCut(t *testing.T) {
	t.Parallel()
	delta := `{"type":"content_block_delta","delta":{"text":"` + strings.Repeat("message_start ", 100) + `"}}`
	stream := sse(`{"type":"ping"}`, start, delta, delta, last, delta, `{"type":"message_stop"}`)
	amazon, err := os.ReadFile("testdata/bedrock.bin")
	if err != nil {
		t.Fatal(err)
	}
	unnamed := ": a comment\n" + strings.ReplaceAll(strings.ReplaceAll(stream, "event: ", "id: "), "data: ", "data:")
	for name, tc := range map[string]struct {
		text   string
		decode func(*reading) decoder
	}{
		"lines":            {stream, func(r *reading) decoder { return &lines{to: r} }},
		"lines of Windows": {strings.ReplaceAll(stream, "\n", "\r\n"), func(r *reading) decoder { return &lines{to: r} }},
		"lines of old":     {"\xef\xbb\xbf" + strings.ReplaceAll(stream, "\n", "\r"), func(r *reading) decoder { return &lines{to: r} }},
		"without names":    {unnamed, func(r *reading) decoder { return &lines{to: r} }},
		"in two lines":     {strings.ReplaceAll(stream, `"usage":`, "\ndata: \"usage\":"), func(r *reading) decoder { return &lines{to: r} }},
		"frames":           {string(amazon), func(r *reading) decoder { return &frames{to: r} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := read(start, last)
			rapid.Check(t, func(t *rapid.T) {
				var r reading
				d := tc.decode(&r)
				for rest := tc.text; rest != ""; {
					n := rapid.IntRange(1, min(len(rest), rapid.SampledFrom([]int{1, 3, 50, 5000}).Draw(t, "scale"))).Draw(t, "bytes")
					d.write([]byte(rest[:n]))
					rest = rest[n:]
				}
				d.close()
				if diff := cmp.Diff(want, r.answer()); diff != "" || !r.over {
					t.Fatalf("over %v; answer (-want +got):\n%s", r.over, diff)
				}
			})
		})
	}
}

func TestWhatIsTooLongIsPassedOver(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", maxEvent)
	var r reading
	d := &lines{to: &r}
	d.write([]byte(sse(start)))
	d.write([]byte("event: content_block_delta\ndata: " + huge + huge + "\n\n"))
	if cap(d.line)+cap(d.data) > maxEvent {
		t.Errorf("%d bytes are kept of what nobody asks for", cap(d.line)+cap(d.data))
	}
	d.write([]byte(sse(last)))
	if a := r.answer(); !a.Complete {
		t.Errorf("a huge event that tells nothing: %+v", a)
	}
	for range 3 {
		d.write([]byte("event: message_delta\ndata: " + huge))
		d.write([]byte(huge))
		d.write([]byte("\n\n"))
	}
	d.write([]byte(sse(last)))
	if a := r.answer(); a.Complete || a.Usage.Output != 42 || len(d.data) > maxEvent {
		t.Errorf("a huge event that may have told something: %+v", a)
	}

	r = reading{}
	f := &frames{to: &r}
	f.write([]byte{0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for range 0x200000 - 12 {
		f.write([]byte{0})
	}
	if len(f.frame) != 0 || f.skip != 0 || !r.unread || f.dead {
		t.Errorf("after a huge frame: %d bytes kept, %d to skip", len(f.frame), f.skip)
	}
	f.write([]byte("this is no frame at all, but something else"))
	if !f.dead || len(f.frame) > 0 {
		t.Error("nonsense is kept")
	}
	var w whole
	w.to = &reading{}
	for range maxWhole/maxEvent + 1 {
		w.write([]byte(huge))
	}
	w.close()
	if !w.to.unread {
		t.Error("a huge answer is read")
	}
}

// FuzzAnswer reads anything as an answer of each form, in pieces: nothing panics, and
// what is told of costs can be reckoned with.
func FuzzAnswer(f *testing.F) {
	amazon, err := os.ReadFile("testdata/bedrock.bin")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(sse(start, last)), uint8(7))
	f.Add([]byte(start), uint8(200))
	f.Add([]byte(`{"type":"message","usage":{"input_tokens":-1,"iterations":[{"type":"fallback_message"}]},"stop_reason":"refusal"}`), uint8(1))
	f.Add(amazon, uint8(100))
	f.Fuzz(func(t *testing.T, answer []byte, piece uint8) {
		for _, form := range []func(*reading) decoder{
			func(r *reading) decoder { return &lines{to: r} },
			func(r *reading) decoder { return &frames{to: r} },
			func(r *reading) decoder { return &whole{to: r} },
		} {
			var r reading
			d := form(&r)
			for rest := answer; len(rest) > 0; {
				n := min(int(piece)+1, len(rest))
				d.write(rest[:n])
				rest = rest[n:]
			}
			d.close()
			a := r.answer()
			usages := []price.Usage{a.Usage}
			for _, run := range a.Runs {
				usages = append(usages, run.Usage)
			}
			for _, u := range usages {
				for _, n := range []int64{u.Input, u.Output, u.CacheRead, u.CacheWrite5m, u.CacheWrite1h, u.WebSearches} {
					if n < 0 || n > 2*price.MaxCount {
						t.Fatalf("%+v", u)
					}
				}
			}
			if cost, _ := price.Cost(a.Model, usages...); cost < 0 {
				t.Fatalf("%+v cost %d", usages, cost)
			}
		}
	})
}
