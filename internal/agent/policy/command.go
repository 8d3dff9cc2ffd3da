package policy

import (
	"slices"
	"strings"
)

// command is the argument of a Bash pattern. Without a * it is exact: the text
// of one whole command line. With one it is a simple command, word by word.
type command struct {
	exact bool
	text  string  // the whole command line, when exact
	words []pword // nil for an exact text that is not one simple, static command
	rest  bool    // it ends in " *" or " **": any further words, or none
	any   bool    // it ends in " **": whatever they do
	prog  string  // the base name of the program in lower case, when it is literal
}

// pword is a word of a pattern: literal parts with wildcards between them.
type pword struct {
	parts []string
	text  string // as matched, for a literal word
}

func (w pword) literal() bool { return len(w.parts) == 1 }

func (w pword) match(s string, fold bool) bool {
	parts := w.parts
	if fold {
		s, parts = strings.ToLower(s), slices.Clone(parts)
		for i := range parts {
			parts[i] = strings.ToLower(parts[i])
		}
	}
	return inOrder(parts, s)
}

// literals counts the leading literal words.
func (c *command) literals() int {
	for i, w := range c.words {
		if !w.literal() {
			return i
		}
	}
	return len(c.words)
}

// spelt writes the first n words, of which each stands for any word where it has a wildcard.
func (c *command) spelt(n int) string {
	var list []word
	for _, w := range c.words[:n] {
		list = append(list, word{text: strings.Join(w.parts, anyName)})
	}
	text, _ := spell(list)
	return text
}

// shellMeta cannot stand outside quotes in a pattern with a *, which names one simple command.
const shellMeta = ";&|<>()$`\n\r{}#!~"

func parseCommand(arg string) (*command, *syntaxError) {
	if rest, ok := strings.CutSuffix(arg, ":*"); ok && rest != "" { // as the CLI's own rules write it
		arg = rest + " *"
	}
	if !hasWildcard(arg) {
		c := &command{exact: true, text: strings.TrimSpace(unescapeExact(arg))}
		if why := unreadable(c.text); why != "" {
			return nil, &syntaxError{problem: why, advice: "write the command in plain characters"}
		}
		if words := simpleWords(c.text); words != nil {
			for _, w := range words {
				c.words = append(c.words, pword{parts: []string{w.text}, text: w.text})
			}
			c.prog = baseName(words[0].text)
		}
		return c, nil
	}
	c := &command{}
	if err := c.lex(arg); err != nil {
		return nil, err
	}
	if n := len(c.words); n > 0 {
		if last := c.words[n-1]; len(last.parts) == 2 && last.parts[0] == "" && last.parts[1] == "" {
			c.rest, c.any = true, arg == "**" || strings.HasSuffix(arg, " **") || strings.HasSuffix(arg, "\t**")
			c.words = c.words[:n-1]
		}
	}
	if len(c.words) > 0 && c.words[0].literal() {
		c.prog = baseName(c.words[0].text)
	}
	return c, nil
}

// lex splits a pattern with a * into words: quotes and backslashes work as in
// the shell, and * outside them is a wildcard.
func (c *command) lex(s string) *syntaxError {
	parts := []string{}
	var part strings.Builder
	started := false
	end := func() {
		if started {
			parts = append(parts, part.String())
			w := pword{parts: parts}
			if w.literal() {
				w.text = parts[0]
			}
			c.words = append(c.words, w)
		}
		parts, started = []string{}, false
		part.Reset()
	}
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b == ' ' || b == '\t':
			end()
		case b == '\\':
			if i+1 == len(s) {
				return &syntaxError{i, "a backslash ends it", `write \\ for a backslash`}
			}
			i++
			started = true
			part.WriteByte(s[i])
		case b == '\'' || b == '"':
			n := strings.IndexByte(s[i+1:], b)
			if n < 0 {
				return &syntaxError{i, "the quote is never closed", `close it, or write \` + string(b)}
			}
			if b == '"' && strings.ContainsAny(s[i+1:i+1+n], "$`\\") {
				return &syntaxError{i, "what the double quotes hold is not literal", "write it in single quotes"}
			}
			started = true
			part.WriteString(s[i+1 : i+1+n])
			i += n + 1
		case b == '*':
			started = true
			if len(parts) == 0 || part.Len() > 0 {
				parts = append(parts, part.String())
				part.Reset()
			}
		case strings.IndexByte(shellMeta, b) >= 0:
			return &syntaxError{i, "a pattern with * names one simple command, and " + string(b) + " is more than that", "write one rule for each command, or quote the character"}
		default:
			started = true
			part.WriteByte(b)
		}
	}
	end()
	if why := unreadable(s); why != "" {
		return &syntaxError{0, why, "write the command in plain characters"}
	}
	return nil
}

// hasWildcard reports whether s holds an unescaped * outside quotes.
func hasWildcard(s string) bool { return strings.Contains(quotes.ReplaceAllString(s, ""), "*") }

// escapeExact writes a command line so that it is read as an exact pattern.
func escapeExact(cmd string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`).Replace(cmd)
}

// unescapeExact undoes escapeExact; a backslash before anything else stays.
func unescapeExact(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\*`, `*`).Replace(s)
}

func baseName(s string) string {
	return strings.ToLower(s[strings.LastIndexByte(s, '/')+1:])
}
