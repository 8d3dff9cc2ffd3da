package policy

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// The format of programs.txt. A row is what is known of a program, or of one of its
// subcommands: its names, apart by |, a colon, and what its words mean. A line that begins
// with a blank goes on with the row above it, and # begins a comment line.
//
//	grep|egrep: text read... -i -v number= -A -B      operands in order, one of which may repeat (...)
//	git log: rev... -- pathspec...                    after --: the operands that follow it
//	ROLE=  ROLE?  MODE/  /      the options from here on take a value; take one only as --color=x or
//	                            -jx; are of this mode; are plain. MODE,ROLE= is both.
//	-e!                         stands in for the first operand; -# is -NUMBER
//	=getopt =go =words =plain   how options are written: -abc -n3 --long=v (if nothing is said); -x --x -x=v;
//	                            -long -x v; there are none. =first: they stand before the first operand only
//	~tree                       what it reads in its folder when no operand names a file
//	!code !write:PATH …         what it does besides its words (effectKinds); !write:./ is a mode of options
//	!ask                        it is asked whatever its words are: the row is for rules that deny
//	&name                       what the row called &name holds
//	@name                       another name of a program that has its rows above
//
// Modes: tree, follow, format, write (what operands that are read become), links (an effect),
// dry (what would be formatted is only read), names (git shows names and no content), others (and
// what lay under other names), tracked
// and history (git shows content).

// role says what a word means to a program.
type role uint8

const (
	roleNone     role = iota
	roleText          // names no file and is no code
	roleShape         // text of a known form
	roleStat          // a path whose name, size or kind is shown, not its content
	roleRead          // a file that is read
	roleTree          // a folder that is read with all below it; links are not followed
	roleFollow        // the same, and links are followed
	roleFormat        // files that a formatter rewrites, or a folder of them: only those of its language
	roleWrite         // a file that is written, or a folder in which files are, through the links that lie there
	roleReplace       // what is created, renamed, changed or deleted itself; links below it are not followed
	roleInto          // written; in an existing folder, files named like the operands before it
	roleURL           // is fetched: the pattern must spell scheme and host
	roleExec          // is run: the pattern must spell it
	rolePackage       // Go packages: ./… or the standard library's
	roleRev           // a git revision, a path of the repository, or rev:path; object: never a path alone
	rolePathspec      // git's paths: read with all below them
	roleMoved         // read with all below it, and moved or given a second name
	roleLocation      // a test as runners name it: a file, and what it holds
	roleSources       // files as linters name them: a file, a folder, or a pattern
	roleArgument      // for a script of the workspace: a harmless option, or a plain word
	roleTracked       // an effect's: what git tracks below a folder
	roleHistory       // an effect's: a folder's whole history
)

// roleNames are the roles' names in the table.
var roleNames = map[string]role{
	"text": roleText, "stat": roleStat, "read": roleRead, "tree": roleTree, "follow": roleFollow, "format": roleFormat, "write": roleWrite, "replace": roleReplace, "into": roleInto,
	"url": roleURL, "exec": roleExec, "package": rolePackage, "rev": roleRev, "object": roleRev, "pathspec": rolePathspec, "moved": roleMoved, "location": roleLocation,
	"sources": roleSources, "argument": roleArgument, "tracked": roleTracked, "history": roleHistory,
}

func (r role) writes() bool {
	return r == roleWrite || r == roleReplace || r == roleInto || r == roleFormat
}

// use is a role with its parameters.
type use struct {
	role  role
	name  string   // as it is written
	oneOf []string // roleShape: one of these
	shape *shape   // roleShape, but for those
}

// effectKind is an effect of a program besides those of its words.
type effectKind uint8

const (
	effectCode    effectKind = iota + 1 // runs the workspace's own code
	effectFetch                         // fetches, or reports to a remote service
	effectForeign                       // runs what is not in the workspace
	effectEnviron                       // shows the environment
	effectLinks                         // makes or moves symbolic links, so that later words of the line may lead elsewhere
	effectAsk                           // an effect that its words do not show
	effectPath                          // reads or writes a path
)

