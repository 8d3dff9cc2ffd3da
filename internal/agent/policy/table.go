package policy

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The format of programs.txt. A row is what is known of a program, or of one of its subcommands: its names, apart
// by |, a colon, and the words below. A line that begins with a blank goes on with the row above it, and # begins a
// comment line.
//
//	grep|egrep: text read... -i -v   what its operands are, in order, one of which may repeat (...); its options
//	text=  /REGEXP/=  ROLE/  /       the options from here on take a value (any, or of this form); make its operands
//	                                 this; are plain. -# is -NUMBER, and --x= takes its value only behind the =
//	=words =plain =first             options are words (-name x, -name=x); it has none; they stand before the operands.
//	                                 Else: -abc -n3 --long=v
//	~tree                            what it reads in its folder when no operand names a file
//	!code !write:PATH …              what it does besides its words (effects)
//	!ask                             it is asked whatever its words are: the row is for rules that deny
//	&name                            what the row called &name holds
//	@name                            another name of a program that has its rows above
//
// Options that are not listed are asked.

// role says what a word is to a program.
type role uint8

const (
	roleNone    role = iota
	roleText         // names no file and is no code
	roleNames        // a path whose name, size or kind is shown, not its content
	roleRead         // a file that is read
	roleFollow       // the same, or a folder in which links are followed: it is asked
	roleTree         // the same, or a folder that is read with all below it; links are not followed
	roleTracked      // what git keeps there: of a folder all that it tracks, of what is no file all that it ever had
	rolePast         // the same, and of a folder all that it ever had
	roleWrite        // a file that is written, created or deleted
	roleFolder       // a folder that is made, if it is none yet
	roleInto         // a file that is written, or a folder in which files named like the other operands are
	roleMoved        // read with all below it, and moved
	roleExec         // is run: the pattern must spell it
	rolePackage      // a Go package of the workspace
	roleTest         // a file or a folder, and after : a test in it
)

var roleNamed = map[string]role{
	"text": roleText, "names": roleNames, "read": roleRead, "follow": roleFollow, "tree": roleTree, "tracked": roleTracked, "past": rolePast, "write": roleWrite, "folder": roleFolder,
	"into": roleInto, "moved": roleMoved, "exec": roleExec, "package": rolePackage, "test": roleTest,
}

func (r role) writes() bool { return r >= roleWrite && r <= roleMoved }

func (r role) searches() bool { return r == roleTree || r == roleTracked || r == rolePast }

// use is a role, with the form of a text.
type use struct {
	role role
	form *regexp.Regexp
}

// effects of a program besides those of its words; others are write:PATH.
var effects = map[string]string{
	"code": "", "links": "", "ask": "", // it runs the workspace's code; makes or moves links; may do anything
	"fetch":   " reaches out to the network",
	"foreign": " can fetch and run what the workspace does not hold",
	"environ": " shows the environment",
}

// option is a known harmless option.
type option struct {
	value *use // nil: it takes none
	mode  role // what operands that are read become
}

// block is the row of a program or one of its subcommands.
type block struct {
	words, plain, first bool // its style
	numbers             bool // -NUMBER is an option

	options  map[string]option
	operands []use
	rest     int  // the index of the one that repeats; -1 for none
	fallback role // what it does in its folder when no operand names a file
	effects  []string
	searches bool // a word that is not known may make it read all below its folder
	writes   bool // or write there
}

// program is what is known of a program.
type program struct {
	block
	subs    map[string]*block // by their words, joined by spaces
	longest int               // how many words the longest of them has
}

//go:embed programs.txt
var programTable string

// programs are all known programs, by name. A test checks the table.
var programs = sync.OnceValue(func() map[string]*program {
	all, err := readTable(programTable)
	if err != nil {
		panic("policy: " + err.Error())
	}
	return all
})

// binFolders hold programs that are what their names say.
var binFolders = regexp.MustCompile(`^(?:/bin|/usr/bin|/usr/local/bin|(?:\./)?(?:node_modules/\.bin|vendor/bin|\.?venv/bin))/([^/]+)$`)

// specification finds the row of a program by the word that names it; nil for none.
func specification(name string) *program {
	all := programs()
	if p := all[name]; p != nil {
		return p
	}
	if m := binFolders.FindStringSubmatch(name); m != nil {
		name = m[1]
	} else if strings.Contains(name, "/") {
		return nil
	}
	if p := all[name]; p != nil {
		return p
	}
	return all[versioned(name)]
}

// tableReader reads the table.
type tableReader struct {
	all    map[string]*program
	groups map[string][]string
	row    string // the names of the row that is read
	errs   []error
}

