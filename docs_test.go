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
var elsewhere = []string{"deckhand.yaml", "new.yaml", "docker-compose.override.yml", "CLAUDE.md", ".mcp.json", ".claude/skills/NAME/SKILL.md", "DIR/demo.json", "package.json", "package-lock.json"}

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
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	inLink   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor = regexp.MustCompile(`[^\pL\pN_ -]`)
	quoted   = regexp.MustCompile(`“([^”]+)”`)
	variable = regexp.MustCompile(`(?m)^#?([A-Z][A-Z0-9_]+)=`)
	bench    = regexp.MustCompile(`BENCH=([A-Z]\w+)[^\x60\n]* PKG=\./([\w/]+)`)
	metric   = regexp.MustCompile(`\bdeckhand_[a-z_]*[a-z]`)
)

// documents are all pages that people read.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	return append(pages, "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
}

// anchors are the places of a page that a link may lead to, as GitHub names them.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	var out []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(read(t, page), ""), -1) {
		text := noAnchor.ReplaceAllString(strings.ToLower(inLink.ReplaceAllString(m[1], "$1")), "")
		out = append(out, strings.ReplaceAll(text, " ", "-"))
	}
	return out
}

// A document that names what is not there is worse than none.
func TestTheDocumentsNameWhatIsThere(t *testing.T) {
	t.Parallel()
	tree := files(t)
	makefile := read(t, "Makefile")
	for _, document := range documents(t) {
		text := read(t, document)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, anchored := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			page := filepath.Join(filepath.Dir(document), target)
			if target == "" {
				page = document
			}
			if _, err := os.Stat(page); err != nil {
				t.Errorf("%s links to %s, which is not there", document, target)
			} else if anchored && !slices.Contains(anchors(t, page), anchor) {
				t.Errorf("%s links to %s, where no heading is called %s", document, target, anchor)
			}
		}
		for _, block := range fence.FindAllString(text, -1) {
			if !strings.HasPrefix(strings.TrimSpace(block), "```sh") {
				continue
			}
			for span := range strings.FieldsSeq(block) {
				if tree.isPath(span) && !slices.Contains(elsewhere, span) && len(tree.find(span)) == 0 {
					t.Errorf("%s has a command with %s, which is not there", document, span)
				}
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

// The first pages stay short, and README leads to every other one.
func TestWhoeverReadsTheREADMEFindsEveryPage(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	if n := strings.Count(readme, "\n"); n > 100 {
		t.Errorf("README.md has %d lines, and 100 are the most: a page below docs says the rest", n)
	}
	if n := len(read(t, "docs/architecture.md")); n > 25_000 {
		t.Errorf("docs/architecture.md has %d bytes, and 25,000 are the most: packages say the rest", n)
	}
	for _, page := range documents(t) {
		if strings.Count(page, "/") == 1 && !strings.Contains(readme, "]("+page+")") {
			t.Errorf("README.md does not link to %s", page)
		}
	}
}

// What people look for are the bot's own words.
func TestTroubleshootingQuotesWhatTheBotSays(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for _, path := range files(t).paths {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			code.WriteString(read(t, path))
		}
	}
	looked := 0
	for line := range strings.Lines(read(t, "docs/troubleshooting.md")) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			for part := range strings.SplitSeq(m[1], "…") {
				if part = strings.Trim(part, " .,:;"); len(part) < 8 {
					continue
				}
				looked++
				if !strings.Contains(code.String(), part) {
					t.Errorf("docs/troubleshooting.md quotes %q, which the bot does not say", part)
				}
			}
		}
	}
	if looked < 50 {
		t.Errorf("only %d quotations were looked up", looked)
	}
}

// Every figure has a command that measures it.
func TestTheDocumentsNameBenchmarks(t *testing.T) {
	t.Parallel()
	looked := 0
	for _, document := range documents(t) {
		for _, m := range bench.FindAllStringSubmatch(read(t, document), -1) {
			looked++
			tests, err := filepath.Glob(m[2] + "/*_test.go")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(tests, func(name string) bool { return strings.Contains(read(t, name), "func Benchmark"+m[1]+"(") }) {
				t.Errorf("%s names BENCH=%s, which is not in %s", document, m[1], m[2])
			}
		}
	}
	if looked < 5 {
		t.Errorf("only %d benchmarks were looked up", looked)
	}
}

