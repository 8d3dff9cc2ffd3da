package render_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/forges"
)

func written(text string) view.Inputs {
	return view.Inputs{view.EditInput: {view.EditInput: {Value: text}}}
}

// changedTo is an approval whose input somebody has changed.
func changedTo(a approvals.Approval, input string) approvals.Approval {
	a.Edited = approvals.Edited{Times: a.Edited.Times + 1, Input: []byte(input), SHA256: sha256.Sum256([]byte(input)), By: approver}
	return a
}

// TestWhatMayBeChanged: a call has a form to change it if all of it is shown there, and
// nothing but the one field changes.
func TestWhatMayBeChanged(t *testing.T) {
	t.Parallel()
	secret := render.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "•••") }}
	bash := func(command string) approvals.Approval { return ask("Bash", `{"command":`+quoted(command)+`}`) }
	fixed, dangerous, two := bash("ls"), bash("ls"), bash("ls")
	fixed.Terms.Fixed, dangerous.Terms.Dangerous, two.Terms.Quorum = true, true, 2
	for name, c := range map[string]struct {
		a  approvals.Approval
		ok bool
	}{
		"a command":             {bash("ls -l\nls"), true},
		"of a quorum":           {two, true},
		"a file":                {ask("Write", `{"file_path":"a","content":"x\n"}`), true},
		"an edit":               {ask("Edit", `{"file_path":"a","old_string":"x","new_string":"y"}`), true},
		"a notebook":            {ask("NotebookEdit", `{"notebook_path":"a","new_source":"y"}`), true},
		"the longest":           {bash(strings.Repeat("x", 3000)), true},
		"too long":              {bash(strings.Repeat("x", 3001)), false},
		"too long in Slack's":   {bash(strings.Repeat("😀", 1501)), false},
		"fixed by the policy":   {fixed, false},
		"dangerous":             {dangerous, false},
		"with a secret":         {bash("echo hunter2"), false},
		"with what is not seen": {bash("echo a\u200bb"), false},
		"with a carriage":       {bash("echo a\rb"), false},
		"nothing":               {bash(""), false},
		"several edits":         {ask("MultiEdit", `{"file_path":"a","edits":[]}`), false},
		"of a server":           {ask("mcp__files__write", `{"content":"x"}`), false},
		"no text":               {ask("Bash", `{"command":["ls"]}`), false},
		"no object":             {ask("Bash", `[]`), false},
		"a question":            {question(`{"questions":[{"question":"Which?"}]}`), false},
		"decided":               {decided(bash("ls"), approvals.Allowed, approver, "button", ""), false},
	} {
		v, ok := render.EditModal(c.a, secret)
		if ok != c.ok {
			t.Errorf("%s: %t, want %t", name, ok, c.ok)
		}
		if !ok {
			continue
		}
		for _, problem := range checkModal(v) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

func TestParseEdit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, input, text, want string }{
		{"Bash", `{"command":"rm -rf .","description":"Clean <up>","timeout":1.0}`, "rm -rf build", `{"command":"rm -rf build","description":"Clean <up>","timeout":1.0}`},
		{"Bash", `{"timeout":1,"command":"ls"}`, "ls && echo '<a> & \"b\"'\n", `{"timeout":1,"command":"ls && echo '<a> & \"b\"'\n"}`},
		{"Bash", `{"command":"id","command":"ls"}`, "ls -l", `{"command":"ls -l"}`},
		{"Write", `{"file_path":"a","content":"one\ntwo\n"}`, "one\r\nthree", `{"file_path":"a","content":"one\nthree\n"}`},
		{"Edit", `{"old_string":"a","new_string":"b"}`, "c", `{"old_string":"a","new_string":"c"}`},
		{"Bash", `{"command":"ls"}`, "ls", ""},
		{"Bash", `{"command":"ls\n"}`, "ls", ""}, // a form may not show the line's end
		{"Bash", `{"command":"ls"}`, "  \n", ""},
		{"Bash", `{"command":"ls"}`, "ls \u202e", ""},
		{"Bash", `{"command":"ls"}`, "ls\u200b", ""},
		{"MultiEdit", `{"file_path":"a"}`, "x", ""},
	} {
		got, err := view.ParseEdit(ask(c.tool, c.input), written(c.text))
		var wrong *view.AnswerError
		if string(got) != c.want || (c.want == "") != errors.As(err, &wrong) {
			t.Errorf("%s with %q: %s, %v, want %s", c.input, c.text, got, err, c.want)
		}
	}
}

