package policy

import "strings"

// checkAwk reads a program of awk, and knows those that only compute and print:
// patterns, print and printf, arithmetic, variables, arrays and the functions of
// awkFunctions. No pipes and redirections, no getline and system, no functions of
// its own, no variable that holds the environment or names the files that are
// read. Where awks may disagree whether / divides or begins a regular expression,
// the program is not known.
func checkAwk(text string) checked {
	a := awkProgram{text: text}
	for a.why == "" && a.at < len(a.text) {
		a.token()
	}
	return checked{why: a.why}
}

var (
	awkFunctions = words("length substr index split gsub sub match sprintf tolower toupper int sqrt exp log sin cos atan2 rand srand gensub strftime systime mktime and or xor lshift rshift compl strtonum")
	// awkVariables are the names in capitals that are known. gawk keeps what it
	// knows of files, processes and the environment in others.
	awkVariables = map[string]bool{
		"NR": true, "NF": true, "FNR": true, "FS": true, "OFS": true, "RS": true, "ORS": true, "FILENAME": true, "SUBSEP": true, "RSTART": true, "RLENGTH": true,
		"CONVFMT": true, "OFMT": true, "IGNORECASE": true, "RT": true, "FPAT": true, "FIELDWIDTHS": true, "BEGIN": true, "END": true,
	}
	awkKeywords = words("if else while for do break continue next exit in delete print printf return")
	awkRefused  = words("getline system close fflush function func nextfile switch case default include load namespace eval printerr abort")
)

type awkProgram struct {
	text     string
	at       int
	printing bool   // in a print statement, where > writes a file
	operator bool   // what stood last wants an operator: / divides
	unsure   bool   // what stood last leaves it open
	word     string // the keyword that stood last
	parens   []bool // the open ones; whether a condition stands in them
	why      string // what is not known
}

func (a *awkProgram) fail(why string) {
	if a.why == "" {
		a.why = "the awk program " + why
	}
}

// token reads one token. Only what it knows is passed.
func (a *awkProgram) token() {
	c := a.text[a.at]
	if c == ' ' || c == '\t' {
		a.at++
		return
	}
	word := a.word
	a.word = ""
	switch {
	case c == '\n' || c == ';' || c == '{' || c == '}':
		a.at++
		if c == ';' || c == '}' {
			a.printing = false
		}
		a.wants(false, false)
	case c == '#':
		a.comment()
	case c == '"':
		a.quoted()
	case c >= '0' && c <= '9' || c == '.':
		a.number()
	case isNameByte(c):
		a.name()
	case c == '/':
		a.slash()
	case c == '(':
		a.at++
		a.parens = append(a.parens, word == "if" || word == "while" || word == "for")
		a.wants(false, false)
	case c == ')':
		a.close()
	default:
		a.sign()
	}
}

// close reads a ). After that of a condition a / may be either.
func (a *awkProgram) close() {
	a.at++
	n := len(a.parens)
	if n == 0 {
		a.fail("has a parenthesis without its partner")
		return
	}
	a.wants(true, a.parens[n-1])
	a.parens = a.parens[:n-1]
}

func (a *awkProgram) wants(operator, unsure bool) { a.operator, a.unsure = operator, unsure }

