package render_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

func written(text string) map[string]map[string]slack.BlockAction {
	return map[string]map[string]slack.BlockAction{render.EditInput: {render.EditInput: {Value: text}}}
}

// changedTo is an approval whose input somebody has changed.
func changedTo(a store.Approval, input string) store.Approval {
	a.Edited = store.Edited{Times: a.Edited.Times + 1, Input: []byte(input), SHA256: sha256.Sum256([]byte(input)), By: approver}
	return a
}

// TestWhatMayBeChanged: a call has a form to change it if all of it is shown there, and
// nothing but the one field changes.
func TestWhatMayBeChanged(t *testing.T) {
	t.Parallel()
	secret := render.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "•••") }}
	bash := func(command string) store.Approval { return ask("Bash", `{"command":`+quoted(command)+`}`) }
	fixed, dangerous, two := bash("ls"), bash("ls"), bash("ls")
	fixed.Terms.Fixed, dangerous.Terms.Dangerous, two.Terms.Quorum = true, true, 2
	for name, c := range map[string]struct {
		a  store.Approval
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
		"decided":               {decided(bash("ls"), store.ApprovalAllowed, approver, "button", ""), false},
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
		got, err := render.ParseEdit(ask(c.tool, c.input), written(c.text))
		var wrong *render.AnswerError
		if string(got) != c.want || (c.want == "") != errors.As(err, &wrong) {
			t.Errorf("%s with %q: %s, %v, want %s", c.input, c.text, got, err, c.want)
		}
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
	if render.Ref(a) == render.Ref(before) || render.Code(a) == render.Code(before) {
		t.Errorf("the button %q or the code %q is that of the input before", render.Ref(a), render.Code(a))
	}
	if id, seen := render.ParseRef(render.Ref(a)); id != a.ID || seen != 1 {
		t.Errorf("the button says %q, %d", id, seen)
	}
	if prefix, seen := render.ParseCode(render.Code(a)); !strings.HasPrefix(strings.ToUpper(a.ID), prefix) || seen != 1 {
		t.Errorf("the code says %q, %d", prefix, seen)
	}
	for _, bad := range []string{a.ID + ".x", a.ID + ".-1"} {
		if _, seen := render.ParseRef(bad); seen >= 0 {
			t.Errorf("%q is an input that was shown", bad)
		}
	}
	for _, list := range [][]store.Approval{{a}, {a, named("other", before)}} {
		if got := said(render.Card(list, render.Options{})); !strings.Contains(got, "Changed by") || !strings.Contains(got, "- rm -rf .\n+ rm -rf build") ||
			!strings.Contains(got, "a8b5e7") && !strings.Contains(got, "SHA-256") || strings.Contains(got, "Always allow") {
			t.Errorf("a card of %d: %s", len(list), got)
		}
	}
	if got := said(render.Card([]store.Approval{decided(a, store.ApprovalAllowed, approver, "edited", "")}, render.Options{})); !strings.Contains(got, "with a change by <@"+approver+">") || !strings.Contains(got, "This is what runs") {
		t.Errorf("approved: %s", got)
	}
	if got := said(render.Card([]store.Approval{decided(a, store.ApprovalDenied, approver, "button", "")}, render.Options{})); strings.Contains(got, "with a change by") {
		t.Errorf("denied: %s", got)
	}
}

