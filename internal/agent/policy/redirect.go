package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// harmless are the files that any redirection may name.
var harmless = map[string]bool{"/dev/null": true, "/dev/stdin": true, "/dev/stdout": true, "/dev/stderr": true}

// redirect adds the file that a redirection opens as a separate unit.
func (r *reader) redirect(rd *syntax.Redirect, dirs []string) {
	if rd.Hdoc != nil || rd.Op == syntax.Hdoc || rd.Op == syntax.DashHdoc {
		r.script.setHard(doubtHere)
		if rd.Hdoc != nil {
			r.substitutions(rd.Hdoc)
		}
		return
	}
	if rd.N != nil && strings.Trim(rd.N.Value, "0123456789") != "" {
		r.script.setHard("a redirection into a variable is not judged")
	}
	if rd.Word == nil {
		r.script.setHard("a redirection names no file")
		return
	}
	w := r.word(rd.Word)
	if w.glob || w.brace {
		r.script.setHard("a redirection to a wildcard is not judged")
		return
	}
	if w.dynamic != "" {
		return
	}
	read, write := false, false
	switch rd.Op {
	case syntax.RdrIn:
		read = true
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		write = true
	case syntax.DplOut, syntax.DplIn:
		if w.text == "-" || w.text != "" && strings.Trim(w.text, "0123456789") == "" {
			return
		}
		if !plain(w.text) { // it expands what the quotes held
			r.script.setHard("Bash reads the file's name after >& a second time, without its quotes")
		}
		write = true // >&file
	case syntax.RdrInOut:
		read, write = true, true
	case syntax.WordHdoc:
		return // a static string
	default:
		r.script.setHard("the redirection is not one that is judged")
		return
	}
	if harmless[w.text] {
		return
	}
	if w.text == "" {
		r.script.setHard("a redirection names no file")
		return
	}
	u := unit{nested: r.nested, soft: r.soft, dirs: dirs, stmt: r.stmts}
	for _, t := range r.script.root.anywhere(dirs, w.text) {
		v := u
		v.target, v.write = &t, write
		if read && write {
			x := v
			x.write = false
			r.script.add(x)
		}
		r.script.add(v)
		if !t.inside {
			verb := "reads "
			if write {
				verb = "writes "
			}
			r.script.setHard("the redirection " + verb + t.written + ", " + t.whyOutside())
		} else if write {
			if p := protected(t.rel); p != "" {
				r.script.setHard("the redirection writes below " + p + ", where later programs take orders from")
			}
		}
	}
}
