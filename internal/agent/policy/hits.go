package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// hits reports whether a denying or asking pattern matches part i of a request: widely, where covers is narrow.
// doubt is set when it may match but cannot be known.
func (req *request) hits(p *Pattern, i int) (hit bool, doubt string) {
	switch {
	case p.kind == kindName:
		return p.names(req.call.Tool), ""
	case req.kind == kindBash && p.kind == kindBash:
		return p.cmd == nil || len(req.script.units) > 0 && p.cmd.hits(&req.script.units[i], req.script), ""
	case req.kind == kindBash && (p.kind == kindRead || p.kind == kindEdit) && len(req.script.units) > 0:
		return req.hitsUnit(p, &req.script.units[i])
	case p.kind != req.kind:
		return false, ""
	case p.kind == kindWeb:
		return p.web == nil || p.web.hits(req.link.host) || slices.ContainsFunc(req.link.may, p.web.hits), ""
	case p.kind == kindNet:
		return p.net == nil || p.net.hits(req.to), ""
	}
	switch t := &req.target[0]; {
	case p.glob == nil || p.glob.hits(t):
		return true, ""
	case t.folder && p.glob.reaches(t):
		return false, "what it searches may hold files"
	case t.resolved == "":
		return false, "it may be a file"
	}
	return false, ""
}

// hitsUnit looks for a denied path among the words of a command and in its
// redirections.
func (req *request) hitsUnit(p *Pattern, u *unit) (bool, string) {
	if u.target != nil {
		if u.write != (p.kind == kindEdit) {
			return false, ""
		}
		switch {
		case p.glob == nil:
			return !u.names, ""
		case p.glob.hits(u.target):
			return true, ""
		case u.target.folder && req.script.mayHold(p.glob, u.target):
			return false, "all that is below " + u.target.written + " is meant, which may hold a file"
		}
		return false, ""
	}
	if p.glob == nil || p.glob.all && p.glob.base == "" {
		return false, "" // it matches every file, and says nothing about a particular word
	}
	args := u.args()
	if p.kind == kindEdit && u.reading != nil && u.reading.reads() {
		return false, ""
	}
	doubt, known := "", u.reading != nil && u.reading.known()
	for _, w := range args {
		if w.glob || w.brace {
			if req.script.finds(p.glob, u.dirs, w.text) {
				return true, ""
			}
			doubt = w.text + " may stand for a file"
		} else if !known && len(pathsIn(w.text)) >= maxPaths {
			doubt = "one of its words may stand for many files"
		}
	}
	for _, t := range req.names(u) {
		if p.glob.hits(&t) {
			return true, ""
		}
		if t.folder = isFolder(&t); t.folder && !known && doubt == "" && req.script.mayHold(p.glob, &t) {
			doubt = "all that is below " + t.written + " may be meant, which may hold a file"
		}
	}
	return false, doubt
}

// Bounds of finds: the braces and wildcards of a word, and the files that it is compared with.
const maxBraces, maxWildcards, maxMatched = 3, 8, 1000

// finds reports whether a word with wildcards or braces stands for a file of the workspace that the glob matches. It
// is false for what would take long to find out.
func (s *script) finds(g *glob, dirs []string, word string) bool {
	if strings.Count(word, "{") > maxBraces || strings.Count(word, "*")+strings.Count(word, "?")+strings.Count(word, "[") > maxWildcards {
		return false
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		if strings.HasPrefix(word, "/") {
			dir = ""
		}
		pattern, in := below(s.root.resolved, path.Clean(dir+"/"+word))
		return in && slices.ContainsFunc(s.matched(g), func(f string) bool {
			ok, err := doublestar.Match(pattern, f)
			return ok && err == nil
		})
	})
}

// matched lists, once, files of the workspace that a glob matches.
func (s *script) matched(g *glob) []string {
	if _, done := s.globbed[g]; !done {
		files, _ := s.survey(s.root.resolved, false)
		list := slices.DeleteFunc(slices.Clone(files), func(f string) bool {
			if g.abs {
				f = s.root.resolved + "/" + f
			}
			return !g.hitsName(strings.ToLower(f))
		})
		s.globbed[g] = list[:min(len(list), maxMatched)]
	}
	return s.globbed[g]
}

