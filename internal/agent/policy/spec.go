package policy

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// The format of programs/*.spec. A line is a keyword and its words; # begins a
// comment, indentation is for people, and the order within a block is free. A
// block lasts until the next program, sub or group.
//
//	program grep egrep fgrep ./grep   names, without a version (python3.12 is python);
//	                                  one with a slash is that path and no other
//	style getopt [first]              getopt (default): -abc, -n 3, -n3, --long, --long=v, --long v
//	                                  bundle: the same, and the first word is a cluster without a dash (tar xf x)
//	                                  go: -x, --x, -x=v, -x v, no clusters
//	                                  words: -long, -x v, no clusters, no -- (find, java)
//	                                  plain: there are no options, every word is an operand (echo)
//	                                  first: options stand before the first operand only
//	flag [MODE] -i --ignore-case -#   options without a value, in exact spellings; -# is -NUMBER
//	                                  MODE tree, follow, write, format: what it makes of operands that are read; links: an effect;
//	                                  dry: what would be formatted is only read
//	flag! --files                     … that stand in for the first operand
//	value ROLE -A --after-context     options with a value; ROLE,ROLE: with two
//	value! ROLE -e --regexp           … that stands in for the first operand
//	maybe [MODE] ROLE --color -j      options with a value only as --color=v and -jv; of {} none is known
//	needs -c --stdout                 options of which one must be there, or nothing is known of the command
//	operands ROLE ROLE... ROLE        roles in order, one of which may repeat
//	after ROLE...                     roles of what follows --, if they are others
//	default ROLE PATH                 what it reads when no operand names a file
//	sub status | st                   a subcommand, of one word or more ("stash list"), and its other names
//	use GROUP …                       the lines of a group of the same file
//	effect KIND [PATH]                what it does besides its words
//	flag-effect KIND [PATH] -x …      options without a value that do so
//	group NAME
//
// Roles: see [roleNames]; {a,b} is one of these words. Effects: see [effectKinds].

// role says what a word is to a program.
type role uint8

const (
	roleNone     role = iota
	roleText          // names no file and is no code
	roleName          // text that begins with a letter, a digit or _ and holds no more than names do
	roleNumber        // 3, 1.5, 10K
	roleOneOf         // one of a few words
	roleStat          // a path whose name, size or kind is shown, not its content
	roleRead          // a file that is read
	roleTree          // a folder that is read with all below it; links are not followed
	roleFollow        // the same, and links are followed
	roleFormat        // files that a formatter rewrites, or a folder of them: only those of its language
	roleWrite         // a file or folder that is created, changed or deleted
	roleInto          // written; in a folder that exists, files named like the operands before it
	roleURL           // is fetched: the pattern must spell scheme and host
	roleExec          // is run: the pattern must spell it
	rolePackage       // Go packages: ./… or the standard library's
	roleRev           // a git revision, a path of the repository, or rev:path
	rolePathspec      // git's paths: read with all below them
	roleChecked       // a small language that a checker reads
	roleTracked       // of an effect: what git tracks below a folder
	roleHistory       // of an effect: a folder as it was at any time
)

// roleNames are the roles as they are written.
var roleNames = map[string]role{
	"text": roleText, "name": roleName, "number": roleNumber, "stat": roleStat, "read": roleRead, "tree": roleTree, "follow": roleFollow,
	"format": roleFormat, "write": roleWrite, "into": roleInto, "url": roleURL, "exec": roleExec, "package": rolePackage, "rev": roleRev, "pathspec": rolePathspec,
}

// use is a role with what it needs to be judged.
type use struct {
	role  role
	name  string   // as it is written
	oneOf []string // roleOneOf
	check checker  // roleChecked
}

// checked is what a checker makes of a word: the paths in it by what happens to
// them, or why it is not known to be harmless.
type checked struct {
	reads, trees, writes []string
	environ              bool   // it shows the environment
	why                  string // "it runs a command"; empty when the word is known
}

// checker reads a word in a small language, of which it knows a harmless subset.
type checker func(word string) checked

// effectKind is what a program does besides what its words name.
type effectKind uint8

const (
	effectCode    effectKind = iota + 1 // runs the workspace's own code
	effectRead                          // reads PATH
	effectTree                          // reads PATH with all below it
	effectTracked                       // reads what git tracks below PATH
	effectHistory                       // reads what lay below PATH at any time
	effectWrite                         // writes PATH
	effectFormat                        // rewrites the files of its language below PATH
	effectFetch                         // fetches, or tells somebody far away
	effectForeign                       // runs what the workspace does not hold
	effectEnviron                       // shows the environment
	effectLinks                         // makes or moves symbolic links, so that later words of the line may lead elsewhere
)

