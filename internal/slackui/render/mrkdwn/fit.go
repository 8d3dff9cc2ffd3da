package mrkdwn

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width is the number of UTF-16 units in s: never less than the characters that
// Slack counts.
func Width(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		// Every byte that begins a rune counts once, one that begins a rune
		// outside the basic plane twice.
		switch c := s[i]; {
		case c < 0x80 || c >= 0xc0 && c < 0xf0:
			n++
		case c >= 0xf0:
			n += 2
		}
	}
	return n
}

// Prefix returns the longest prefix of s of at most n units that does not end
// inside a character as people see it, as far as that is cheap to tell.
func Prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end, units := 0, 0
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		u := 1
		if r > 0xffff {
			u = 2
		}
		if units+u > n {
			break
		}
		units += u
		end += size
	}
	if end == len(s) {
		return s
	}
	// Step back while what follows belongs to what precedes.
	for back, tries := end, 0; back > 0 && tries < 12; tries++ {
		next, _ := utf8.DecodeRuneInString(s[back:])
		prev, size := utf8.DecodeLastRuneInString(s[:back])
		if !joins(prev, next) {
			return s[:back]
		}
		back -= size
	}
	return s[:end]
}

// joins reports whether next is drawn as part of the character that prev ends.
func joins(prev, next rune) bool {
	return next == 0x200d || prev == 0x200d || // emoji joined by ZWJ
		next >= 0x1f3fb && next <= 0x1f3ff || // skin tones
		prev >= 0x1f1e6 && prev <= 0x1f1ff && next >= 0x1f1e6 && next <= 0x1f1ff || // flags
		unicode.In(next, unicode.Mn, unicode.Me, unicode.Mc, unicode.Variation_Selector)
}

// Clip cuts s to at most n units and says so with an ellipsis.
func Clip(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	return Prefix(s, n-1) + "…"
}

// ClipEscaped cuts text that is mrkdwn-escaped already, not inside an entity or a
// link.
func ClipEscaped(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	s = Prefix(s, n-1)
	for _, pair := range [...][2]byte{{'&', ';'}, {'<', '>'}} {
		if i := strings.LastIndexByte(s, pair[0]); i >= 0 && strings.IndexByte(s[i:], pair[1]) < 0 {
			s = s[:i]
		}
	}
	return s + "…"
}
