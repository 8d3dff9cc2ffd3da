package policy

import (
	"path"
	"slices"
	"strings"
)

// Suggestion is a pattern that would cover a call, and a sentence about everything that it would allow.
type Suggestion struct {
	Pattern  Pattern
	Sentence string
}

// Suggest lists patterns that cover the call, the narrowest first; none if nothing is safe.
func Suggest(c Call) (result []Suggestion) {
	defer func() {
		if faultOf(recover()) != "" {
			result = nil
		}
	}()
	req := readCall(&c)
	if personal[c.Tool] || req.bad != "" {
		return nil
	}
	var out []Suggestion
	add := func(text, sentence string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		ok, _ := req.covered(&p)
		if ok && !slices.ContainsFunc(out, func(s Suggestion) bool { return s.Pattern.text == text }) {
			out = append(out, Suggestion{p, sentence + p.addsUp()})
		}
	}
	switch req.kind {
	case kindBash:
		req.suggestCommand(add)
	case kindRead, kindEdit:
		req.suggestFiles(add)
	case kindWeb:
		if h := req.link.host; h != "" {
			add("WebFetch(domain:"+h+")", "Fetching any page of "+h+", whatever its address says.")
		}
	case kindNet:
		req.suggestHost(add)
	default:
		if strings.HasPrefix(c.Tool, "mcp__") {
			add(c.Tool, "Every call of the tool "+c.Tool+", with any input.")
		} else if !strings.Contains(c.Tool, "*") {
			add(c.Tool, "Every use of "+c.Tool+", with any input.")
		}
	}
	return out
}

// addsUp says what a permission allows together with another: [Policy.Sums] knows only the rules of the file.
func (p Pattern) addsUp() string {
	switch {
	case p.writesCode():
		return " With a permission to run that code, it allows anything."
	case p.runsCode():
		return " With a permission to edit code, it allows anything."
	}
	return ""
}

func (req *request) suggestCommand(add func(text, sentence string)) {
	s := req.script
	if s.hard != "" || s.src == "" {
		return
	}
	exact := "Exactly this command line. With edit rights it can do anything: what its files hold by then is not looked at."
	if simpleWords(s.src) != nil {
		exact = "Exactly this command, in any folder of the workspace, also beside other allowed commands. With edit rights it can do anything: what its files hold by then is not looked at."
	}
	add("Bash("+escapeExact(s.src)+")", exact)
	var u *unit
	for i := range s.units {
		switch {
		case s.units[i].neutral || s.units[i].nested || s.units[i].of != 0 || s.units[i].target != nil && !s.units[i].write:
		case u != nil:
			return
		default:
			u = &s.units[i]
		}
	}
	if u == nil || u.target != nil || u.soft != "" {
		return
	}
	for _, r := range Assess(*req.call) {
		if r == RiskRoot || r == RiskDeletes || r == RiskHistory || r == RiskPublishes {
			return
		}
	}
	if prefix := prefixOf(u); prefix != "" {
		add("Bash("+prefix+" *)", "Every command that begins with “"+prefix+"”, with any further arguments that are known to be harmless. What it reads and writes by them is decided by the rules for files.")
	}
}

// prefixOf is the beginning of a command that a rule could name: the program, its subcommand, and the recipe. It is
// empty where such a rule would be too wide: the program or a word is unknown, or the command connects elsewhere.
func prefixOf(u *unit) string {
	args, r := u.args(), u.reading
	if r.prog == nil || u.wrap != "" || slices.ContainsFunc(r.demands, func(d demand) bool { return d.reaches }) || transparents[args[0].text] > 0 {
		return ""
	}
	last := r.lead
	if len(r.prog.subs) > 0 && last == 0 && len(args) > 1 {
		return ""
	}
	for i, m := range r.words {
		switch {
		case m.runs:
			last = i
		case m.why != "":
			return ""
		}
	}
	if o := r.block.operands; r.code && last == r.lead && len(o) > 0 && o[0].form != nil {
		if last++; last == len(args) {
			return ""
		}
	}
	for _, w := range args[:last+1] {
		if !w.known() || w.source || !plain(w.text) || strings.HasPrefix(w.text, "-") && w.text != "-m" {
			return ""
		}
	}
	text, _ := spell(args[:last+1])
	return text
}

func (req *request) suggestFiles(add func(text, sentence string)) {
	t := &req.target[0]
	if t.resolved == "" {
		return
	}
	head, verb, but := "Read", "Reading", ", also new ones."
	all := "Reading every file in the workspace, secrets too."
	if req.kind == kindEdit {
		but = ", also new ones, but no programs, no secrets, and no files that programs take orders from, such as .git and .vscode."
		head, verb, all = "Edit", "Writing", "Writing every file in the workspace"+but
	}
	name, where := t.rel, "in the workspace"
	if !t.inside {
		name, where = t.resolved, "on the machine"
	}
	dir := path.Dir(name)
	switch {
	case t.folder && name == "/":
		return
	case t.folder && name != ".":
		add(head+"("+globLiteral(name)+"/**)", verb+" and searching every file below "+name+" "+where+".")
	case !t.folder:
		add(head+"("+globLiteral(name)+")", verb+" the file "+name+" "+where+", whatever it holds by then.")
		if t.inside && !secretLooking(name) && dir != "." {
			add(head+"("+globLiteral(dir)+"/**)", verb+" every file below "+dir+but)
		}
	}
	if t.folder {
		all = verb + " and searching every file in the workspace, secrets too."
	}
	if t.inside && (t.folder || !secretLooking(name)) {
		add(head+"(**)", all)
	}
}

// globLiteral escapes a path for a glob.
func globLiteral(p string) string {
	if !strings.ContainsAny(p, "*?[{") {
		return p
	}
	var b strings.Builder
	for i := range len(p) {
		if strings.IndexByte("*?[{", p[i]) >= 0 {
			b.WriteByte('[')
			b.WriteByte(p[i])
			b.WriteByte(']')
			continue
		}
		b.WriteByte(p[i])
	}
	return b.String()
}
