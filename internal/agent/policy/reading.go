package policy

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
)

// reading is the interpretation of a command's words. It is pure: parts.go resolves paths.
type reading struct {
	prog      *program  // nil: the program is unknown
	block     *block    // the row of the program or its subcommand
	words     []meaning // of each word; the first is the program's name
	parts     []part
	demands   []demand
	strange   int    // the first word that may make it run others; 0 for none
	because   string // why a word may change what all others mean
	newOption bool   // that word is an option, which nothing is known of
	lead      int    // the last word of the program's name and the subcommand's
	code      bool   // it runs the workspace's code
	links     bool   // it makes or moves symbolic links
}

// meaning is what is known of one word.
type meaning struct {
	why  string // why it is unknown: "nothing is known of the option -x of grep"
	runs bool   // it names something that is run
}

// part is a path that a command reads or writes.
type part struct {
	words []int // the words that name it, or lead to it: a rule that spells them all covers it
	path  string
	role  role
	every bool // every file below the folder is meant: read as if it were named, or written if it does not exist yet
}

// demand is what only a rule that spells certain words allows.
type demand struct {
	words   []int
	why     string
	reaches bool // … because it connects elsewhere, or shows what is not a file
}

// known reports whether every word is.
func (r *reading) known() bool {
	return r.prog != nil && !slices.ContainsFunc(r.words, func(m meaning) bool { return m.why != "" })
}

// reads reports whether the command is known to write nothing.
func (r *reading) reads() bool {
	return r.known() && !slices.ContainsFunc(r.parts, func(p part) bool { return p.role.writes() })
}

// wordReader reads the words of one command.
type wordReader struct {
	*reading
	args     []word
	name     string // of the program and the subcommand, for people
	path     []int  // the words that name them
	mode     role   // what operands that are read become
	ended    bool   // -- has come
	dashes   int    // where, if operands stand before it: revisions of git
	operands []int
}

// readWords interprets a command's words.
func readWords(args []word) *reading {
	r := &wordReader{reading: &reading{words: make([]meaning, len(args))}, args: args, name: args[0].text}
	if !args[0].known() {
		return r.reading
	}
	if r.prog = specification(args[0].text); r.prog == nil {
		r.strange = max(slices.IndexFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "-") }), 0)
		return r.reading
	}
	r.path, r.block = []int{0}, &r.prog.block
	r.effects()
	r.scan()
	r.assign()
	for i, w := range args {
		if strings.HasPrefix(w.text, "@") && expandsAt[path.Base(args[0].text)] {
			r.unknown(i, w.text+" begins with @, which makes "+r.name+" read its words from a file")
		}
	}
	b := r.block
	var unknown []int // a rule that spells them all, and the program, covers what they may do
	for i, m := range r.words {
		if m.why != "" || i == 0 && !r.known() {
			unknown = append(unknown, i)
		}
	}
	r.links = r.links || (unknown != nil || r.mode != roleNone) && slices.ContainsFunc(b.operands, func(u use) bool { return u.role == roleInto })
	if unknown != nil && (b.searches || r.mode == roleFollow) {
		r.parts = append(r.parts, part{words: unknown, path: ".", role: rolePast})
	}
	if b.writes && (unknown != nil || r.mode == roleFollow) {
		r.parts = append(r.parts, part{words: unknown, path: ".", role: roleWrite, every: true})
	}
	return r.reading
}

func (r *wordReader) scan() {
	sought := len(r.prog.subs) > 0
	for i := 1; i < len(r.args); i++ {
		n := 0
		if sought {
			n = r.named(i)
		}
		switch w := r.args[i]; {
		case !w.known():
			r.strangeWord(i, w.hidden())
		case n > 0:
			r.enter(i, n)
			i, sought = i+n-1, false
		case !r.ended && w.text == "--" && !r.block.words && !r.block.plain && len(r.block.operands) > 0:
			if r.ended, sought = true, false; len(r.operands) > 0 {
				r.dashes = i
			}
		case !r.ended && !r.block.plain && len(w.text) > 1 && w.text[0] == '-':
			if r.block.first && len(r.operands) > 0 {
				r.strangeWord(i, "the option "+w.text+" comes after an operand, where "+r.name+" may read it in two ways")
			} else {
				i += r.option(i, w.text)
			}
		case sought && len(r.prog.operands) == 0:
			r.strangeWord(i, "nothing is known of the subcommand "+w.text+" of "+r.name)
			return
		default:
			if sought && r.because != "" {
				r.unknown(0, "what stands before "+w.text+" is not known")
			}
			sought = false
			r.operands = append(r.operands, i)
		}
	}
}

// expandsAt are programs that replace any word @FILE by the file's words.
var expandsAt = words("ar strings java javac kotlinc rustc dotnet mypy pytest py.test pylint flake8 ruff python")