// TestAPullRequestIsChanged: its title, text, labels and whether it is a draft, and nothing else;
// not one that is open, whose words are the forge's.
func TestAPullRequestIsChanged(t *testing.T) {
	t.Parallel()
	const tool = "mcp__deckhand__open_pull_request"
	pull := func(input string) approvals.Approval {
		a := ask(tool, input)
		a.Push = &forges.Push{Refs: []forges.PushRef{{Name: "refs/heads/deckhand/1", New: "ab"}}, Pull: &forges.PushPull{Title: "one", Branch: "deckhand/1", Base: "main", Draft: true}}
		return a
	}
	open := pull(`{"title":"one","body":"text"}`)
	open.Push.Pull.Number = 7
	if _, ok := render.EditModal(open, render.Options{}); ok {
		t.Error("one that is open can be changed")
	}
	v, ok := render.EditModal(pull(`{"title":"one","body":"text","labels":["a","b"]}`), render.Options{})
	if got, err := json.Marshal(v.Blocks); err != nil || !ok || !strings.Contains(string(got), "It is a draft") || !strings.Contains(string(got), `"initial_value":"a, b"`) {
		t.Errorf("the form: %v %s", err, got)
	}
	for _, problem := range checkModal(v) {
		t.Error(problem)
	}
	for what, input := range map[string]string{
		"a long title": `{"title":"` + strings.Repeat("x", 301) + `","body":"text"}`, "a title of two lines": `{"title":"one\ntwo","body":"text"}`,
		"long labels": `{"title":"one","body":"text","labels":["` + strings.Repeat("x", 301) + `"]}`, "a label with a comma": `{"title":"one","body":"text","labels":["a,b"]}`,
		"labels that are none": `{"title":"one","body":"text","labels":["a",1]}`,
	} {
		if _, ok := render.EditModal(pull(input), render.Options{}); ok {
			t.Errorf("%s: there is a form, which does not show it as it is", what)
		}
	}
	for _, c := range []struct {
		input, title, text, labels string
		draft                      bool
		want                       string
	}{
		{`{"title":"one","body":"text"}`, "one", "text", "", true, ""},
		{`{"title":"one","body":"text"}`, "one", "text", "", false, `{"title":"one","body":"text","draft":false}`},
		{`{"title":"one","body":"text","draft":false,"base":"x"}`, "two", "text", "a, b c ,", true, `{"title":"two","body":"text","draft":true,"base":"x","labels":["a","b c"]}`},
		{`{"labels":["a"],"title":"one","body":"text","draft":true}`, "one", "other", "", true, `{"labels":[],"title":"one","body":"other","draft":true}`},
		{`{"title":"one","body":"text"}`, " ", "text", "", true, ""},
		{`{"title":"one","body":"text"}`, "one\u202e", "text", "", true, ""},
	} {
		values := written(c.text)
		put := func(key string, v view.Input) {
			values[view.EditInput+":"+key] = map[string]view.Input{view.EditInput + ":" + key: v}
		}
		put("title", view.Input{Value: c.title})
		put("labels", view.Input{Value: c.labels})
		put("draft", view.Input{Chosen: make([]string, map[bool]int{true: 1}[c.draft])})
		got, err := view.ParseEdit(pull(c.input), values)
		var wrong *view.AnswerError
		if string(got) != c.want || (c.want == "") != errors.As(err, &wrong) {
			t.Errorf("%s: %s, %v, want %s", c.input, got, err, c.want)
		}
	}
	said := texts(render.Card([]approvals.Approval{changedTo(pull(`{"title":"one","body":"text"}`), `{"title":"two","body":"text","draft":false}`)}, render.Options{}).Blocks)
	if !strings.Contains(said, "Open a pull request") || !strings.Contains(said, ": two") || !strings.Contains(said, "- Title: one\n+ Title: two") {
		t.Errorf("the card says %s", said)
	}
}

