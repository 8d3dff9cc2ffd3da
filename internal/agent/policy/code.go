package policy

import (
	"slices"
	"strings"
)

// runsCode names a command that the pattern allows and that runs the workspace's
// own code, such as go test: what a rule that allows edits can change. It is empty
// where there is none that is known. A rule that takes any words whatever they do
// counts, and so does one for a program of the workspace.
func (p *Pattern) runsCode() string {
	switch {
	case p.kind == kindName && p.names("Bash"), p.kind == kindBash && p.cmd == nil:
		return "any known command, such as go test"
	case p.kind != kindBash:
		return ""
	case p.cmd.exact && p.cmd.words == nil:
		return lineRunsCode(p.cmd.text)
	case len(p.cmd.words) == 0 && p.cmd.any:
		return "any command"
	case len(p.cmd.words) == 0:
		return "any known command, such as go test"
	}
	return p.cmd.runsCode()
}

// lineRunsCode is runsCode of an exact command line.
func lineRunsCode(text string) string {
	s := readScript(text, root{}, nil)
	for i := range s.units {
		u := &s.units[i]
		if u.target == nil && (u.wrap != "" || u.reading != nil && wordsRunCode(u.args(), u.reading)) {
			return u.text()
		}
	}
	return ""
}

func wordsRunCode(args []word, r *reading) bool {
	return r.code || strings.Contains(args[0].text, "/") && !strings.HasPrefix(args[0].text, "/") ||
		slices.ContainsFunc(r.words, func(m meaning) bool { return m.runs })
}

// runsCode is for a pattern of words, the first of which may be a wrapper.
func (c *command) runsCode() string {
	n := c.literals()
	if n == 0 {
		return "any known command, such as go test"
	}
	args := make([]word, 0, n)
	for _, w := range c.words[:n] {
		args = append(args, word{text: w.text})
	}
	for {
		skip, ok, _ := unwrap(args)
		if !ok || skip == 0 {
			break
		}
		args = args[skip:]
	}
	text := (&unit{words: args}).text()
	if c.any {
		return text + ", whatever its arguments do"
	}
	r := readWords(args)
	switch {
	case wordsRunCode(args, r):
		return text
	case r.prog == nil || !c.rest && n == len(c.words):
		return ""
	case len(r.prog.subs) > 0 && r.lead == 0:
		names := make([]string, 0, len(r.prog.subs))
		for name, b := range r.prog.subs {
			if b.runsCode() {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			return text + " " + slices.Min(names)
		}
	}
	if r.block.runsCode() {
		return text
	}
	return ""
}

func joinTexts(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// runsCode reports whether a block runs the workspace's code, by itself or by an
// option.
func (b *block) runsCode() bool {
	runs := func(e effect) bool { return e.kind == effectCode }
	if slices.ContainsFunc(b.effects, runs) {
		return true
	}
	for _, o := range b.options {
		if slices.ContainsFunc(o.effects, runs) {
			return true
		}
	}
	return false
}
