package policy

import (
	"path/filepath"
	"slices"
	"strings"
)

// Siblings are the tools covered by a pattern for the tool, itself first: all tools that write files are
// interchangeable.
func Siblings(tool string) []string {
	out := []string{tool}
	if families[tool] != kindEdit {
		return out
	}
	for t, k := range families {
		if k == kindEdit && t != tool {
			out = append(out, t)
		}
	}
	slices.Sort(out[1:])
	return out
}

// Grants reports whether a standing permission covers a call. One for writing below a folder covers plain files
// only, no programs and no secrets; see [OneFile].
func Grants(p Pattern, c Call) bool {
	if p.kind == kindEdit && strings.HasSuffix(p.text, "**)") {
		if _, _, why := OneFile(c); why != "" {
			return false
		}
	}
	ok, _ := Covers(p, c)
	return ok
}

// OneFile returns the file of a call that writes one, and the pattern that covers writing exactly that file. why
// says why no such permission should be given: the call is of another tool or malformed, the file lies outside the
// workspace, behind a symbolic link or under a second name, it is executable, programs take orders from it, or it
// looks like a secret. name is relative to the workspace. The pattern applies to the resolved path of each call: a
// link that replaces the file later is not covered.
func OneFile(c Call) (name string, p Pattern, why string) {
	defer func() {
		if faultOf(recover()) != "" {
			name, p, why = "", Pattern{}, "Deckhand failed while reading it"
		}
	}()
	if families[c.Tool] != kindEdit {
		return "", Pattern{}, c.Tool + " is no tool that writes one file"
	}
	req := readCall(&c)
	t := &req.target[0]
	switch {
	case req.bad != "":
		return "", Pattern{}, req.bad
	case req.odd != "":
		return "", Pattern{}, req.odd
	case !filepath.IsAbs(t.written):
		return "", Pattern{}, "the path is relative to a folder that may be another next time"
	case !t.inside || t.resolved == "":
		return "", Pattern{}, t.written + " is " + t.whyOutside()
	case t.linked:
		return "", Pattern{}, "a symbolic link leads to " + t.rel
	case t.dir:
		return "", Pattern{}, t.rel + " is a folder"
	case t.twin:
		return "", Pattern{}, t.elsewhere(true)
	case t.program:
		return "", Pattern{}, t.rel + " is a program, which runs as it stands then"
	case protected(t.rel) != "":
		return "", Pattern{}, ordersFrom(protected(t.rel), t.rel)
	case secretLooking(t.rel):
		return "", Pattern{}, t.rel + " looks like a secret"
	}
	p, err := ParsePattern("Edit(" + globLiteral(t.rel) + ")")
	if err != nil {
		return "", Pattern{}, err.Error()
	}
	if ok, why := req.covered(&p); !ok {
		return "", Pattern{}, why
	}
	return t.rel, p, ""
}
