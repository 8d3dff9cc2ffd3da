package policy

import (
	"path"
	"slices"
	"strings"
)

// reading is the interpretation of a command's words. It is pure: parts.go resolves paths.
type reading struct {
	prog    *program  // nil: the program is unknown
	block   *block    // the row of the program or its subcommand
	words   []meaning // of each word; the first is the program's name
	parts   []part
	demands []demand
	strange int  // the first unknown option; 0 for none
	lead    int  // the last word of the program's name and the subcommand's
	code    bool // it runs the workspace's code
	links   bool // it makes or moves symbolic links
}

// meaning is what is known of one word.
type meaning struct {
	why  string // why it is unknown: "nothing is known of the option -x of grep"
	url  bool   // it is fetched, so a rule must spell scheme and host
	runs bool   // it names something that is run
}

// part is a path that a command reads or writes.
type part struct {
	words []int // the words that name it, or lead to it: a rule that spells them all covers it
	path  string
	role  role  // stat, read, tree, follow, format, write, replace or into; of git also tracked, history or rev
	from  []int // into: the operands whose base names it takes
	every bool  // every file below the folder is read as if it were named
	exact bool  // a single file of the history
	// A revision's object: it is never a path, and a path is shown only as the revision has it.
	object bool
	shows  role
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
	args []word
	name string // of the program and the subcommand, for people
	path []int  // the words that name them
	mode role   // tree, follow, format or write: how a flag changes operands that are read
	// vague says that an unknown option came before, which may have taken the next word; so an operand may have any
	// role.
	vague     bool
	doubted   int   // the word after that option
	may       role  // what letters after that option may turn them into
	dry       bool  // formatting only reads
	instead   bool  // an option's value replaces the first operand
	names     bool  // git shows names alone, unless another option adds more
	others    bool  // git may show what lay under other names
	shows     role  // tracked or history: which content options make git show
	by        []int // the words of these options
	given     []*option
	ended     bool // -- has come
	operands  []int
	after     []int // operands after --
	pathNamed bool  // an operand names a file
}

// readWords interprets a command's words.
func readWords(args []word) *reading {
	r := &wordReader{reading: &reading{words: make([]meaning, len(args))}, args: args, name: args[0].text}
	if !args[0].known() {
		return r.reading
	}
	if r.prog = specification(args[0].text); r.prog == nil {
		return r.reading
	}
	r.path, r.block = []int{0}, &r.prog.block
	r.effects(r.prog.effects, r.path)
	r.scan()
	r.finish()
	if expandsAt[path.Base(args[0].text)] {
		for i := range args[1:] {
			if strings.HasPrefix(args[i+1].text, "@") {
				r.unknown(i+1, args[i+1].text+" begins with @, which makes "+r.name+" read its words from a file")
			}
		}
	}
	return r.reading
}

// expandsAt are programs that replace any word @FILE by the file's words.
var expandsAt = words("ar strings java javac kotlinc rustc dotnet mypy pytest py.test pylint flake8 ruff python")

func (r *wordReader) scan() {
	sought := len(r.prog.subs) > 0
	for i := 1; i < len(r.args); i++ {
		w := r.args[i]
		switch text := w.text; {
		case !w.known():
			r.unknown(i, w.hidden())
			r.vague = true
		case r.isOption(text) && (!sought || r.named(i) == 0):
			i += r.option(i, text)
		case text == "--" && !r.ended && r.block.style != styleWords && r.block.style != stylePlain:
			r.ended, sought = true, false
		case sought:
			n := r.subcommand(i)
			if n < 0 {
				return
			}
			i, sought = i+max(n-1, 0), false
			if n == 0 {
				r.operand(i)
			}
		default:
			r.operand(i)
		}
	}
}

func (r *wordReader) operand(i int) {
	if i == r.doubted {
		r.unknown(i, r.args[i].text+" may be the value of "+r.args[i-1].text)
	}
	if r.ended {
		r.after = append(r.after, i)
	} else {
		r.operands = append(r.operands, i)
	}
}

// subcommand enters the block of the subcommand at word i. It returns its number of words: 0 if the word is an
// operand, -1 if nothing is known from here on.
func (r *wordReader) subcommand(i int) int {
	if n := r.named(i); n > 0 {
		b, name := r.prog.subs[r.joined(i, n)], r.joined(i, n)
		r.lead, r.block, r.name = i+n-1, b, r.name+" "+name
		for k := range n {
			r.path = append(slices.Clip(r.path), i+k)
		}
		r.effects(b.effects, r.path)
		if r.vague {
			r.unknown(0, "what stands before "+name+" is not known")
			r.unknownFrom(i, name+" may be the value of an option of "+r.args[0].text)
		}
		return n
	}
	if r.prog.operands != nil {
		if r.vague {
			r.unknown(0, "what stands before "+r.args[i].text+" is not known")
			r.unknownFrom(i, r.args[i].text+" may be the value of an option of "+r.name)
		}
		return 0
	}
	r.stranger(i)
	r.unknownFrom(i, "nothing is known of the subcommand "+r.args[i].text+" of "+r.name)
	return -1
}

// named returns how many words the subcommand at word i has; 0 for none.
func (r *wordReader) named(i int) int {
	for n := min(r.prog.longest, len(r.args)-i); n > 0; n-- {
		if r.prog.subs[r.joined(i, n)] != nil && !slices.ContainsFunc(r.args[i:i+n], func(w word) bool { return w.source != 0 }) {
			return n
		}
	}
	return 0
}

