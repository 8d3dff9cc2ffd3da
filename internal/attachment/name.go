package attachment

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds a file's name, in bytes. File systems allow 255.
const maxName = 100

// Name makes a given file name safe: without folders, control characters, invisible or direction-changing
// characters, and without a leading dot or dash. It is never empty, never special to a file system or a shell's
// pattern, and at most maxName bytes long; a longer one keeps its end with the extension.
func Name(given string) string {
	if i := strings.LastIndexAny(given, `/\`); i >= 0 {
		given = given[i+1:]
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), unicode.In(r, unicode.Variation_Selector):
			return -1
		case unicode.IsSpace(r):
			return ' '
		case strings.ContainsRune("<>:\"|?*`$'&;[]{}()!#~\\/", r), !unicode.IsPrint(r):
			return '_'
		}
		return r
	}, given)
	name = strings.Join(strings.Fields(name), " ")
	name = strings.TrimLeft(name, ".-_ ")
	if len(name) > maxName {
		ext := filepath.Ext(name)
		if len(ext) > 12 {
			ext = ""
		}
		stem := strings.TrimSuffix(name, ext)
		cut := maxName - len(ext)
		for !utf8.RuneStart(stem[cut]) {
			cut--
		}
		name = stem[:cut] + ext
	}
	if name = strings.TrimRight(name, ". "); name == "" {
		return "file"
	}
	return name
}

// withExtension sets the first extension, unless the name has one of them.
func withExtension(name string, extensions ...string) string {
	ext := filepath.Ext(name)
	for _, e := range extensions {
		if strings.EqualFold(ext, e) {
			return name
		}
	}
	return Name(strings.TrimSuffix(name, ext) + extensions[0])
}
