package policy

import (
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
		if (rd.Op == syntax.Hdoc || rd.Op == syntax.DashHdoc) && obeysInput(st.Cmd) {
			r.script.setHard("a here-document may be run by what reads it")
		}
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
	case *syntax.IfClause:
		return r.ifClause(c, dirs)
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

func (r *reader) ifClause(c *syntax.IfClause, dirs []string) after {
	cond := r.list(c.Cond, dirs)
	if len(c.Cond) == 0 { // else
		return r.list(c.Then, dirs)
	}
	then := r.list(c.Then, cond.ok)
	other := after{cond.failed, cond.failed}
	if c.Else != nil {
		other = r.ifClause(c.Else, cond.failed)
	}
	all := union(union(then.ok, then.failed), union(other.ok, other.failed))
	return after{all, all}
}

// part reads all statements inside a construct that only a rule for the whole line allows; denying rules inspect
// them.
func (r *reader) part(why string, node syntax.Node) after {
	if !r.nested {
		r.script.soft = first(r.script.soft, why)
	}
	in := reader{script: r.script, nested: r.nested, soft: why}
	if r.soft != "" {
		in.soft = r.soft
	}
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			in.stmt(n, nil)
			return false
		case *syntax.Word:
			in.word(n)
			return false
		case *syntax.ParamExp, *syntax.ArithmExp:
			r.script.setHard(expansion(n.(syntax.WordPart)))
		}
		return true
	})
	return after{nil, nil}
}

// word reads a word and the commands in its substitutions.
func (r *reader) word(w *syntax.Word) word {
	out := readWord(w)
	if why := out.why(); why != "" {
		r.script.setHard(why)
	}
	if out.dynamic != "" || out.spoken {
		r.substitutions(w)
	}
	return out
}

func (r *reader) substitutions(n syntax.Node) {
	in := reader{script: r.script, nested: true}
	syntax.Walk(n, func(n syntax.Node) bool {
		if st, ok := n.(*syntax.Stmt); ok {
			in.stmt(st, nil)
			return false
		}
		return true
	})
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
		words, why := r.expand(a, dirs)
		if why != "" && u.soft == "" {
			u.soft = why
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
	case first.glob || first.brace || first.source != 0:
		r.script.setHard("the program's name is known only when it runs")
	case first.text == "" && first.dynamic == "":
		r.script.setHard("the program's name is empty")
	}
	if !u.words[0].known() {
		r.script.add(u)
		r.suspects(u, 1)
		return after{u.dirs, u.dirs}
	}
	from := 0
	for {
		at := u.inner[len(u.inner)-1]
		skip, transparent, why := unwrap(u.words[at:])
		if transparent && skip > 0 {
			u.inner = append(u.inner, at+skip)
			if len(u.inner) > maxNesting {
				r.script.setHard("commands are wrapped in one another too deeply")
				break
			}
			continue
		}
		u.reading, u.wrap = readWords(u.words[at:]), why
		if base := baseName(u.words[at].text); why != "" || isInterpreter(base) || isOpaque(base) && !u.reading.known() {
			from = at + 1
		} else if o := u.reading.strange; o > 0 {
			from = at + o
		}
		break
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
	defer func() { r.script.depth-- }()
	for i := from; i < len(u.words); i++ {
		text := u.words[i].text
		if text == "" {
			continue
		}
		if i > from || !strings.HasPrefix(text, "-") {
			n := unit{words: u.words[i:], inner: []int{0}, nested: true, dirs: nil}
			for {
				at := n.inner[len(n.inner)-1]
				skip, transparent, _ := unwrap(n.words[at:])
				if !transparent || skip == 0 || len(n.inner) > maxNesting {
					break
				}
				n.inner = append(n.inner, at+skip)
			}
			n.reading = readWords(n.args())
			r.script.add(n)
		}
		for _, s := range []string{text, afterEqual(text)} {
			if strings.ContainsAny(s, " \t\n;|&") {
				r.script.read(s, nil, true)
			}
		}
	}
	if rest := u.words[from:]; len(rest) > 1 { // eval, ssh, watch join their words
		var b strings.Builder
		for _, w := range rest {
			b.WriteString(w.text)
			b.WriteByte(' ')
		}
		if s := b.String(); strings.ContainsAny(s, ";|&\n") {
			r.script.read(s, nil, true)
		}
	}
}

func afterEqual(s string) string {
	_, v, _ := strings.Cut(s, "=")
	return v
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
	out = after{nil, u.dirs}
	fail := func() (after, bool) {
		if u.soft == "" {
			u.soft = "cd may lead out of the workspace"
		}
		return out, true
	}
	if args[0].text != "cd" || len(args) != 2 || !args[1].known() || args[1].text == "" || strings.HasPrefix(args[1].text, "-") {
		return fail()
	}
	if u.dirs == nil && !strings.HasPrefix(args[1].text, "/") {
		return fail()
	}
	dirs := u.dirs
	if dirs == nil {
		dirs = []string{"/"} // an absolute path: where it starts is no matter
	}
	to := []string{}
	for _, d := range dirs {
		t := r.script.root.physical(d, args[1].text)
		if !t.inside {
			return fail()
		}
		if t.linked {
			// The shell remembers the link, and .. leads back from there.
			to = nil
			break
		}
		to = union(to, []string{t.resolved})
	}
	out.ok = to
	u.neutral = u.soft == "" && len(u.inner) == 1
	return out, true
}