// TestAChangedCard shows what was changed, by whom, and the hash of what runs; its buttons
// and its code are others than before.
func TestAChangedCard(t *testing.T) {
	t.Parallel()
	before := ask("Bash", `{"command":"rm -rf ."}`)
	a := changedTo(before, `{"command":"rm -rf build"}`)
	a.Terms.Quorum = 2
	said := func(p render.Page) string {
		for _, problem := range checkPage(p) {
			t.Error(problem)
		}
		return p.Text + texts(p.Blocks)
	}
	if view.Ref(a) == view.Ref(before) || view.Code(a) == view.Code(before) {
		t.Errorf("the button %q or the code %q is that of the input before", view.Ref(a), view.Code(a))
	}
	if id, seen := view.ParseRef(view.Ref(a)); id != a.ID || seen != 1 {
		t.Errorf("the button says %q, %d", id, seen)
	}
	if prefix, seen := view.ParseCode(view.Code(a)); !strings.HasPrefix(strings.ToUpper(a.ID), prefix) || seen != 1 {
		t.Errorf("the code says %q, %d", prefix, seen)
	}
	for _, bad := range []string{a.ID + ".x", a.ID + ".-1"} {
		if _, seen := view.ParseRef(bad); seen >= 0 {
			t.Errorf("%q is an input that was shown", bad)
		}
	}
	for _, list := range [][]approvals.Approval{{a}, {a, named("other", before)}} {
		if got := said(render.Card(list, render.Options{})); !strings.Contains(got, "Changed by") || !strings.Contains(got, "- rm -rf .\n+ rm -rf build") ||
			!strings.Contains(got, "a8b5e7") && !strings.Contains(got, "SHA-256") || strings.Contains(got, "Always allow") {
			t.Errorf("a card of %d: %s", len(list), got)
		}
	}
	if got := said(render.Card([]approvals.Approval{decided(a, approvals.Allowed, approver, "edited", "")}, render.Options{})); !strings.Contains(got, "`rm -rf build` · changed and approved by <@"+approver+">") {
		t.Errorf("approved: %s", got)
	}
	if got := said(render.Card([]approvals.Approval{decided(a, approvals.Denied, approver, "button", "")}, render.Options{})); strings.Contains(got, "changed") {
		t.Errorf("denied: %s", got)
	}
}

// TestWhatIsTouchedIsShown, as far as it is known, while it can be decided about.
func TestWhatIsTouchedIsShown(t *testing.T) {
	t.Parallel()
	a := ask("Bash", `{"command":"rm -rf build *.log"}`)
	a.Touches = []byte(`{"touches":[{"verb":"deletes","path":"build","is":"folder","files":3,"bytes":1500,"over":true},{"verb":"deletes","path":"/etc/x","outside":true,"is":""},
		{"verb":"writes","path":"a` + "`<!channel>" + `","is":"new"}],"more":4,"hosts":["example.com"],"unknown":["what ./x.sh does"]}`)
	got := texts(render.Card([]approvals.Approval{a}, render.Options{}).Blocks)
	for _, want := range []string{"deletes `build` (a folder, more than 3 files, 1.5 kB)", "(outside the workspace)", "(not there yet)", "4 more files and folders", "connects to `example.com`", "Other effects can't be predicted: what ./x.sh does."} {
		if !strings.Contains(got, want) {
			t.Errorf("the card does not say %q: %s", want, got)
		}
	}
	if strings.Contains(got, "<!channel>") {
		t.Error("a file's name calls the channel")
	}
	a.Touches = []byte(`{"unknown":["what the code that npm runs does"]}`)
	if got := texts(render.Card([]approvals.Approval{a}, render.Options{}).Blocks); !strings.Contains(got, "Effects can't be predicted: what the code that npm runs does.") {
		t.Errorf("nothing but what is not known: %s", got)
	}
	if got := texts(render.Card([]approvals.Approval{decided(a, approvals.Allowed, approver, "button", "")}, render.Options{}).Blocks); strings.Contains(got, "touch") {
		t.Errorf("decided: %s", got)
	}
}
