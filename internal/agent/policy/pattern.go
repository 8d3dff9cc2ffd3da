package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"deckhand/internal/spelling"
)

type kind uint8

const (
	kindNone kind = iota
	kindName      // a tool's name, with * for any characters
	kindBash
	kindRead
	kindEdit
	kindWeb
	kindNet
)

// Pattern is what a rule matches. The zero Pattern matches nothing. Patterns are
// values that never change, safe to share.
type Pattern struct {
	text string
	kind kind
	name string   // kindName, and the name as written of a bare family
	cmd  *command // kindBash; nil for the bare name
	glob *glob    // kindRead and kindEdit; nil for the bare name
	web  *domain  // kindWeb; nil for the bare name
	net  *reach   // kindNet; nil for the bare name
}

// String is the pattern as it was written.
func (p Pattern) String() string { return p.text }

// MarshalText makes patterns strings in JSON and YAML.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// UnmarshalText is [ParsePattern].
func (p *Pattern) UnmarshalText(b []byte) error {
	parsed, err := ParsePattern(string(b))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}

// PatternError says what is wrong with a pattern and what to write.
type PatternError struct {
	Pattern string
	Column  int    // of the character at fault, from 1
	Problem string // "the parenthesis is never closed"
	Advice  string // "write Bash(go test *)"
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("pattern %q, column %d: %s; %s", e.Pattern, e.Column, e.Problem, e.Advice)
}

// maxPattern bounds a pattern; an exact command is as long as the command.
const maxPattern = 4 * maxCommand

// families are the heads that take an argument, and what their bare names stand
// for.
var families = map[string]kind{
	"Bash": kindBash, "WebFetch": kindWeb, NetworkTool: kindNet,
	"Read": kindRead, "NotebookRead": kindRead, "Glob": kindRead, "Grep": kindRead, "LS": kindRead,
	"Edit": kindEdit, "Write": kindEdit, "MultiEdit": kindEdit, "NotebookEdit": kindEdit,
}

// ParsePattern reads a pattern. Its error is a [*PatternError].
func ParsePattern(s string) (Pattern, error) {
	fail := func(at int, problem, advice string) (Pattern, error) {
		at = min(max(at, 0), len(s))
		return Pattern{}, &PatternError{Pattern: s, Column: utf8.RuneCountInString(s[:at]) + 1, Problem: problem, Advice: advice}
	}
	if strings.TrimSpace(s) == "" {
		return fail(0, "it is empty", "write a tool such as Edit, or Bash(go test *)")
	}
	if len(s) > maxPattern {
		return fail(maxPattern, "it is longer than any command that is read", "write a shorter one with *")
	}
	if !utf8.ValidString(s) {
		return fail(0, "it is not valid UTF-8", "save the file as UTF-8")
	}
	name, arg, hasArg := strings.Cut(s, "(")
	for i, r := range name {
		if !nameRune(r) {
			return fail(i, fmt.Sprintf("%q cannot stand in a tool's name", r), "write a tool such as Edit, or put what it works on in parentheses: Bash(go test *)")
		}
	}
	k := families[name]
	if k == kindNone {
		for f := range families {
			if strings.EqualFold(f, name) {
				return fail(0, fmt.Sprintf("tools are written with capitals, and %q is none", name), "write "+f+s[len(name):])
			}
		}
	}
	if !hasArg {
		if k == kindNone {
			k = kindName
		}
		return Pattern{text: s, kind: k, name: name}, nil
	}
	open := len(name)
	if name == "" {
		return fail(0, "the tool before the parenthesis is missing", "write Bash"+s)
	}
	if !strings.HasSuffix(arg, ")") {
		return fail(len(s), fmt.Sprintf("the parenthesis that opens at column %d is not closed at the end", utf8.RuneCountInString(s[:open])+1), "end the pattern with )")
	}
	arg = arg[:len(arg)-1]
	if strings.TrimSpace(arg) == "" {
		return fail(open+1, "there is nothing between the parentheses", "write "+name+" alone to mean every call of it")
	}
	p := Pattern{text: s, kind: k, name: name}
	var bad *syntaxError
	switch k {
	case kindBash:
		p.cmd, bad = parseCommand(arg)
	case kindRead, kindEdit:
		p.glob, bad = parseGlob(arg)
	case kindWeb:
		p.web, bad = parseDomain(arg)
	case kindNet:
		p.net, bad = parseReach(arg)
	default:
		advice := "write " + name
		if near := spelling.Nearest(name, append(slices.Sorted(maps.Keys(renamed)), toolNames()...)); families[near] != kindNone {
			advice = "write " + near + s[open:]
		}
		return fail(open, "only Bash, Read, Edit, WebFetch and "+NetworkTool+" (and the tools of their families) take an argument", advice)
	}
	if bad != nil {
		return fail(open+1+bad.at, bad.problem, bad.advice)
	}
	return p, nil
}

// syntaxError is an error at a byte of a pattern's argument.
type syntaxError struct {
	at              int
	problem, advice string
}

func nameRune(r rune) bool {
	return r < utf8.RuneSelf && (r == '_' || r == '-' || r == '*' || r == '.' || r == ':' || r == '@' || r == '/' ||
		'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
}

// names reports whether a pattern of kindName matches a tool. mcp__server alone
// means every tool of that server.
func (p Pattern) names(tool string) bool {
	if rest, ok := strings.CutPrefix(p.name, "mcp__"); ok && !strings.Contains(rest, "__") && !strings.Contains(rest, "*") {
		return tool == p.name || strings.HasPrefix(tool, p.name+"__")
	}
	return wild(p.name, tool)
}

// wild matches s against a pattern in which * stands for any characters.
func wild(pattern, s string) bool {
	return strings.HasSuffix(s, pattern[strings.LastIndexByte(pattern, '*')+1:]) && inOrder(strings.Split(pattern, "*"), s)
}

// inOrder reports whether s is these parts in order, with any characters between them.
func inOrder(parts []string, s string) bool {
	last := len(parts) - 1
	if last == 0 {
		return s == parts[0]
	}
	s, ok := strings.CutPrefix(s, parts[0])
	for _, part := range parts[1:last] {
		if ok {
			_, s, ok = strings.Cut(s, part)
		}
	}
	return ok && strings.HasSuffix(s, parts[last])
}
