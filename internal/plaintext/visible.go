package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Deceit is a property by which a text may look different from its content.
type Deceit uint8

const (
	hiddenCharacters Deceit = 1 << iota // invisible, or changing the order or place of others
	mixedScripts                        // similar letters of two scripts in one word
	longBlanks                          // blank space that could push the end out of sight
)

// This much blank space is suspicious in a command.
const (
	blankRun   = 40
	blankLines = 5
)

// Reveal replaces every character of s that is invisible, or affects how others look, by its code point, ⟨U+202E⟩,
// and reports what it found. Line feeds and tabs stay.
func Reveal(s string) (string, Deceit) {
	if isPlainASCII(s) {
		return s, blanks(s)
	}
	found := blanks(s)
	var b strings.Builder
	b.Grow(len(s) + 64)
	prev := rune(0)
	latin, other := false, false // letters seen in the current word
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString("⟨0x")
			b.WriteByte("0123456789ABCDEF"[s[i]>>4])
			b.WriteByte("0123456789ABCDEF"[s[i]&15])
			b.WriteString("⟩")
			found |= hiddenCharacters
		case r == '\r' && i+1 < len(s) && s[i+1] == '\n':
			// A Windows line end is displayed like any other.
		case r == '\n' || r == '\t' || r == ' ':
			b.WriteRune(r)
		case r == 0xfe0f && prev > 0x2000 && !unicode.IsLetter(prev) && !unicode.IsSpace(prev):
			b.WriteRune(r) // selects the colour form of the preceding sign
		case Deceives(r):
			writeCodePoint(&b, r)
			found |= hiddenCharacters
		default:
			b.WriteRune(r)
		}
		switch {
		case unicode.Is(unicode.Latin, r):
			latin = true
		case unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee):
			other = true
		case !unicode.IsLetter(r) && !unicode.IsMark(r):
			latin, other = false, false
		}
		if latin && other {
			found |= mixedScripts
		}
		prev = r
		i += size
	}
	return b.String(), found
}

// Visible is Reveal without the findings.
func Visible(s string) string {
	s, _ = Reveal(s)
	return s
}

// RevealBlanks shows the spaces in a name that inline code would hide: line feeds, tabs, several in a row, and
// those at its ends.
func RevealBlanks(s string) string {
	if !strings.ContainsAny(s, "\n\t") && !strings.Contains(s, "  ") && strings.TrimSpace(s) == s {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if r == '\n' || r == '\t' || r == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == ' ') {
			writeCodePoint(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Deceives reports whether r has no distinct visible form.
func Deceives(r rune) bool {
	switch {
	case r < 0x20 || r == 0x7f:
		return true
	case r < 0x7f:
		return false
	case r == 0x3164 || r == 0xffa0 || r == 0x115f || r == 0x1160 || r == 0x2800:
		return true // blank letters: Hangul fillers, the empty Braille pattern
	case r == 0x34f || r == 0x17b4 || r == 0x17b5:
		return true // marks that are never drawn
	}
	// Controls, format characters (bidi, zero width, tags), spaces other than the
	// plain one, line separators, private use, variation selectors.
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector) ||
		unicode.Is(unicode.Noncharacter_Code_Point, r)
}

func isPlainASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

func blanks(s string) Deceit {
	run, lines := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '\n':
			run = 0
			if lines++; lines > blankLines {
				return longBlanks
			}
		case ' ', '\t', '\r':
			if run++; run > blankRun {
				return longBlanks
			}
		default:
			run, lines = 0, 0
		}
	}
	return 0
}

// Warnings says in sentences what Reveal found.
func (d Deceit) Warnings() []string {
	var out []string
	if d&hiddenCharacters != 0 {
		out = append(out, "It has characters that are invisible or change how the rest reads. They are shown as ⟨U+202E⟩.")
	}
	if d&mixedScripts != 0 {
		out = append(out, "A word in it mixes letters of different alphabets that look alike.")
	}
	if d&longBlanks != 0 {
		out = append(out, "It has long blank stretches; look at what follows them.")
	}
	return out
}
