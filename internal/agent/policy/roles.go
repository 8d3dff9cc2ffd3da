package policy

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// judge determines what a word or an option's value does in a role. mode is how a flag changes it.
func (r *wordReader) judge(u use, i int, text string, mode role) {
	switch role := r.inMode(u.role, mode); role {
	case roleText:
	case roleShape:
		switch {
		case u.shape == nil && !slices.Contains(u.oneOf, text):
			r.unknown(i, text+" is not one of "+strings.Join(u.oneOf, ", ")+", which is all that is known of this word of "+r.name)
		case u.shape != nil && !u.shape.of.MatchString(text):
			r.unknown(i, u.shape.why+": "+text)
		}
	case roleURL:
		r.words[i].url = true
		if !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") {
			r.unknown(i, text+" is not an address that begins with https://")
		}
	case roleExec:
		r.words[i].runs = true
		r.unknown(i, r.name+" runs "+text+", so a rule must spell it")
	case rolePackage:
		r.goPackage(i, text)
	case roleRev:
		r.revision(i, text)
		r.parts[len(r.parts)-1].object = u.name == "object"
	case rolePathspec:
		r.pathspec(i, text)
	case roleMoved:
		r.file(i, text, roleTree)
		r.file(i, text, roleReplace)
	case roleLocation:
		r.location(i, text)
	case roleSources:
		r.sources(i, text, mode)
	case roleArgument:
		r.argument(i, text)
	default:
		before := len(r.parts)
		r.file(i, text, role)
		for k := before; k < len(r.parts); k++ {
			r.parts[k].every = u.role == roleRead && role != roleRead || u.role == roleTree && mode == roleTree
		}
	}
}

// inMode applies a flag's mode to a role.
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

func plainName(s string) bool { return shapes["name"].of.MatchString(s) }

// goPackage is a package of the workspace or of the standard library, as go's commands name them, and not of
// another module.
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
	}
	path := false
	for k := range len(text) { // HEAD:path, :0:path
		if text[k] == ':' && k+1 < len(text) {
			r.parts = append(r.parts, part{words: []int{i}, path: text[k+1:], role: roleHistory, exact: true})
			path = true
		}
	}
	role := roleRev
	if path && !strings.HasPrefix(text, ":/") && !strings.Contains(text, "{") {
		role = roleTree // it holds only the file
	}
	r.parts = append(r.parts, part{words: []int{i}, path: text, role: role, exact: path})
}

// pathspec is a path for git, whose wildcards also match /.
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

// argumentOptions are harmless in all linters and test runners that a project's script may be, in any combination.
var argumentOptions = words("-h --help -v --verbose -q --quiet --silent --version --color --no-color --ci --bail -x --fix --check --coverage --run -i --watch=false --no-watch -t -k --grep -g --filter --list")

var (
	argumentText = regexp.MustCompile(`^` + plainText + `+$`)
	aTest        = regexp.MustCompile(`^([^*?\[\]{}()!:]*)(?:\[[0-9:,]+\])?(?::[0-9]+)*(?:::.*)?$`)
)

// argument reads a word for a script of the workspace.
func (r *wordReader) argument(i int, word string) {
	switch {
	case argumentOptions[word]:
	case strings.HasPrefix(word, "-"), strings.Contains(word, "="):
		r.unknown(i, "a script may obey the option, and nothing is known of it, in "+word)
	case !argumentText.MatchString(word):
		r.unknown(i, "a script may hand it to a shell, in "+word)
	default:
		r.file(i, word, roleRead)
	}
}

// location reads tests/test_x.py::TestX::test_y[a], spec/x_spec.rb:12, spec/x_spec.rb[1:2].
func (r *wordReader) location(i int, word string) {
	m := aTest.FindStringSubmatch(word)
	if m == nil || strings.HasPrefix(word, "-") || strings.ContainsAny(m[1], ":") {
		r.unknown(i, "it is not plainly a file, with a test or lines of it, in "+word)
		return
	}
	r.file(i, m[1], roleRead)
}

// sources reads a file, a folder, or a pattern. Linters expand patterns themselves without following links:
// everything below the folder before the wildcard is read.
func (r *wordReader) sources(i int, word string, mode role) {
	at := strings.IndexAny(word, "*?[]{}()!")
	if at < 0 {
		r.file(i, word, r.inMode(roleTree, mode))
		return
	}
	rest := word[at:]
	if strings.ContainsAny(rest, `[]()!\`) || strings.Contains(rest, "..") || strings.Contains(rest, "{/") || strings.Contains(rest, ",/") || strings.Contains(rest, "~") {
		r.unknown(i, "the pattern can lead elsewhere, or is not known, in "+word)
		return
	}
	r.file(i, cmp.Or(word[:strings.LastIndexByte(word[:at], '/')+1], "."), r.inMode(roleTree, mode))
}
