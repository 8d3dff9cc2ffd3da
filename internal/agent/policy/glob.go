package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// glob is the argument of a Read or Edit pattern.
type glob struct {
	text   string // clean; relative to the workspace, or absolute
	abs    bool
	base   string // the folder before the first wildcard, "" for none
	all    bool   // it covers everything below base
	wide   []string
	prefix string // lower-case prefix of paths that wide matches
	suffix string // lower-case suffix of what text matches
	depth  bool   // wide matches at any depth
}

func parseGlob(arg string) (*glob, *syntaxError) {
	switch {
	case strings.TrimSpace(arg) != arg:
		return nil, &syntaxError{problem: "the path begins or ends with a space", advice: "remove it"}
	case strings.HasPrefix(arg, "~"):
		return nil, &syntaxError{problem: "the agent's home folder is not known here", advice: "write the absolute path instead of ~"}
	case strings.Contains(arg, `\`):
		return nil, &syntaxError{at: strings.Index(arg, `\`), problem: "paths are written with /", advice: "write / instead of a backslash; put [ ] around a character such as * that is meant literally"}
	}
	if why := unreadable(arg); why != "" || strings.ContainsAny(arg, "\n\t") {
		return nil, &syntaxError{problem: "the path holds characters that people cannot see", advice: "write it in plain characters"}
	}
	if !doublestar.ValidatePattern(arg) {
		return nil, &syntaxError{at: max(strings.LastIndexAny(arg, "[{"), 0), problem: "a bracket or brace is never closed", advice: "close it, or put [ ] around it to mean it literally"}
	}
	for i, n := range strings.Split(arg, "/") {
		if n == ".." {
			return nil, &syntaxError{at: strings.Index(arg, ".."), problem: "a path relative to the workspace cannot leave it", advice: "write the absolute path"}
		}
		if strings.Contains(n, "**") && n != "**" {
			return nil, &syntaxError{at: strings.Index(arg, "**"), problem: "** means any folders only as a whole name between slashes", advice: "write " + strings.ReplaceAll(strings.Join(strings.Split(arg, "/")[:i+1], "/"), "**", "**/*")}
		}
	}
	if strings.Contains(arg, "{") && (strings.Contains(arg, "{/") || strings.Contains(arg, ",/") || strings.Contains(arg, "..")) {
		return nil, &syntaxError{at: strings.Index(arg, "{"), problem: "the braces mix relative and absolute paths", advice: "write one rule for each"}
	}
	g := &glob{abs: strings.HasPrefix(arg, "/")}
	g.text = strings.TrimPrefix(path.Clean(arg), "./")
	if strings.HasSuffix(arg, "/") && len(arg) > 1 && g.text != "/" {
		g.text += "/**" // a folder: all that is in it
	}
	base, rest := doublestar.SplitPattern(g.text)
	if base == "." && !strings.HasPrefix(g.text, ".") {
		base = ""
	}
	g.all = rest == "**" || rest == "**/*"
	g.base = base
	if !strings.ContainsAny(g.text, "*?[{") {
		g.base = g.text
	}

	low := strings.ToLower(g.text)
	g.depth = !g.abs && !strings.Contains(low, "/")
	if g.depth && low != "**" {
		g.wide = []string{"**/" + low, "**/" + low + "/**"}
	} else {
		g.wide = []string{low}
		if !strings.HasSuffix(low, "**") {
			g.wide = append(g.wide, low+"/**")
		}
	}
	if !g.depth {
		g.prefix = low
		if i := strings.IndexAny(low, "*?[{"); i >= 0 {
			g.prefix = low[:i]
		}
		g.prefix = strings.TrimSuffix(g.prefix, "/")
	}
	if i := strings.LastIndexAny(low, "*?]}"); i >= 0 {
		g.suffix = low[i+1:]
	} else {
		g.suffix = low
	}
	if i := strings.LastIndexByte(g.suffix, '/'); i >= 0 {
		g.suffix = g.suffix[i+1:]
	}
	return g, nil
}

// covers reports whether an allowing glob matches a target after resolving links, and why not if that is not
// obvious.
func (g *glob) covers(t *target, write bool) (ok bool, why string) {
	if t.resolved == "" {
		return false, "the path " + t.written + " is one " + t.whyOutside()
	}
	name := t.rel
	if g.abs {
		name = t.resolved
	} else if !t.inside {
		if g.names(strings.TrimPrefix(t.abs, "/")) || g.all && g.base == "" {
			return false, t.written + " is " + outsideWords(t)
		}
		return false, ""
	}
	switch {
	case t.folder && !g.coversFolder(name):
		if g.names(name) {
			return false, "the rule does not cover all that lies below " + name
		}
		return false, ""
	case !t.folder && !g.names(name):
		return false, ""
	}
	if why := t.elsewhere(write); why != "" {
		return false, why
	}
	if write {
		for _, p := range append(protectedIn(name), t.held()...) {
			if !g.spells(p) {
				return false, ordersFrom(p, name)
			}
		}
	}
	return true, ""
}

func outsideWords(t *target) string {
	if t.why != "" {
		return "a path " + t.why
	}
	return strings.TrimPrefix(t.whyOutside(), "which ")
}

func (g *glob) names(name string) bool {
	if g.prefix != "" && len(name) < len(g.prefix) {
		return false
	}
	ok, err := doublestar.Match(g.text, name)
	return err == nil && ok
}

func (g *glob) coversFolder(name string) bool {
	if !g.all {
		return false
	}
	if g.base == "" {
		return true
	}
	_, ok := below(g.base, name)
	return ok
}

// spells reports whether the glob names a protected place literally.
func (g *glob) spells(place string) bool {
	return placesOf(g.text)(place)
}

// hits reports whether a denying or asking glob matches a target: as written and as resolved, in any case, with all
// below it.
func (g *glob) hits(t *target) bool {
	names := t.rels
	if g.abs {
		names = t.fulls
	}
	return slices.ContainsFunc(names, g.hitsName) ||
		t.abs == "" && t.written != "" && g.hitsName(strings.ToLower(path.Clean(t.written))) // where it starts is unknown
}

func (g *glob) hitsName(low string) bool {
	if g.prefix != "" && !strings.HasPrefix(low, g.prefix) || g.suffix != "" && !strings.Contains(low, g.suffix) {
		return false
	}
	return slices.ContainsFunc(g.wide, func(w string) bool {
		ok, err := doublestar.Match(w, low)
		return err == nil && ok
	})
}

// reaches reports whether files matched by the glob may lie below a folder.
func (g *glob) reaches(t *target) bool {
	if g.depth {
		return g.filterMeets(t.filter)
	}
	name := t.rel
	if g.abs {
		name = t.resolved
	} else if !t.inside {
		return t.abs == "" // its place is unknown
	}
	name = strings.ToLower(name)
	if name == "." || name == "/" || g.prefix == "" {
		return g.filterMeets(t.filter)
	}
	_, in := below(name, g.prefix)
	_, out := below(g.prefix, name)
	return (in || out || strings.HasPrefix(g.prefix, name+"/") || strings.HasPrefix(name, g.prefix)) && g.filterMeets(t.filter)
}

// filterMeets reports whether a name matched by the glob may pass a search's name filter. Only filters like *.go
// are understood.
func (g *glob) filterMeets(filter string) bool {
	ext, ok := strings.CutPrefix(path.Base(filter), "*")
	if filter == "" || !ok || strings.ContainsAny(filter, "!{}[]?, ") || strings.ContainsAny(ext, "*") || ext == "" {
		return true
	}
	if !strings.Contains(g.suffix, ".") {
		return true // the glob's own names end in anything, or are those of folders
	}
	ext = strings.ToLower(ext)
	return strings.HasSuffix(g.suffix, ext) || strings.HasSuffix(ext, g.suffix)
}

// held are the protected places on the way to a target: its links.
func (t *target) held() (all []string) {
	if t.linked {
		for _, rel := range t.rels {
			if rel != strings.ToLower(t.rel) {
				all = append(all, protectedIn(rel)...)
			}
		}
	}
	return all
}
