package policy

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxParts bounds what a command line may read and write by its words.
const maxParts = 256

// derive adds what commands read and write by their words as separate units, which are decided like redirections.
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

// derivePart adds the files of one part. s.units may move.
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
		case p.role == roleRev && (!t.exists || p.object): // a revision, all of which is shown
			all := s.root.lexical(s.root.resolved, ".")
			all.written = t.written
			targets = append(targets, all)
			s.readTarget(roleHistory, p, &targets[1])
		default:
			s.readTarget(max(p.role, p.shows), p, &targets[0])
			if p.role == roleFollow && targets[0].folder && targets[0].inside {
				if t.why = s.strays(t.resolved); t.why != "" { // besides what lies in the folder
					t.inside = false
					targets = append(targets, t)
				}
			}
		}
		for _, t := range targets {
			s.units = append(s.units, unit{nested: u.nested, soft: u.soft, dirs: u.dirs, target: &t, write: write, of: i + 1, part: k, names: p.role == roleStat})
			u = &s.units[i]
		}
	}
}

// anywhere are the files that a path may mean, from every folder where it may be used.
func (rt root) anywhere(dirs []string, p string) []target {
	if strings.HasPrefix(p, "/") {
		dirs = []string{"/"}
	}
	if dirs == nil { // by name, for denying rules, and as unknown
		return []target{{written: p, why: "relative to a folder that is not known"}}
	}
	out := make([]target, 0, len(dirs))
	for _, d := range dirs {
		out = append(out, rt.physical(d, p))
	}
	return out
}

// readTarget determines what lies below a target that is read.
func (s *script) readTarget(r role, p *part, t *target) {
	if (r == roleTracked || r == roleHistory || r == roleRev) && !p.exact {
		t.shown = s.shown(r, t)
	}
	if t.abs == "" {
		t.folder = r != roleStat && r != roleRead // its place is unknown
		return
	}
	if r == roleStat || r == roleRead || t.resolved == "" || !t.inside || !isFolder(t) {
		return
	}
	t.folder, t.past, t.tracked, t.listed = true, r == roleHistory, r == roleTracked, !p.every
}

// shown says what git would show of a path that looks like a secret, by the names of all that it tracks there.
// History may hold any name, except for a file that still exists.
func (s *script) shown(r role, t *target) string {
	switch {
	case t.resolved == "" || !t.inside, t.exists && !isFolder(t): // its own name says it
		return ""
	case r != roleTracked:
		return "git may show secrets among what it has kept from other times; name files that are there now, after --, or leave the content out (--stat)"
	}
	files, ok := tracked(s.root.resolved)
	if !ok {
		return "which files git tracks cannot be read, so it may show secrets"
	}
	for _, f := range files {
		if _, in := below(t.rel, f); (in || t.rel == ".") && secretLooking(f) {
			return f + ", which git tracks and it would show, looks like a secret; name other paths, after --"
		}
	}
	return ""
}

// written are the files written where a command names t: t itself, or in it what it is given.
func (s *script) written(i int, p *part, t target) []target {
	folder := t.resolved != "" && isFolder(&t)
	if folder && p.role != roleReplace && (!t.inside || p.role != roleInto || len(p.from) == 0) {
		t.leads = s.leads(t.resolved, p.role == roleFormat)
	}
	if !t.inside || t.resolved == "" {
		return []target{t}
	}
	if p.role != roleInto || len(p.from) == 0 {
		if t.folder = folder; folder && p.role != roleFormat {
			t.holds = s.holds(t.resolved, t.resolved)
		}
		return []target{t}
	}
	u := &s.units[i]
	var out []target
	for _, w := range p.from {
		from := u.args()[w].text
		if !folder || s.changed(i) { // it may be gone by then
			out = append(out, s.receives(u, p, from, t))
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
		out = append(out, s.receives(u, p, from, to))
	}
	return out
}

// receives is a target with what comes to lie below it when something is copied or moved there. In an existing
// folder every link counts, since the words do not say which files are written.
func (s *script) receives(u *unit, p *part, from string, to target) target {
	if isFolder(&to) {
		to.folder, to.leads = true, s.leads(to.resolved, false)
	}
	for _, src := range s.root.anywhere(u.dirs, from) {
		if src.resolved == "" || src.exists && isFolder(&src) {
			to.folder = to.folder || isFolder(&to)
			if len(p.from) > 1 && src.resolved != "" && len(s.survey(src.resolved, false).links) > 0 {
				to.leads = first(to.leads, "into which "+from+" brings links, and the next may be written through them")
			}
			if to.holds == "" {
				to.holds = s.holds(src.resolved, to.resolved)
			}
		}
	}
	return to
}

// changed reports whether an earlier command of the line, or one started by command i, may have made or removed
// folders before command i uses them.
func (s *script) changed(i int) bool {
	return !s.units[i].reading.known() || slices.ContainsFunc(s.units[:i], func(u unit) bool {
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
	over  bool     // there are more files than were scanned
}

// maxSurvey bounds the files scanned below a folder.
const maxSurvey = mostSearched

// survey lists, once, what lies below a folder or what git tracks in it. It skips .git, whose files are named by
// hashes.
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
			v.over = true // unknown
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

// holds returns a protected place among what lies below a folder, as if that were below another: the place of a
// file that is copied or deleted with it.
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

// leads says why files written below a folder may come to lie elsewhere: by links there. A program that only
// formats also writes through symbolic links, but nothing of its own choice.
func (s *script) leads(folder string, formats bool) string {
	v := s.survey(folder, false)
	if v.over {
		return "below which more lies than can be looked at for links"
	}
	for _, l := range v.links {
		to, err := filepath.EvalSymlinks(l)
		rel, in := below(folder, to)
		switch place := protected(rel); {
		case err != nil:
			return "below which the link " + filepath.Base(l) + " leads nowhere"
		case !in:
			return "below which the link " + filepath.Base(l) + " leads out of it"
		case place != "" && !formats:
			return "below which the link " + filepath.Base(l) + " leads to " + place + ", where later programs take orders from"
		}
	}
	for _, f := range v.files {
		var t target
		if info, err := os.Lstat(folder + "/" + f); err == nil && !formats {
			t.is(info)
		}
		if t.twin {
			return "below which " + filepath.Base(f) + " has another name, too (a hard link), and is written under both"
		}
	}
	return ""
}

// strays says whether a walk that follows links leaves the folder: to another folder, or out of the workspace.
func (s *script) strays(folder string) string {
	v := s.survey(folder, false)
	if v.over {
		return "below which more lies than can be looked at for links"
	}
	for _, l := range v.links {
		to, err := filepath.EvalSymlinks(l)
		if err != nil {
			return "below which the link " + filepath.Base(l) + " leads nowhere"
		}
		info, err := os.Stat(to)
		if _, in := below(s.root.resolved, to); !in || err != nil || info.IsDir() {
			return "below which the link " + filepath.Base(l) + " leads to another folder, or out of the workspace"
		}
	}
	return ""
}

// order finds dependencies between commands of a line: links made before a path is used, files written before a
// wildcard is expanded. Both are decided before anything runs. n is the number of units that are not derived.
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

// soften restricts a unit and its parts to rules for the whole line.
func (s *script) soften(j int, why string) {
	for i := range s.units {
		if u := &s.units[i]; (i == j || u.of == j+1) && u.soft == "" {
			u.soft, u.neutral = why, false
		}
	}
}
