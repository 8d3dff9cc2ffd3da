package policy

import (
	"path"
	"slices"
	"strings"
)

// Sum is two rules that together allow anything, though neither does: what the one
// writes, the other runs. Only a sandbox bounds such a policy.
type Sum struct {
	// Write is the rule that lets files be written unasked, and Writes those of its
	// patterns that do; Run and Runs are the same of what runs code of the workspace.
	Write  Rule
	Writes []Pattern
	Run    Rule
	Runs   []Pattern
}

// String names both rules: Edit(**) (deckhand.yaml:4:7) and Bash(go test *) (…).
func (s Sum) String() string {
	return patternsAt(s.Writes, s.Write.Source) + " and " + patternsAt(s.Runs, s.Run.Source)
}

func patternsAt(list []Pattern, source string) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.text
	}
	text := strings.Join(names, ", ")
	if source != "" {
		text += " (" + source + ")"
	}
	return text
}

// Sums are the pairs of rules that add up to anything in a project.
func (p *Policy) Sums(project string) []Sum {
	var out []Sum
	for i := range p.Rules {
		writes := p.allowing(i, project, Pattern.writesCode)
		if len(writes) == 0 {
			continue
		}
		for k := range p.Rules {
			runs := p.allowing(k, project, Pattern.runsCode)
			if len(runs) > 0 && meet(p.Rules[i].Channels, p.Rules[k].Channels) {
				out = append(out, Sum{p.Rules[i], writes, p.Rules[k], runs})
			}
		}
	}
	return out
}

// Fetching are the patterns that let pages be fetched in a project, each with where it
// stands: WebFetch(domain:go.dev) (deckhand.yaml:4:7).
func (p *Policy) Fetching(project string) []string {
	var out []string
	for i, r := range p.Rules {
		if pages := p.allowing(i, project, func(p Pattern) bool { return p.kind == kindWeb }); len(pages) > 0 {
			out = append(out, patternsAt(pages, r.Source))
		}
	}
	return out
}

// Reaching are the patterns that let hosts be reached that a project's network: does not
// list, each with where it stands.
func (p *Policy) Reaching(project string) []string {
	var out []string
	for i, r := range p.Rules {
		if hosts := p.allowing(i, project, func(p Pattern) bool { return p.kind == kindNet }); len(hosts) > 0 {
			out = append(out, patternsAt(hosts, r.Source))
		}
	}
	return out
}

// allowing are the patterns of an allowing rule that do something in a project, but
// for those that a rule before it denies or asks altogether.
func (p *Policy) allowing(i int, project string, do func(Pattern) bool) []Pattern {
	r := &p.Rules[i]
	if r.Verdict != Allow || len(r.Projects) > 0 && !slices.Contains(r.Projects, project) {
		return nil
	}
	var out []Pattern
	for _, pat := range r.Patterns {
		if do(pat) && !slices.ContainsFunc(p.Rules[:i], func(before Rule) bool { return before.hides(pat, project) }) {
			out = append(out, pat)
		}
	}
	return out
}

// hides reports whether a rule decides every call that a pattern after it allows.
func (r *Rule) hides(p Pattern, project string) bool {
	if r.Verdict == Allow || len(r.Channels) > 0 || len(r.Projects) > 0 && !slices.Contains(r.Projects, project) {
		return false
	}
	return slices.ContainsFunc(r.Patterns, func(h Pattern) bool {
		return h.kind == p.kind && p.kind != kindName && h.cmd == nil && h.glob == nil && h.web == nil && h.net == nil || h.kind == kindName && h.name == "*"
	})
}

func meet(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(c string) bool { return slices.Contains(b, c) })
}

// writing and running are the tools by which a name with a * allows either.
var (
	writing = []string{"Edit", "Write", "NotebookEdit"}
	running = []string{"Bash", "Monitor", "PowerShell"}
)

// idle are the ends of names of files that nothing runs.
var idle = words(".md .markdown .txt .rst .adoc .csv .css .svg .png .jpg .jpeg .gif .webp .ico .pdf")

// writesCode reports whether an allowing pattern lets a file be written that a
// program may run.
func (p Pattern) writesCode() bool {
	switch p.kind {
	case kindName:
		return slices.ContainsFunc(writing, p.names)
	case kindEdit:
		return p.glob == nil || !idle[strings.ToLower(path.Ext(strings.TrimSuffix(p.glob.text, "/**")))] || strings.HasSuffix(p.glob.text, "/**")
	}
	return false
}

