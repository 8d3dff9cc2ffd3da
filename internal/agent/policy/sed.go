package policy

import "strings"

// checkSed reads a script of sed, and knows the commands that do nothing but
// change and print what is read: no r, R, w and W (files), no e (commands), no s
// with the flags e and w, no v and F. Where implementations of sed disagree about
// where a regular expression ends, the script is not known.
func checkSed(script string) checked {
	s := sedScript{text: script}
	s.commands()
	return checked{why: s.why}
}

type sedScript struct {
	text  string
	at    int
	depth int    // of open braces
	why   string // what is not known; the script is not read on
}

func (s *sedScript) fail(why string) {
	if s.why == "" {
		s.why = "the sed script " + why
	}
}

// more reports whether there is text left and nothing is wrong yet.
func (s *sedScript) more() bool { return s.why == "" && s.at < len(s.text) }

// peek is the next byte, 0 at the end.
func (s *sedScript) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *sedScript) skip(set string) {
	for s.more() && strings.IndexByte(set, s.text[s.at]) >= 0 {
		s.at++
	}
}

// take skips the bytes of a set and returns them.
func (s *sedScript) take(set string) string {
	from := s.at
	s.skip(set)
	return s.text[from:s.at]
}

const (
	digits     = "0123456789"
	nameBytes  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789"
	sedStrange = "does something other than change and print text"
)

func (s *sedScript) commands() {
	for {
		s.skip(" \t\n;")
		if !s.more() {
			break
		}
		if s.peek() == '#' {
			s.line()
			continue
		}
		if s.address() {
			s.skip(" \t")
			if s.peek() == ',' {
				s.at++
				s.skip(" \t")
				if c := s.peek(); c == '+' || c == '~' {
					s.at++
				}
				if !s.address() {
					s.fail("has an address that cannot be read")
				}
			}
		}
		s.skip(" \t!")
		if s.why == "" {
			s.command()
		}
	}
	if s.depth != 0 {
		s.fail("has a brace without its partner")
	}
}

// address reads one address, if there is one.
func (s *sedScript) address() bool {
	switch c := s.peek(); {
	case c == '$':
		s.at++
	case c >= '0' && c <= '9':
		s.skip(digits)
		if s.peek() == '~' {
			s.at++
			s.skip(digits)
		}
	case c == '/':
		s.at++
		s.regexp('/')
		s.skip("IM")
	case c == '\\':
		s.at++
		if d := s.delimiter(); d != 0 {
			s.regexp(d)
			s.skip("IM")
		}
	default:
		return false
	}
	return true
}

func (s *sedScript) command() {
	c := s.peek()
	s.at++
	switch {
	case c == 0 && s.at > len(s.text):
		s.fail("ends with an address")
	case c == '{':
		s.depth++
	case c == '}':
		if s.depth--; s.depth < 0 {
			s.fail("has a brace without its partner")
		}
		s.end()
	case strings.IndexByte("=dDgGhHnNpPxz", c) >= 0:
		s.end()
	case strings.IndexByte("lLqQ", c) >= 0:
		s.skip(" \t")
		s.skip(digits)
		s.end()
	case strings.IndexByte(":btT", c) >= 0:
		s.skip(" \t")
		s.skip(nameBytes)
		s.end()
	case strings.IndexByte("aic", c) >= 0:
		s.inserted()
	case c == 's':
		s.substitute()
	case c == 'y':
		if d := s.delimiter(); d != 0 {
			s.replacement(d)
			s.replacement(d)
			s.end()
		}
	default:
		s.fail(sedStrange)
	}
}

// end reads what may follow a command.
func (s *sedScript) end() {
	s.skip(" \t")
	switch s.peek() {
	case 0, ';', '\n', '}', '#':
	default:
		s.fail("cannot be read")
	}
}