// mayHold reports whether files matched by the glob lie below a command's folder, or whether that is unknown.
func (s *script) mayHold(g *glob, t *target) bool {
	if !t.inside && !g.abs && t.abs != "" || !g.reaches(t) {
		return false
	}
	if t.past || t.resolved == "" || strings.Contains(strings.ToLower(g.text), ".git") {
		return true
	}
	at := t.rel
	if g.abs {
		at = t.resolved
	}
	files, over := s.survey(t.resolved, t.tracked)
	return over || slices.ContainsFunc(files, func(f string) bool { return g.hitsName(strings.ToLower(path.Join(at, f))) })
}

// names are the files that a unit's arguments may mean. They are cached, because every rule about paths asks.
func (req *request) names(u *unit) []target {
	if u.asked {
		return u.named
	}
	u.asked = true
	for _, w := range u.args()[1:] {
		list := pathsIn(w.text)
		if strings.HasPrefix(w.text, "-") && !(u.reading != nil && u.reading.known()) { // -xoFILE
			for k := 2; k < min(len(w.text), 40); k++ {
				list = append(list, w.text[k:])
			}
		}
		for _, s := range list {
			u.named = append(u.named, req.unitTargets(u, s)...)
		}
	}
	return u.named
}

// unitTargets are the files that a path may mean, from every folder where the unit may run.
func (req *request) unitTargets(u *unit, p string) []target {
	dirs := u.dirs
	if dirs == nil && !strings.HasPrefix(p, "/") {
		return []target{req.root.lexical(req.root.written, p), {written: p}}
	}
	return req.root.anywhere(dirs, p)
}

// hits reports whether a denying or asking pattern matches a unit: by the
// program's base name, with options anywhere, and with any further words.
func (c *command) hits(u *unit, s *script) bool {
	if c.exact && c.text == s.src {
		return true
	}
	if u.target != nil || c.words == nil && !c.rest {
		return false
	}
	return slices.ContainsFunc(u.inner, func(at int) bool { return c.loose(u.words[at:]) })
}

func (c *command) loose(words []word) bool {
	if len(c.words) == 0 {
		return true
	}
	if words[0].glob && !c.words[0].literal() {
		return true
	}
	if words[0].dynamic != "" {
		return false
	}
	base := baseName(words[0].text)
	base = strings.TrimSuffix(base, ".exe")
	if c.prog != "" {
		if base != c.prog && versioned(base) != c.prog {
			return false
		}
	} else if !c.words[0].match(base, true) && !c.words[0].match(words[0].text, true) {
		return false
	}
	return looseArgs(c.words[1:], words[1:], 4)
}

// looseArgs finds the pattern's words among a command's, in order, with options and their values between them. A
// pattern's own options may stand anywhere. steps bounds the options with a value that are tried.
func looseArgs(pattern []pword, args []word, steps int) bool {
	if len(pattern) == 0 {
		return true
	}
	p := pattern[0]
	if p.literal() && strings.HasPrefix(p.text, "-") && p.text != "-" && p.text != "--" {
		for _, a := range args {
			if sameOption(p.text, a.text) {
				return looseArgs(pattern[1:], args, steps)
			}
		}
		return false
	}
	for i, a := range args {
		if a.known() && p.match(a.text, true) && looseArgs(pattern[1:], args[i+1:], steps) {
			return true
		}
		if (a.glob || a.brace) && looseArgs(pattern[1:], args[i+1:], steps) {
			return true
		}
		if !strings.HasPrefix(a.text, "-") {
			return false
		}
		if steps > 0 && !strings.Contains(a.text, "=") && i+2 <= len(args) && looseArgs(pattern, args[i+2:], steps-1) {
			return true
		}
	}
	return false
}

// sameOption: -f is also in -xf, and --force in --force=now.
func sameOption(want, have string) bool {
	if want == have || strings.HasPrefix(have, want+"=") {
		return true
	}
	return len(want) == 2 && len(have) > 1 && have[0] == '-' && have[1] != '-' && strings.IndexByte(have[1:], want[1]) >= 0
}
