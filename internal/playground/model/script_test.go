package model

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestBrokenScriptsAreNamed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"match: {contains: [x]}":                                                      "a.yaml: steps: a script needs at least one",
		"steps: [{say: x}]":                                                           "a.yaml: match: name at least one",
		"match: {regexp: ['(']}\nsteps: [{say: x}]":                                   "a.yaml: match: error parsing regexp",
		"match: {contains: [x]}\nsteps: [{pace: 3}]":                                  "a.yaml: step 1: nothing to say",
		"match: {contains: [x]}\nsteps: [{say: x, input: {a: b}}]":                    "a.yaml: step 1: input: there is no tool",
		"match: {contains: [x]}\nsteps: [{tools: [{input: {}}]}]":                     "a.yaml: step 1: tools: a tool needs a name",
		"match: {contains: [x]}\nsteps: [{say: x, next: nowhere}]":                    "a.yaml: step 1: next: no step has the label \"nowhere\"",
		"match: {contains: [x]}\nsteps: [{say: x, when: {tool_result_matches: '['}}]": "a.yaml: step 1: when: error parsing regexp",
		"match: {contains: [x]}\nsteps: [{says: x}]":                                  "unknown field \"says\"",
		"match: [": "a.yaml: decode:",
	} {
		_, err := New(Options{Scripts: fstest.MapFS{"a.yaml": {Data: []byte(body)}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", body, err, want)
		}
	}
}

func TestTheFirstScriptThatFitsWins(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Scripts: fstest.MapFS{
		"b.yaml": {Data: []byte("match: {contains: [boat]}\nsteps: [{say: second}]")},
		"a.yaml": {Data: []byte("match: {regexp: ['(?i)big (boat|ship)']}\nsteps: [{say: 'first {{match.1}}'}]")},
		"README": {Data: []byte("no script")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for prompt, want := range map[string]string{"A big Ship": "first Ship", "a BOAT": "second", "a car": "You said"} {
		st, _, err := s.stepFor(&conversation{Last: prompt})
		if err != nil || !strings.HasPrefix(st.Say, want) {
			t.Errorf("%q: %q, %v; want %q", prompt, st.Say, err, want)
		}
	}
}

const branching = `
match: {contains: [go]}
steps:
  - say: one
    tool: Bash
    input: {command: "ls {{cwd}}", n: 3, list: ["{{message}}", true], deep: {x: "{{unknown}}"}}
  - {when: {denied: true}, say: "denied {{denial}}"}
  - {when: {failed: true, tool_result_contains: retry}, tool: Bash, input: {command: again}, next: check}
  - {when: {failed: true}, say: "failed"}
  - {tool: Read, label: check}
  - {when: {tool_result_lacks: good}, say: "not good: {{result}}"}
  - {when: {tool_result_matches: '^very'}, say: "very good"}
  - {say: good}
`

func TestStepsFollowTheResults(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Scripts: fstest.MapFS{"a.yaml": {Data: []byte(branching)}}})
	if err != nil {
		t.Fatal(err)
	}
	got := func(text string, isError bool) round {
		return round{Calls: []block{{Name: "X"}}, Results: []result{{Tool: "X", Text: text, IsError: isError}}}
	}
	for _, tc := range []struct {
		name   string
		rounds []round
		say    string
		tools  []toolCall
	}{
		{"first", nil, "one", []toolCall{call("Bash", `{"command":"ls /w","deep":{"x":""},"list":["go",true],"n":3}`)}},
		{"denied", []round{got("not now.", true)}, "denied not now", nil},
		{"failed", []round{got("Exit code 1", true)}, "failed", nil},
		{"fine", []round{got("ok", false)}, "", []toolCall{call("Read", `{}`)}},
		{"jump", []round{got("Exit code 1 retry", true)}, "", []toolCall{call("Bash", `{"command":"again"}`)}},
		{"after the jump", []round{got("Exit code 1 retry", true), got("ok", false)}, "", []toolCall{call("Read", `{}`)}},
		{"bad", []round{got("ok", false), got("bad", false)}, "not good: bad", nil},
		{"good", []round{got("ok", false), got("good", false)}, "good", nil},
		{"very good", []round{got("ok", false), got("very good", false)}, "very good", nil},
		{"past the end", []round{got("ok", false), got("good", false), got("x", false)}, "Done: X, X, X.", nil},
		{"past the end, denied", []round{got("ok", false), got("good", false), got("no way", true)}, "Done: X, X. X did not go through (no way).", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			st, _, err := s.stepFor(&conversation{Last: "go", CWD: "/w", Rounds: tc.rounds})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(step{Say: tc.say, Tools: tc.tools}, st, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMessageSentWhileWorkingIsAnsweredInTheTurn(t *testing.T) {
	t.Parallel()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	bash := func(n int) round {
		return round{Calls: []block{{Name: "Bash"}}, Results: []result{{Tool: "Bash", Text: strings.Repeat("x", n)}}}
	}
	const first, second = "tool: Bash {\"n\":1}\nsay: first done", "say: now the second\ntool: Read {}\nsay: second done"
	for _, tc := range []struct {
		name   string
		rounds int
		added  []string
		want   step
	}{
		{"not there yet", 0, nil, step{Tools: []toolCall{call("Bash", `{"n":1}`)}}},
		{"the first ends and the second starts in one call", 1, []string{second}, step{Say: "first done\n\nnow the second", Tools: []toolCall{call("Read", `{}`)}}},
		{"the second goes on", 2, []string{second}, step{Say: "second done"}},
		{"and a third without calls", 2, []string{second, "say: third"}, step{Say: "second done\n\nthird"}},
		{"words only", 1, []string{"say: yes"}, step{Say: "first done\n\nyes"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := conversation{Last: first, Added: tc.added}
			for i := range tc.rounds {
				c.Rounds = append(c.Rounds, bash(i))
			}
			st, _, err := s.choose(&request{}, &c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, st, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlaceholdersInDirectives(t *testing.T) {
	t.Parallel()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	st, _, err := s.stepFor(&conversation{Last: `tool: Write {"file_path":"{{cwd}}/a","content":"{{cwd}} {{other}} {{ x }}"}`, CWD: `/a "b"`})
	if err != nil {
		t.Fatal(err)
	}
	var in struct {
		FilePath string `json:"file_path"`
		Content  string `json:"content"`
	}
	if err := json.Unmarshal(st.Tools[0].Input, &in); err != nil {
		t.Fatal(err)
	}
	if in.FilePath != `/a "b"/a` || in.Content != `/a "b" {{other}} {{ x }}` {
		t.Errorf("got %+v", in)
	}
}

func TestTheStoriesAnswerToWhatPeopleSay(t *testing.T) {
	t.Parallel()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for prompt, want := range map[string]string{
		"fix the failing test":                               "30-fix-test.yaml",
		"Please fix the failing tests!":                      "30-fix-test.yaml",
		"[Alice in #general]: @deckhand fix the broken test": "30-fix-test.yaml",
		"can you make the tests pass again?":                 "30-fix-test.yaml",
		"the test suite is red, can you look into it":        "30-fix-test.yaml",
		"a test fails on main":                               "30-fix-test.yaml",
		"could you fix the bug":                              "30-fix-test.yaml",
		"now add a test for three days":                      "20-add-test.yaml",
		"write a unit test for that":                         "20-add-test.yaml",
		"add tests for the fix":                              "20-add-test.yaml",
		"make a plan to fix the failing test":                "10-plan.yaml",
		"what does this repo do?":                            "40-what.yaml",
		"What's in this project":                             "40-what.yaml",
		"explain the code to me":                             "40-what.yaml",
		"ask me something":                                   "50-ask.yaml",
		"do you have questions for me?":                      "50-ask.yaml",
		"explore the code with a subagent":                   "60-subagent.yaml",
		"review this repo":                                   "60-subagent.yaml",
		"Scout the Boathouse code and report":                "61-scout.yaml",
		"thanks!":                                            "80-thanks.yaml",
		"show me the page":                                   "45-page.yaml",
		"what does the page look like":                       "45-page.yaml",
		"hello":                                              "90-hello.yaml",
		"@deckhand help":                                     "90-hello.yaml",
		"what can you do":                                    "90-hello.yaml",
		"bananas":                                            "echo",
		"say: fix the failing test":                          "directives",
	} {
		_, got, err := s.stepFor(&conversation{Last: prompt})
		if err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", prompt, got, err, want)
		}
	}
}

func TestEveryScriptSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(embedded, "scripts/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(embedded, name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(data), "about: ") {
			t.Errorf("%s does not begin with about:", name)
		}
	}
}
