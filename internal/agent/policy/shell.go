package policy

import (
	"cmp"
	"os"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// reader walks a parsed command line in the order of execution, and tracks the current folder.
type reader struct {
	script *script
	nested bool
	stmts  int    // the statement that is read
	soft   string // what restricts rules about the commands in this part
}

// after is the set of folders where a statement may leave the shell, by its outcome.
type after struct{ ok, failed []string }

func (r *reader) list(stmts []*syntax.Stmt, dirs []string) after {
	out := after{dirs, dirs}
	for _, st := range stmts {
		out = r.stmt(st, union(out.ok, out.failed))
	}
	return out
}

func (r *reader) stmt(st *syntax.Stmt, dirs []string) after {
	if st.Coprocess || st.Disown {
		r.script.setHard("a coprocess runs beside the command")
	}
	r.script.stmts++
	r.script.concurrent = r.script.concurrent || st.Background
	r.stmts = r.script.stmts
	for _, rd := range st.Redirs {
		r.redirect(rd, dirs)
	}
	out := r.command(st.Cmd, dirs)
	switch {
	case st.Background:
		return after{dirs, dirs}
	case st.Negated:
		return after{out.failed, out.ok}
	}
	return out
}

func (r *reader) command(cmd syntax.Command, dirs []string) after {
	same := after{dirs, dirs}
	switch c := cmd.(type) {
	case nil: // redirections alone
		return same
	case *syntax.CallExpr:
		return r.call(c, dirs)
	case *syntax.BinaryCmd:
		switch x := r.stmt(c.X, dirs); c.Op { //nolint:exhaustive // the rest are pipes
		case syntax.AndStmt:
			y := r.stmt(c.Y, x.ok)
			return after{y.ok, union(x.failed, y.failed)}
		case syntax.OrStmt:
			y := r.stmt(c.Y, x.failed)
			return after{union(x.ok, y.ok), y.failed}
		default: // a pipe, whose parts are shells of their own
			r.script.concurrent = true
			r.stmt(c.Y, dirs)
			return same
		}
	case *syntax.Subshell:
		r.list(c.Stmts, dirs)
		return same
	case *syntax.Block:
		return r.list(c.Stmts, dirs)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return same
		}
		return r.stmt(c.Stmt, dirs)
	case *syntax.IfClause: // an else is one without a condition
		cond := r.list(c.Cond, dirs)
		all := union(cond.ok, cond.failed)
		then := r.list(c.Then, all)
		if all = union(all, union(then.ok, then.failed)); c.Else != nil {
			other := r.command(c.Else, union(cond.ok, cond.failed))
			all = union(all, union(other.ok, other.failed))
		}
		return after{all, all}
	case *syntax.WhileClause:
		return r.part("a loop runs it more than once", c)
	case *syntax.ForClause:
		return r.part("a loop sets a variable, which can change what the commands do", c)
	case *syntax.CaseClause:
		return r.part("a case statement chooses what runs", c)
	case *syntax.DeclClause:
		r.script.setHard("it changes the shell's own variables")
	case *syntax.FuncDecl:
		r.script.setHard("it declares a function, which can take any command's name")
	case *syntax.CoprocClause:
		r.script.setHard("a coprocess runs beside the command")
	case *syntax.ArithmCmd, *syntax.LetClause:
		r.script.setHard("shell arithmetic can run commands")
	case *syntax.TestClause:
		r.script.setHard("[[ … ]] can run commands")
	default:
		r.script.setHard("the shell construct is not one that is judged")
	}
	return r.part(r.script.hard, cmd)
}

// part reads all statements inside a construct that only a rule for the whole line allows; denying rules inspect
// them.
func (r *reader) part(why string, node syntax.Node) after {
	if !r.nested {
		r.script.soft = first(r.script.soft, why)
	}
	r.inside(reader{script: r.script, nested: r.nested, soft: first(r.soft, why)}, node)
	return after{nil, nil}
}

// inside reads all statements and words below a node.
func (r *reader) inside(in reader, node syntax.Node) {
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			in.stmt(n, nil)
			return false
		case *syntax.Word:
			if n != node {
				in.word(n)
				return false
			}
		case *syntax.ParamExp, *syntax.ArithmExp:
			r.script.setHard(expansion(n.(syntax.WordPart)))
		}
		return true
	})
}

// word reads a word and the commands in its substitutions.
func (r *reader) word(w *syntax.Word) word {
	out := readWord(w)
	if why := out.why(); why != "" {
		r.script.setHard(why)
	}
	if out.dynamic != "" {
		r.substitutions(w)
	}
	return out
}

