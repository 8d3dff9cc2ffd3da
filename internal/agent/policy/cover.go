package policy

import (
	"slices"
	"strings"
)

// covers reports whether an allowing pattern covers part i of a request. why is
// set when the pattern is meant for it and something keeps it from applying.
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
		if p.kind != req.kind && (req.kind != kindBash || p.kind == kindWeb || p.kind == kindBash) {
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

// coversTarget is covers for a file: a bare name or a tool's name covers the
// workspace.
func coversTarget(p *Pattern, t *target, write bool) (bool, string) {
	if p.glob != nil {
		return p.glob.covers(t, write)
	}
	if !t.inside {
		return false, t.written + " is " + outsideWords(t)
	}
	if write {
		if place := protected(t.rel); place != "" {
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
		return req.coversRedirect(p, u, hard)
	}
	if p.kind == kindRead || p.kind == kindEdit {
		return false, ""
	}
	if p.cmd != nil && !p.cmd.meant(u) {
		return false, ""
	}
	switch {
	case hard != "":
		return false, hard
	case u.soft != "":
		return false, u.soft
	case u.nested:
		return false, "it runs inside another command"
	}
	return req.strict(p.cmd, u)
}

// coversRedirect is for the file of a redirection.
func (req *request) coversRedirect(p *Pattern, u *unit, hard string) (bool, string) {
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
	case ok && (u.soft != "" || u.nested):
		return false, u.soft
	}
	return ok, why
}

// meant reports whether the pattern's words match the unit's, whatever else may
// be wrong with it.
func (c *command) meant(u *unit) bool {
	if c.words == nil {
		return c.rest
	}
	for _, at := range u.inner {
		if c.match(u.words[at:]) >= 0 && (at == u.inner[len(u.inner)-1] || at+c.literals() > u.inner[len(u.inner)-1]) {
			return true
		}
	}
	return false
}

// match matches the words one by one, and returns how many of them the words of
// the pattern matched before its trailing *; -1 for no match.
func (c *command) match(words []word) int {
	if len(words) < len(c.words) || len(words) > len(c.words) && !c.rest {
		return -1
	}
	for i, w := range c.words {
		if words[i].dynamic != "" && w.literal() || !w.match(words[i].text, false) {
			return -1
		}
	}
	return len(c.words)
}

// strict decides whether a pattern that is meant for a plain unit may allow it:
// its words must not lead out of the workspace, and no option that the pattern
// does not spell may make the program run or write something else.
func (req *request) strict(c *command, u *unit) (bool, string) {
	last := u.inner[len(u.inner)-1]
	at := last
	if c != nil && c.words != nil {
		for _, in := range u.inner {
			if c.match(u.words[in:]) >= 0 {
				at = in
			}
		}
	}
	args := u.words[last:]
	base := baseName(args[0].text)
	spelt := func(i int) bool { // word i of args is literal in the pattern
		j := last + i - at
		return c != nil && j < len(c.words) && c.words[j].literal()
	}
	if args[0].text != base && !spelt(0) {
		return false, args[0].text + " is given by its path, which may be any program"
	}
	if req.foreignGit(u, u.dirs) {
		return false, gitElsewhere
	}
	if isInterpreter(base) {
		if why := interpreted(args, spelt); why != "" {
			return false, why
		}
	}
	if why := escapes(base, args, spelt, c); why != "" {
		return false, why
	}
	for i, w := range args {
		if i == 0 || spelt(i) {
			if w.glob {
				return false, "the wildcard " + w.text + " is expanded before the program sees it"
			}
			continue
		}
		if why := req.argument(u, w, i, c, last+i-at); why != "" {
			return false, why
		}
	}
	return true, ""
}

const gitElsewhere = "git obeys the settings of the repository that it stands in, and a folder of the workspace may hold one of its own"

// foreignGit reports whether git runs elsewhere than in the workspace's own
// folder: a folder below it may be a bare repository, whose settings name
// programs.
func (req *request) foreignGit(u *unit, dirs []string) bool {
	return u.target == nil && baseName(u.program()) == "git" && (len(dirs) != 1 || dirs[0] != req.root.resolved)
}

// argument says what is wrong with a word that a * of the pattern matched: word i
// of the command, which is word at of the pattern.
func (req *request) argument(u *unit, w word, i int, c *command, at int) string {
	for _, n := range req.names(u) {
		if n.word != i || harmless[n.path] {
			continue
		}
		if strings.HasPrefix(n.path, "~") {
			return "the argument " + w.text + " may name a home folder"
		}
		if u.dirs == nil && !strings.HasPrefix(n.path, "/") {
			if strings.Contains(n.path, "..") {
				return "the folder that " + n.path + " is relative to is not known"
			}
			continue
		}
		for k := range n.targets {
			t := &n.targets[k]
			if !t.inside {
				if !c.names(at, t.resolved) {
					return "the argument " + w.text + " names " + n.path + ", " + t.whyOutside()
				}
				continue
			}
			if place := protected(t.rel); strings.HasPrefix(place, ".") && !reading[baseName(u.program())] {
				return "the argument " + w.text + " names " + place + ", where later programs take orders from"
			}
		}
	}
	return ""
}

// names reports whether a word of the pattern that is an absolute path with a *
// matches a path whose links are resolved.
func (c *command) names(at int, resolved string) bool {
	if c == nil || at >= len(c.words) || resolved == "" || !strings.HasPrefix(c.words[at].parts[0], "/") || len(c.words[at].parts[0]) < 2 {
		return false
	}
	return c.words[at].match(resolved, false)
}

// pathsIn are the parts of an argument that may name a file: the whole, what
// follows = or : or @, and what is glued to a short option.
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

// coversSilent reports whether an allowing pattern speaks for a part that
// decides nothing by itself, so that rules after it need not be asked.
func (req *request) coversSilent(p *Pattern, i int) bool {
	if p.kind != kindBash || p.cmd == nil || req.bad != "" || req.script.hard != "" {
		return false
	}
	u := &req.script.units[i]
	return p.cmd.exact && p.cmd.text == req.script.src || u.neutral && p.cmd.meant(u)
}
