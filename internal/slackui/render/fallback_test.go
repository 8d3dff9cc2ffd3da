package render_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// live are mentions that call people who were not meant one by one.
var live = regexp.MustCompile(`<!(channel|here|everyone)[^>]*>`)

// What a lock screen shows of each message that there is: its first line says something,
// in words, and nobody is called whom nobody named.
func TestFallbacksAreFitForALockScreen(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var pages []struct{ Text *string }
		if json.Unmarshal(raw, &pages) != nil {
			pages = make([]struct{ Text *string }, 1)
			if err := json.Unmarshal(raw, &pages[0]); err != nil {
				return err
			}
		}
		for i, p := range pages {
			if p.Text == nil {
				continue // a view
			}
			seen++
			first, _, _ := strings.Cut(*p.Text, "\n")
			if !strings.ContainsFunc(first, unicode.IsLetter) {
				t.Errorf("%s, page %d begins without a word: %q", path, i, first)
			}
			if strings.HasPrefix(first, "```") || strings.HasPrefix(first, "…") || live.MatchString(*p.Text) {
				t.Errorf("%s, page %d: %q", path, i, first)
			}
		}
		return nil
	})
	if err != nil || seen < 30 {
		t.Errorf("%d messages: %v", seen, err)
	}
}
