package render_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/slackui/render"
)

// What is known of a tool stands in one place: no other file of the package names one.
func TestToolsAreNamedInOnePlace(t *testing.T) {
	t.Parallel()
	names := render.ToolNames()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if name == "tools.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && slices.Contains(names, text) {
					t.Errorf("%s: %s belongs into tools.go", set.Position(lit.Pos()), lit.Value)
				}
			}
			return true
		})
	}
}
