package policy

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxParts bounds what one command line may read and write by its words.
const maxParts = 256

// derive adds what commands read and write by their words as units of their own,
// which the rules decide like redirections.
func (s *script) derive() {
	n := len(s.units)
	for i := range n {
		u := &s.units[i]
		if u.target != nil || u.neutral || u.reading == nil {
			continue
		}
		for k := range u.reading.parts {
			s.derivePart(i, k)
		}
	}
	s.order(n)
}

// derivePart adds the files that one part means. s.units may move.
func (s *script) derivePart(i, k int) {
	u, p := &s.units[i], &s.units[i].reading.parts[k]
	if harmless[p.path] {
		return
	}
	write := p.role.writes()
	for _, t := range s.root.anywhere(u.dirs, p.path) {
		if len(s.units) >= maxParts {
			s.setHard("it does more than can be judged")
			return
		}
		targets := []target{t}
		switch {
		case write:
			targets = s.written(i, p, t)
		case p.role == roleRev && !t.exists: // a revision, all of which is shown
			all := s.root.lexical(s.root.resolved, ".")
			all.written = t.written
			targets = append(targets, all)
			s.readTarget(roleHistory, false, &targets[1])
		default:
			s.readTarget(p.role, p.every, &targets[0])
		}
		for _, t := range targets {
			s.units = append(s.units, unit{nested: u.nested, soft: u.soft, dirs: u.dirs, target: &t, write: write, of: i + 1, part: k, names: p.role == roleStat})
			u = &s.units[i]
		}
	}
}

func (r role) writes() bool { return r == roleWrite || r == roleInto || r == roleFormat }

// anywhere are the files that a path may mean, from wherever it may be used.
func (rt root) anywhere(dirs []string, p string) []target {
	if strings.HasPrefix(p, "/") {
		dirs = []string{"/"}
	}
	if dirs == nil { // by its name, for rules that deny, and as what nobody knows
		return []target{{written: p, why: "relative to a folder that is not known"}}
	}
	out := make([]target, 0, len(dirs))
	for _, d := range dirs {
		out = append(out, rt.physical(d, p))
	}
	return out
}

// readTarget finds out what lies below a target that is read.
func (s *script) readTarget(r role, every bool, t *target) {
	if t.abs == "" {
		t.folder = r != roleStat && r != roleRead // nobody knows where it is
		return
	}
	if r == roleStat || r == roleRead || t.resolved == "" || !t.inside || !isFolder(t) {
		return
	}
	t.folder, t.past, t.tracked, t.listed = true, r == roleHistory, r == roleTracked, !every
	if r == roleFollow {
		if why := s.strays(t.resolved); why != "" {
			t.inside, t.why = false, why
		}
	}
}

// written are the files that are written where a command names t: itself, or in
// it what it is given.
func (s *script) written(i int, p *part, t target) []target {
	if !t.inside || t.resolved == "" {
		return []target{t}
	}
	folder := isFolder(&t)
	if p.role != roleInto || len(p.from) == 0 {
		t.folder = folder
		if folder && p.role != roleFormat {
			t.holds = s.holds(t.resolved, t.resolved)
		}
		return []target{t}
	}
	u := &s.units[i]
	var out []target
	for _, w := range p.from {
		from := u.args()[w].text
		if !folder || s.changed(i) { // it may be gone by then
			out = append(out, s.receives(u, from, t))
		}
		if !folder && !s.changed(i) { // it may be a folder by then
			continue
		}
		to := t
		if name := path.Base(from); name != "." && name != ".." && name != "/" && !strings.HasSuffix(from, "/.") {
			to = s.root.physical(t.resolved, name)
			to.written = strings.TrimSuffix(t.written, "/") + "/" + name
		} else {
			to.folder = true
		}
		out = append(out, s.receives(u, from, to))
	}
	return out
}

// receives is a target with what comes to lie below it when a file or folder is
// copied or moved there.
func (s *script) receives(u *unit, from string, to target) target {
	for _, src := range s.root.anywhere(u.dirs, from) {
		if src.resolved == "" || src.exists && isFolder(&src) {
			to.folder = to.folder || isFolder(&to)
			if to.holds == "" {
				to.holds = s.holds(src.resolved, to.resolved)
			}
		}
	}
	return to
}