// line skips the rest of a line, which must not go on in the next.
func (s *sedScript) line() {
	rest := s.text[min(s.at, len(s.text)):]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	if strings.HasSuffix(rest, `\`) {
		s.fail("has a text that goes on in the next line")
	}
	s.at += len(rest)
}

// inserted reads the text of a, i or c: one line.
func (s *sedScript) inserted() {
	s.skip(" \t")
	if s.more() && strings.HasPrefix(s.text[s.at:], "\\\n") {
		s.at += 2
	}
	s.line()
}

// delimiter reads the delimiter of s and y, one that means nothing in a regular
// expression; 0 for another.
func (s *sedScript) delimiter() byte {
	d := s.peek()
	if s.at++; d == 0 || strings.IndexByte("/|,#:@!_+~%=;", d) < 0 {
		s.fail("has a delimiter that is not known")
		return 0
	}
	return d
}

func (s *sedScript) substitute() {
	d := s.delimiter()
	if d == 0 {
		return
	}
	s.regexp(d)
	s.replacement(d)
	flags := s.take("gpiIMm" + digits)
	if c := s.peek(); c == 'e' || c == 'w' || strings.ContainsAny(flags, "ew") {
		s.fail("runs a command or writes a file")
	}
	s.end()
}

// regexp reads up to the delimiter. Every sed takes one within brackets literally,
// but not all read the same brackets where a backslash or another [ stands in them.
func (s *sedScript) regexp(d byte) {
	rest := s.text[min(s.at, len(s.text)):]
	plain, aware := plainEnd(rest, d), bracketEnd(rest, d)
	switch {
	case plain < 0 || aware < 0 || strings.Contains(rest[:aware], "\n"):
		s.fail("has a regular expression without an end")
	case plain != aware && !simpleBrackets(rest[:aware]):
		s.fail("has a regular expression whose end is not the same to every sed")
	default:
		s.at += aware + 1
	}
}

// simpleBrackets reports whether no bracket expression of re holds a backslash or
// another [.
func simpleBrackets(re string) bool {
	for i := 0; i < len(re); i++ {
		switch re[i] {
		case '\\':
			i++
		case '[':
			n := bracketLen(re[i:])
			if n < 0 || strings.ContainsAny(re[i+1:i+n], `\[`) {
				return false
			}
			i += n - 1
		}
	}
	return true
}

// plainEnd is where the first delimiter without a backslash stands; -1 for
// nowhere in the line.
func plainEnd(text string, d byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case d:
			return i
		case '\n':
			return -1
		case '\\':
			i++
			if i < len(text) && text[i] == '\n' {
				return -1
			}
		}
	}
	return -1
}

// bracketEnd is where the first delimiter stands that neither a backslash nor
// brackets quote.
func bracketEnd(text string, d byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case d:
			return i
		case '\\':
			i++
		case '[':
			n := bracketLen(text[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		}
	}
	return -1
}

// bracketLen is the length of the bracket expression that a text begins with, as
// POSIX reads it: a backslash quotes nothing in it. -1 when it does not end.
func bracketLen(text string) int {
	i := 1
	if i < len(text) && text[i] == '^' {
		i++
	}
	if i < len(text) && text[i] == ']' {
		i++
	}
	for i < len(text) && text[i] != ']' {
		if text[i] == '[' && i+1 < len(text) && strings.IndexByte(":.=", text[i+1]) >= 0 {
			end := strings.Index(text[i+2:], text[i+1:i+2]+"]")
			if end < 0 {
				return -1
			}
			i += end + 4
			continue
		}
		i++
	}
	if i >= len(text) {
		return -1
	}
	return i + 1
}

// replacement reads up to the delimiter; a newline in it has a backslash.
func (s *sedScript) replacement(d byte) {
	for ; s.more(); s.at++ {
		switch s.text[s.at] {
		case d:
			s.at++
			return
		case '\n':
			s.fail("has a replacement without an end")
			return
		case '\\':
			s.at = min(s.at+1, len(s.text)-1)
		}
	}
	s.fail("has a replacement without an end")
}
