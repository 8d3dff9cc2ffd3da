package policy

import (
	"path"
	"strings"
)

// Suggestion is a pattern that would cover a call, and a sentence that says all
// that it would allow.
type Suggestion struct {
	Pattern  Pattern
	Sentence string
}

// Suggest lists patterns that cover the call, the narrowest first. It is empty
// when nothing safe can be suggested.
func Suggest(c Call) []Suggestion {
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
		if ok, _ := req.covered(&p); !ok {
			return
		}
		for _, s := range out {
			if s.Pattern.text == text {
				return
			}
		}
		out = append(out, Suggestion{p, sentence})
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
	default:
		if strings.HasPrefix(c.Tool, "mcp__") {
			add(c.Tool, "Every call of the tool "+c.Tool+", with any input.")
		} else if !strings.Contains(c.Tool, "*") {
			add(c.Tool, "Every use of "+c.Tool+", with any input.")
		}
	}
	return out
}

func (req *request) suggestCommand(add func(text, sentence string)) {
	s := req.script
	if s.hard != "" || s.src == "" {
		return
	}
	exact := "This command line, exactly as it stands, whatever the files that it works on hold by then."
	if simpleWords(s.src) != nil {
		exact = "This command with exactly these arguments, also beside other allowed commands and in any folder of the workspace, whatever the files that it works on hold by then."
	}
	add("Bash("+escapeExact(s.src)+")", exact)
	var u *unit
	for i := range s.units {
		switch {
		case s.units[i].neutral || s.units[i].nested || s.units[i].target != nil && !s.units[i].write:
		case u != nil:
			return
		default:
			u = &s.units[i]
		}
	}
	if u == nil || u.target != nil || u.soft != "" {
		return
	}
	args := u.args()
	name := args[0].text
	base := baseName(name)
	if base != name || isOpaque(base) || transparents[base].operands > 0 || !plain(name) || strings.HasPrefix(name, "-") {
		return
	}
	e := escapesOf[base]
	switch sub := subcommanded(base); {
	case len(args) > 1 && sub && listed(e.subs, args[1].text):
		return // a subcommand that runs or changes too much for any arguments
	case !sub && !tame[base] && !reading[base] && !isInterpreter(base):
		return
	}
	for _, r := range Assess(*req.call) {
		if r == RiskRoot || r == RiskDeletes || r == RiskHistory || r == RiskPublishes {
			return
		}
	}
	words := []string{name}
	switch {
	case isInterpreter(base) && len(args) > 2 && args[1].text == "-m" && strings.HasPrefix(base, "py"):
		words = append(words, "-m", args[2].text)
	case isInterpreter(base):
		if len(args) < 2 {
			return
		}
		words = append(words, args[1].text)
	case scripts[base] && len(args) > 2 && args[1].text == "run":
		words = append(words, "run", args[2].text)
	case subcommanded(base):
		if len(args) < 2 {
			return
		}
		words = append(words, args[1].text)
	}
	for _, w := range words[1:] {
		if !plain(w) || strings.HasPrefix(w, "-") && w != "-m" {
			return
		}
	}
	prefix := strings.Join(words, " ")
	add("Bash("+prefix+" *)", "Every command that begins with “"+prefix+"”, inside the workspace, with any arguments except those that make it run other programs.")
}

// tame programs do one thing, so that a rule for all their arguments makes sense.
var tame = words("pytest ruff black mypy eslint prettier tsc jest vitest mocha phpunit rspec rubocop gofmt staticcheck make just task ninja ctest")

// scripts run a named script of the project by "run".
var scripts = words("npm pnpm yarn bun deno")

// subcommanded programs do what their first operand says.
func subcommanded(base string) bool {
	if e, ok := escapesOf[base]; ok && (e.subs != "" || e.assign) {
		return true
	}
	return base == "bazel" || base == "gradle" || base == "mvn" || base == "dart" || base == "flutter"
}

func (req *request) suggestFiles(add func(text, sentence string)) {
	t := &req.target[0]
	if t.resolved == "" {
		return
	}
	head, verb := "Read", "Reading"
	if req.kind == kindEdit {
		head, verb = "Edit", "Writing"
	}
	name, where := t.rel, "in the workspace"
	if !t.inside {
		name, where = t.resolved, "on the machine"
	}
	lit := globLiteral(name)
	if t.folder {
		switch {
		case name == ".":
			add(head+"(**)", verb+" and searching every file in the workspace, secrets too.")
		case name == "/":
		default:
			add(head+"("+lit+"/**)", verb+" and searching every file below "+name+" "+where+".")
			if t.inside {
				add(head+"(**)", verb+" and searching every file in the workspace, secrets too.")
			}
		}
		return
	}
	add(head+"("+lit+")", verb+" the file "+name+" "+where+", whatever it holds by then.")
	if !t.inside || secretLooking(name) {
		return
	}
	if dir := path.Dir(name); dir != "." {
		add(head+"("+globLiteral(dir)+"/**)", verb+" every file below "+dir+", also new ones.")
	}
	if req.kind == kindEdit {
		add(head+"(**)", verb+" every file in the workspace, except those that programs take orders from, such as .git and .vscode.")
	} else {
		add(head+"(**)", verb+" every file in the workspace, secrets too.")
	}
}

// globLiteral writes a path so that a glob means it literally.
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