// TestApproveFiles: the modal names every file whole, and what is chosen is what it showed.
func TestApproveFiles(t *testing.T) {
	t.Parallel()
	edit := ask("Edit", `{"file_path":"/srv/work/app/a.go","old_string":"x","new_string":"y\nz"}`)
	var files []render.FileEdits
	for _, name := range []string{"a.go", strings.Repeat("deep/", 60) + "b.go", "c\u202e.go", "4", "5", "6", "7", "8", "9", "10", "11"} {
		files = append(files, render.FileEdits{Name: name, Approvals: []store.Approval{edit, edit}})
	}
	v := render.ApproveFiles(edit, render.FilesView{Waiting: files}, render.Options{})
	for _, problem := range checkModal(v) {
		t.Error(problem)
	}
	shown := texts(v.Blocks.BlockSet)
	for _, want := range []string{"a.go", "2 requests wait", "+4 −2", strings.Repeat("deep/", 60) + "b.go", "1 more file", "whatever it changes"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the modal does not say %q: %s", want, shown)
		}
	}
	state := func(until string, values ...string) map[string]map[string]slack.BlockAction {
		var picked []slack.OptionBlockObject
		for _, value := range values {
			picked = append(picked, slack.OptionBlockObject{Value: value})
		}
		return map[string]map[string]slack.BlockAction{
			render.FilesWhich: {render.FilesWhich: {SelectedOptions: picked}},
			render.FilesUntil: {render.FilesUntil: {SelectedOption: slack.OptionBlockObject{Value: until}}},
		}
	}
	offered := v.Blocks.BlockSet[len(v.Blocks.BlockSet)-2].(*slack.InputBlock).Element.(*slack.CheckboxGroupsBlockElement).Options
	if len(offered) != 10 {
		t.Fatalf("%d files are offered", len(offered))
	}
	ref := render.ParseFilesRef(v.PrivateMetadata)
	choice, err := render.ParseFiles(render.FilesView{Waiting: files[1:]}, ref, state("8h", offered[0].Value, offered[1].Value))
	if err != nil || choice.For != 8*time.Hour || len(choice.Waiting) != 1 || choice.Waiting[0].Name != files[1].Name || choice.Chosen != 2 || len(choice.Further) > 0 {
		t.Errorf("%+v, %v", choice, err)
	}
	unlisted := files[10:] // of which it says that it is not about it
	if choice, err := render.ParseFiles(render.FilesView{Waiting: unlisted, Further: unlisted}, ref, state("8h", "9:"+shownAs(unlisted[0].Name))); err != nil || choice.Chosen+len(choice.Waiting)+len(choice.Further) > 0 {
		t.Errorf("what was not listed: %+v, %v", choice, err)
	}
	for _, wrong := range []map[string]map[string]slack.BlockAction{nil, state("8h"), state("", offered[0].Value), state("90d", offered[0].Value)} {
		if choice, err := render.ParseFiles(render.FilesView{Waiting: files}, ref, wrong); err == nil {
			t.Errorf("%v is taken for %+v", wrong, choice)
		}
	}
}

