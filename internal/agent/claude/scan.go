package claude

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

const (
	everyByte = 0x0101010101010101
	highBits  = 0x8080808080808080
)

// scanString finds the end of a string whose body starts at i: the index after
// its closing quote, or -1. Eight bytes at a time: most of what the CLI prints
// is the inside of long strings.
func scanString(b []byte, i int) (end int, escaped bool) {
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote := w ^ ('"' * everyByte)
			slash := w ^ ('\\' * everyByte)
			// The lowest flagged byte is exact: borrows only run upwards.
			m := ((quote - everyByte) & ^quote) | ((slash - everyByte) & ^slash) | ((w - 0x20*everyByte) & ^w)
			m &= highBits
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return -1, escaped
		}
		switch ch := b[i]; {
		case ch == '"':
			return i + 1, escaped
		case ch < 0x20:
			return -1, escaped
		case ch != '\\':
			i++
		default:
			escaped = true
			if i+1 >= len(b) {
				return -1, escaped
			}
			switch b[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				if i+6 > len(b) || hex4(b[i+2:i+6]) < 0 {
					return -1, escaped
				}
				i += 6
			default:
				return -1, escaped
			}
		}
	}
}

// scanScalar finds the end of a number, true, false or null at i, or -1.
func scanScalar(b []byte, i int) int {
	switch b[i] {
	case 't':
		return literal(b, i, "true")
	case 'f':
		return literal(b, i, "false")
	case 'n':
		return literal(b, i, "null")
	}
	if b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && b[i] >= '1' && b[i] <= '9':
		i = digits(b, i)
	default:
		return -1
	}
	if i < len(b) && b[i] == '.' {
		start := i + 1
		if i = digits(b, start); i == start {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start := i
		if i = digits(b, start); i == start {
			return -1
		}
	}
	return i
}

func literal(b []byte, i int, want string) int {
	if len(b)-i < len(want) || string(b[i:i+len(want)]) != want {
		return -1
	}
	return i + len(want)
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// hex4 reads four hexadecimal digits, or returns -1.
func hex4(b []byte) rune {
	var r rune
	for _, ch := range b[:4] {
		switch {
		case ch >= '0' && ch <= '9':
			r = r<<4 | rune(ch-'0')
		case ch >= 'a' && ch <= 'f':
			r = r<<4 | rune(ch-'a'+10)
		case ch >= 'A' && ch <= 'F':
			r = r<<4 | rune(ch-'A'+10)
		default:
			return -1
		}
	}
	return r
}

// unescape decodes the body of a string that scanString accepted.
func unescape(raw []byte) string {
	var s strings.Builder
	s.Grow(len(raw))
	for i := 0; i < len(raw); {
		start := i
		for i < len(raw) && raw[i] != '\\' {
			i++
		}
		s.Write(raw[start:i])
		if i == len(raw) {
			break
		}
		switch ch := raw[i+1]; ch {
		case 'b':
			s.WriteByte('\b')
		case 'f':
			s.WriteByte('\f')
		case 'n':
			s.WriteByte('\n')
		case 'r':
			s.WriteByte('\r')
		case 't':
			s.WriteByte('\t')
		case 'u':
			r, n := escapedRune(raw[i:])
			s.WriteRune(r)
			i += n - 2
		default:
			s.WriteByte(ch)
		}
		i += 2
	}
	return valid(s.String())
}

// escapedRune decodes \uXXXX at the start of raw, or a surrogate pair of them,
// and how many bytes that took. A lone surrogate becomes U+FFFD.
func escapedRune(raw []byte) (r rune, n int) {
	r = hex4(raw[2:])
	if r < 0xd800 || r > 0xdfff {
		return r, 6
	}
	if r < 0xdc00 && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if low := hex4(raw[8:]); low >= 0xdc00 && low <= 0xdfff {
			return (r-0xd800)<<10 | (low - 0xdc00) + 0x10000, 12
		}
	}
	return utf8.RuneError, 6
}

func text(raw []byte) string { return valid(string(raw)) }

// valid replaces every byte that is not UTF-8 by U+FFFD, as encoding/json does.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
