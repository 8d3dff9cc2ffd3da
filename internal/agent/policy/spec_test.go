package policy

import (
	"strings"
	"testing"
)

func TestEverySpecificationIsRead(t *testing.T) {
	t.Parallel()
	all, err := loadSpecs()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d programs", len(all))
}

func TestAMistakeInASpecificationNamesItsLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, says string }{
		{"flag -x", "x.spec:1: flag stands before any program or group"},
		{"sub x", "x.spec:1: sub stands before any program"},
		{"program", "x.spec:1: program needs a name"},
		{"program a\n\nprogram a", "x.spec:3: a has a specification already (x.spec:1)"},
		{"program a\n  flag", "x.spec:2: flag needs more words"},
		{"program a\n  flag x", `x.spec:2: "x" is no option`},
		{"program a\n  flag --x=y", `x.spec:2: "--x=y" is no option`},
		{"program a\n  flag -x\n  value text -x", "x.spec:3: the option -x stands twice"},
		{"program a\n  style go\n  flag -x --x", "x.spec:3: the option -x stands twice"},
		{"program a\n  value -x", `x.spec:2: "-x" is no role`},
		{"program a\n  value number -#", "x.spec:2: -# takes no value"},
		{"program a\n  flag tree links x", `x.spec:2: "x" is no option`},
		{"program a\n  flag write", `x.spec:2: "write" is no option`},
		{"program a\n  value text,line -x", `x.spec:2: "line" is no role`},
		{"program a\n  maybe write -x", ""},
		{"program a\n  maybe write {} -x", ""},
		{"program a\n  needs -x", "x.spec:2: the option -x that it needs is not known"},
		{"program a\n  operands read... text...", "x.spec:2: only one role can repeat"},
		{"program a\n  operands path", `x.spec:2: "path" is no role`},
		{"program a\n  operands read\n  operands read", "x.spec:3: there are two lines of this kind"},
		{"program a\n  sub x\n  sub y | x", "x.spec:3: the subcommand x stands twice in a"},
		{"program a\n  use g", "x.spec:2: there is no group g in this file"},
		{"program a\n  use g\ngroup g\n  use g", "x.spec:4: there is no group g in this file"},
		{"program a\n  use g\ngroup g\n  flags -x", `x.spec:4: "flags" is no keyword`},
		{"group g\ngroup g", "x.spec:2: a group has one name of its own"},
		{"program a\n  style posix", "x.spec:2: style is getopt, bundle, go, words or plain"},
		{"program a\n  effect write", "x.spec:2: the effect write needs a path"},
		{"program a\n  effect code x", "x.spec:2: what is x?"},
		{"program a\n  effect harm", `x.spec:2: "harm" is no effect`},
		{"program a\n  flag-effect write -x", "x.spec:2: the effect write needs a path"},
		{"program a\n  default write .", "x.spec:2: write default stat, read, tree, tracked, history or format, and a path"},
	} {
		err := parseSpec("x.spec", tt.text, map[string]*program{})
		if tt.says == "" && err == nil {
			continue
		}
		if err == nil || tt.says == "" || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: %v, want %s", tt.text, err, tt.says)
		}
	}
}

func TestASpecificationIsFoundByName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"echo", "/bin/echo", "/usr/bin/echo"} {
		if p := specification(name); p == nil || p.name != "echo" {
			t.Errorf("%s is not found", name)
		}
	}
	for _, name := range []string{"./echo", "bin/echo", "/usr/bin/../x/echo", "/usr/bin/x/echo", "ECHO", "echo2x", ""} {
		if p := specification(name); p != nil {
			t.Errorf("%q is taken for %s", name, p.name)
		}
	}
}
