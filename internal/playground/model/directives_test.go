package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func call(name, input string) toolCall {
	return toolCall{Name: name, Input: json.RawMessage(input)}
}

func TestDirectives(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		want       []step
	}{
		{"one tool", `tool: Bash {"command":"ls"}`, []step{{Tools: []toolCall{call("Bash", `{"command":"ls"}`)}}}},
		{"a tool without input", "tool: EnterPlanMode", []step{{Tools: []toolCall{call("EnterPlanMode", `{}`)}}}},
		{"say alone", "say: hello: world", []step{{Say: "hello: world"}}},
		{
			"say before and after a tool keeps its place",
			"say: first\ntool: Read {\"file_path\":\"/x\"}\nsay: then\nsay: and",
			[]step{{Say: "first", Tools: []toolCall{call("Read", `{"file_path":"/x"}`)}}, {Say: "then\nand"}},
		},
		{
			"one call per tool line", "tool: A {}\ntool: B {\"x\": 1}",
			[]step{{Tools: []toolCall{call("A", `{}`)}}, {Tools: []toolCall{call("B", `{"x":1}`)}}},
		},
		{
			"several tools in one call", `tools: [{"name":"A","input":{"x":1}},{"name":"B"}]`,
			[]step{{Tools: []toolCall{call("A", `{"x":1}`), call("B", `{}`)}}},
		},
		{
			"input over several lines", "tool: Write {\n  \"file_path\": \"/x\",\n  \"content\": \"say: no\"\n}\nsay: done",
			[]step{{Tools: []toolCall{call("Write", `{"file_path":"/x","content":"say: no"}`)}}, {Say: "done"}},
		},
		{
			"after a speaker", "[Alice in #general]: tool: Bash {\"command\":\"ls\"}\nsay: done",
			[]step{{Tools: []toolCall{call("Bash", `{"command":"ls"}`)}}, {Say: "done"}},
		},
		{"after a mention", `@deckhand tool: Bash {}`, []step{{Tools: []toolCall{call("Bash", `{}`)}}}},
		{"after a Slack mention", `<@U012AB> say: hi`, []step{{Say: "hi"}}},
		{"after speaker and mention", `[Alice]: @deckhand say: hi`, []step{{Say: "hi"}}},
		{"after a record", "{\"by\":\"Alice\",\"said\":\"say: old\",\"answer\":\"old\"}\nsay: new", []step{{Say: "new"}}},
		{"in a quotation", "> tool: Bash {}\n> say: hi", []step{{Tools: []toolCall{call("Bash", `{}`)}}, {Say: "hi"}}},
		{
			"inside a longer note",
			"The bot was restarted. The message was:\n\n[Alice]: say: one\ntool: Bash {\"command\":\"ls\"}\nsay: two\n\nGo on from there.",
			[]step{{Say: "one", Tools: []toolCall{call("Bash", `{"command":"ls"}`)}}, {Say: "two"}},
		},
		{
			"a tool in the middle of a sentence", `The message was “tool: Bash {"command":"ls"}”`,
			[]step{{Tools: []toolCall{call("Bash", `{"command":"ls"}`)}}},
		},
		{"pace, from where it stands", "say: a\ntool: A {}\nslow: 20\nsay: b", []step{{Say: "a", Pace: 20, Tools: []toolCall{call("A", `{}`)}}, {Say: "b", Pace: 20}}},
		{"two paces", "slow: 10\nsay: a\ntool: A {}\nslow: 20\nsay: b", []step{{Say: "a", Pace: 10, Tools: []toolCall{call("A", `{}`)}}, {Say: "b", Pace: 20}}},
		{"thinking", "think: hm\nthink: aha\nsay: x", []step{{Thinking: "hm\naha", Say: "x"}}},
		{
			"usage belongs to its call", "usage: {\"input_tokens\": 7}\ntool: A {}\nusage: {\"output_tokens\": 8}\nsay: x",
			[]step{{Usage: json.RawMessage(`{"input_tokens":7}`), Tools: []toolCall{call("A", `{}`)}}, {Usage: json.RawMessage(`{"output_tokens":8}`), Say: "x"}},
		},
		{"errors, in order", "error: 529\nerror: 500\nsay: x", []step{{Errors: []int{529, 500}, Say: "x"}}},
		{"text as JSON", `say_json: "a\n\"b\""`, []step{{Say: "a\n\"b\""}}},
		{"filler", "fill: 10", []step{{Say: "The tide c"}}},
		{"a pace alone is no step", "slow: 5", nil},

		{"broken input is said", "tool: Bash {nope", []step{{Say: "I could not read the input of Bash: decode JSON: invalid character 'n' looking for beginning of object key string."}}},
		{"cut input is said", "tool: Bash {", []step{{Say: "I could not read the input of Bash: decode JSON: unexpected EOF."}}},
		{"no name", "tool: {}", []step{{Say: "I was asked to call a tool without a name."}}},
		{"not a pace", "slow: fast", []step{{Say: `I cannot stream at "fast" characters a second.`}}},
		{"not a status", "error: 200", []step{{Say: `I cannot answer with status "200".`}}},
		{"not a list", "tools: {}", []step{{Say: "I could not read the list of tools (json: cannot unmarshal object into Go value of type []model.toolCall)."}}},
		{"not a usage", `usage: {"input_tokens":"x"}`, []step{{Say: `I could not read the usage: not a usage object: {"input_tokens":"x"}.`}}},
		{"too much filler", "fill: 99999999", []step{{Say: `I can fill 0 to 1048576 characters, not "99999999".`}}},
		{"not a JSON text", "say_json: hello", []step{{Say: "I could not read the text to say: decode JSON: invalid character 'h' looking for beginning of value."}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, ok := parseDirectives(tc.text)
			if !ok {
				t.Fatal("no directive found")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNoDirective(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "hello", "fix the failing test", "I would say: hello", "the tool: a hammer", "essay: one", "toolbox: x", "what does this tool do?",
		"please use the tool: Bash",
	} {
		if steps, ok := parseDirectives(text); ok {
			t.Errorf("%q was taken for directives: %+v", text, steps)
		}
	}
}

func FuzzDirectives(f *testing.F) {
	for _, s := range []string{
		`tool: Bash {"command":"ls"}`, "tools: [{\"name\":\"A\"}]\nsay: x", "[A]: @b tool: X {\n\"a\":1}\nslow: 3\nfill: 9",
		"usage: {}\nerror: 500\nthink: é😀", "tool: A {\"a\": \"{{cwd}}\"}", "say_json: \"\\ud83d\"", "> > say: x\r\n", "tool:{}tool: A{}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		steps, ok := parseDirectives(text)
		if ok != hasDirectives(text) {
			t.Fatalf("parseDirectives and hasDirectives disagree on %q", text)
		}
		if !ok && steps != nil {
			t.Fatal("steps without a directive")
		}
		if len(steps) > strings.Count(text, "tool")+1 {
			t.Fatalf("%d steps from %q", len(steps), text)
		}
		c := conversation{CWD: `/a "quoted" dir`}
		for _, st := range steps {
			for _, call := range st.place(&c).Tools {
				if !json.Valid(call.Input) {
					t.Fatalf("invalid input for %s: %s", call.Name, call.Input)
				}
			}
			if st.Usage != nil {
				if _, err := (usage{}).override(st.Usage); err != nil {
					t.Fatal(err)
				}
			}
			if st.Pace < 0 {
				t.Fatal("negative pace")
			}
		}
	})
}