// expand lists the files that a plain wildcard stands for now: one * in the last name of a path inside the
// workspace. Every other word stands for itself.
func (r *reader) expand(a *syntax.Word, dirs []string) []word {
	w := r.word(a)
	folder, name := path.Split(w.text)
	head := w.text[:max(strings.IndexAny(w.text, "*?[{"), 0)]
	switch named := strings.Contains(head, "/"); {
	case !w.glob && !w.brace || w.dynamic != "":
		return []word{w}
	case strings.HasPrefix(head, "-") && (!strings.HasPrefix(head, "--") || !strings.Contains(head, "=")), name == "":
		r.script.setHard("the wildcard " + w.text + " may stand for an option")
		return []word{w}
	case len(dirs) != 1 || w.brace || a.Lit() != w.text || strings.Count(w.text, "*") != 1 || strings.ContainsAny(w.text, `?[\`) || name[0] == '.' || strings.Contains(folder, "*"):
		if !named && !strings.HasPrefix(head, "--") {
			r.script.setHard(w.hidden())
		}
		return []word{w}
	}
	at := r.script.root.physical(dirs[0], cmp.Or(folder, "."))
	files, err := os.ReadDir(at.resolved)
	if !at.inside || at.linked || err != nil {
		return []word{w}
	}
	out := []word{}
	for _, f := range files {
		switch n := f.Name(); {
		case n[0] == '.' || !wild(name, n):
		case len(out) == maxWords, unreadable(n) != "", strings.Contains(n, "\n"):
			return []word{w}
		case n[0] == '-' && folder == "": // whoever can create files can create options
			r.script.setHard(w.text + " stands for " + n + ", which programs take for an option; ./" + w.text + " could not")
			return []word{w}
		default:
			out = append(out, word{text: folder + n, source: true})
		}
	}
	if len(out) == 0 { // Bash leaves it as it is
		return []word{{text: w.text, source: true}}
	}
	return out
}

func (r *reader) substitutions(n syntax.Node) {
	r.inside(reader{script: r.script, nested: true}, n)
}

// call adds a simple command.
func (r *reader) call(c *syntax.CallExpr, dirs []string) after {
	u := unit{nested: r.nested, soft: r.soft, dirs: dirs, inner: []int{0}, stmt: r.stmts}
	for _, a := range c.Assigns {
		if u.soft == "" && !isSetting(a) {
			u.soft = "the assignment " + a.Name.Value + "=… can change what the commands do"
		}
		if a.Value != nil {
			r.word(a.Value)
		}
		if a.Index != nil || a.Array != nil {
			r.script.setHard("an array's index can run commands")
			r.substitutions(a)
		}
	}
	for _, a := range c.Args {
		words := r.expand(a, dirs)
		if w := words[0]; u.soft == "" && (w.glob || w.brace) {
			u.soft = w.hidden()
		}
		if u.words = append(u.words, words...); len(u.words) > maxWords {
			r.script.setHard("it has more words than can be judged")
			break
		}
	}
	if len(u.words) == 0 {
		u.words = []word{{text: c.Assigns[0].Name.Value + "=", odd: "it is an assignment"}}
		r.script.add(u)
		return after{dirs, dirs}
	}
	return r.simple(u)
}

// simple adds a unit of words, and what it runs in turn.
func (r *reader) simple(u unit) after {
	first := u.words[0]
	switch {
	case first.glob || first.brace || first.source:
		r.script.setHard("the program's name is known only when it runs")
	case first.text == "" && first.dynamic == "":
		r.script.setHard("the program's name is empty")
	}
	if !u.words[0].known() {
		r.script.add(u)
		r.suspects(u, 1)
		return after{u.dirs, u.dirs}
	}
	why, from := u.unwrap(), 0
	at := u.inner[len(u.inner)-1]
	base := baseName(u.words[at].text)
	_, wrapper := transparents[base]
	switch u.reading, u.wrap = readWords(u.words[at:]), why; {
	case len(u.inner) > maxNesting:
		r.script.setHard("commands are wrapped in one another too deeply")
	case why != "" && wrapper:
		u.soft = cmp.Or(u.soft, why)
	}
	if why != "" || isInterpreter(base) || isOpaque(base) && !u.reading.known() {
		from = at + 1
	} else if o := u.reading.strange; o > 0 {
		from = at + o
	}
	out, ok := r.chdir(&u)
	r.script.add(u)
	if from > 0 {
		r.suspects(u, from)
	}
	if ok {
		return out
	}
	return after{u.dirs, u.dirs}
}

// suspects adds those words of a wrapper, from the given one on, that may be a command or a script, for denying and
// asking rules.
func (r *reader) suspects(u unit, from int) {
	if r.script.depth >= maxNesting {
		return
	}
	r.script.depth++
	defer func(hard string) {
		if r.script.depth--; hard == "" && r.script.hard != "" {
			r.script.hard = "a word of it may be a script, and is not a plain one"
		}
	}(r.script.hard)
	for i := from; i < len(u.words); i++ {
		text := u.words[i].text
		if text == "" {
			continue
		}
		if i > from || !strings.HasPrefix(text, "-") {
			n := unit{words: u.words[i:], inner: []int{0}, nested: true, dirs: nil}
			n.unwrap()
			n.reading = readWords(n.args())
			r.script.add(n)
		}
		_, value, _ := strings.Cut(text, "=")
		for _, s := range []string{text, value} {
			if strings.ContainsAny(s, " \t\n;|&") {
				r.script.read(s, nil, true)
			}
		}
	}
	if rest := u.words[from:]; len(rest) > 1 { // eval, ssh, watch join their words
		if s := joinedWords(rest); strings.ContainsAny(s, ";|&\n") {
			r.script.read(s, nil, true)
		}
	}
}

// chdir handles a cd. ok is false for another command.
func (r *reader) chdir(u *unit) (out after, ok bool) {
	args := u.args()
	switch args[0].text {
	case "cd", "chdir":
	case "pushd", "popd", "dirs":
		return after{nil, nil}, true
	default:
		return out, false
	}
	to, plain := []string{}, args[0].text == "cd" && len(args) == 2 && args[1].known() && args[1].text != "" && args[1].text[0] != '-'
	if plain {
		for _, t := range r.script.root.anywhere(u.dirs, args[1].text) {
			if plain = plain && t.inside; t.linked { // the shell remembers the link, and .. leads back from there
				to = nil
			}
			to = union(to, []string{t.resolved})
		}
	}
	if !plain {
		u.soft = first(u.soft, "cd may lead out of the workspace")
		return after{nil, u.dirs}, true
	}
	u.neutral = u.soft == "" && len(u.inner) == 1
	return after{to, u.dirs}, true
}
