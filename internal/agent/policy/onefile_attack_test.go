package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// oddNames are names that patterns, file systems, Unicode or people may take for others.
var oddNames = []string{
	"a.go", "A.go", "a.go.", "a.go~", "a..go", "..a", "...", "a b.go", "#a#", "-rf", "--", "!a", "^a", "@a", "$HOME", "%2e%2e", "a&b", "a;b", "a'b", `a"b`, "`a`",
	"a*", "*", "**", "***", "a?", "?", "[a]", "[!a]", "[", "]", "a]b", "{a,b}", "{", "}", "a,b", "(a)", "(", ")", "a) Edit(b", "a), Edit(*", "Edit(a)", "a:*", "a:b", "domain:a",
	"~", "~a", `a\b`, `a\`, "é.go", "e\u0301.go", "ß.go", "ss.go", "SS.go", "ſ.go", "s.go", "\u212a.go", "k.go", "ﬁ.go", "fi.go", "İ.go", "ı.go", "i.go", "ａ.go", "а.go", "日本.go",
	"a\u00ad.go", "a\u200b.go", "a\ufe0f.go", "a\u202e.go", "a\u00a0.go", " a.go", "a.go ", "a\t.go", "a\n.go", "‥", "\u2024\u2024", "CON", "a.go::$DATA", "GIT~1",
}

// ordered are files that programs take orders from, by their place in a repository.
var ordered = []string{
	".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".git", "sub/.git/config", ".gitattributes", ".gitmodules", ".claude/settings.json", ".claude/settings.local.json",
	".claude/hooks/x.sh", ".claude/commands/x.md", ".claude/agents/x.md", ".mcp.json", "CLAUDE.md", "src/CLAUDE.md", "AGENTS.md", ".github/workflows/ci.yml", ".husky/pre-push", "githooks/pre-push",
	"hooks/pre-commit", "tools/hooks/post-checkout", "package.json", "web/package.json", "Makefile", "src/Makefile", "Jenkinsfile", "Snakefile", "Dockerfile", "conftest.py", "setup.py", "go.mod", "build.rs",
	"gradlew", "vite.config.ts", "webpack.config.prod.js", "cdk.json", "firebase.json", "goreleaser.yml", "tauri.conf.json", "App.xcodeproj/project.pbxproj",
}

// spellings spell a path in another way that some file system or program takes for it.
var spellings = map[string]func(string) string{
	"as it is":      func(p string) string { return p },
	"by dots":       func(p string) string { return "src/.././" + p },
	"by slashes":    func(p string) string { return "/" + strings.ReplaceAll(p, "/", "//") },
	"in capitals":   strings.ToUpper,
	"in small":      strings.ToLower,
	"a dot behind":  func(p string) string { return strings.ReplaceAll(p, "/", "./") + "." },
	"a space":       func(p string) string { return strings.ReplaceAll(p, "/", " /") },
	"in wide ones":  widened,
	"a long s":      func(p string) string { return strings.ReplaceAll(p, "s", "ſ") },
	"a Kelvin sign": func(p string) string { return strings.ReplaceAll(p, "k", "\u212a") },
	"a ligature":    func(p string) string { return strings.ReplaceAll(p, "fi", "ﬁ") },
	"unseen":        func(p string) string { return p[:1] + "\u200c" + p[1:] },
	"a mark behind": func(p string) string { return p + "\ufeff" },
	"below another": func(p string) string { return "deep/er/" + p },
}

// widened has each ASCII letter, and each dot, in its full width.
func widened(p string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && r != '/' {
			return r + 0xfee0
		}
		return r
	}, p)
}

// TestAttackOnGrantsOfFiles: a permission for a file, as it is stored, covers no other file,
// however either of them is called.
func TestAttackOnGrantsOfFiles(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	var files []string
	for _, dir := range []string{"", "src/", "src/{c,d}/"} {
		must(t, os.MkdirAll(filepath.Join(ws, dir), 0o700))
		for _, name := range oddNames {
			path := ws + "/" + dir + name
			if err := os.WriteFile(path, nil, 0o600); err == nil || os.IsExist(err) {
				files = append(files, path)
			}
		}
	}
	granted := 0
	for _, file := range files {
		name, p, why := OneFile(call(t, ws, "Edit", in{"file_path": file}))
		if why != "" {
			continue
		}
		granted++
		if ws+"/"+name != file {
			t.Errorf("for %q people are shown %q", file, name)
		}
		stored, err := ParsePattern(p.String())
		if err != nil {
			t.Errorf("%q is stored as %s: %v", file, p, err)
			continue
		}
		for _, other := range files {
			if ok, _ := Covers(stored, call(t, ws, "Write", in{"file_path": other})); ok != (other == file) {
				t.Errorf("%s, which is for %q: of %q it says %v", stored, file, other, ok)
			}
		}
	}
	if granted < 60 {
		t.Errorf("only %d of %d files can be granted: what is tested here is nothing", granted, len(files))
	}
}

// TestAttackOnPlacesByGrants: none is given for a file that programs take orders from,
// however it is spelt.
func TestAttackOnPlacesByGrants(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	for _, path := range ordered {
		for how, as := range spellings {
			for tool, field := range map[string]string{"Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"} {
				if name, p, why := OneFile(call(t, ws, tool, in{field: ws + "/" + as(path)})); why == "" {
					t.Errorf("%s of %q (%s) may be granted as %q by %s", tool, as(path), how, name, p)
				}
			}
		}
	}
	for _, mode := range []os.FileMode{0o700, 0o610, 0o601} {
		file := filepath.Join(ws, "src", "tool")
		must(t, os.WriteFile(file, []byte("x"), mode))
		must(t, os.Chmod(file, mode))
		if _, p, why := OneFile(call(t, ws, "Edit", in{"file_path": file})); why == "" {
			t.Errorf("a program of mode %o may be granted by %s", mode, p)
		}
		must(t, os.Remove(file))
	}
}

// TestAttackBySwappingAGrantedFile: a permission ends where something else stands in the
// file's place: a link of either kind, a folder, or what lies behind another folder.
func TestAttackBySwappingAGrantedFile(t *testing.T) {
	t.Parallel()
	for how, swap := range map[string]func(ws, file, order string) error{
		"a link": func(_, file, order string) error { return os.Symlink(order, file) },
		"a link by the way": func(ws, file, order string) error {
			return os.Symlink(strings.Repeat("../", strings.Count(strings.TrimPrefix(file, ws), "/")-1)+strings.TrimPrefix(order, ws+"/"), file)
		},
		"a hard link": func(_, file, order string) error { return os.Link(order, file) },
		"a folder":    func(_, file, _ string) error { return os.Mkdir(file, 0o700) },
		"a folder that is a link": func(_, file, order string) error {
			if err := os.Remove(filepath.Dir(file)); err != nil {
				return err
			}
			if err := os.Symlink(filepath.Dir(order), filepath.Dir(file)); err != nil {
				return err
			}
			return os.Rename(order, filepath.Join(filepath.Dir(order), filepath.Base(file)))
		},
	} {
		ws := workspace(t)
		order, file := filepath.Join(ws, ".git", "hooks", "pre-commit"), filepath.Join(ws, "docs", "plain.md")
		must(t, os.MkdirAll(filepath.Dir(order), 0o700))
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(order, nil, 0o600))
		must(t, os.WriteFile(file, nil, 0o600))
		_, p, why := OneFile(call(t, ws, "Edit", in{"file_path": file}))
		if why != "" {
			t.Fatal(why)
		}
		must(t, os.Remove(file))
		must(t, swap(ws, file, order))
		for _, tool := range []string{"Edit", "Write"} {
			if ok, _ := Covers(p, call(t, ws, tool, in{"file_path": file})); ok && how != "a folder" { // which no tool writes
				t.Errorf("%s in its place is covered for %s", how, tool)
			}
			if _, _, why := OneFile(call(t, ws, tool, in{"file_path": file})); why == "" {
				t.Errorf("%s in its place may be granted", how)
			}
		}
	}
}