// Tables of what there is have all of it, and nothing else.
func TestTheDocumentsListAllVariablesAndMetrics(t *testing.T) {
	t.Parallel()
	install := read(t, "docs/install.md")
	for _, m := range variable.FindAllStringSubmatch(read(t, ".env.example"), -1) {
		if !strings.Contains(install, "`"+m[1]+"`") {
			t.Errorf("docs/install.md does not explain %s", m[1])
		}
	}
	var there []string
	for _, m := range metric.FindAllString(read(t, "cmd/bot/metrics.go"), -1) {
		there = append(there, m)
		if !strings.Contains(read(t, "docs/operating.md"), "`"+m+"`") {
			t.Errorf("docs/operating.md does not explain %s", m)
		}
	}
	for _, document := range documents(t) {
		for _, span := range codeSpan.FindAllStringSubmatch(read(t, document), -1) {
			if m := metric.FindString(span[1]); m == span[1] && !slices.Contains(there, m) {
				t.Errorf("%s names the metric %s, which is not there", document, m)
			}
		}
	}
}

// The names behind a file's, in a row of a table, are names in that file.
func TestContributingSaysWhereThingsAre(t *testing.T) {
	t.Parallel()
	named, tree := 0, files(t)
	for _, m := range row.FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1) {
		named += declared(t, tree, m[1])
	}
	if named < 15 {
		t.Errorf("only %d names were looked up", named)
	}
}

// declared looks the names up that stand behind a file's in a text, and returns how many those are.
func declared(t *testing.T, tree listing, text string) (named int) {
	t.Helper()
	file := ""
	for _, s := range codeSpan.FindAllStringSubmatch(text, -1) {
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
	return named
}

// Each row of the protocol's table says where people or the bot use something, or why not. The
// files, names, commands and buttons are there, and nothing that the code speaks is missing.
func TestTheProtocolsTable(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(read(t, "docs/protocol.md"), "\n## Where people use it\n")
	table, _, _ = strings.Cut(table, "\n## ")
	commands := read(t, "internal/chat/commands.go") + read(t, "internal/slackui/render/steps.go")
	named, rows, tree := 0, 0, files(t)
	for _, m := range row.FindAllStringSubmatch(table, -1)[2:] {
		where := strings.TrimSpace(m[1])
		if where == "" {
			continue // a heading
		}
		rows++
		named += declared(t, tree, where)
		for _, q := range quoted.FindAllStringSubmatch(where, -1) {
			word, _, _ := strings.Cut(strings.ReplaceAll(q[1], "=", " "), " ")
			if !strings.Contains(commands, `name: "`+word+`"`) && !strings.Contains(commands, `"`+q[1]+`"`) {
				t.Errorf("nobody can write or press “%s”", q[1])
			}
		}
		if !strings.Contains(where, "`") && !quoted.MatchString(where) && !link.MatchString(where) && !strings.Contains(where, ": ") && !strings.Contains(where, "below") {
			t.Errorf("neither a place nor a reason: %s", where)
		}
	}
	if rows < 100 || named < 60 {
		t.Errorf("only %d rows name %d places", rows, named)
	}
	spoken := regexp.MustCompile(`"(--[a-z-]+)"|\.(?:ask|askWithin|request)\([^"\n]*"([a-z_]+)"`)
	for _, file := range tree.paths {
		if !strings.HasPrefix(file, "internal/agent/claude/") || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/reaper/") {
			continue
		}
		text := read(t, file)
		said := spoken.FindAllStringSubmatch(text, -1)
		if strings.Contains(filepath.Base(file), "decode") {
			for _, c := range regexp.MustCompile(`(?m)^\tcase (".*"):$`).FindAllStringSubmatch(text, -1) {
				for name := range strings.SplitSeq(strings.ReplaceAll(c[1], `"`, ""), ", ") {
					said = append(said, []string{"", name, ""})
				}
			}
		}
		for _, m := range said {
			if name := m[1] + m[2]; !strings.Contains(table, name) {
				t.Errorf("the table lacks %s of %s", name, file)
			}
		}
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
		switch n := d.Name(); {
		case n == ".git" && !d.IsDir(): // of a worktree
			return nil
		case n == ".git", n == "node_modules":
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
