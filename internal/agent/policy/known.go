package policy

import (
	"path"
	"slices"
	"strings"
)

// reading is what a specification makes of the words of a command. It is pure:
// where its paths lead, parts.go finds out.
type reading struct {
	prog    *program  // nil: nothing is known of the program
	block   *block    // what is known of it, or of the subcommand
	words   []meaning // of each word; the first is the program's name
	parts   []part
	demands []demand
	strange int  // the first option that nothing is known of; 0 for none
	lead    int  // the last word of the program's name and the subcommand's
	code    bool // it runs the workspace's code
	links   bool // it makes or moves symbolic links
}

// meaning is what is known of one word.
type meaning struct {
	why  string // what keeps it from being known: "nothing is known of the option -x of grep"
	url  bool   // it is fetched, so a rule must spell scheme and host
	runs bool   // it names something that is run
}

// part is a path that a command reads or writes.
type part struct {
	words []int // the words that name it, or lead to it: a rule that spells them all excuses it
	path  string
	role  role  // stat, read, tree, follow, write or into
	from  []int // into: the operands whose base names it takes
	every bool  // every file below the folder is read as if it were named
}

// demand is what only a rule that spells certain words allows.
type demand struct {
	words   []int
	why     string
	reaches bool // … because it reaches out, or shows what is no file
}

// known reports whether every word is.
func (r *reading) known() bool {
	return r.prog != nil && !slices.ContainsFunc(r.words, func(m meaning) bool { return m.why != "" })
}

// wordReader reads the words of one command.
type wordReader struct {
	*reading
	args []word
	name string // the program's, and the subcommand's, for people
	path []int  // the words that name them
	mode role   // tree, follow or write: what a flag makes of operands that are read
	// vague: an option that nothing is known of came before, which may or may not have
	// taken the word after it; so an operand may have any role.
	vague     bool
	dry       bool // what would be formatted is only read
	instead   bool // an option's value stands in for the first operand
	given     []*option
	ended     bool // -- has come
	operands  []int
	after     []int // operands after --
	pathNamed bool  // an operand names a file
}

// read finds out what the words of a command mean to its program.
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
	if expandsAt[path.Base(r.args[0].text)] {
		r.argumentFiles()
	}
	return r.reading
}

// expandsAt are programs that put the words of a file in the place of any word @FILE,
// wherever it stands, before they look at what the words mean; and show what they cannot
// make anything of.
var expandsAt = words("ar strings java javac kotlinc rustc dotnet mypy pytest py.test pylint flake8 ruff")

// argumentFiles asks of what expandsAt says.
func (r *wordReader) argumentFiles() {
	for i := 1; i < len(r.args); i++ {
		if text := r.args[i].text; strings.HasPrefix(text, "@") {
			r.unknown(i, text+" begins with @, which makes "+r.name+" read its words from a file")
		}
	}
}

