package policy

import (
	"cmp"
	"io/fs"
	"os"
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
	u, p := s.units[i], &s.units[i].reading.parts[k]
	if harmless[p.path] {
		return
	}
	for _, t := range s.root.anywhere(u.dirs, p.path) {
		if len(s.units) >= maxParts {
			s.setHard("it does more than can be judged")
			return
		}
		all := s.root.lexical(s.root.resolved, ".")
		all.written, all.folder, all.past = t.written, true, true
		targets := []target{t}
		switch one := &targets[0]; {
		case p.role == roleInto && u.stmt == 1 && s.isFile(filepath.Dir(t.abs)): // nothing can lie in it
			continue
		case p.role == roleNames:
		case (p.role == roleTracked || p.role == rolePast) && (t.abs == "" || t.resolved == "" || !t.exists || t.inside):
			if t.abs != "" && (t.resolved == "" || !t.exists) { // a revision
				targets = append(targets, all)
				one = &targets[1]
			}
			one.folder, one.past, one.tracked = isFolder(one) || t.abs == "", p.role == rolePast || one.past, p.role == roleTracked && !one.past
			one.shown, one.listed = s.shown(one), true
		case t.abs == "":
			one.folder = p.role != roleRead // its place is unknown
		case !one.exists || one.resolved == "":
			one.folder, one.past = p.every, p.every
		case !isFolder(one):
		case p.role == roleRead: // it reads no folder
		case p.role == roleFollow:
			one.folder, one.doubt = true, "is a folder, in which links may lie"
		case p.role == roleTree:
			one.folder, one.listed = t.inside, !p.every
		default:
			one.folder, one.past = true, p.every
			if p.role != roleFolder || s.protects(one) {
				one.doubt = "is a folder, in which links and protected files may lie"
			}
			if p.role == roleMoved { // what lies in it comes to lie elsewhere
				targets = append(targets, all)
			}
		}
		for _, t := range targets {
			s.units = append(s.units, unit{nested: u.nested, soft: u.soft, dirs: u.dirs, target: &t, write: p.role.writes(), of: i + 1, part: k, names: p.role == roleNames})
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

// shown says what git would show of a path that looks like a secret, by the names of all that it tracks there. What
// it has kept from other times may have any name.
func (s *script) shown(t *target) string {
	switch {
	case !t.folder: // its own name says it
		return ""
	case !t.tracked:
		return "it may show secrets among what lies there, or what git has kept from other times; name files that are there now, after --, or leave the content out (--stat)"
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

// protects reports whether a protected place may lie below a folder.
func (s *script) protects(t *target) bool {
	files, over := s.survey(t.resolved, false)
	return over || slices.ContainsFunc(files, func(f string) bool { return protected(t.rel+"/"+f) != "" })
}

func (s *script) isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && !s.concurrent
}

// isFolder reports whether a target is a folder, or a link to one.
func isFolder(t *target) bool {
	if !t.exists || !t.linked {
		return t.exists && t.dir
	}
	info, err := os.Stat(t.resolved)
	return err == nil && info.IsDir()
}

// survey lists, once, what lies below a folder or what git tracks in it; over if that is too much. It skips .git,
// whose files are named by hashes.
func (s *script) survey(folder string, onlyTracked bool) (files []string, over bool) {
	if onlyTracked {
		if files, ok := tracked(folder); ok {
			return files, false
		}
	}
	if files, done := s.surveys[folder]; done {
		return files, len(files) > mostSearched
	}
	err := filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || len(files) > mostSearched:
			return cmp.Or(err, filepath.SkipAll)
		case p != folder:
			files = append(files, p[len(folder)+1:])
		}
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, true
	}
	s.surveys[folder] = files
	return files, len(files) > mostSearched
}

// order finds dependencies between commands of a line: links made before a path is used, files written before a
// wildcard is expanded. Both are decided before anything runs. n is the number of units that are not derived.
func (s *script) order(n int) {
	for i := range s.units {
		u := &s.units[i]
		links := u.reading != nil && u.reading.links
		if u.nested || !links && !u.write {
			continue
		}
		by, name := u, "a redirection"
		if u.of > 0 {
			by = &s.units[u.of-1]
		}
		if by.target == nil {
			name = by.program()
		}
		for j := range n {
			v := &s.units[j]
			switch {
			case v.stmt == by.stmt || v.stmt < by.stmt && !s.concurrent:
			case links && (v.target != nil || v.neutral || v.reading != nil && (len(v.reading.parts) > 0 || !v.reading.known())):
				s.soften(j, name+" can make or move links before what comes after it uses them; run them one by one")
			case slices.ContainsFunc(v.words, func(w word) bool { return w.source }):
				s.soften(j, name+" writes files before the wildcards of "+v.program()+" are expanded; run them one by one")
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