var effectKinds = map[string]effectKind{
	"code": effectCode, "read": effectRead, "tree": effectTree, "tracked": effectTracked, "history": effectHistory, "write": effectWrite, "format": effectFormat, "fetch": effectFetch, "foreign": effectForeign, "environ": effectEnviron, "links": effectLinks,
}

func (k effectKind) takesPath() bool {
	return k == effectRead || k == effectTree || k == effectTracked || k == effectHistory || k == effectWrite || k == effectFormat
}

type effect struct {
	kind effectKind
	path string
}

type style uint8

const (
	styleUnset style = iota
	styleGetopt
	styleBundle
	styleGo
	styleWords
	stylePlain
)

var styles = map[string]style{"getopt": styleGetopt, "bundle": styleBundle, "go": styleGo, "words": styleWords, "plain": stylePlain}

// option is an option that is known to be harmless.
type option struct {
	takes   takes
	use     use
	second  *use     // of a second value
	dry     bool     // with it, what would be formatted is only read
	instead bool     // it stands in for the first operand
	mode    role     // roleTree, roleFollow, roleFormat or roleWrite: what operands that are read become
	effects []effect // of the option
}

type takes uint8

const (
	takesNothing takes = iota
	takesValue
	takesMaybe
)

// shape is a list of roles, of which the one at rest repeats; -1 for none.
type shape struct {
	uses []use
	rest int
}

// block is what is known of a program or of one of its subcommands.
type block struct {
	style    style
	first    bool // options stand before the first operand only
	options  map[string]*option
	numbers  *option  // -NUMBER
	needs    []string // options of which one must be there
	operands *shape   // nil: it takes none
	after    *shape
	fallback *part // what it works on when no operand names a file; nil for nothing
	effects  []effect
}

// program is the specification of a program.
type program struct {
	name string
	at   string // file and line
	block
	subs    map[string]*block // by their words, joined by spaces
	longest int               // how many words the longest of them has
}

//go:embed programs/*.spec
var specFiles embed.FS

// programs are all specifications, by the program's name. A mistake in them is a
// mistake of ours, which a test finds.
var programs = sync.OnceValue(func() map[string]*program {
	all, err := loadSpecs()
	if err != nil {
		panic("policy: " + err.Error())
	}
	return all
})

// loadSpecs parses every file. Its error holds every mistake with its line.
func loadSpecs() (map[string]*program, error) {
	files, err := specFiles.ReadDir("programs")
	if err != nil {
		return nil, err
	}
	all := map[string]*program{}
	var mistakes []error
	for _, f := range files {
		text, err := specFiles.ReadFile(path.Join("programs", f.Name()))
		if err != nil {
			return nil, err
		}
		mistakes = append(mistakes, parseSpec(f.Name(), string(text), all))
	}
	return all, errors.Join(mistakes...)
}

// binFolders hold programs that are what their names say.
var binFolders = []string{"/bin/", "/usr/bin/", "/usr/local/bin/", "node_modules/.bin/", "./node_modules/.bin/", "vendor/bin/", "./vendor/bin/", ".venv/bin/", "./.venv/bin/", "venv/bin/", "./venv/bin/"}

// specification finds what is known of a program by the word that names it; nil
// for nothing.
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

// specParser reads one file.
type specParser struct {
	file   string
	line   int
	all    map[string]*program
	groups map[string][]specLine
	prog   *program
	block  *block      // the one that lines go to
	bodies []*specBody // in order; read once all groups are known
	errs   []error
}

type specLine struct {
	line  int
	words []string
}

// specBody is the lines of a block.
type specBody struct {
	prog  *program
	block *block
	lines []specLine
}

// parseSpec adds the programs of a file to all. Its error is every mistake, each
// with file and line.
func parseSpec(file, text string, all map[string]*program) error {
	p := &specParser{file: file, all: all, groups: map[string][]specLine{}}
	p.split(text)
	for _, b := range p.bodies {
		p.prog, p.block = b.prog, b.block
		if b.block.style == styleUnset { // a subcommand's is its program's
			b.block.style, b.block.first = b.prog.style, b.prog.first
		}
		p.styles(b.lines, 0) // how options are spelt depends on it
		p.read(b.lines, 0)
		for _, n := range b.block.needs {
			if b.block.options[n] == nil {
				p.fail("the option %s that it needs is not known", n)
			} else { // it stands on a line with others, which are not needed
				own := *b.block.options[n]
				b.block.options[n] = &own
			}
		}
	}
	return errors.Join(p.errs...)
}