func (r *wordReader) scan() {
	sought := len(r.prog.subs) > 0
	for i := 1; i < len(r.args); i++ {
		w := r.args[i]
		switch text := w.text; {
		case !w.known():
			r.unknown(i, w.hidden())
			r.vague = true
		case r.isOption(i, text) && (!sought || r.named(i) == 0):
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
	if r.ended {
		r.after = append(r.after, i)
	} else {
		r.operands = append(r.operands, i)
	}
}

// subcommand enters the block of the subcommand that begins at word i, and
// returns how many words it has: 0 when the word is an operand instead, -1 when
// nothing is known from here on.
func (r *wordReader) subcommand(i int) int {
	if n := r.named(i); n > 0 {
		b, name := r.prog.subs[r.joined(i, n)], r.joined(i, n)
		r.lead, r.block, r.name = i+n-1, b, r.name+" "+name
		for k := range n {
			r.path = append(slices.Clip(r.path), i+k)
		}
		r.effects(b.effects, r.path)
		return n
	}
	if r.prog.operands != nil && !r.vague {
		return 0
	}
	for k := i; k < len(r.args); k++ {
		r.unknown(k, "nothing is known of the subcommand "+r.args[i].text+" of "+r.name)
	}
	return -1
}

// named is how many words the subcommand has that begins at word i; 0 for none.
func (r *wordReader) named(i int) int {
	for n := min(r.prog.longest, len(r.args)-i); n > 0 && !r.vague; n-- {
		if r.prog.subs[r.joined(i, n)] != nil && !slices.ContainsFunc(r.args[i:i+n], func(w word) bool { return w.source != 0 }) {
			return n
		}
	}
	return 0
}

// joined are n words from word i on.
func (r *wordReader) joined(i, n int) string {
	if n == 1 {
		return r.args[i].text
	}
	var b strings.Builder
	for k, w := range r.args[i : i+n] {
		if k > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.text)
	}
	return b.String()
}

// isOption reports whether the program reads word i as an option.
func (r *wordReader) isOption(i int, text string) bool {
	b := r.block
	switch {
	case r.ended, b.style == stylePlain, text == "", text == "-", b.first && len(r.operands) > 0:
		return false
	case text == "--":
		return b.style == styleWords
	case text[0] == '-', b.style == styleBundle && i == 1: // tar xf
		return true
	}
	return text[0] == '+' && b.options[text] != nil
}

func (r *wordReader) unknown(i int, why string) {
	if r.words[i].why == "" {
		r.words[i].why = why
	}
}

// unknownOption is for an option that nothing is known of.
func (r *wordReader) unknownOption(i int, what string) int {
	r.unknown(i, "nothing is known of the option "+what+" of "+r.name)
	r.vague = true
	if r.strange == 0 {
		r.strange = i
	}
	return 0
}

// option reads the option at word i, and returns how many words after it belong
// to it.
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
	return r.cluster(i, text)
}

// long is for an option that is a word: --opt, --opt=value, --opt value.
func (r *wordReader) long(o *option, i int, name, value string, has bool) int {
	switch {
	case o == nil:
		return r.unknownOption(i, name)
	case o.takes == takesNothing && has:
		return r.unknownOption(i, name+"=…")
	case o.takes == takesNothing || o.takes == takesMaybe && !has:
		r.flag(o, i)
		return 0
	case has && o.second == nil:
		r.value(o, i, value)
		return 0
	case has:
		return r.unknownOption(i, name+"=…")
	}
	return r.next(o, i)
}

// cluster is for short options: -abc, -n3, -n 3, and without a dash where the
// program reads its first word so.
func (r *wordReader) cluster(i int, text string) int {
	letters, dash := strings.CutPrefix(text, "-")
	for k := range len(letters) {
		o := r.block.options["-"+letters[k:k+1]]
		rest := letters[k+1:]
		switch {
		case o == nil:
			return r.unknownOption(i, "-"+letters[k:k+1])
		case o.takes == takesNothing:
			r.flag(o, i)
		case !dash: // tar cfz x: the value is the next word whatever follows
			if strings.ContainsFunc(rest, func(c rune) bool { x := r.block.options["-"+string(c)]; return x == nil || x.takes != takesNothing }) {
				return r.unknownOption(i, text)
			}
			for _, c := range rest {
				r.flag(r.block.options["-"+string(c)], i)
			}
			return r.next(o, i)
		case strings.HasPrefix(rest, "=") && o.use.role != roleText: // some programs cut it off
			return r.unknownOption(i, text)
		case rest != "" && o.second == nil:
			r.value(o, i, rest)
			return 0
		case rest != "":
			return r.unknownOption(i, text)
		case o.takes == takesMaybe:
			r.flag(o, i)
		default:
			return r.next(o, i)
		}
	}
	return 0
}

// next takes the word after an option as its value.
func (r *wordReader) next(o *option, i int) int {
	if i+1 >= len(r.args) {
		r.unknown(i, "the option "+r.args[i].text+" of "+r.name+" lacks its value")
		return 0
	}
	w := r.args[i+1]
	if !w.known() {
		r.unknown(i+1, w.hidden())
		return 1
	}
	if w.source != 0 { // how many words a wildcard stands for may change
		r.unknown(i+1, "a wildcard stands for the value of "+r.args[i].text+" of "+r.name)
		return 1
	}
	r.value(o, i+1, w.text)
	if o.second == nil {
		return 1
	}
	if i+2 >= len(r.args) || !r.args[i+2].known() || r.args[i+2].source != 0 {
		r.unknown(i, "the option "+r.args[i].text+" of "+r.name+" lacks its second value")
		return 1
	}
	r.judge(*o.second, i+2, r.args[i+2].text, roleNone)
	return 2
}