// changed reports whether an earlier command of the line may have made or removed
// folders by the time that command i runs.
func (s *script) changed(i int) bool {
	return slices.ContainsFunc(s.units[:i], func(u unit) bool {
		return u.target == nil && u.reading != nil && (u.reading.prog == nil || u.reading.code || !u.reading.reads())
	})
}

// isFolder reports whether a target is a folder, or a link to one.
func isFolder(t *target) bool {
	if !t.exists || !t.linked {
		return t.exists && t.dir
	}
	info, err := os.Stat(t.resolved)
	return err == nil && info.IsDir()
}

// survey is what lies below a folder.
type survey struct {
	files []string // all paths, relative to the folder
	links []string // those that are links
	over  bool     // there is more than was looked at
}

// maxSurvey bounds how many files are looked at below a folder.
const maxSurvey = 10000

// survey lists what lies below a folder, or what git tracks in it, once. What git
// keeps in .git is left out: it is named by hashes.
func (s *script) survey(folder string, onlyTracked bool) *survey {
	key := folder
	if onlyTracked {
		key += "\x00"
	}
	if v := s.surveys[key]; v != nil {
		return v
	}
	v := &survey{}
	if s.surveys == nil {
		s.surveys = map[string]*survey{}
	}
	s.surveys[key] = v
	if onlyTracked {
		if files, ok := tracked(folder); ok {
			v.files = files
			return v
		}
	}
	err := filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			v.over = true // nobody can tell
			return nil
		case p == folder:
			return nil
		case len(v.files) == maxSurvey:
			v.over = true
			return filepath.SkipAll
		}
		v.files = append(v.files, p[len(folder)+1:])
		if d.Type()&fs.ModeSymlink != 0 {
			v.links = append(v.links, p)
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		return nil
	})
	v.over = v.over || err != nil
	return v
}

// holds returns a protected place that what lies below a folder would be, if it
// were below another: the place of a file that is copied or deleted with it.
func (s *script) holds(folder, as string) string {
	if folder == "" {
		return "what cannot be looked at"
	}
	v := s.survey(folder, false)
	if v.over {
		return "more than can be looked at"
	}
	rel, ok := below(s.root.resolved, as)
	if !ok {
		rel = as
	}
	for _, f := range v.files {
		if place := protected(rel + "/" + f); place != "" {
			return place
		}
	}
	return ""
}

// strays says whether a walk that follows links leaves the workspace.
func (s *script) strays(folder string) string {
	seen := map[string]bool{folder: true}
	for todo := []string{folder}; len(todo) > 0; todo = todo[1:] {
		v := s.survey(todo[0], false)
		if v.over || len(seen) > maxNesting {
			return "below which more lies than can be looked at for links"
		}
		for _, l := range v.links {
			to, err := filepath.EvalSymlinks(l)
			if err != nil {
				return "below which the link " + filepath.Base(l) + " leads nowhere"
			}
			if _, in := below(s.root.resolved, to); !in {
				return "below which the link " + filepath.Base(l) + " leaves the workspace"
			}
			if info, err := os.Stat(to); err == nil && info.IsDir() && !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	return ""
}

// order finds what one command of a line does to what another one names: links
// that are made before a path is used, and files that are written before a
// wildcard is expanded. Both are decided before anything runs. n is the number of
// units that are not derived.
func (s *script) order(n int) {
	for i := range s.units {
		u := &s.units[i]
		links := u.reading != nil && u.reading.links && !u.nested
		writes := u.target != nil && u.write && !u.nested
		if !links && !writes {
			continue
		}
		by := u
		if u.of > 0 {
			by = &s.units[u.of-1]
		}
		name := "a redirection"
		if by.target == nil {
			name = by.program()
		}
		for j := range n {
			v := &s.units[j]
			if v.stmt == by.stmt || v.stmt < by.stmt && !s.concurrent {
				continue
			}
			if links && (v.target != nil || v.neutral || v.reading != nil && len(v.reading.parts) > 0) {
				s.soften(j, name+" can make or move links before what comes after it uses them; run them one by one")
			}
			for k := range v.words {
				if v.words[k].source != 0 {
					s.soften(j, name+" writes files before the wildcards of "+v.program()+" are expanded; run them one by one")
				}
			}
		}
	}
}

// soften makes a unit and its parts one that only a rule for the whole line
// allows.
func (s *script) soften(j int, why string) {
	for i := range s.units {
		if u := &s.units[i]; (i == j || u.of == j+1) && u.soft == "" {
			u.soft, u.neutral = why, false
		}
	}
}
