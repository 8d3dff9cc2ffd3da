package policy

import (
	"path/filepath"
	"slices"
	"strings"
)

// covers reports whether an allowing pattern covers part i of a request. why is set when the pattern is meant for
// it but does not apply.
func (req *request) covers(p *Pattern, i int) (ok bool, why string) {
	switch p.kind {
	case kindName:
		if !p.names(req.call.Tool) {
			return false, ""
		}
		if req.odd != "" && p.name != req.call.Tool {
			return false, req.odd
		}
	case kindNone:
		return false, ""
	default:
		if p.kind != req.kind && (req.kind != kindBash || p.kind == kindWeb || p.kind == kindNet || p.kind == kindBash) {
			return false, ""
		}
	}
	switch {
	case req.kind == kindBash:
		return req.coversUnit(p, i)
	case p.kind != kindName && p.kind != req.kind:
		return false, ""
	case req.kind == kindRead || req.kind == kindEdit:
		t := &req.target[0]
		if ok, why = coversTarget(p, t, req.kind == kindEdit); ok && req.bad != "" {
			return false, req.bad
		}
		return ok, why
	case req.kind == kindNet:
		return req.coversHost(p)
	case req.kind == kindWeb:
		l := req.link
		if p.web != nil && (l.host == "" && !slices.ContainsFunc(l.may, p.web.covers) || l.host != "" && !p.web.covers(l.host)) {
			return false, ""
		}
		if req.bad != "" {
			return false, req.bad
		}
		if l.why == "" && p.web == nil && numericHost(l.host) {
			return false, "the address names its host by number"
		}
		if l.why == "" && (p.web == nil || p.web.sub) && strings.Contains(l.host, "xn--") {
			return false, "the host is spelled in other letters, which may imitate another"
		}
		return l.why == "", l.why
	}
	return req.bad == "", req.bad
}

// coversTarget is covers for a file: a bare name or a tool's name covers the workspace.
func coversTarget(p *Pattern, t *target, write bool) (bool, string) {
	if p.glob != nil {
		return p.glob.covers(t, write)
	}
	if !t.inside {
		return false, t.written + " is " + outsideWords(t)
	}
	if write {
		if why := t.elsewhere(); why != "" {
			return false, why
		}
		if place := first(append(protectedIn(t.rel), t.held()...)...); place != "" {
			return false, ordersFrom(place, t.rel)
		}
	}
	return true, ""
}

func (req *request) coversUnit(p *Pattern, i int) (bool, string) {
	s := req.script
	hard := req.bad
	if hard == "" {
		hard = s.hard
	}
	if len(s.units) == 0 {
		if p.kind == kindBash && (p.cmd == nil || p.cmd.prog == "") || p.kind == kindName {
			return false, hard
		}
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

// host reports whether the pattern spells scheme and host of word i, an address.
func (f fit) host(i int) bool {
	if f.c == nil || i+f.off >= len(f.c.words) {
		return false
	}
	_, host, ok := strings.Cut(f.c.words[i+f.off].parts[0], "://")
	return ok && strings.IndexByte(host, '/') > 0
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
		return false, why + advice(args, 0)
	}
	for i := range args {
		if i == 0 || f.spells(i) {
			continue
		}
		var m meaning
		if r.prog == nil {
			m.why = "nothing is known of " + args[0].text + ", so a rule must spell its arguments"
		} else if m = r.words[i]; m.why == "" && !m.url {
			continue
		}
		if m.url && m.why == "" && f.host(i) {
			continue
		}
		if m.why == "" {
			m.why = args[i].text + " is fetched, so a rule must spell its scheme and host"
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
		if r.prog == nil || r.words[k].why != "" || r.words[k].url {
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
		case !w.known() || w.source != 0 || strings.Contains(w.text, "'"):
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
	words := by.reading.parts[u.part].words
	if (len(words) == 0 || u.target.leads != "") && !c.any {
		return false
	}
	if !f.spellsAll(words) {
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

// pathsIn are the parts of an argument that may name a file: the whole, what follows = or : or @, and what is
// attached to a short option.
func pathsIn(s string) []string {
	if !strings.ContainsAny(s, "=:@") && !strings.HasPrefix(s, "-") {
		if s == "" {
			return nil
		}
		return []string{s}
	}
	var out []string
	add := func(p string) {
		if p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if !strings.HasPrefix(s, "-") {
		add(s)
	} else if i := strings.IndexAny(s, "/~="); i >= 0 && s[i] != '=' && !strings.HasPrefix(s, "--") {
		add(s[i:]) // -xf/etc
	}
	if i := strings.Index(s, ".."); i > 0 && strings.HasPrefix(s, "-") {
		add(s[i:]) // -C../x
	}
	if len(s) > 2 && s[0] == '-' && s[1] != '-' && strings.ContainsAny(s, "./") && !strings.Contains(s, "=") {
		add(s[2:]) // -f.env
	}
	for i := range len(s) {
		if strings.HasPrefix(s[i:], "://") && !strings.HasPrefix(s[i:], ":///") && (strings.HasSuffix(s[:i], "http") || strings.HasSuffix(s[:i], "https")) {
			continue // an address on the web
		}
		if s[i] == '=' || s[i] == ':' || s[i] == '@' {
			add(s[i+1:])
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