// shownAs is the fingerprint of a file's name, by which a form lists it.
func shownAs(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// TestApproveFurtherFiles: whatever an answer announces, the modal is one that Slack shows,
// offers nothing that it does not show whole, and counts what it leaves out.
func TestApproveFurtherFiles(t *testing.T) {
	t.Parallel()
	write := func(name, content string) render.FileEdits {
		b, err := json.Marshal(map[string]string{"file_path": "/srv/work/app/" + name, "content": content})
		if err != nil {
			t.Fatal(err)
		}
		return render.FileEdits{Name: name, Approvals: []store.Approval{ask("Write", string(b))}}
	}
	many := func(n int, name, content string) (out []render.FileEdits) {
		for i := range n {
			out = append(out, write(fmt.Sprint(i, name), content))
		}
		return out
	}
	edit := ask("Edit", `{"file_path":"/srv/work/app/f","old_string":"x","new_string":"y"}`)
	often := render.FileEdits{Name: "f", Approvals: slices.Repeat([]store.Approval{edit}, 40)}
	evil := "x\u202etxt.\u200b <!channel> `*_ " + strings.Repeat("\n", 50)
	for what, tt := range map[string]struct {
		waiting, further []render.FileEdits
		offered          int // without the choice that is all of them; -1: at least one
	}{
		"eleven small ones":           {many(1, "w", "x"), many(11, "f", strings.Repeat("a line\n", 20)), 11},
		"one":                         {many(1, "w", "x"), many(1, "f", "x"), 1},
		"two hundred":                 {many(1, "w", "x"), many(200, "f", "x"), -1},
		"two hundred beside twelve":   {many(12, "w", "x"), many(200, "f", "x"), -1},
		"one too long":                {many(1, "w", "x"), []render.FileEdits{write("long", strings.Repeat("long ", 40_000)), write("short", "x")}, 1},
		"all too long":                {many(1, "w", "x"), many(3, "f", strings.Repeat("long ", 40_000)), 0},
		"long ones":                   {many(1, "w", "x"), many(20, "f", strings.Repeat("some text\n", 900)), -1},
		"long names":                  {many(1, "w", "x"), many(20, strings.Repeat("deep/", 150), "x"), -1},
		"names that are too long":     {many(1, "w", "x"), many(20, strings.Repeat("deep/", 800), "x"), 0},
		"what deceives":               {many(1, "w", "x"), []render.FileEdits{write(evil, evil), write("p\u0430y.go", evil)}, 2},
		"a file that is edited often": {many(1, "w", "x"), []render.FileEdits{often, write("g", "x")}, 1},
	} {
		files := render.FilesView{Waiting: tt.waiting, Further: tt.further}
		v := render.ApproveFiles(tt.waiting[0].Approvals[0], files, render.Options{})
		for _, problem := range checkModal(v) {
			t.Errorf("%s: %s", what, problem)
		}
		ref, shown := render.ParseFilesRef(v.PrivateMetadata), texts(v.Blocks.BlockSet)
		if n := len(ref.Further); n != tt.offered && tt.offered >= 0 || tt.offered < 0 && n == 0 || len(v.PrivateMetadata) > 3000 {
			t.Errorf("%s: %d are offered", what, n)
		}
		if left := len(tt.further) - len(ref.Further); left > 0 != strings.Contains(shown, "too much to be read here") {
			t.Errorf("%s: %d are left out: %s", what, left, shown)
		}
		var values []string
		for _, b := range v.Blocks.BlockSet {
			if input, ok := b.(*slack.InputBlock); ok && strings.HasPrefix(input.BlockID, render.FilesFurther) {
				boxes := input.Element.(*slack.CheckboxGroupsBlockElement)
				for _, o := range boxes.Options {
					values = append(values, o.Value)
				}
				if len(boxes.InitialOptions) > 0 || !input.Optional {
					t.Errorf("%s: further files are ticked already", what)
				}
			}
		}
		if all := slices.Contains(values, render.FilesAll); all != (len(ref.Further) > 1) || len(values) != len(ref.Further) && len(values) != len(ref.Further)+1 {
			t.Errorf("%s: the choices are %q", what, values)
		}
		which := v.Blocks.BlockSet[slices.IndexFunc(v.Blocks.BlockSet, func(b slack.Block) bool { return b.ID() == render.FilesWhich })].(*slack.InputBlock)
		state := map[string]map[string]slack.BlockAction{
			render.FilesWhich:         {render.FilesWhich: {SelectedOptions: []slack.OptionBlockObject{*which.Element.(*slack.CheckboxGroupsBlockElement).Options[0]}}},
			render.FilesFurther + "0": {render.FilesFurther + "0": {SelectedOptions: []slack.OptionBlockObject{{Value: render.FilesAll}}}},
			render.FilesUntil:         {render.FilesUntil: {SelectedOption: slack.OptionBlockObject{Value: "1h"}}},
		}
		choice, err := render.ParseFiles(files, ref, state)
		if err != nil || len(choice.Waiting) != 1 || len(choice.Further) != len(ref.Further) || choice.Chosen != 1+len(ref.Further) {
			t.Errorf("%s: all are %d, %v", what, len(choice.Further), err)
		}
		for _, f := range choice.Further {
			if content, _, _ := strings.Cut(f.Name, "\u202e"); !strings.Contains(shown, content) {
				t.Errorf("%s: %q is allowed and not shown", what, f.Name)
			}
		}
		if strings.Contains(shown, "\u202e") || strings.Contains(shown, "<!channel>") && !strings.Contains(what, "deceives") {
			t.Errorf("%s: it deceives: %q", what, shown)
		}
	}
}

// TestWhatIsTouchedIsShown, as far as it is known, while it can be decided about.
func TestWhatIsTouchedIsShown(t *testing.T) {
	t.Parallel()
	a := ask("Bash", `{"command":"rm -rf build *.log"}`)
	a.Touches = []byte(`{"touches":[{"verb":"deletes","path":"build","is":"folder","files":3,"bytes":1500,"over":true},{"verb":"deletes","path":"/etc/x","outside":true,"is":""},
		{"verb":"writes","path":"a` + "`<!channel>" + `","is":"new"}],"more":4,"hosts":["example.com"],"unknown":["what ./x.sh does"]}`)
	got := texts(render.Card([]store.Approval{a}, render.Options{}).Blocks)
	for _, want := range []string{"deletes `build` (a folder, more than 3 files, 1.5 kB)", "(outside the workspace)", "(not there yet)", "4 more files and folders", "connects to `example.com`", "It may touch more, as this cannot be told before it runs: what ./x.sh does."} {
		if !strings.Contains(got, want) {
			t.Errorf("the card does not say %q: %s", want, got)
		}
	}
	if strings.Contains(got, "<!channel>") {
		t.Error("a file's name calls the channel")
	}
	a.Touches = []byte(`{"unknown":["what the code that npm runs does"]}`)
	if got := texts(render.Card([]store.Approval{a}, render.Options{}).Blocks); !strings.Contains(got, "What it touches cannot be told before it runs: what the code that npm runs does.") {
		t.Errorf("nothing but what is not known: %s", got)
	}
	if got := texts(render.Card([]store.Approval{decided(a, store.ApprovalAllowed, approver, "button", "")}, render.Options{}).Blocks); strings.Contains(got, "touch") {
		t.Errorf("decided: %s", got)
	}
}