func (a *awkProgram) comment() {
	rest, _, _ := strings.Cut(a.text[a.at:], "\n")
	if strings.HasSuffix(rest, `\`) {
		a.fail("has a comment that may go on in the next line")
	}
	a.at += len(rest)
}

func (a *awkProgram) quoted() {
	for i := a.at + 1; i < len(a.text); i++ {
		switch a.text[i] {
		case '\\':
			i++
			if i < len(a.text) && a.text[i] == '\n' {
				a.fail("has a text that goes on in the next line")
				return
			}
		case '\n':
			a.fail("has a text without an end")
			return
		case '"':
			a.at = i + 1
			a.wants(true, false)
			return
		}
	}
	a.fail("has a text without an end")
}

func (a *awkProgram) number() {
	for a.at < len(a.text) && strings.IndexByte(digits+".", a.text[a.at]) >= 0 {
		a.at++
	}
	a.wants(true, false)
}

func isNameByte(c byte) bool { return strings.IndexByte(nameBytes, c) >= 0 }

func (a *awkProgram) name() {
	from := a.at
	for a.at < len(a.text) && isNameByte(a.text[a.at]) {
		a.at++
	}
	name := a.text[from:a.at]
	called := strings.HasPrefix(strings.TrimLeft(a.text[a.at:], " \t\n\\"), "(")
	switch {
	case awkKeywords[name]:
		a.word = name
		if name == "print" || name == "printf" {
			a.printing = true
		}
		a.wants(false, name == "next" || name == "break" || name == "continue" || name == "exit" || name == "return")
	case awkVariables[name]:
		if called {
			a.fail("calls " + name + ", which is not known")
		}
		a.wants(true, name == "BEGIN" || name == "END")
	case awkFunctions[name]:
		a.wants(true, true)
	case called || awkRefused[name]:
		a.fail("calls " + name + ", which is not known to be harmless")
	case len(name) > 1 && name == strings.ToUpper(name):
		a.fail("uses " + name + ", which is not known to be harmless")
	default:
		a.wants(true, false)
	}
}

// slash reads a regular expression or a division.
func (a *awkProgram) slash() {
	switch {
	case a.unsure:
		a.fail("has a / that may divide or begin a regular expression")
		return
	case a.operator:
		a.at++
		if a.at < len(a.text) && a.text[a.at] == '=' {
			a.at++
		}
		a.wants(false, false)
		return
	}
	rest := a.text[a.at+1:]
	end := plainEnd(rest, '/')
	switch {
	case end < 0:
		a.fail("has a regular expression without an end")
	case bracketEnd(rest, '/') != end || escapesInBrackets(rest[:end]):
		a.fail("has a regular expression whose end is not the same to every awk")
	default:
		a.at += end + 2
		a.wants(true, true)
	}
}

// escapesInBrackets reports whether a bracket expression holds a backslash before
// a byte that awks disagree about.
func escapesInBrackets(re string) bool {
	for i := 0; i < len(re); i++ {
		switch re[i] {
		case '\\':
			i++
		case '[':
			n := bracketLen(re[i:])
			if n < 0 {
				return true
			}
			inside := re[i : i+n]
			if strings.Contains(inside, `\]`) || strings.Contains(inside, `\[`) || strings.Contains(inside, `\\`) || strings.Contains(inside, `\/`) {
				return true
			}
			i += n - 1
		}
	}
	return false
}

// awkSigns are the operators, the long ones first.
var awkSigns = []string{"**=", "&&", "||", "++", "--", "+=", "-=", "*=", "%=", "^=", "**", "==", "<=", ">=", "!=", "!~", "[", "]", ",", "+", "-", "*", "%", "^", "!", "<", ">", "?", ":", "~", "$", "="}

func (a *awkProgram) sign() {
	rest := a.text[a.at:]
	for _, s := range awkSigns {
		if !strings.HasPrefix(rest, s) {
			continue
		}
		a.at += len(s)
		switch s {
		case ">":
			if a.printing || strings.HasPrefix(rest, ">>") {
				a.fail("writes a file")
			}
			a.wants(false, false)
		case ">=":
			if a.printing { // print >="file" is > and = to some
				a.fail("writes a file")
			}
			a.wants(false, false)
		case ":":
			if strings.HasPrefix(rest, "::") {
				a.fail("names a namespace")
			}
			a.wants(false, false)
		case "++", "--", "$":
			a.wants(true, true)
		case "]":
			a.wants(true, false)
		default:
			a.wants(false, false)
		}
		return
	}
	if rest[0] == '|' {
		a.fail("runs a command in a pipe")
		return
	}
	a.fail("holds " + rest[:1] + ", which is not known")
}
