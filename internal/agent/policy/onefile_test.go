package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOneFile: a permission for a file is for that file, as it lies in the workspace, and
// for none from which programs take orders.
func TestOneFile(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	outside := filepath.Join(t.TempDir(), "outside.go")
	must(t, os.WriteFile(outside, nil, 0o600))
	must(t, os.Symlink(outside, filepath.Join(ws, "leaves.go")))
	must(t, os.Symlink("a.go", filepath.Join(ws, "src", "same.go")))
	must(t, os.WriteFile(filepath.Join(ws, "odd[1]{x}*.go"), nil, 0o600))
	for _, tt := range []struct {
		tool, path, want string // empty: no permission is given
	}{
		{"Edit", ws + "/src/a.go", "Edit(src/a.go)"},
		{"Write", ws + "/src/../src/./a.go", "Edit(src/a.go)"},
		{"Write", ws + "/src/new.go", "Edit(src/new.go)"},
		{"Write", ws + "/odd[1]{x}*.go", ""}, // which no pattern can say
		{"NotebookEdit", ws + "/src/a.ipynb", "Edit(src/a.ipynb)"},
		{"Bash", "", ""},
		{"mcp__files__write_file", ws + "/src/a.go", ""},
		{"Read", ws + "/src/a.go", ""},
		{"Edit", "src/a.go", ""}, // from wherever the shell stands
		{"Edit", ws, ""},
		{"Edit", ws + "/src", ""},
		{"Edit", ws + "/../" + filepath.Base(ws) + "x/a.go", ""},
		{"Edit", "/etc/passwd", ""},
		{"Edit", "~/a.go", ""},
		{"Edit", ws + "/leaves.go", ""},
		{"Edit", ws + "/src/same.go", ""},
		{"Edit", ws + "/.git/hooks/pre-commit", ""},
		{"Edit", ws + "/.GIT/config", ""},
		{"Edit", ws + "/.git./config", ""},
		{"Edit", ws + "/.ｇｉｔ/config", ""},
		{"Edit", ws + "/.github/workflows/ci.yml", ""},
		{"Edit", ws + "/.claude/settings.json", ""},
		{"Edit", ws + "/CLAUDE.md", ""},
		{"Edit", ws + "/Makefile", ""},
		{"Edit", ws + "/package.json", ""},
		{"Edit", ws + "/.env", ""},
		{"Edit", ws + "/src/a.go\n", ""},
		{"Edit", ws + "/src/a.go ", ""},
		{"Edit", ws + "/src/a\u200b.go", ""},
		{"Edit", ws + "/src/ca\u0301fe.go", ""},
	} {
		field := "file_path"
		if tt.tool == "NotebookEdit" {
			field = "notebook_path"
		}
		name, p, why := OneFile(call(t, ws, tt.tool, in{field: tt.path}))
		if p.String() != tt.want || (tt.want == "") != (name == "") || (tt.want == "") != (why != "") {
			t.Errorf("%s %q: %q by %q (%s), want %q", tt.tool, tt.path, name, p, why, tt.want)
		}
	}
	if _, p, why := OneFile(Call{Tool: "Edit", Input: json.RawMessage(`{"file_path":"` + ws + `/src/a.go","file_path":"/etc/passwd"}`), Workspace: ws}); why == "" {
		t.Errorf("a path that is written twice gives %q", p)
	}
}

// TestEditsBelowAFolder: a permission for a folder is for the plain files in it.
func TestEditsBelowAFolder(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	must(t, os.WriteFile(filepath.Join(ws, "src", "run"), nil, 0o700)) //nolint:gosec // it is to be a program
	must(t, os.Symlink("a.go", filepath.Join(ws, "src", "same.go")))
	must(t, os.Link(filepath.Join(ws, "src", "a.go"), filepath.Join(ws, "src", "twin.go")))
	must(t, os.WriteFile(filepath.Join(ws, "src", "plain.go"), nil, 0o600))
	below, all := mustParse("Edit(src/**)"), mustParse("Edit(**)")
	for path, want := range map[string][2]bool{
		"src/plain.go": {true, true}, "src/new/deep.go": {true, true}, "other.go": {false, true}, "src/run": {}, "src/same.go": {}, "src/twin.go": {},
		"src/.env": {}, "src/Makefile": {}, ".git/config": {}, "src/../../x": {},
	} {
		c := call(t, ws, "Write", in{"file_path": ws + "/" + path})
		if got := [2]bool{Grants(below, c), Grants(all, c)}; got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if !Grants(mustParse("Edit(src/run)"), call(t, ws, "Edit", in{"file_path": ws + "/src/run"})) || !Grants(mustParse("Read(src/**)"), call(t, ws, "Read", in{"file_path": ws + "/src/run"})) {
		t.Error("a permission for a program by its name, or to read, does not hold")
	}
}

// TestAFileThatBecomesSomethingElse: a permission for a file covers no other one, however
// it is spelt, and not what stands in its place later.
func TestAFileThatBecomesSomethingElse(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	file := filepath.Join(ws, "src", "a.go")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	must(t, os.WriteFile(elsewhere, nil, 0o600))
	_, p, why := OneFile(call(t, ws, "Edit", in{"file_path": file}))
	if why != "" {
		t.Fatal(why)
	}
	covers := func(tool, field, path string) bool {
		ok, _ := Covers(p, call(t, ws, tool, in{field: path}))
		return ok
	}
	for _, tool := range []string{"Edit", "Write"} {
		if !slices.Contains(Siblings("Edit"), tool) || !covers(tool, "file_path", file) {
			t.Errorf("%s of the file is not covered", tool)
		}
	}
	for _, path := range []string{
		strings.ToUpper(file), file + "x", filepath.Join(ws, "a.go"), filepath.Join(ws, "src", "b.go"), filepath.Join(ws, "src"), file + "/x",
		ws + "/src/./../../" + filepath.Base(ws) + "/src/b.go", file + "\x00", ws + "/src/а.go", ws + "/src/ａ.go", "a.go",
	} {
		if covers("Edit", "file_path", path) || covers("Write", "file_path", path) {
			t.Errorf("%q is covered, too", path)
		}
	}
	for tool, field := range map[string]string{"Read": "file_path", "MultiEdit": "file_path", "mcp__files__write_file": "file_path", "Bash": "command"} {
		if covers(tool, field, file) {
			t.Errorf("%s is covered, too", tool)
		}
	}
	must(t, os.Remove(file))
	must(t, os.Symlink(elsewhere, file))
	if covers("Edit", "file_path", file) {
		t.Error("a link that leads out of the workspace is covered in the file's place")
	}
	must(t, os.Remove(file))
	must(t, os.Symlink("../.git/config", file))
	if covers("Edit", "file_path", file) {
		t.Error("a link to .git/config is covered in the file's place")
	}
	must(t, os.Rename(filepath.Join(ws, "src"), filepath.Join(ws, "old")))
	must(t, os.Symlink(filepath.Dir(elsewhere), filepath.Join(ws, "src")))
	if covers("Edit", "file_path", file) {
		t.Error("a folder that leads out of the workspace is covered in the file's place")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
