package policy

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// covers reports whether an allowing pattern covers part i of a request. why is set when the pattern is meant for
// it but does not apply.
func (req *request) covers(p *Pattern, i int) (ok bool, why string) {
	switch {
	case p.kind == kindName && !p.names(req.call.Tool), p.kind == kindNone:
		return false, ""
	case p.kind == kindName && req.odd != "" && p.name != req.call.Tool:
		return false, req.odd
	case req.kind == kindBash:
		return req.coversUnit(p, i)
	case p.kind != kindName && p.kind != req.kind:
		return false, ""
	case req.kind == kindRead || req.kind == kindEdit:
		ok, why = coversTarget(p, &req.target[0], req.kind == kindEdit)
	case req.kind == kindNet:
		return req.coversHost(p)
	case req.kind == kindWeb:
		ok, why = req.link.covered(p.web)
	default:
		ok = true
	}
	if ok && req.bad != "" {
		return false, req.bad
	}
	return ok, why
}

// everything covers the workspace, as a bare name or a tool's name does.
var everything, _ = parseGlob("**")

func coversTarget(p *Pattern, t *target, write bool) (bool, string) {
	return cmp.Or(p.glob, everything).covers(t, write)
}

func (req *request) coversUnit(p *Pattern, i int) (bool, string) {
	s := req.script
	hard := cmp.Or(req.bad, s.hard)
	switch {
	case p.kind == kindWeb || p.kind == kindNet:
		return false, ""
	case len(s.units) > 0:
	case p.kind == kindBash && (p.cmd == nil || p.cmd.prog == "") || p.kind == kindName:
		return false, hard
	default:
		return false, ""
	}
	u := &s.units[i]
	if p.kind == kindBash && p.cmd != nil && p.cmd.exact && p.cmd.text == s.src {
		if hard == "" && req.foreignGit(u, s.start) {
			return false, gitElsewhere
		}
		return hard == "", hard
	}
	if u.target != nil {
		return req.coversFile(p, u, first(hard, u.soft, s.soft))
	}
	if p.kind == kindRead || p.kind == kindEdit {
		return false, ""
	}
	a, meant := p.cmd.fit(u)
	if !meant {
		return false, ""
	}
	switch {
	case hard != "":
		return false, hard
	case u.soft != "", s.soft != "":
		return false, first(u.soft, s.soft)
	case u.nested:
		return false, "it runs inside another command"
	case u.wrap != "" && (a.c == nil || !a.c.any):
		return false, u.wrap
	}
	return req.strict(a, u)
}

// coversFile is for the file of a redirection, or one named by a command's words.
func (req *request) coversFile(p *Pattern, u *unit, hard string) (bool, string) {
	if p.kind == kindBash {
		return hard == "" && !u.nested && u.of > 0 && req.excuses(p.cmd, u), ""
	}
	family, tool := kindRead, "Read"
	if u.write {
		family, tool = kindEdit, "Edit"
	}
	if p.kind != family && (p.kind != kindName || !p.names(tool)) {
		return false, ""
	}
	ok, why := coversTarget(p, u.target, u.write)
	switch {
	case ok && hard != "":
		return false, hard
	case ok && u.nested:
		return false, ""
	}
	return ok, why
}

// fit aligns a pattern's words with those of the innermost command.
type fit struct {
	c   *command // nil for a pattern without words
	off int      // word i of the command is word i+off of the pattern
}

// fit reports whether the pattern's words match the unit's; other reasons may still exclude it.
func (c *command) fit(u *unit) (fit, bool) {
	last := u.inner[len(u.inner)-1]
	if c == nil || c.words == nil {
		return fit{c, 0}, c == nil || c.rest
	}
	for _, at := range slices.Backward(u.inner) {
		if c.match(u.words[at:]) && (at == last || at+c.literals() > last) {
			return fit{c, last - at}, true
		}
	}
	return fit{}, false
}

// match reports whether the pattern's words match a command's one by one.
func (c *command) match(words []word) bool {
	if len(words) < len(c.words) || len(words) > len(c.words) && !c.rest {
		return false
	}
	for i, w := range c.words {
		if words[i].dynamic != "" && w.literal() || !w.match(words[i].text, false) {
			return false
		}
	}
	return true
}

// spells reports whether the pattern has word i of the command literally, or accepts it whatever it does.
func (f fit) spells(i int) bool {
	if f.c == nil {
		return false
	}
	if j := i + f.off; j < len(f.c.words) {
		return f.c.words[j].literal()
	}
	return f.c.any
}

func (f fit) spellsAll(words []int) bool {
	return !slices.ContainsFunc(words, func(i int) bool { return !f.spells(i) })
}

