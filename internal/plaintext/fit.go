package plaintext

import (
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Width is the number of UTF-16 units in s, an upper bound of what Slack counts.
func Width(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		// Every byte that begins a rune counts once, or twice outside the basic plane.
		switch c := s[i]; {
		case c < 0x80 || c >= 0xc0 && c < 0xf0:
			n++
		case c >= 0xf0:
			n += 2
		}
	}
	return n
}

// Prefix returns the longest prefix of s of at most n units that does not end inside a visible character, unless
// that one is very long.
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
	return s[:CharacterEnd(s, end)]
}

// characterLook is how many bytes before a cut are examined for grapheme boundaries: both halves of a flag look
// alike.
const characterLook = 256

// CharacterEnd is the last boundary between visible characters (grapheme clusters) up to end, where a rune of s
// begins; end itself if a character is very long, or is everything.
func CharacterEnd(s string, end int) int {
	from := end
	for from > 0 && end-from < characterLook {
		r, size := utf8.DecodeLastRuneInString(s[:from])
		from -= size
		if r < utf8.RuneSelf {
			break // begins a character
		}
	}
	until := min(len(s), end+4)
	for until < len(s) && !utf8.RuneStart(s[until]) {
		until++
	}
	at, rest, state := from, s[from:until], -1
	for {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if at+len(cluster) > end || cluster == "" {
			break
		}
		at += len(cluster)
	}
	if at == from && (at == 0 || end-from >= characterLook) {
		return end
	}
	return at
}

// Clip cuts s to at most n units, with an ellipsis.
func Clip(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	return Prefix(s, n-1) + "…"
}