func (p *specParser) fail(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %s", p.file, p.line, fmt.Sprintf(format, args...)))
}

// split finds the blocks of a file.
func (p *specParser) split(text string) {
	var body *specBody
	group := ""
	for i, l := range strings.Split(text, "\n") {
		p.line = i + 1
		words := specWords(l)
		if len(words) == 0 {
			continue
		}
		if len(words) == 1 && words[0] != "group" && words[0] != "program" && words[0] != "sub" {
			p.fail("%s needs more words", words[0])
			continue
		}
		switch words[0] {
		case "program":
			body, group = p.program(words[1:]), ""
		case "sub":
			if body == nil {
				p.fail("sub stands before any program")
				continue
			}
			body = p.sub(body.prog, words[1:])
		case "group":
			if len(words) != 2 || p.groups[words[1]] != nil {
				p.fail("a group has one name of its own")
				continue
			}
			group, body = words[1], nil
			p.groups[group] = []specLine{}
		default:
			switch line := (specLine{p.line, words}); {
			case body != nil:
				body.lines = append(body.lines, line)
			case group != "":
				p.groups[group] = append(p.groups[group], line)
			default:
				p.fail("%s stands before any program or group", words[0])
			}
		}
	}
}

// specWords are the words of a line without its comment: # begins one where it
// stands alone or before a space.
func specWords(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		if w == "#" || i == 0 && strings.HasPrefix(w, "#") {
			return words[:i]
		}
	}
	return words
}

func (p *specParser) program(names []string) *specBody {
	prog := &program{subs: map[string]*block{}, at: fmt.Sprintf("%s:%d", p.file, p.line)}
	prog.style, prog.options = styleGetopt, map[string]*option{}
	if len(names) == 0 {
		p.fail("program needs a name")
		names = []string{"?"}
	}
	prog.name = names[0]
	for _, n := range names {
		if old := p.all[n]; old != nil {
			p.fail("%s has a specification already (%s)", n, old.at)
			continue
		}
		p.all[n] = prog
	}
	return p.open(prog, &prog.block)
}

func (p *specParser) open(prog *program, b *block) *specBody {
	body := &specBody{prog: prog, block: b}
	p.bodies = append(p.bodies, body)
	return body
}

func (p *specParser) sub(prog *program, words []string) *specBody {
	b := &block{options: map[string]*option{}}
	for alias := range strings.SplitSeq(strings.Join(words, " "), "|") {
		name := strings.TrimSpace(alias)
		switch {
		case name == "":
			p.fail("a subcommand has no name")
		case prog.subs[name] != nil:
			p.fail("the subcommand %s stands twice in %s", name, prog.name)
		default:
			prog.subs[name] = b
			prog.longest = max(prog.longest, strings.Count(name, " ")+1)
		}
	}
	return p.open(prog, b)
}

// maxUse bounds how deeply groups use one another.
const maxUse = 8

func (p *specParser) read(lines []specLine, depth int) {
	for _, l := range lines {
		p.line = l.line
		key, args := l.words[0], l.words[1:]
		switch key {
		case "use":
			for _, g := range args {
				if p.groups[g] == nil || depth == maxUse {
					p.fail("there is no group %s in this file", g)
					continue
				}
				p.read(p.groups[g], depth+1)
				p.line = l.line
			}
		case "style": // read before the rest
		case "flag", "flag!", "value", "value!", "maybe":
			p.option(key, args)
		case "needs":
			p.block.needs = append(p.block.needs, args...)
		case "operands":
			p.shape(&p.block.operands, args)
		case "after":
			p.shape(&p.block.after, args)
		case "default":
			p.fallback(args)
		case "effect":
			if e, rest := p.effect(args); len(rest) > 0 {
				p.fail("what is %s?", strings.Join(rest, " "))
			} else {
				p.block.effects = append(p.block.effects, e)
			}
		case "flag-effect":
			e, rest := p.effect(args)
			p.options(&option{effects: []effect{e}}, rest)
		default:
			p.fail("%q is no keyword; see the head of spec.go", key)
		}
	}
}

