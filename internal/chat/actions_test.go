package chat

import (
	"io/fs"
	"os"
	"testing"

	"github.com/tidwall/gjson"

	"deckhand/internal/chat/view"
)

// Each button that a page or a form has does something, and each form of ours can be sent.
func TestEachButtonDoesSomething(t *testing.T) {
	t.Parallel()
	table := newTable(&Chat{})
	seen := 0
	check := func(file string, v gjson.Result) {
		switch v.Get("type").Str {
		case "button":
			if _, ok := table.actions[view.ActionOf(v.Get("action_id").Str)]; !ok && !v.Get("url").Exists() {
				t.Errorf("%s: nobody acts on the button %q", file, v.Get("action_id").Str)
			}
			seen++
		case "modal":
			if _, ok := table.forms[v.Get("callback_id").Str]; !ok && v.Get("submit").Exists() {
				t.Errorf("%s: nobody reads the form %q", file, v.Get("callback_id").Str)
			}
			seen++
		}
	}
	var walk func(file string, v gjson.Result)
	walk = func(file string, v gjson.Result) {
		check(file, v)
		v.ForEach(func(_, inner gjson.Result) bool {
			if inner.IsObject() || inner.IsArray() {
				walk(file, inner)
			}
			return true
		})
	}
	pages := os.DirFS("../slackui/render/testdata")
	if err := fs.WalkDir(pages, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(pages, path)
		walk(path, gjson.ParseBytes(b))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Errorf("only %d buttons and forms were seen", seen)
	}
	for id, act := range table.actions {
		if (act.do == nil) == (act.about == nil) {
			t.Errorf("the button %q does not do one thing", id)
		}
	}
}
