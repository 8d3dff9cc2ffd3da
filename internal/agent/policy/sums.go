package policy

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Sum is two rules that together allow anything, though neither does: one allows writing what the other runs. Only
// a sandbox limits such a policy.
type Sum struct {
	// Write allows writing files without a question, by its patterns Writes; Run allows running the workspace's
	// code, by Runs.
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

// Sums are the pairs of rules that together allow anything in a project.
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

// Fetching are the patterns that allow fetching pages in a project, each with its source: WebFetch(domain:go.dev)
// (deckhand.yaml:4:7).
func (p *Policy) Fetching(project string) []string { return p.allowed(kindWeb, project) }

// Reaching are the patterns that allow hosts that a project's network: does not list, each with its source.
func (p *Policy) Reaching(project string) []string { return p.allowed(kindNet, project) }

func (p *Policy) allowed(k kind, project string) []string {
	var out []string
	for i, r := range p.Rules {
		if list := p.allowing(i, project, func(p Pattern) bool { return p.kind == k }); len(list) > 0 {
			out = append(out, patternsAt(list, r.Source))
		}
	}
	return out
}

// allowing are the patterns of an allowing rule that satisfy do in a project, except those that an earlier rule
// denies or asks entirely.
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

// hides reports whether a rule decides every call that a later pattern allows.
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

// writing and running are the tools through which a name with a * allows either.
var (
	writing = []string{"Edit", "Write", "NotebookEdit"}
	running = []string{"Bash"}
)

// idle are the extensions of files that nothing runs.
var idle = words(".md .markdown .txt .rst .adoc .csv .css .svg .png .jpg .jpeg .gif .webp .ico .pdf")

// writesCode reports whether an allowing pattern allows writing a file that a program may run.
func (p Pattern) writesCode() bool {
	switch p.kind {
	case kindName:
		return slices.ContainsFunc(writing, p.names)
	case kindEdit:
		return p.glob == nil || !idle[strings.ToLower(path.Ext(strings.TrimSuffix(p.glob.text, "/**")))] || strings.HasSuffix(p.glob.text, "/**")
	}
	return false
}

// runsCode reports whether an allowing pattern allows running the workspace's code, by a program known for it or an
// unknown one. An open pattern may continue with any subcommand.
func (p Pattern) runsCode() bool {
	switch {
	case p.kind == kindName:
		return slices.ContainsFunc(running, p.names)
	case p.kind != kindBash:
		return false
	case p.cmd == nil, p.anyWords():
		return true
	}
	line, open := p.cmd.text, p.cmd.rest
	if !p.cmd.exact {
		n := p.cmd.literals()
		line, open = p.cmd.spelt(n), open || n < len(p.cmd.words)
	}
	s := readScript(line, root{}, nil)
	return s.unsure || len(s.units) == 0 || slices.ContainsFunc(s.units, func(u unit) bool {
		r := u.reading
		if u.target != nil || u.program() == "cd" {
			return false
		}
		return r == nil || r.code || !r.known() || open && slices.ContainsFunc(slices.Collect(maps.Keys(r.prog.subs)), func(name string) bool {
			return strings.HasPrefix(name, joinedWords(u.args()[1:r.lead+1])) && r.prog.subs[name].runsCode()
		})
	})
}

// anyWords reports whether a pattern ends in **: any further words, whatever they do.
func (p Pattern) anyWords() bool {
	return p.kind == kindBash && p.cmd != nil && p.cmd.any
}

// Width says how an allowing pattern is wider or narrower than it looks; empty for most.
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
	case slices.ContainsFunc(p.cmd.words, func(w pword) bool { return !w.literal() && w.parts[0] != "" }):
		return "a word that is spelt in part stands for words that are known, and for none that it alone would excuse; spell it, or end the rule in **"
	case len(p.cmd.words) > 0 && p.cmd.words[0].literal() && specification(p.cmd.words[0].text) == nil:
		return "nothing is known of " + p.cmd.words[0].text + ", so words that only the * stands for are asked; spell them, or end it in ** to allow any"
	}
	return ""
}