// named returns how many words the subcommand at word i has; 0 for none.
func (r *wordReader) named(i int) int {
	for n := min(r.prog.longest, len(r.args)-i); n > 0; n-- {
		if r.prog.subs[joinedWords(r.args[i:i+n])] != nil && !slices.ContainsFunc(r.args[i:i+n], func(w word) bool { return w.source }) {
			return n
		}
	}
	return 0
}

func joinedWords(list []word) string {
	texts := make([]string, len(list))
	for k, w := range list {
		texts[k] = w.text
	}
	return strings.Join(texts, " ")
}

// enter goes on with the block of the subcommand at word i, of n words.
func (r *wordReader) enter(i, n int) {
	sub := joinedWords(r.args[i : i+n])
	r.lead, r.block, r.name = i+n-1, r.prog.subs[sub], r.name+" "+sub
	for k := range n {
		r.path = append(slices.Clip(r.path), i+k)
	}
	r.effects()
	if r.because != "" {
		r.unknown(0, "what stands before "+sub+" is not known")
	}
}

func (r *wordReader) unknown(i int, why string) {
	r.words[i].why = cmp.Or(r.words[i].why, why)
}

// strangeWord marks a word that may change what all others mean: a rule has to spell them, too.
func (r *wordReader) strangeWord(i int, why string) int {
	r.unknown(i, why)
	if r.because == "" {
		r.strange, r.because, r.newOption = i, why, strings.HasPrefix(r.args[i].text, "-")
	}
	r.strange = min(r.strange, i)
	return 0
}

// option reads the option at word i, and returns how many words after it belong to it.
func (r *wordReader) option(i int, text string) int {
	b := r.block
	name, value, has := strings.Cut(text, "=")
	whole := b.words || strings.HasPrefix(text, "--")
	switch o, known := b.options[text]; {
	case known && text[len(text)-1] != '=':
		return r.given(o, i)
	case b.numbers && strings.Trim(text[1:], "0123456789") == "":
		return 0
	case whole && has && (b.options[name].value != nil || b.options[name+"="].value != nil):
		r.judge(*cmp.Or(b.options[name].value, b.options[name+"="].value), i, value)
		return 0
	case whole:
		return r.strangeWord(i, "nothing is known of the option "+name+" of "+r.name)
	}
	for k := 1; k < len(text); k++ { // -abc, -n3, -n 3
		switch o, known := b.options["-"+text[k:k+1]]; {
		case !known || o.value != nil && strings.HasPrefix(text[k+1:], "="): // some programs cut it off
			return r.strangeWord(i, "nothing is known of the option -"+text[k:k+1]+" of "+r.name)
		case o.value != nil && k+1 < len(text):
			r.judge(*o.value, i, text[k+1:])
			return 0
		case o.value != nil || k+1 == len(text):
			return r.given(o, i)
		case o.mode != roleNone:
			r.mode = o.mode
		}
	}
	return 0
}

// given reads a known option that ends word i.
func (r *wordReader) given(o option, i int) int {
	if o.mode != roleNone {
		r.mode = o.mode
	}
	switch {
	case o.value == nil:
		return 0
	case i+1 == len(r.args):
		r.strangeWord(i, "the option "+r.args[i].text+" of "+r.name+" lacks its value")
		return 0
	case !r.args[i+1].known():
		r.strangeWord(i+1, r.args[i+1].hidden())
	case r.args[i+1].source: // a wildcard's number of words may change
		r.strangeWord(i+1, "a wildcard stands for the value of "+r.args[i].text+" of "+r.name)
	default:
		r.judge(*o.value, i+1, r.args[i+1].text)
	}
	return 1
}

// assign gives the operands their roles, and adds what is read implicitly.
func (r *wordReader) assign() {
	uses, rest, n := r.block.operands, r.block.rest, len(r.operands)
	if len(uses) > 0 && (n == 0 && uses[0].role == roleExec && rest != 0 || n < 2 && uses[len(uses)-1].role == roleInto) {
		r.unknown(0, r.name+" alone does more than a rule for its arguments says")
	}
	if n > 0 && r.operands[n-1] < r.dashes { // no path comes after it
		r.dashes = 0
	}
	for k, i := range r.operands {
		at := k // of its use
		switch last := len(uses) - 1; {
		case rest >= 0 && k > rest:
			at = max(rest, last-(n-1-k))
		case rest == k && n-k <= last-rest:
			at = last - (n - 1 - k)
		}
		switch {
		case at >= len(uses):
			r.strangeWord(i, "nothing is known of "+r.args[i].text+" as an operand of "+r.name)
		case r.args[i].source && at != rest:
			r.unknown(i, "a wildcard may stand for another number of words of "+r.name)
			fallthrough
		default:
			r.judge(uses[at], i, r.args[i].text)
		}
	}
	for i := r.lead + 1; r.because != "" && i < len(r.words); i++ {
		r.unknown(i, r.because)
	}
	if slices.ContainsFunc(r.parts, func(p part) bool {
		return slices.Contains(r.operands, p.words[0]) && (r.mode != roleWrite || p.role.writes())
	}) {
		return
	}
	switch b := r.block; {
	case b.fallback != roleNone && (r.mode != roleNames || b.fallback == roleTree):
		r.parts = append(r.parts, part{path: ".", role: r.inMode(b.fallback), every: r.mode == roleTree && b.fallback == roleTree})
	case b.fallback == roleNone && (r.mode == roleTree || r.mode == roleWrite):
		r.parts = append(r.parts, part{path: ".", role: r.mode, every: true})
	}
}