// readTable parses the table. Its error joins all mistakes, each with its row.
func readTable(text string) (map[string]*program, error) {
	t := &tableReader{all: map[string]*program{}, groups: map[string][]string{}}
	for row := range strings.SplitSeq(strings.ReplaceAll("\n"+text, "\n ", " "), "\n") {
		names, rest, ok := strings.Cut(row, ": ")
		if row = strings.TrimSuffix(row, ":"); !ok {
			names = row
		}
		words := strings.Fields(rest)
		switch t.row = names; {
		case names == "", names[0] == '#':
		case names[0] == '&':
			t.groups[names] = words
		default:
			for name := range strings.SplitSeq(names, "|") {
				t.name(name, words)
			}
		}
	}
	return t.all, errors.Join(t.errs...)
}

func (t *tableReader) name(name string, words []string) {
	first, rest, isSub := strings.Cut(name, " ")
	if len(words) == 1 && words[0][0] == '@' {
		t.all[name] = t.all[words[0][1:]]
		return
	}
	p := t.all[first]
	if p == nil {
		p = &program{subs: map[string]*block{}}
		t.all[first] = p
	}
	b := &p.block
	if isSub {
		b = &block{}
		if p.subs[rest] != nil {
			t.fail("%s has a row already", name)
		}
		p.subs[rest], p.longest = b, max(p.longest, strings.Count(rest, " ")+1)
	} else if b.options != nil {
		t.fail("%s has a row already", name)
	}
	b.options, b.rest = map[string]option{}, -1
	t.read(b, words)
	for _, u := range b.operands {
		b.searches, b.writes = b.searches || u.role.searches() || u.role == roleInto, b.writes || u.role.writes()
	}
	b.searches, b.writes = b.searches || b.fallback.searches(), b.writes || b.fallback.writes()
	p.searches, p.writes = p.searches || b.searches, p.writes || b.writes
}

func (t *tableReader) fail(format string, args ...any) {
	t.errs = append(t.errs, fmt.Errorf("%s: %s", t.row, fmt.Sprintf(format, args...)))
}

// read reads what the words of a row say.
func (t *tableReader) read(b *block, words []string) {
	kind := option{}
	for _, w := range words {
		switch last := w[len(w)-1]; {
		case w == "=words":
			b.words = true
		case w == "=plain":
			b.plain = true
		case w == "=first":
			b.first = true
		case w == "-#":
			b.numbers = true
		case w[0] == '-':
			if _, twice := b.options[w]; twice {
				t.fail("the option %s stands twice", w)
			}
			b.options[w] = kind
			b.writes = b.writes || kind.value != nil && kind.value.role.writes()
		case w[0] == '&' && t.groups[w] != nil:
			t.read(b, t.groups[w])
		case w[0] == '~':
			b.fallback = t.use(w[1:]).role
		case last == '=':
			u := t.use(w[:len(w)-1])
			kind = option{value: &u}
		case w == "/":
			kind = option{}
		case last == '/' && w[0] != '/':
			kind = option{mode: t.use(w[:len(w)-1]).role}
			b.searches, b.writes = b.searches || kind.mode == roleTree, b.writes || kind.mode.writes()
		case w[0] == '!':
			b.effects = append(b.effects, w[1:])
			b.writes = b.writes || strings.HasPrefix(w, "!write:")
			if _, known := effects[w[1:]]; !known && !strings.HasPrefix(w, "!write:") {
				t.fail("there is no effect %s", w[1:])
			}
		default:
			name, rest := strings.CutSuffix(w, "...")
			if rest {
				b.rest = len(b.operands)
			}
			b.operands = append(b.operands, t.use(name))
		}
	}
}

// forms of texts, by name.
var forms = map[string]string{"name": `/[A-Za-z0-9_][A-Za-z0-9_.\/:+@-]*/`, "number": `/[+-]*[0-9][0-9.]*[A-Za-z%]{0,3}/`}

func (t *tableReader) use(s string) use {
	s = cmp.Or(forms[s], s)
	if len(s) > 2 && s[0] == '/' && s[len(s)-1] == '/' {
		re, err := regexp.Compile(`^(?:` + s[1:len(s)-1] + `)$`)
		if err != nil {
			t.fail("%v", err)
		}
		return use{roleText, re}
	}
	if roleNamed[s] == roleNone {
		t.fail("there is no role %s", s)
	}
	return use{role: roleNamed[s]}
}

// runsCode reports whether a row runs the workspace's code.
func (b *block) runsCode() bool { return slices.Contains(b.effects, "code") }