// joined joins n words from word i on.
func (r *wordReader) joined(i, n int) string {
	texts := make([]string, n)
	for k := range n {
		texts[k] = r.args[i+k].text
	}
	return strings.Join(texts, " ")
}

// isOption reports whether the program reads a word as an option.
func (r *wordReader) isOption(text string) bool {
	b := r.block
	switch {
	case r.ended, b.style == stylePlain, text == "", text == "-", b.first && len(r.operands) > 0:
		return false
	case text == "--":
		return b.style == styleWords
	}
	return text[0] == '-'
}

func (r *wordReader) unknown(i int, why string) {
	if r.words[i].why == "" {
		r.words[i].why = why
	}
}

// unknownFrom marks a word that leaves everything after it unknown.
func (r *wordReader) unknownFrom(i int, why string) {
	for k := i; k < len(r.args); k++ {
		r.unknown(k, why)
	}
}

// unknownOption marks an unknown option.
func (r *wordReader) unknownOption(i int, what string) int {
	r.unknown(i, "nothing is known of the option "+what+" of "+r.name)
	r.vague, r.doubted = true, i+1
	r.stranger(i)
	return 0
}

func (r *wordReader) stranger(i int) {
	if r.strange == 0 {
		r.strange = i
	}
}

// option reads the option at word i, and returns how many words after it belong to it.
func (r *wordReader) option(i int, text string) int {
	b := r.block
	if b.numbers != nil && strings.Trim(text[1:], "0123456789") == "" {
		r.flag(b.numbers, i)
		return 0
	}
	name, value, has := strings.Cut(text, "=")
	switch o := b.options[text]; {
	case b.style == styleGo:
		name = "-" + strings.TrimPrefix(name[1:], "-")
		if o = b.options[name]; o != nil && o.takes == takesNothing && (value == "true" || value == "false") {
			has = false
		}
		return r.long(o, i, name, value, has)
	case o != nil:
		return r.long(o, i, text, "", false)
	case b.style == styleWords, strings.HasPrefix(text, "--"):
		return r.long(b.options[name], i, name, value, has)
	}
	return r.cluster(i, text[1:])
}

// long reads an option that is a word: --opt, --opt=value, --opt value.
func (r *wordReader) long(o *option, i int, name, value string, has bool) int {
	switch {
	case o == nil:
		return r.unknownOption(i, name)
	case o.takes == takesNothing && has:
		return r.unknownOption(i, name+"=…")
	case o.takes == takesNothing || o.takes == takesMaybe && !has:
		r.flag(o, i)
		return 0
	case has:
		r.value(o, i, value)
		return 0
	}
	return r.next(o, i)
}

// cluster reads short options: -abc, -n3, -n 3.
func (r *wordReader) cluster(i int, letters string) int {
	for k := range len(letters) {
		o := r.block.options["-"+letters[k:k+1]]
		rest := letters[k+1:]
		switch {
		case o == nil:
			r.strangers(i, rest)
			return r.unknownOption(i, "-"+letters[k:k+1])
		case o.takes == takesNothing:
			r.flag(o, i)
		case strings.HasPrefix(rest, "=") && o.use.role != roleText: // some programs cut it off
			return r.unknownOption(i, "-"+letters)
		case rest != "":
			r.value(o, i, rest)
			return 0
		case o.takes == takesMaybe:
			r.flag(o, i)
		default:
			return r.next(o, i)
		}
	}
	return 0
}

// strangers handles letters after an unknown option. They may be options, too: denying rules must find what these
// write.
func (r *wordReader) strangers(i int, letters string) {
	for k := range len(letters) {
		o := r.block.options["-"+letters[k:k+1]]
		if o == nil {
			continue
		}
		r.may = max(r.may, o.mode)
		r.effects(o.effects, append(slices.Clip(r.path), i))
		if rest := letters[k+1:]; o.use.role.writes() && rest != "" {
			r.file(i, rest, o.use.role)
		} else if o.use.role.writes() && i+1 < len(r.args) {
			r.file(i+1, r.args[i+1].text, o.use.role)
		}
	}
}

// next takes the word after an option as its value.
func (r *wordReader) next(o *option, i int) int {
	if i+1 >= len(r.args) {
		r.unknown(i, "the option "+r.args[i].text+" of "+r.name+" lacks its value")
		return 0
	}
	switch w := r.args[i+1]; {
	case !w.known():
		r.unknown(i+1, w.hidden())
	case w.source != 0: // a wildcard's number of words may change
		r.unknown(i+1, "a wildcard stands for the value of "+r.args[i].text+" of "+r.name)
	default:
		r.value(o, i+1, w.text)
	}
	if r.vague { // the option itself may be a value
		r.operand(i + 1)
	}
	return 1
}

func (r *wordReader) flag(o *option, i int) {
	r.mode = max(r.mode, o.mode) // they get stricter in the order of the roles
	if o.instead {
		r.instead = true
		r.ended = r.ended || r.block.first // as after python -m module
	}
	r.dry, r.names, r.others = r.dry || o.dry, r.names || o.names, r.others || o.others
	r.given = append(r.given, o)
	r.effects(o.effects, append(slices.Clip(r.path), i))
}

func (r *wordReader) value(o *option, i int, value string) {
	r.flag(o, i)
	r.judge(o.use, i, value, roleNone)
}
