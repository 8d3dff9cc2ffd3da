package deckhand_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// elsewhere are the files that the documents name and that are not in the tree:
// those of a team, of a repository that the bot works in, of a demo.
var elsewhere = []string{"deckhand.yaml", "CLAUDE.md", ".mcp.json", "DIR/demo.json"}

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	row      = regexp.MustCompile(`(?m)^\|[^|]+\|(.*)\|$`)
	aPath    = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)*/?$`)
	aFile    = regexp.MustCompile(`\.(go|mod|md|json|yaml|yml|sh|sql|png|proto)$`)
	aTest    = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w+$`)
	aMember  = regexp.MustCompile(`^[A-Za-z]+\.([A-Z]\w+)$`)
	aWord    = regexp.MustCompile(`[A-Z]\w+`)
	aName    = regexp.MustCompile(`^(?:[A-Za-z]+\.)?([A-Za-z]\w*)$`)
	aTarget  = regexp.MustCompile(`\bmake ([a-z][a-z-]*)`)
)

// A document that names what is not there is worse than none.
func TestTheDocumentsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	tree := files(t)
	makefile := read(t, "Makefile")
	documents, err := filepath.Glob("docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, document := range append(documents, "README.md", "CONTRIBUTING.md", "SECURITY.md") {
		text := read(t, document)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", document, target)
			}
		}
		prose := fence.ReplaceAllString(text, "")
		for _, code := range append(fence.FindAllString(text, -1), codeSpan.FindAllString(prose, -1)...) {
			for _, m := range aTarget.FindAllStringSubmatch(code, -1) {
				if !strings.Contains(makefile, "\n"+m[1]+":") {
					t.Errorf("%s names make %s, which the Makefile does not", document, m[1])
				}
			}
		}
		for _, m := range codeSpan.FindAllStringSubmatch(prose, -1) {
			switch span := m[1]; {
			case aTest.MatchString(span) && !tree.words[span]:
				t.Errorf("%s names %s, and there is no such test", document, span)
			case aMember.MatchString(span) && !tree.words[aMember.FindStringSubmatch(span)[1]]:
				t.Errorf("%s names %s, which no code does", document, span)
			case tree.isPath(span) && !slices.Contains(elsewhere, span) && len(tree.find(span)) == 0:
				t.Errorf("%s names %s, which is not there", document, span)
			}
		}
	}
}

// The names behind a file's, in a row of a table, are names in that file.
func TestContributingSaysWhereThingsAre(t *testing.T) {
	t.Parallel()
	tree := files(t)
	named := 0
	for _, m := range row.FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1) {
		file := ""
		for _, s := range codeSpan.FindAllStringSubmatch(m[1], -1) {
			span := s[1]
			if tree.isPath(span) {
				file = span
				continue
			}
			if name := aName.FindStringSubmatch(span); name != nil && strings.HasSuffix(file, ".go") {
				named++
				if !regexp.MustCompile(`(?m)^(func|type|var|const) (\([^)]*\) )?` + name[1] + `\b`).MatchString(read(t, file)) {
					t.Errorf("%s does not declare %s", file, span)
				}
			}
		}
	}
	if named < 15 {
		t.Errorf("only %d names were looked up", named)
	}
}

// listing is what is in the tree.
type listing struct {
	paths []string        // of files and folders
	words map[string]bool // the exported names in the code, and the tests'
}

// isPath reports whether a text of a document is meant to be a path of the tree.
func (l listing) isPath(s string) bool {
	if !aPath.MatchString(s) {
		return false
	}
	top, _, below := strings.Cut(s, "/")
	return aFile.MatchString(s) || below && slices.Contains(l.paths, top)
}

// find returns the paths that a document may mean: it may leave out what stands
// before the last folders.
func (l listing) find(s string) []string {
	var found []string
	s = strings.TrimSuffix(s, "/")
	for _, p := range l.paths {
		if p == s || strings.HasSuffix(p, "/"+s) {
			found = append(found, p)
		}
	}
	return found
}

func files(t *testing.T) listing {
	t.Helper()
	l := listing{words: map[string]bool{}}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n := d.Name(); d.IsDir() && (n == ".git" || n == "node_modules") {
			return fs.SkipDir
		}
		l.paths = append(l.paths, filepath.ToSlash(path))
		if strings.HasSuffix(path, ".go") {
			for _, w := range aWord.FindAllString(read(t, path), -1) {
				l.words[w] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
