package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What a wide rule asks of the edits of ordinary work: the golden file names each,
// and the place that it is asked for.
func TestTheEditsOfOrdinaryWork(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	raw, err := os.ReadFile("testdata/edits.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, src := rules(t, "allow Edit(**)"), rules(t, "allow Edit(src/**)")
	var asked strings.Builder
	var everywhere, below tally
	for line := range strings.Lines(string(raw)) {
		file := strings.TrimSpace(line)
		if file == "" || strings.HasPrefix(file, "#") {
			if strings.HasPrefix(file, "# -- ") {
				fmt.Fprintf(&asked, "\n%s\n", file)
			}
			continue
		}
		c := call(t, ws, "Write", in{"file_path": file, "content": "x"})
		d := all.Decide(c)
		everywhere.add(d.Verdict)
		if d.Verdict != Allow {
			fmt.Fprintf(&asked, "%s: %s\n", file, d.Why)
		}
		if strings.HasPrefix(file, "src/") {
			below.add(src.Decide(c).Verdict)
		}
		// What is asked is allowed by the rule that the sentence names.
		_, rule, _ := strings.Cut(d.Why, "such as ")
		if d.Verdict != Allow && rules(t, "allow "+rule).Decide(c).Verdict != Allow {
			t.Errorf("%s: %q does not allow it", file, rule)
		}
	}
	if n := everywhere.allowed + everywhere.asked; n < 200 {
		t.Errorf("the list holds %d edits, want at least 200", n)
	}
	golden(t, "edits.golden", fmt.Appendf(nil, "Edit(**): %s\nEdit(src/**): %s\n%s", everywhere, below, asked.String()))
}

func TestProtectedPlaces(t *testing.T) {
	t.Parallel()
	for _, p := range []string{
		"CLAUDE.md", "docs/CLAUDE.md", "Claude.MD", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", ".claude/settings.json", ".cursor/rules/x.mdc", ".cursorrules", ".windsurfrules",
		".bazelrc", ".mvn/jvm.config", ".dir-locals.el", ".vscode/tasks.json", "a/b/.vscode/tasks.json", ".idea/x.xml", ".zed/tasks.json", ".nvim.lua", ".exrc",
		".git/config", ".GIT/config", ".git./config", ".git /config", "sub/.git/hooks/x", ".hg/hgrc", ".svn/x", ".jj/config.toml", ".envrc", ".env", ".env.local", ".gitattributes", ".gitmodules",
		".github/workflows/ci.yml", ".github/dependabot.yml", ".github/CODEOWNERS", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile", "azure-pipelines.yml", ".husky/pre-commit", "githooks/pre-push", "lefthook.yml",
		"package.json", "web/package.json", "PACKAGE.JSON", "package.json.", "package-lock.json", "Makefile", "makefile", "GNUmakefile", "rules.mk", "justfile", "Rakefile", "lib/tasks/x.rake", "Taskfile.yml",
		"build.gradle", "app/build.gradle.kts", "pom.xml", "build.rs", "crates/x/build.rs", "setup.py", "tests/conftest.py", "tox.ini", "noxfile.py", "pyproject.toml", "requirements-dev.txt",
		"jest.config.js", "vitest.config.mts", "webpack.config.cjs", "vite.config.ts", "eslint.config.mjs", ".eslintrc.js", "babel.config.js", ".babelrc", "tsconfig.json",
		"go.mod", "go.work", "vendor/x/go.mod", ".cargo/config.toml", "Cargo.toml", ".npmrc", ".yarn/releases/x.cjs", ".devcontainer/devcontainer.json", "docker-compose.yml", "compose.prod.yaml", "Dockerfile", "Dockerfile.dev",
		"BUILD", "x/BUILD.bazel", "defs.bzl", "WORKSPACE", "x.csproj", "Directory.Build.props", "x.code-workspace", ".new-tool-of-next-year",
		"ＭＡＫＥＦＩＬＥ", "ma\u212Aefile", ".ｇｉｔ/config",
	} {
		if protected(p) == "" {
			t.Errorf("%s is not protected", p)
		}
	}
	for _, p := range []string{
		"src/main.go", "README.md", "docs/claude.png", "build/out.js", "src/build", "workspace/a.go", ".", "...", "src/make.go", "src/package.go", "tests/test_setup.py", "config.ts",
		".gitignore", "sub/.gitignore", ".dockerignore", ".editorconfig", ".env.example", "public/.well-known/security.txt", ".github/ISSUE_TEMPLATE/bug.md", ".github/pull_request_template.md", ".changeset/warm-cats.md",
	} {
		if got := protected(p); got != "" {
			t.Errorf("%s is protected as %s", p, got)
		}
	}
}

func TestWhatNamesAPlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		glob, file string
		want       bool
	}{
		{"**", "package.json", false},
		{"*", "package.json", false},
		{"web/**", "web/package.json", false},
		{"**/*.json", "package.json", false},
		{"p*", "package.json", false},
		{".*", ".envrc", false},
		{".e*", ".envrc", false},
		{".env*", ".envrc", false},
		{"?ackage.json", "package.json", false},
		{"[p]ackage.json", "package.json", false},
		{".github/**", ".github/workflows/ci.yml", false},
		{".vscode/**", ".vscode/.git/x", false},
		{"{src,docs}/**", "src/Makefile", false},
		{"package.json", "package.json", true},
		{"**/package.json", "web/package.json", true},
		{"web/package.json", "web/package.json", true},
		{"{package,package-lock}.json", "package-lock.json", true},
		{"{package.json,Makefile}", "Makefile", true},
		{"package*.json", "package-lock.json", true},
		{"**/package*.json", "package.json", true},
		{"Makefile*", "Makefile.am", true},
		{".env.*", ".env.local", true},
		{".env*", ".env.local", true},
		{"vite.config.*", "vite.config.ts", true},
		{"*.config.ts", "vite.config.ts", true},
		{"**/*.gradle", "app/build.gradle", true},
		{"requirements*.txt", "requirements.txt", true},
		{".github/**", ".github/dependabot.yml", true},
		{".github/workflows/*", ".github/workflows/ci.yml", true},
		{"**/.vscode/**", "a/.vscode/tasks.json", true},
		{".devcontainer/**", ".devcontainer/Dockerfile", true},
		{".husky/**", ".husky/_/husky.sh", true},
		{"Makefile", "Makefile", true},
	} {
		g, bad := parseGlob(tt.glob)
		if bad != nil {
			t.Fatal(tt.glob, bad.problem)
		}
		if ok, why := g.covers(&target{rel: tt.file, resolved: "/ws/" + tt.file, inside: true}, true); ok != tt.want {
			t.Errorf("Edit(%s) covers %s: %v (%s), want %v", tt.glob, tt.file, ok, why, tt.want)
		}
	}
}

// However a name with a leading dot is written, a wide rule does not cover it.
func TestNoWideRuleWritesAHiddenName(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	p := rules(t, "allow Edit(**)", "allow Edit", "allow *", "allow Edit(src/**)", "allow Edit(*/**)", "allow Edit(**/*)", "allow Edit(?*/**)")
	rapid.Check(t, func(t *rapid.T) {
		name := "." + rapid.StringMatching(`[a-zA-Z_-]{1,10}(\.[a-z]{1,4})?[. ]{0,2}`).Draw(t, "name")
		if _, low := foldName(name); harmlessDots[low] {
			t.Skip("known to be harmless")
		}
		path := rapid.SampledFrom([]string{"", "src/", "a/b/"}).Draw(t, "folder") + name + rapid.SampledFrom([]string{"", "/x", "/a/b.md"}).Draw(t, "below")
		if strings.TrimSpace(path) != path {
			t.Skip("asked for its white space")
		}
		d := p.Decide(Call{Tool: "Write", Input: fmt.Appendf(nil, `{"file_path":%q,"content":"x"}`, path), Workspace: ws})
		if d.Verdict == Allow {
			t.Fatalf("%s is allowed by %s", path, d.Rule)
		}
	})
}

// What lies in a further repository of the project's is judged by its path there, and git there is as git in the
// workspace's own folder where the call names it.
func TestFurtherRepositories(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	for _, dir := range []string{".deckhand/repos/lib", ".deckhand/repos/other"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := rules(t, "allow Edit(**)", "allow Bash(git status)")
	for _, tt := range []struct {
		tool string
		in   in
		want Verdict
	}{
		{"Write", in{"file_path": ".deckhand/repos/lib/src/a.go", "content": "x"}, Allow},
		{"Write", in{"file_path": ".deckhand/repos/lib/.github/workflows/x.yml", "content": "x"}, Ask},
		{"Write", in{"file_path": ".deckhand/repos/lib/.git/config", "content": "x"}, Ask},
		{"Write", in{"file_path": ".deckhand/repos/.git/config", "content": "x"}, Ask},
		{"Write", in{"file_path": ".deckhand/x", "content": "x"}, Ask},
		{"Bash", in{"command": "cd .deckhand/repos/lib && git status"}, Allow},
		{"Bash", in{"command": "cd .deckhand/repos/other && git status"}, Ask},
		{"Bash", in{"command": "cd .deckhand/repos/lib/src && git status"}, Ask},
	} {
		c := call(t, ws, tt.tool, tt.in)
		c.Repositories = []string{".deckhand/repos/lib"}
		if d := p.Decide(c); d.Verdict != tt.want {
			t.Errorf("%s %v: %s, want %s", tt.tool, tt.in, d.Verdict, tt.want)
		}
	}
}
