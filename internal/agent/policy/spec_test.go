package policy

import (
	"strings"
	"testing"
)

func TestTheTableIsRead(t *testing.T) {
	t.Parallel()
	all, err := readTable(programTable)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Errorf("the table holds %d programs, want at least 100", len(all))
	}
}

func TestAMistakeInTheTableNamesItsRow(t *testing.T) {
	t.Parallel()
	for row, want := range map[string]string{
		"x: nothing":       "x: there is no role nothing",
		"x: =odd":          "x: there is no role =odd",
		"x: !odd":          "x: there is no effect odd",
		"x: -a -a":         "x: the option -a stands twice",
		"x: -a\nx: -b":     "x: x has a row already",
		"x y: -a\nx y: -b": "x y: x y has a row already",
		"x: odd= -a":       "x: there is no role odd",
	} {
		if _, err := readTable(row); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", row, err, want)
		}
	}
}

func TestAProgramIsFoundByName(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{
		"grep": true, "/usr/bin/grep": true, "python3.12": true, "./node_modules/.bin/tsc": true, "./gradlew": true, "node_modules/.bin/../../x": false,
		"frobnicate": false, "./grep": false, "/opt/bin/grep": false, "GREP": false, "podman": true,
	} {
		if got := specification(name) != nil; got != known {
			t.Errorf("%s is known: %t, want %t", name, got, known)
		}
	}
}