// runsCode reports whether an allowing pattern lets code of the workspace run: a
// program that is known for it, or one of which nothing is known.
func (p Pattern) runsCode() bool {
	switch {
	case p.kind == kindName:
		return slices.ContainsFunc(running, p.names)
	case p.kind != kindBash:
		return false
	case p.cmd == nil, p.anyWords():
		return true
	case p.cmd.exact && p.cmd.words == nil:
		return lineRunsCode(p.cmd.text)
	}
	return wordsRunCode(p.cmd.words, p.cmd.rest)
}

// anyWords reports whether a pattern ends in **: any further words, whatever they do.
func (p Pattern) anyWords() bool {
	return p.kind == kindBash && p.cmd != nil && p.cmd.any
}

// lineRunsCode is runsCode for a whole command line.
func lineRunsCode(line string) bool {
	s := readScript(line, root{}, nil)
	return len(s.units) == 0 || slices.ContainsFunc(s.units, func(u unit) bool {
		if u.target != nil || u.program() == "cd" {
			return false
		}
		var words []pword
		for _, w := range u.args() {
			words = append(words, pword{parts: []string{w.text}, text: w.text})
		}
		return wordsRunCode(words, false)
	})
}

// wordsRunCode looks the words of a command up in what is known of its program. What
// a wildcard stands for may be any of its subcommands and options; open says that
// further words may follow.
func wordsRunCode(words []pword, open bool) bool {
	words, known := unwrapped(words)
	if !known || len(words) == 0 || !words[0].literal() {
		return true
	}
	prog := specification(words[0].text)
	if prog == nil {
		return true
	}
	var spelt, said []string // all words before the first wildcard, and those that are no options
	for _, w := range words[1:] {
		if !w.literal() {
			open = true
			break
		}
		spelt = append(spelt, w.text)
		if !strings.HasPrefix(w.text, "-") {
			said = append(said, w.text)
		}
	}
	if prog.runs(spelt, len(said) > 0) {
		return true
	}
	for rest := said; ; rest = rest[1:] { // the first of them may be values of options
		switch matched, runs := prog.subRuns(spelt, rest, open); {
		case matched:
			return runs
		case len(rest) == 0:
			return false
		case len(rest) == 1:
			return len(prog.subs) > 0 && prog.operands == nil // a subcommand of which nothing is known
		}
	}
}

// unwrapped are the words of the command that wrappers such as timeout run; known is
// false where that cannot be told.
func unwrapped(words []pword) (inner []pword, known bool) {
	for {
		var spelt []word
		for _, w := range words {
			if !w.literal() {
				break
			}
			spelt = append(spelt, word{text: w.text})
		}
		if len(spelt) == 0 {
			return words, true
		}
		skip, ok, why := unwrap(spelt)
		switch {
		case why != "":
			return words, false
		case !ok || skip == 0:
			return words, true
		}
		words = words[min(skip, len(words)):]
	}
}

// subRuns looks for the subcommands that some words begin with, or may begin with.
func (p *program) subRuns(spelt, said []string, open bool) (matched, runs bool) {
	for name, b := range p.subs {
		parts := strings.Fields(name)
		n := min(len(parts), len(said))
		if n < len(parts) && !open || !slices.Equal(parts[:n], said[:n]) {
			continue
		}
		matched = true
		runs = runs || b.runs(spelt, len(said) > len(parts))
	}
	return matched, runs
}

// runs reports whether a program or one of its subcommands runs the workspace's code by
// itself or by one of its known options, or something that the pattern spells: the
// value of an option, or an operand where there is one.
func (b *block) runs(spelt []string, operand bool) bool {
	code := func(e effect) bool { return e.kind == effectCode }
	if slices.ContainsFunc(b.effects, code) {
		return true
	}
	for name, o := range b.options {
		named := slices.ContainsFunc(spelt, func(w string) bool { return strings.HasPrefix(w, name) })
		if slices.ContainsFunc(o.effects, code) || o.use.role == roleExec && named {
			return true
		}
	}
	return operand && b.operands != nil && slices.ContainsFunc(b.operands.uses, func(u use) bool { return u.role == roleExec })
}

// Width says what of a pattern that allows is wider, or narrower, than it looks;
// empty for most.
func (p Pattern) Width() string {
	if p.kind == kindName && slices.Contains(withheld, p.name) {
		return "the model is not offered this tool, which makes no sense in a thread"
	}
	if p.kind != kindBash || p.cmd == nil || p.cmd.exact {
		return ""
	}
	switch {
	case p.anyWords() && len(p.cmd.words) == 0:
		return "every command that can be read, whatever it does"
	case p.anyWords():
		return "any further words, whatever they make the program do: only a sandbox bounds it"
	case len(p.cmd.words) > 0 && p.cmd.words[0].literal() && specification(p.cmd.words[0].text) == nil:
		return "nothing is known of " + p.cmd.words[0].text + ", so words that only the * stands for are asked; spell them, or end it in ** to allow any"
	}
	return ""
}