func (r *wordReader) flag(o *option, i int) {
	if o.mode > r.mode { // they get stricter in the order of the roles
		r.mode = o.mode
	}
	if o.instead {
		r.standIn()
	}
	r.dry = r.dry || o.dry
	r.given = append(r.given, o)
	r.effects(o.effects, append(slices.Clip(r.path), i))
}

// standIn is for an option that stands in for the first operand.
func (r *wordReader) standIn() {
	r.instead = true
	if r.block.first {
		r.ended = true // as after python -m module
	}
}

func (r *wordReader) value(o *option, i int, value string) {
	r.flag(o, i)
	r.judge(o.use, i, value, roleNone)
}

// finish gives the operands their roles, and adds what is read without being
// named.
func (r *wordReader) finish() {
	b := r.block
	if len(b.needs) > 0 && !slices.ContainsFunc(b.needs, func(n string) bool { return slices.Contains(r.given, b.options[n]) }) {
		r.unknown(0, "nothing is known of "+r.name+" without one of "+strings.Join(b.needs, ", ")) // what it does to its input, too
	}
	if b.after != nil {
		r.assign(b.operands, r.operands)
		r.assign(b.after, r.after)
	} else {
		r.assign(b.operands, append(r.operands, r.after...))
	}
	if o := b.operands; o != nil && o.uses[0].role == roleExec && o.rest != 0 && !r.instead && len(r.operands)+len(r.after) == 0 {
		r.unknown(0, r.name+" alone does more than a rule for its arguments says")
	}
	if o := b.operands; o != nil && o.uses[0].name == "moved" && len(r.operands)+len(r.after) == 1 {
		r.unknown(0, r.name+" with one name makes another of it in the folder that it is run in") // and mv does nothing
	}
	r.revisions()
	r.listings()
	if r.pathNamed {
		return
	}
	switch {
	case b.fallback != nil:
		r.parts = append(r.parts, part{path: b.fallback.path, role: r.inMode(b.fallback.role, r.mode), every: b.fallback.role == roleTree && r.mode == roleTree})
	case r.mode == roleTree || r.mode == roleFollow || r.mode == roleFormat:
		r.parts = append(r.parts, part{path: ".", role: r.mode, every: b.operands != nil && slices.ContainsFunc(b.operands.uses, func(u use) bool { return u.role == roleRead })})
	}
}

// listings adds the folders whose names wildcards show, whatever the program does
// with them: echo ../* is as ls .. is.
func (r *wordReader) listings() {
	seen := map[string]bool{}
	for i, w := range r.args {
		at := strings.LastIndexByte(strings.TrimRight(w.text, "/"), '/')
		if !w.listed || at < 0 {
			continue
		}
		if dir := w.text[:at+1]; !seen[dir] {
			seen[dir] = true
			r.parts = append(r.parts, part{words: []int{i}, path: dir, role: roleStat})
		}
	}
}

// revisions settles what git shows where it is given a revision: all that the
// revision holds, or what lay at the paths that are named besides.
func (r *wordReader) revisions() {
	f := r.block.fallback
	shows := f != nil && (f.role == roleTree || f.role == roleTracked || f.role == roleHistory)
	for i := range r.parts {
		switch p := &r.parts[i]; {
		case p.role == roleRev && (!shows || len(r.after) > 0):
			p.role = roleTree
		case p.role == roleTree && shows && len(r.operands) > 0:
			p.role = roleHistory
		}
	}
}

