package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatACallWouldTouch: what its words name, as it lies there now, and what of it is not
// known. Nothing is run or changed by looking.
func TestWhatACallWouldTouch(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	for name, size := range map[string]int{"build/a.o": 1000, "build/sub/b.o": 500, "one.tmp": 10, "two.tmp": 20, "notes.txt": 5} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(ws, name), make([]byte, size), 0o600))
	}
	must(t, os.Symlink("/etc", filepath.Join(ws, "etc")))
	for _, tt := range []struct{ command, want string }{
		{"rm -rf build", "deletes build folder 2 1500"},
		{"rm *.tmp", "deletes one.tmp file 0 10; deletes two.tmp file 0 20"},
		{"rm -rf etc", "? what lies behind the link in etc"},
		{"cp notes.txt etc", "writes "},
		{"rm -rf /etc/*.conf", "? "},
		{"mv notes.txt old.txt", "writes notes.txt file 0 5; writes old.txt new 0 0"},
		{"cp notes.txt src", "writes src/notes.txt new 0 0"},
		{"echo x > out.txt", "writes out.txt new 0 0"},
		{"echo x >> notes.txt", "writes notes.txt file 0 5"},
		{"sed -i s/a/b/ notes.txt", "writes notes.txt file 0 5"},
		{"git checkout -- notes.txt", "? which files git writes"},
		{"git restore src/a.go", "? which files git writes"},
		{"git checkout main", "? which files git writes"},
		{"rm -f /nowhere/x", "deletes /nowhere/x outside  0 0"},
		{"cat /etc/hostname", "reads /etc/hostname outside  0 0"},
		{"curl -o page.html https://example.com/a", "host example.com"},
		{"rm $FILES", "? "},
		{"./run.sh", "? what ./run.sh does"},
		{"go test ./...", "? what the code that go runs does"},
		{"rm 'unclosed", "? the command cannot be read as shell"},
		{"echo a # \\\nrm notes.txt", "? the comment holds quotes, which may hide a command; ? where notes.txt lies"},
		{"ls", ""},
	} {
		got := previewed(Touches(call(t, ws, "Bash", in{"command": tt.command})))
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.command, got, tt.want)
		}
	}
	if got := previewed(Touches(call(t, ws, "Write", in{"file_path": ws + "/notes.txt", "content": "x"}))); got != "writes notes.txt file 0 5" {
		t.Errorf("Write: %q", got)
	}
	for _, command := range []string{"rm /etc/*", "cat /etc/p*", "cp notes.txt etc", "cat /etc/hostname", "rm etc/hostname"} {
		if got := previewed(Touches(call(t, ws, "Bash", in{"command": command}))); strings.Contains(got, "passwd") || strings.Contains(got, " file ") && !strings.Contains(got, "notes.txt") {
			t.Errorf("%s tells of the machine: %q", command, got)
		}
	}
	if got := previewed(Touches(call(t, "/nowhere/ws", "Bash", in{"command": "rm -rf build /etc"}))); got != "? what lies in its folder, which is not on this machine" {
		t.Errorf("a folder elsewhere: %q", got)
	}
	for i := range 40 {
		must(t, os.WriteFile(filepath.Join(ws, fmt.Sprintf("many%02d.log", i)), nil, 0o600))
	}
	if p := Touches(call(t, ws, "Bash", in{"command": "rm *.log"})); len(p.Touches) != maxTouches || p.More != 40-maxTouches {
		t.Errorf("%d are listed, and %d more", len(p.Touches), p.More)
	}
}

func previewed(p Preview) string {
	var all []string
	for _, o := range p.Touches {
		outside := ""
		if o.Outside {
			outside = " outside"
		}
		all = append(all, fmt.Sprintf("%s %s%s %s %d %d", o.Verb, o.Path, outside, o.Is, o.Files, o.Bytes))
	}
	for _, h := range p.Hosts {
		all = append(all, "host "+h)
	}
	for _, u := range p.Unknown {
		all = append(all, "? "+u)
	}
	return strings.Join(all, "; ")
}
