package policy

import (
	"slices"
	"strings"
)

// judge finds out what a word or an option's value does in a role. mode is what
// a flag makes of it.
func (r *wordReader) judge(u use, i int, text string, mode role) {
	switch role := r.inMode(u.role, mode); role {
	case roleText:
	case roleName:
		r.shaped(i, text, plainName(text), "a plain name")
	case roleNumber:
		r.shaped(i, text, isNumber(text), "a number")
	case roleOneOf:
		r.shaped(i, text, slices.Contains(u.oneOf, text), "one of "+strings.Join(u.oneOf, ", "))
	case roleURL:
		r.words[i].url = true
		r.shaped(i, text, strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://"), "an address that begins with https://")
	case roleExec:
		r.words[i].runs = true
		r.unknown(i, r.name+" runs "+text+", so a rule must spell it")
	case rolePackage:
		r.goPackage(i, text)
	case roleRev:
		r.revision(i, text)
	case rolePathspec:
		r.pathspec(i, text)
	case roleChecked:
		r.checked(u.check, i, text, mode)
	default:
		before := len(r.parts)
		r.file(i, text, role)
		for k := before; k < len(r.parts); k++ {
			r.parts[k].every = u.role == roleRead && role != roleRead || u.role == roleTree && mode == roleTree
		}
	}
}

// inMode is what a flag makes of a role.
func (r *wordReader) inMode(u, mode role) role {
	switch {
	case r.dry && u == roleFormat:
		return roleTree
	case mode == roleFollow && (u == roleStat || u == roleRead || u == roleTree):
		return mode
	case mode == roleFormat && (u == roleRead || u == roleTree):
		return mode
	case mode != roleNone && u == roleRead:
		return mode
	}
	return u
}

func (r *wordReader) shaped(i int, text string, ok bool, want string) {
	switch {
	case ok:
	case want == "one of ": // of no value
		r.unknown(i, "nothing is known of the value "+text+" of "+r.name)
	default:
		r.unknown(i, text+" is not "+want+", which is all that is known of this word of "+r.name)
	}
}

// file adds a part.
func (r *wordReader) file(i int, path string, role role) {
	switch {
	case path == "":
		r.unknown(i, "an argument of "+r.name+" is empty where it should name a file")
	case path[0] == '@':
		r.unknown(i, path+" begins with @, which makes some programs read a file of arguments")
	default:
		r.parts = append(r.parts, part{words: []int{i}, path: path, role: role})
	}
}

func plainName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_':
		case i > 0 && strings.IndexByte("._-/:+@", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// isNumber: 3, -1, 1.5, 10K, 500ms.
func isNumber(s string) bool {
	s = strings.TrimLeft(s, "+-")
	digits := strings.TrimLeft(s, "0123456789.")
	return len(digits) < len(s) && s[0] != '.' && len(digits) <= 3 && strings.Trim(strings.ToLower(digits), "abcdefghijklmnopqrstuvwxyz%") == ""
}

// goPackage is a package of the workspace or of the standard library, as go's
// commands name them. What a module far away holds is neither.
func (r *wordReader) goPackage(i int, text string) {
	first, _, _ := strings.Cut(text, "/")
	dir, _, _ := strings.Cut(text, "...")
	switch {
	case strings.HasSuffix(text, ".go"):
		r.file(i, text, roleRead)
	case strings.HasPrefix(text, "./"), strings.HasPrefix(text, "../"), strings.HasPrefix(text, "/"), text == ".", text == "..":
		if strings.Contains(text, "@") {
			r.unknown(i, "the package "+text+" names a version")
		} else if j := strings.LastIndexByte(dir, '/'); j >= 0 && dir != text {
			r.file(i, dir[:j+1], roleStat)
		} else {
			r.file(i, text, roleStat)
		}
	case text == "all", text == "tool", text == "work", strings.HasPrefix(text, "."), strings.ContainsAny(first, ".@"), !plainName(strings.ReplaceAll(text, "...", "x")), strings.Contains(text, "@"):
		r.unknown(i, "the package "+text+" may be one that the workspace does not hold; ./… is inside")
	}
}

// revision is a revision of git, a path, or both: HEAD:path shows a file.
func (r *wordReader) revision(i int, text string) {
	if text == "" {
		r.unknown(i, "an argument of "+r.name+" is empty")
		return
	}
	path := false
	for k := range len(text) { // HEAD:path, :0:path
		if text[k] == ':' && k+1 < len(text) {
			r.parts = append(r.parts, part{words: []int{i}, path: text[k+1:], role: roleHistory})
			path = true
		}
	}
	role := roleRev
	if path && !strings.HasPrefix(text, ":/") && !strings.Contains(text, "{") {
		role = roleTree // it holds no more than the file
	}
	r.parts = append(r.parts, part{words: []int{i}, path: text, role: role})
}

// pathspec is a path as git reads it, whose wildcards match / too.
func (r *wordReader) pathspec(i int, text string) {
	if strings.HasPrefix(text, ":") {
		r.unknown(i, text+" is one of git's magic paths")
		return
	}
	if j := strings.IndexAny(text, "*?["); j >= 0 {
		text = text[:strings.LastIndexByte(text[:j], '/')+1]
		if text == "" {
			text = "."
		}
	}
	r.file(i, text, roleTree)
}

// checked asks a checker.
func (r *wordReader) checked(check checker, i int, text string, mode role) {
	c := check(text)
	if c.why != "" {
		r.unknown(i, c.why+", in "+text)
		return
	}
	if c.environ {
		r.demands = append(r.demands, demand{append(slices.Clip(r.path), i), text + " shows the environment", true})
	}
	add := func(paths []string, role role) {
		for _, p := range paths {
			r.file(i, p, r.inMode(role, mode))
		}
	}
	add(c.reads, roleRead)
	add(c.trees, roleTree)
	add(c.writes, roleWrite)
}