// inMode applies an option's mode to a role.
func (r *wordReader) inMode(u role) role {
	switch {
	case r.mode == roleNames && (u == roleTracked || u == rolePast), r.mode == roleTree && (u == roleRead || u == roleWrite):
		return roleTree
	case r.mode == roleFollow && (u == roleNames || u == roleRead):
		return roleFollow
	case r.mode == roleWrite && (u == roleRead || u == roleTree):
		return roleWrite
	case u == roleTracked && r.dashes > 0:
		return rolePast
	}
	return u
}

var (
	ownPackage = regexp.MustCompile(`^\.(?:/(?:\.\.\.|[A-Za-z0-9_-][A-Za-z0-9_.-]*))*/?$`)
	location   = regexp.MustCompile(`^([^-:*?\[\]{}()!$][^:*?\[\]{}()!$]*)(?::[0-9]+|::.*)?$`)
	revision   = regexp.MustCompile(`^[A-Za-z0-9_.@~^/-]+:([A-Za-z0-9_-][A-Za-z0-9_./-]*)$`)
)

// judge determines what a word or an option's value does in a role.
func (r *wordReader) judge(u use, i int, text string) {
	switch u.role { //nolint:exhaustive // the others are paths
	case roleText:
		if u.form != nil && !u.form.MatchString(text) {
			r.unknown(i, text+" is not one of the plain forms that are known of "+r.name)
		}
	case roleExec:
		r.words[i].runs = true
		r.unknown(i, r.name+" runs "+text+", so a rule must spell it")
	case rolePackage:
		if !ownPackage.MatchString(text) {
			r.unknown(i, "the package "+text+" may be one that the workspace does not hold; ./… is inside")
		}
		folder, _, _ := strings.Cut(text, "...")
		r.file(i, folder, roleNames)
	case roleTest:
		m := location.FindStringSubmatch(text)
		if m == nil {
			r.unknown(i, text+" is not plainly a file, with a test or a line of it")
			return
		}
		r.file(i, m[1], roleTree)
	case roleInto:
		r.file(i, text, roleWrite)
		for _, k := range r.operands {
			if k != i {
				r.file(i, strings.TrimSuffix(text, "/")+"/"+path.Base(r.args[k].text), roleInto)
			}
		}
	case roleMoved:
		r.file(i, text, roleTree)
		r.file(i, text, roleMoved)
	case roleTracked, rolePast:
		if m := revision.FindStringSubmatch(text); m != nil && r.mode != roleNames {
			r.file(i, m[1], roleTree)
		} else if i < r.dashes {
			r.file(i, text, roleTree) // a revision, of which the paths after -- are shown
		} else {
			r.file(i, text, r.inMode(u.role))
		}
	default:
		r.file(i, text, r.inMode(u.role))
		if n := len(r.parts); n > 0 && r.mode == roleTree && u.role != roleWrite {
			r.parts[n-1].every = true
		}
	}
}

// file adds a part.
func (r *wordReader) file(i int, name string, role role) {
	switch {
	case name == "":
		r.unknown(i, "an argument of "+r.name+" is empty where it should name a file")
		return
	case name[0] == '@' || name[0] == ':' || name[0] == '!' && (len(name) > 1 || role != roleNames):
		r.unknown(i, name+" begins with "+name[:1]+", which some programs do not take for a file's name")
	case role != roleNames && strings.ContainsAny(name, "*?[]{}()"), strings.Contains(name, "://"):
		r.unknown(i, r.name+" may take "+name+" for more than a file's name")
	}
	r.parts = append(r.parts, part{words: []int{i}, path: name, role: role})
}

// effects adds what a row does besides its words.
func (r *wordReader) effects() {
	for _, e := range r.block.effects {
		name, file, isWrite := strings.Cut(e, ":")
		switch {
		case isWrite:
			r.parts = append(r.parts, part{words: r.path, path: file, role: roleWrite})
		case name == "links":
			r.links = true
		case name == "ask":
			r.unknown(0, r.name+" may do more than its words say")
			r.strange, r.because = len(r.path), r.words[0].why
		case name == "code":
			r.code = true
			if p := r.prog; len(r.path) > 1 && len(p.operands) > 0 && p.operands[0].role == roleExec {
				r.demands = append(r.demands, demand{r.path, r.name + " runs code of the workspace", false})
			}
		default:
			r.demands = append(r.demands, demand{r.path, r.name + effects[name], true})
		}
	}
}
