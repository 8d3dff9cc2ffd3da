package policy

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of what is read. Beyond them a command is asked, never allowed.
const (
	maxCommand = 16 << 10
	maxUnits   = 64
	maxNesting = 6
	maxDirs    = 4
	maxWords   = 512
)

// script is a parsed command line.
type script struct {
	src string // trimmed
	// hard keeps every rule from allowing any part: the text does not say what runs.
	hard string
	// soft restricts it to rules with the whole line literally.
	soft string
	// unsure: Bash may run lines that the parser took for something else.
	unsure bool
	units  []unit
	start  []string // the folders where it may start; nil if unknown
	root   root
	depth  int

	stmts      int  // how many statements were seen
	concurrent bool // some run concurrently
	surveys    map[string][]string
	globbed    map[*glob][]string
}

// unit is one action of a script, which the rules decide separately: a simple command, the opening of a file by a
// redirection, or the reading or writing of a file named by a command's words.
type unit struct {
	words []word
	// inner is where each command begins in words if a wrapper such as timeout runs it unchanged; the first is 0,
	// the last is what really runs.
	inner []int
	// soft restricts this unit to rules with the whole command line literally.
	soft string
	// wrap says what is unknown because the program can run other commands; only a rule that ends in ** or holds
	// the whole line allows it.
	wrap string
	// nested: found inside a wrapper or a substitution. It can be denied and asked; allowing it means nothing,
	// because its surroundings are not allowed.
	nested  bool
	neutral bool // a cd inside the workspace: it decides nothing by itself
	dirs    []string
	stmt    int      // the statement that it belongs to
	named   []target // the files that its words may name, cached
	asked   bool
	reading *reading // nil when the program is unknown
	// For a file:
	target *target
	write  bool
	of     int  // the command whose words name it, counted from 1; 0 for a redirection
	part   int  // the index of that command's part
	names  bool // only its name is shown
}

// program is the name of the innermost command, as written.
func (u *unit) program() string { return u.words[u.inner[len(u.inner)-1]].text }

// args are the words of the innermost command, with its name.
func (u *unit) args() []word { return u.words[u.inner[len(u.inner)-1]:] }

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// parseShell parses a text as Bash. doubt says why the result is uncertain; f is nil for invalid text.
func parseShell(src string) (f *syntax.File, doubt string) {
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	f, err := p.Parse(strings.NewReader(src), "")
	if err != nil {
		return nil, doubtParse
	}
	return f, doubtful(f, src)
}

// readScript parses a command line. dirs are the folders where it may start; nil means unknown.
func readScript(src string, rt root, dirs []string) *script {
	s := &script{src: strings.TrimSpace(src), start: dirs, root: rt, surveys: map[string][]string{}, globbed: map[*glob][]string{}}
	switch {
	case len(src) > maxCommand:
		s.hard = "the command is too long to be judged"
		return s
	case s.src == "":
		s.hard = "the command is empty"
		return s
	}
	if s.hard = unreadable(src); rewritten.MatchString(src) {
		s.setHard("the agent writes /dev/null for nul before it runs the command")
	}
	plainer := withoutHere(src)
	if s.read(plainer, dirs, false); s.unsure && plainer != src {
		s.read(src, nil, true)
	}
	s.derive()
	return s
}

// rewritten matches what the CLI takes for the null device of Windows.
var rewritten = regexp.MustCompile(`(?i)>[ \t]*nul(?:[\s|&;)]|$)`)

// dropsLine matches a comment that goes on in the next line for the parser, and not for Bash.
var dropsLine = regexp.MustCompile(`#[^\n]*\\\r?\n`)

// read adds the units of src.
func (s *script) read(src string, dirs []string, nested bool) {
	f, doubt := parseShell(src)
	if f != nil {
		r := reader{script: s, nested: nested}
		r.list(f.Stmts, dirs)
	}
	drops := dropsLine.MatchString(src)
	if !nested && doubt != "" {
		s.setHard(doubt)
		s.unsure = mayHide(doubt) || drops
	}
	if drops { // deeper than the lines below are read
		s.read(dropsLine.ReplaceAllString(src, "#\n"), nil, true)
	}
	if doubt != "" { // Bash runs line by line
		if lines := strings.Split(src, "\n"); len(lines) > 1 {
			for _, line := range lines {
				s.read(line, nil, true)
			}
		}
	}
}

func (s *script) setHard(why string) {
	s.hard = cmp.Or(s.hard, why)
}

func (s *script) add(u unit) {
	if len(s.units) >= maxUnits {
		s.setHard("it does more than can be judged")
		if u.nested || len(s.units) >= 2*maxUnits { // denying rules find what runs, whatever its words may be
			return
		}
	}
	s.units = append(s.units, u)
}

// simpleWords are the words of a text that is one static simple command; nil for anything else.
func simpleWords(src string) []word {
	f, doubt := parseShell(src)
	if doubt != "" || len(f.Stmts) != 1 {
		return nil
	}
	st := f.Stmts[0]
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || st.Negated || st.Background || st.Coprocess || st.Disown || len(st.Redirs) > 0 || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil
	}
	words := make([]word, 0, len(call.Args))
	for _, a := range call.Args {
		w := readWord(a)
		if w.dynamic != "" {
			return nil
		}
		words = append(words, w)
	}
	return words
}

// union joins the folders of two branches; nil means unknown.
func union(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	if slices.Equal(a, b) {
		return a
	}
	out := slices.Clone(a)
	for _, d := range b {
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	if len(out) > maxDirs {
		return nil
	}
	return out
}