// roles of the effects that read or write a path.
func (k effectKind) role() role {
	switch k { //nolint:exhaustive // the rest have no path
	case effectTree:
		return roleTree
	case effectTracked:
		return roleTracked
	case effectHistory:
		return roleHistory
	case effectWrite:
		return roleWrite
	case effectFormat:
		return roleFormat
	}
	return roleRead
}

// assign gives operands the roles of a shape.
func (r *wordReader) assign(s *shape, operands []int) {
	if s == nil {
		for _, i := range operands {
			r.unknown(i, "nothing is known of "+r.args[i].text+" as an operand of "+r.name)
		}
		return
	}
	uses, rest := s.uses, s.rest
	if r.instead && len(uses) > 0 && rest != 0 {
		uses, rest = uses[1:], max(rest-1, -1)
	}
	roles := make([][]use, len(operands))
	for k := range operands {
		if u, ok := nth(uses, rest, k, len(operands)); ok {
			roles[k] = []use{u}
		}
		if r.vague {
			roles[k] = uses
		}
	}
	r.sameForWildcards(operands, roles)
	for k, i := range operands {
		if len(roles[k]) == 0 {
			r.unknown(i, "nothing is known of "+r.args[i].text+" as an operand of "+r.name)
		}
		for _, u := range roles[k] {
			r.operandUse(u, operands, i)
		}
	}
}

// nth is the role of operand k of n.
func nth(uses []use, rest, k, n int) (use, bool) {
	switch {
	case rest < 0:
		if k < len(uses) {
			return uses[k], true
		}
		return use{}, false
	case k < rest:
		return uses[k], true
	case n-k <= len(uses)-1-rest: // of the last ones
		return uses[len(uses)-(n-k)], true
	}
	return uses[rest], true
}

// sameForWildcards gives all words that come from one wildcard the roles of all
// of them: their order and number are the machine's.
func (r *wordReader) sameForWildcards(operands []int, roles [][]use) {
	for k := 0; k < len(operands); k++ {
		source, end := r.args[operands[k]].source, k+1
		if source == 0 {
			continue
		}
		all := roles[k]
		for ; end < len(operands) && r.args[operands[end]].source == source; end++ {
			for _, u := range roles[end] {
				if !slices.ContainsFunc(all, func(x use) bool { return x.role == u.role }) {
					all = append(slices.Clip(all), u)
				}
			}
		}
		for ; k < end; k++ {
			roles[k] = all
		}
		k--
	}
}

func (r *wordReader) operandUse(u use, operands []int, i int) {
	text := r.args[i].text
	if r.block.first && strings.HasPrefix(text, "-") && len(text) > 1 && !r.ended && u.role != roleText && u.role != roleChecked {
		r.unknown(i, "the option "+text+" comes after an operand, where "+r.name+" may read it in two ways")
		return
	}
	before := len(r.parts)
	r.judge(u, i, text, r.mode)
	for k := before; k < len(r.parts); k++ {
		r.pathNamed = true
		if r.parts[k].role == roleInto {
			for _, o := range operands {
				if o != i {
					r.parts[k].from = append(r.parts[k].from, o)
				}
			}
		}
	}
}

func (r *wordReader) effects(list []effect, words []int) {
	for _, e := range list {
		switch e.kind {
		case effectCode:
			r.code = true
			if p := &r.prog.block; p.first && p.operands != nil && p.operands.uses[0].role == roleExec && len(words) > 1 {
				r.demands = append(r.demands, demand{words, r.name + " runs code of the workspace", false})
			}
		case effectLinks:
			r.links = true
		case effectFetch:
			r.demands = append(r.demands, demand{words, r.name + " reaches out to the network", true})
		case effectForeign:
			r.demands = append(r.demands, demand{words, r.name + " can fetch and run what the workspace does not hold", true})
		case effectEnviron:
			r.demands = append(r.demands, demand{words, r.name + " shows the environment", true})
		default:
			r.parts = append(r.parts, part{words: words, path: e.path, role: e.kind.role()})
		}
	}
}

// reads reports whether the command is known to write nothing.
func (r *reading) reads() bool {
	return r.known() && !slices.ContainsFunc(r.parts, func(p part) bool { return p.role.writes() })
}