var effectKinds = map[string]effectKind{
	"code": effectCode, "fetch": effectFetch, "foreign": effectForeign, "environ": effectEnviron, "links": effectLinks, "ask": effectAsk,
}

type effect struct {
	kind effectKind
	role role // effectPath: read, tree, tracked, history, write, replace or format
	path string
}

type style uint8

const (
	styleGetopt style = iota
	styleGo
	styleWords
	stylePlain
)

var styles = map[string]style{"getopt": styleGetopt, "go": styleGo, "words": styleWords, "plain": stylePlain}

// option is a known harmless option.
type option struct {
	takes   takes
	use     use
	dry     bool // makes formatting read only
	names   bool // makes git show names and no content
	others  bool // git may also show what lay under other names
	instead bool // it replaces the first operand
	mode    role // roleTree, roleFollow, roleFormat or roleWrite: the new role of operands that are read
	effects []effect
}

type takes uint8

const (
	takesNothing takes = iota
	takesValue
	takesMaybe
)

// operands is a list of roles; the one at index rest repeats, -1 for none.
type operands struct {
	uses []use
	rest int
}

// block is the row of a program or one of its subcommands.
type block struct {
	style    style
	first    bool // options stand before the first operand only
	options  map[string]*option
	numbers  *option   // -NUMBER
	operands *operands // nil: it takes none
	after    *operands
	fallback role // what it does in its folder when no operand names a file
	effects  []effect
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
var binFolders = []string{"/bin/", "/usr/bin/", "/usr/local/bin/", "node_modules/.bin/", "./node_modules/.bin/", "vendor/bin/", "./vendor/bin/", ".venv/bin/", "./.venv/bin/", "venv/bin/", "./venv/bin/"}

// specification finds the row of a program by the word that names it; nil for none.
func specification(name string) *program {
	all := programs()
	if p := all[name]; p != nil {
		return p
	}
	base := name
	if strings.Contains(name, "/") {
		i := slices.IndexFunc(binFolders, func(dir string) bool { return strings.HasPrefix(name, dir) })
		if i < 0 {
			return nil
		}
		if base = name[len(binFolders[i]):]; strings.Contains(base, "/") {
			return nil
		}
	}
	if p := all[base]; p != nil {
		return p
	}
	return all[versioned(base)]
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
	var rows [][]string
	for l := range strings.Lines(text) {
		switch words := strings.Fields(l); {
		case len(words) == 0, words[0] == "#":
		case strings.HasPrefix(l, " ") && len(rows) > 0:
			rows[len(rows)-1] = append(rows[len(rows)-1], words...)
		default:
			n := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, ":") })
			names := strings.TrimSuffix(strings.Join(words[:n+1], " "), ":")
			rows = append(rows, append([]string{names}, words[n+1:]...))
		}
	}
	program := func(name string) *program {
		if t.all[name] == nil {
			t.all[name] = &program{subs: map[string]*block{}}
		}
		return t.all[name]
	}
	for _, row := range rows {
		if name, ok := strings.CutPrefix(row[0], "&"); ok {
			t.groups[name] = row[1:]
			continue
		}
		t.row = row[0]
		for name := range strings.SplitSeq(row[0], "|") {
			first, rest, isSub := strings.Cut(name, " ")
			if len(row) == 2 && row[1][0] == '@' { // another name of a program that has its rows above
				t.all[first] = program(row[1][1:])
				continue
			}
			p := program(first)
			switch {
			case !isSub && p.options == nil:
				p.options = map[string]*option{}
				t.read(&p.block, row[1:], 0)
			case isSub && p.subs[rest] == nil:
				b := &block{style: p.style, first: p.first, options: map[string]*option{}}
				t.read(b, row[1:], 0)
				p.subs[rest], p.longest = b, max(p.longest, strings.Count(rest, " ")+1)
			default:
				t.fail("%s has a row already", name)
			}
		}
	}
	return t.all, errors.Join(t.errs...)
}