// option reads a line of options.
func (p *specParser) option(key string, args []string) {
	o := &option{instead: strings.HasSuffix(key, "!")}
	switch key {
	case "value", "value!":
		o.takes = takesValue
	case "maybe":
		o.takes = takesMaybe
	}
	for o.takes != takesValue && len(args) > 1 { // modes
		if o.takes == takesMaybe && strings.HasPrefix(args[1], "-") {
			break
		}
		if m := roleNames[args[0]]; m == roleTree || m == roleFollow || m == roleWrite || m == roleFormat {
			o.mode = m
		} else if args[0] == "dry" {
			o.dry = true
		} else if args[0] == "links" {
			o.effects = append(o.effects, effect{kind: effectLinks})
		} else {
			break
		}
		args = args[1:]
	}
	if o.takes != takesNothing {
		first, second, two := strings.Cut(args[0], ",")
		if two = two && o.takes == takesValue && args[0][0] != '{'; two {
			u := p.use(second)
			o.second = &u
		} else {
			first = args[0]
		}
		o.use, args = p.use(first), args[1:]
	}
	p.options(o, args)
}

// styles reads the lines that say how options are written.
func (p *specParser) styles(lines []specLine, depth int) {
	for _, l := range lines {
		switch l.words[0] {
		case "style":
			p.line = l.line
			p.style(l.words[1:])
		case "use":
			for _, g := range l.words[1:] {
				if depth < maxUse {
					p.styles(p.groups[g], depth+1)
				}
			}
		}
	}
}

func (p *specParser) style(args []string) {
	s, ok := styles[args[0]]
	if !ok || len(args) > 2 || len(args) == 2 && args[1] != "first" {
		p.fail("style is getopt, bundle, go, words or plain, and perhaps first")
		return
	}
	p.block.style, p.block.first = s, len(args) == 2
}

// options enters one option under all its spellings.
func (p *specParser) options(o *option, spellings []string) {
	if len(spellings) == 0 {
		p.fail("it names no option")
	}
	for _, s := range spellings {
		switch {
		case s == "-#":
			if o.takes != takesNothing {
				p.fail("-# takes no value")
			}
			p.block.numbers = o
			continue
		case len(s) < 2 || s[0] != '-' && s[0] != '+' || s == "--" || strings.ContainsAny(s, "=,|[]"):
			p.fail("%q is no option", s)
			continue
		case p.block.style == styleGo:
			s = "-" + strings.TrimLeft(s, "-")
		}
		if p.block.options[s] != nil {
			p.fail("the option %s stands twice", s)
			continue
		}
		p.block.options[s] = o
	}
}

func (p *specParser) use(s string) use {
	if list, ok := strings.CutPrefix(s, "{"); ok && strings.HasSuffix(list, "}") {
		return use{role: roleOneOf, oneOf: strings.Split(strings.TrimSuffix(list, "}"), ",")}
	}
	if r, ok := roleNames[s]; ok {
		return use{role: r, name: s}
	}
	if c := checkers[s]; c != nil {
		return use{role: roleChecked, name: s, check: c}
	}
	p.fail("%q is no role; see the head of spec.go", s)
	return use{role: roleExec}
}

func (p *specParser) shape(to **shape, args []string) {
	if *to != nil {
		p.fail("there are two lines of this kind")
	}
	s := &shape{rest: -1}
	for i, a := range args {
		name, rest := strings.CutSuffix(a, "...")
		if rest && s.rest >= 0 {
			p.fail("only one role can repeat")
		}
		if rest {
			s.rest = i
		}
		s.uses = append(s.uses, p.use(name))
	}
	*to = s
}

func (p *specParser) fallback(args []string) {
	r := map[string]role{"stat": roleStat, "read": roleRead, "tree": roleTree, "format": roleFormat, "tracked": roleTracked, "history": roleHistory}[args[0]]
	if len(args) != 2 || r == roleNone {
		p.fail("write default stat, read, tree, tracked, history or format, and a path")
		return
	}
	p.block.fallback = &part{path: args[1], role: r}
}

func (p *specParser) effect(args []string) (effect, []string) {
	k, ok := effectKinds[args[0]]
	if !ok {
		p.fail("%q is no effect; see the head of spec.go", args[0])
		return effect{}, nil
	}
	rest := args[1:]
	if !k.takesPath() {
		return effect{kind: k}, rest
	}
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		p.fail("the effect %s needs a path", args[0])
		return effect{}, rest
	}
	return effect{k, rest[0]}, rest[1:]
}
