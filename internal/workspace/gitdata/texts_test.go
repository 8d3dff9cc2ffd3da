package gitdata_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/workspace/gitdata"
)

// TestTexts: they are those of the base, whatever its folder has; links are not followed.
func TestTexts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := func(name string) string { return filepath.Join(b.source, ".claude/commands", name) }
	b.write(at("fix.md"), "Fix it.\n")
	b.write(at("web/x.md"), "")
	b.write(at("tool.sh"), "no text")
	b.write(at("long.md"), strings.Repeat("x", 40<<10+1))
	b.write(at("odd.md"), "\xff")
	b.write(filepath.Join(b.dir, "outside.md"), "a secret")
	b.must(os.Symlink(filepath.Join(b.dir, "outside.md"), at("link.md")))
	b.must(os.MkdirAll(filepath.Join(b.source, ".claude"), 0o700))
	b.must(os.Symlink(b.dir, filepath.Join(b.source, ".claude/skills")))
	b.commit(b.source, "go.mod", "module x\n")
	b.write(at("fix.md"), "Not committed.\n")
	texts := func() (map[string]string, []string) {
		texts, left, err := gitdata.Clone{Source: b.open(), Scratch: filepath.Join(b.dir, "scratch")}.Texts(t.Context(), ".claude/commands", ".claude/skills")
		b.must(err)
		return texts, left
	}
	got, left := texts()
	if diff := cmp.Diff(map[string]string{".claude/commands/fix.md": "Fix it.\n", ".claude/commands/web/x.md": ""}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".claude/commands/link.md", ".claude/commands/long.md", ".claude/commands/odd.md"}, left); diff != "" {
		t.Error(diff)
	}
	for i := range 250 {
		b.write(at("many/"+strconv.Itoa(i)+".md"), "one of many")
	}
	b.commit(b.source, "go.mod", "module y\n")
	if got, left := texts(); len(got) != 200 || len(left) != 55 {
		t.Errorf("%d texts, and %d left out", len(got), len(left))
	}
}