// strict decides whether a pattern that is meant for a plain unit may allow it: words matched by its wildcards must
// be known to the program's table row.
func (req *request) strict(f fit, u *unit) (bool, string) {
	if u.neutral {
		return true, ""
	}
	args, r := u.args(), u.reading
	if r == nil { // what runs is hidden, so its words were not read
		return false, first(args[0].hidden(), "what it runs is not known")
	}
	switch name := args[0].text; {
	case strings.Contains(name, "/") && !f.spells(0):
		return false, name + " is given by its path, which may be any program"
	case req.foreignGit(u, u.dirs):
		return false, gitElsewhere
	case r.prog == nil && !f.spells(0):
		return false, "nothing is known of " + name + advice(args, 0)
	}
	if why := r.words[0].why; why != "" && (f.c == nil || !f.c.any) {
		if text, ok := spell(args[:r.lead+1]); ok && plain(args[0].text) {
			return false, why + "; Bash(" + text + " **) would allow it"
		}
		return false, why + advice(args, 0)
	}
	if r.newOption && (f.c == nil || !f.c.any && !f.c.exact) {
		return false, r.because + advice(args, len(args)-1) // a star would stand for nothing
	}
	for i := range args {
		if i == 0 || f.spells(i) {
			continue
		}
		var m meaning
		if r.prog == nil {
			m.why = "nothing is known of " + args[0].text + ", so a rule must spell its arguments"
		} else if m = r.words[i]; m.why == "" {
			continue
		}
		return false, m.why + advice(args, r.lastUnknown(i))
	}
	for _, d := range r.demands {
		if !f.spellsAll(d.words) {
			return false, d.why + advice(args, d.words[len(d.words)-1])
		}
	}
	return true, ""
}

// lastUnknown is the last word from i on that a rule must spell.
func (r *reading) lastUnknown(i int) int {
	for k := len(r.words) - 1; k > i; k-- {
		if r.prog == nil || r.words[k].why != "" {
			return k
		}
	}
	return i
}

// advice names the rules that would allow a word.
func advice(args []word, i int) string {
	all := "Bash(" + args[0].text + " **)"
	text, ok := spell(args[:i+1])
	switch {
	case !plain(args[0].text):
		return "; a rule would have to spell it"
	case i == 0 || !ok || len(text) > 80:
		return "; " + all + " would allow it"
	case i < len(args)-1:
		text += " *"
	}
	return "; Bash(" + text + ") would allow it, or " + all
}

// spell writes words so that a pattern has them literally.
func spell(args []word) (string, bool) {
	var b strings.Builder
	for i, w := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch {
		case !w.known() || w.source || strings.Contains(w.text, "'"):
			return "", false
		case w.text != "" && plain(w.text):
			b.WriteString(w.text)
		default:
			b.WriteString("'" + w.text + "'")
		}
	}
	return b.String(), true
}

// excuses reports whether a pattern that covers a command also covers a file named by its words: it spells them.
func (req *request) excuses(c *command, u *unit) bool {
	by := &req.script.units[u.of-1]
	f, meant := c.fit(by)
	if !meant || c == nil {
		return false
	}
	words := req.script.part(u).words
	if !c.any && (len(words) == 0 || u.target.doubt != "" && words[0] != 0) || !f.spellsAll(words) {
		return false
	}
	ok, _ := req.coversUnit(&Pattern{kind: kindBash, cmd: c}, u.of-1)
	return ok
}

const gitElsewhere = "git obeys the settings of the repository that it stands in, and a folder of the workspace may hold one of its own"

// foreignGit reports whether git runs outside the workspace's own folder and those of the call's repositories: a folder
// below it may be a bare repository, whose settings name programs.
func (req *request) foreignGit(u *unit, dirs []string) bool {
	return u.target == nil && baseName(u.program()) == "git" && (len(dirs) != 1 || dirs[0] != req.root.resolved &&
		!slices.ContainsFunc(req.call.Repositories, func(r string) bool { return dirs[0] == filepath.Join(req.root.resolved, r) }))
}

// maxPaths bounds pathsIn.
const maxPaths = 128

// pathsIn are the parts of an argument that may name a file: the whole, what follows = or : or @, what stands before
// a : with a line or a test, and what is attached to a short option. There are maxPaths at most, then perhaps not all.
func pathsIn(s string) (out []string) {
	add := func(at int) {
		if at >= 0 && at < len(s) && len(out) < maxPaths && !slices.Contains(out, s[at:]) {
			out = append(out, s[at:])
		}
	}
	switch {
	case !strings.HasPrefix(s, "-"):
		add(0)
	case !strings.HasPrefix(s, "--"): // -xf/etc, -C../x, -f.env
		add(strings.IndexAny(s, "/~"))
		add(strings.Index(s, ".."))
		if strings.ContainsAny(s, "./") {
			add(2)
		}
	}
	if before, _, ok := strings.Cut(s, ":"); ok && before != "" && !strings.HasPrefix(s, "-") {
		out = append(out, before)
	}
	for i := range len(s) {
		web := strings.HasPrefix(s[i:], "://") && !strings.HasPrefix(s[i:], ":///") && (strings.HasSuffix(s[:i], "http") || strings.HasSuffix(s[:i], "https"))
		if !web && strings.IndexByte("=:@", s[i]) >= 0 {
			add(i + 1)
		}
	}
	return out
}

// coversSilent reports whether an allowing pattern covers a part that decides nothing by itself, so that later
// rules need not be asked.
func (req *request) coversSilent(p *Pattern, i int) bool {
	if p.kind != kindBash || p.cmd == nil || req.bad != "" || req.script.hard != "" {
		return false
	}
	u := &req.script.units[i]
	if !u.neutral {
		return p.cmd.exact && p.cmd.text == req.script.src
	}
	_, meant := p.cmd.fit(u)
	return meant || p.cmd.exact && p.cmd.text == req.script.src
}
