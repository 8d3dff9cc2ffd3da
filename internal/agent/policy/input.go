package policy

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxInput bounds a call's input. The longest that the CLI sends hold a whole
// file.
const maxInput = 16 << 20

// maxDepth bounds how deeply an input is nested.
const maxDepth = 64

// input is the members of a call's input by their exact names.
type input map[string]json.RawMessage

// str returns a member that is a string.
func (in input) str(name string) (string, bool) {
	raw, ok := in[name]
	if !ok || len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// readInput reads an input such that every parser reads the same: one object, no
// name twice at any depth, no text that decoders repair. bad says what is wrong;
// the members are then what could be read.
func readInput(raw json.RawMessage) (in input, bad string) {
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return input{}, ""
	case len(raw) > maxInput:
		return nil, "the input is too large to be judged"
	case !utf8.Valid(raw):
		return nil, "the input holds bytes that are not valid text"
	case !json.Valid(raw):
		return nil, "the input is not valid JSON"
	}
	s := scanner{raw: raw}
	s.space()
	if s.raw[s.at] != '{' {
		return nil, "the input is not an object"
	}
	in = input{}
	s.object(in, 0)
	return in, s.bad
}

// scanner walks JSON that is known to be valid.
type scanner struct {
	raw []byte
	at  int
	bad string
}

func (s *scanner) setBad(why string) {
	if s.bad == "" {
		s.bad = why
	}
}

func (s *scanner) space() {
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// object reads an object, whose members it puts into in when that is not nil.
func (s *scanner) object(in input, depth int) {
	var seen map[string]bool
	s.at++ // {
	for {
		s.space()
		switch s.raw[s.at] {
		case '}':
			s.at++
			return
		case ',':
			s.at++
			continue
		}
		from := s.at
		s.str()
		key := string(s.raw[from+1 : s.at-1])
		if strings.Contains(key, `\`) && json.Unmarshal(s.raw[from:s.at], &key) != nil {
			s.setBad("the input holds a name that cannot be read")
		}
		if key == "__proto__" {
			s.setBad("the input holds the name __proto__, which JavaScript treats in its own way")
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		if seen[key] {
			s.setBad("the input holds the name " + key + " twice, and programs differ in which one counts")
		}
		seen[key] = true
		s.space()
		s.at++ // :
		s.space()
		from = s.at
		s.value(depth + 1)
		if in != nil {
			if _, twice := in[key]; !twice {
				in[key] = s.raw[from:s.at]
			}
		}
	}
}

func (s *scanner) value(depth int) {
	if depth > maxDepth {
		s.setBad("the input is nested too deeply to be judged")
		s.at = s.skip()
		return
	}
	switch s.raw[s.at] {
	case '"':
		s.str()
	case '{':
		s.object(nil, depth)
	case '[':
		s.at++
		for {
			s.space()
			switch s.raw[s.at] {
			case ']':
				s.at++
				return
			case ',':
				s.at++
			default:
				s.value(depth + 1)
			}
		}
	default:
		for s.at < len(s.raw) && strings.IndexByte(" \t\r\n,]}", s.raw[s.at]) < 0 {
			s.at++
		}
	}
}

// skip returns the end of the value that begins here, without looking into it.
func (s *scanner) skip() int {
	open, end := 0, s.at
	for end < len(s.raw) {
		switch s.raw[end] {
		case '"':
			t := scanner{raw: s.raw, at: end}
			t.str()
			end = t.at - 1
		case '{', '[':
			open++
		case '}', ']':
			if open == 0 {
				return end
			}
			open--
			if open == 0 {
				return end + 1
			}
		case ',':
			if open == 0 {
				return end
			}
		}
		end++
	}
	return end
}

// str skips a string, and notes the escapes that decoders repair: halves of
// surrogate pairs.
func (s *scanner) str() {
	s.at++ // "
	for {
		i := bytes.IndexAny(s.raw[s.at:], `"\`)
		s.at += i
		if s.raw[s.at] == '"' {
			s.at++
			return
		}
		if s.raw[s.at+1] != 'u' {
			s.at += 2
			continue
		}
		hi := hex4(s.raw[s.at+2:])
		s.at += 6
		switch {
		case hi >= 0xdc00 && hi <= 0xdfff:
			s.setBad("the input holds half a character")
		case hi >= 0xd800 && hi <= 0xdbff:
			if s.raw[s.at] == '\\' && s.raw[s.at+1] == 'u' {
				if lo := hex4(s.raw[s.at+2:]); lo >= 0xdc00 && lo <= 0xdfff {
					s.at += 6
					continue
				}
			}
			s.setBad("the input holds half a character")
		}
	}
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c >= 'a':
			r |= rune(c-'a') + 10
		case c >= 'A':
			r |= rune(c-'A') + 10
		default:
			r |= rune(c - '0')
		}
	}
	return r
}