func (t *tableReader) fail(format string, args ...any) {
	t.errs = append(t.errs, fmt.Errorf("%s: %s", t.row, fmt.Sprintf(format, args...)))
}

// maxUse bounds how deeply groups use one another.
const maxUse = 4

// read reads what the words of a row say.
func (t *tableReader) read(b *block, words []string, depth int) {
	kind, to := option{}, &b.operands
	for _, w := range words {
		key := w[1:]
		switch {
		case w == "--":
			to = &b.after
			*to = &operands{rest: -1}
		case w[0] == '-':
			t.option(b, kind, w)
		case w[0] == '&' && t.groups[key] != nil && depth < maxUse:
			t.read(b, t.groups[key], depth+1)
		case w[0] == '=' && key == "first":
			b.first = true
		case w[0] == '=':
			s, ok := styles[key]
			if b.style, b.first = s, false; !ok {
				t.fail("there is no style %s", key)
			}
		case w[0] == '~' && roleNames[key] != roleNone:
			b.fallback = roleNames[key]
		case strings.HasSuffix(w, "="):
			kind = t.kind(strings.TrimSuffix(w, "="), takesValue)
		case strings.HasSuffix(w, "?"):
			kind = t.kind(strings.TrimSuffix(w, "?"), takesMaybe)
		case strings.HasSuffix(w, "/"):
			kind = t.kind(strings.TrimSuffix(w, "/"), takesNothing)
		case w[0] == '!':
			b.effects = append(b.effects, t.effect(key))
		default:
			name, rest := strings.CutSuffix(w, "...")
			if *to == nil {
				*to = &operands{rest: -1}
			}
			if rest {
				(*to).rest = len((*to).uses)
			}
			if w != "{}" {
				(*to).uses = append((*to).uses, t.use(name))
			}
		}
	}
}

// kind reads what stands before options: modes, and the role of their value.
func (t *tableReader) kind(s string, takes takes) option {
	o := option{takes: takes}
	for w := range strings.SplitSeq(s, ",") {
		switch m := roleNames[w]; {
		case w == "":
		case w == "dry":
			o.dry = true
		case w == "names":
			o.names = true
		case w == "others":
			o.others = true
		case w == "links":
			o.effects = append(o.effects, effect{kind: effectLinks})
		case w[0] == '!':
			o.effects = append(o.effects, t.effect(w[1:]))
		case m == roleTracked || m == roleHistory:
			o.effects = append(o.effects, effect{effectPath, m, "."})
		case takes == takesNothing:
			o.mode = m
		case m == roleWrite && strings.HasPrefix(s, "write,"): // the mode, and then the role
			o.mode, o.use = m, t.use(w)
		default:
			o.use = t.use(w)
		}
	}
	return o
}

func (t *tableReader) option(b *block, kind option, name string) {
	name, kind.instead = strings.CutSuffix(name, "!")
	switch {
	case name == "-#":
		b.numbers = &kind
		return
	case b.style == styleGo:
		name = "-" + strings.TrimLeft(name, "-")
	}
	if b.options[name] != nil {
		t.fail("the option %s stands twice", name)
	}
	b.options[name] = &kind
}

func (t *tableReader) use(s string) use {
	if list, ok := strings.CutPrefix(s, "{"); ok && strings.HasSuffix(list, "}") {
		return use{role: roleShape, name: s, oneOf: strings.Split(strings.TrimSuffix(list, "}"), "|")}
	}
	if sh := shapes[s]; sh != nil {
		return use{role: roleShape, name: s, shape: sh}
	}
	if roleNames[s] == roleNone {
		t.fail("there is no role %s", s)
	}
	return use{role: roleNames[s], name: s}
}

func (t *tableReader) effect(s string) effect {
	name, path, has := strings.Cut(s, ":")
	if has && roleNames[name] != roleNone {
		return effect{effectPath, roleNames[name], path}
	}
	if effectKinds[s] == 0 {
		t.fail("there is no effect %s", s)
	}
	return effect{kind: effectKinds[s]}
}
