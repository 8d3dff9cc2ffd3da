package settings

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// nameIn are names that stand for those which a mapping of the document has.
var nameIn = map[string]string{"channels": "C0123", "projects": "web"}

// paths calls f with every key of a type, as the YAML around a value that stands there.
func paths(t reflect.Type, key string, around func(value string) string, f func(key string, t reflect.Type, around func(string) string)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	f(key, t, around)
	switch t.Kind() {
	case reflect.Struct:
		for field := range t.Fields() {
			if name := field.Tag.Get("yaml"); name != "" {
				paths(field.Type, name, func(v string) string { return around("{" + name + ": " + v + "}") }, f)
			}
		}
	case reflect.Map:
		name, ok := nameIn[key]
		if !ok {
			name = "some-name"
		}
		paths(t.Elem(), name, func(v string) string { return around("{" + name + ": " + v + "}") }, f)
	case reflect.Slice:
		paths(t.Elem(), key, func(v string) string { return around("[" + v + "]") }, f)
	}
}

// gibberish is what no person should read: of Go, and of the YAML reader.
var gibberish = regexp.MustCompile(`cannot unmarshal|was used where|!!|struct|interface|reflect|\[\]|map\[|document\b|YAML\b|u?int(8|16|32|64)|float|strconv|nil\b|%!`)

// TestEveryKeyIsTold: whatever stands under a key, the file is read or every sentence says
// where the mistake is, in words for people; what is of another kind than belongs there is
// told with its key, and not repeated.
func TestEveryKeyIsTold(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-c4n4ry"
	file := write(t, "")
	keys, refused := 0, 0
	paths(reflect.TypeFor[document](), "", func(v string) string { return v }, func(key string, typ reflect.Type, around func(string) string) {
		keys++
		want := shapeOf(typ)
		for _, tt := range []struct {
			value string
			kind  bool // belongs there
		}{
			{secret, want.scalar && typ.Kind() != reflect.Bool && typ.Kind() != reflect.Int},
			{"[" + secret + "]", want.list},
			{"{some: " + secret + "}", want.mapping},
			{"[[" + secret + "]]", want.list},
			{"[{some: " + secret + "}]", want.list},
			{"{some: [" + secret + "]}", want.mapping},
			{"5", want.scalar && typ.Kind() != reflect.Bool},
			{"-1", want.scalar && typ.Kind() != reflect.Bool},
			{"99999999999999999999", want.scalar && typ.Kind() != reflect.Int && typ.Kind() != reflect.Bool},
			{"1.5", want.scalar && typ.Kind() != reflect.Bool && typ.Kind() != reflect.Int},
			{".inf", want.scalar && typ.Kind() != reflect.Bool && typ.Kind() != reflect.Int},
			{"yes", want.scalar && typ.Kind() != reflect.Bool && typ.Kind() != reflect.Int},
			{"true", want.scalar && typ.Kind() != reflect.Int},
			{"2026-11-22", want.scalar && typ.Kind() != reflect.Bool && typ.Kind() != reflect.Int},
			{"null", true},
			{"~", true},
			{`""`, want.scalar && typ.Kind() != reflect.Bool && typ.Kind() != reflect.Int},
			{"[]", want.list},
			{"{}", want.mapping},
			{"[null]", want.list},
			{"!!binary aGk=", true},
			{"*nobody", true},
			{"&it {some: *it}", true},
		} {
			text := around(tt.value)
			_, err := readText(file, []byte(text))
			if err == nil {
				if !tt.kind {
					t.Errorf("%s is taken", text)
				}
				continue
			}
			refused++
			said := strings.ReplaceAll(err.Error(), file, "FILE")
			for line := range strings.Lines(said) {
				if !regexp.MustCompile(`^FILE(:\d+:\d+)?: `).MatchString(line) {
					t.Errorf("%s: it does not say where: %s", text, line)
				}
				if found := gibberish.FindString(line); found != "" {
					t.Errorf("%s: it says %q: %s", text, found, line)
				}
			}
			if !tt.kind && (strings.Contains(said, secret) || !strings.Contains(said, key) || !strings.Contains(said, "write ")) {
				t.Errorf("%s: it does not say the key and what to write, or repeats what stands there: %s", text, said)
			}
		}
	})
	t.Logf("%d keys, %d files refused", keys, refused)
	if keys < 150 {
		t.Errorf("only %d keys were tried", keys)
	}
}

// TestKindsAreToldTogether: all that is of a wrong kind is told at once.
func TestKindsAreToldTogether(t *testing.T) {
	t.Parallel()
	file := write(t, "")
	_, err := readText(file, []byte("provider: foo\nprojects:\n  web:\n    mcp_servers: [a]\n    git: yes\nbudgets:\n  - warn_at: 50\n"))
	want := []string{
		":1:11: provider: write a mapping with some of the keys kind, ", ":4:18: projects.web.mcp_servers: write a mapping: ",
		":5:10: projects.web.git: write a mapping with some of the keys url, ", ":7:14: budgets[0].warn_at: write a list of whole numbers, such as [50, 80]",
	}
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d problems:\n%v", len(lines), err)
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], file+w) {
			t.Errorf("it says %q, want %q", lines[i], w)
		}
	}
}
