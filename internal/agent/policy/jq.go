package policy

import "strings"

// checkJq reads a filter of jq, and knows those that only compute from their
// input: jq's own functions without env, modules and definitions, no $ENV, no
// variable that begins with __. What it knows is as harmless in gojq (gh --jq) and
// in both programs called yq, of which one knows load and eval.
func checkJq(text string) checked {
	j := jqFilter{text: text}
	j.read(0)
	if j.at < len(j.text) {
		j.fail("cannot be read")
	}
	if j.why != "" {
		return checked{why: j.why, environ: j.environ}
	}
	return checked{}
}

var (
	jqFunctions = words(
		"IN INDEX GROUP_BY UNIQUE_BY JOIN add all any arrays ascii ascii_downcase ascii_upcase booleans bsearch capture ceil combinations contains del delpaths empty endswith error explode fabs finites first flatten floor",
		"format from_entries fromdate fromdateiso8601 fromjson fromstream getpath gmtime group_by gsub halt halt_error has implode in index indices infinite input inputs input_line_number inside isempty isfinite isinfinite isnan isnormal isvalid",
		"iterables join keys keys_unsorted last length limit localtime log log10 log2 ltrimstr map map_values match max max_by min min_by mktime modf nan normals not now nth nulls numbers objects path paths pick pow range recurse",
		"repeat reverse rindex round rtrimstr scalars scan select setpath skip sort sort_by split splits sqrt startswith strflocaltime strftime strings strptime sub tan test to_entries toarray todate todateiso8601 tojson tonumber",
		"tostream tostring transpose trim ltrim rtrim trunc truncate_stream type unique unique_by until utf8bytelength values walk while with_entries abs have_literal_numbers getpath leaf_paths tojson trimstr",
	)
	jqKeywords = words("as reduce foreach if then elif else end and or not try catch label break null true false")
	jqFormats  = words("text json html uri csv tsv sh base64 base64d base32 base32d")
)

// maxJqNesting bounds strings within strings.
const maxJqNesting = 8

type jqFilter struct {
	text    string
	at      int
	open    []byte // the brackets that are open
	key     bool   // a name would be a key of an object, not a function
	environ bool
	why     string
}

func (j *jqFilter) fail(why string) {
	if j.why == "" {
		j.why = "the jq filter " + why
	}
}

// read reads up to the end of the text, or to the ) that closes \( in a string.
func (j *jqFilter) read(nesting int) {
	if nesting > maxJqNesting {
		j.fail("is too deep to be judged")
	}
	base := len(j.open)
	for j.why == "" && j.at < len(j.text) {
		if j.text[j.at] == ')' && len(j.open) == base && nesting > 0 {
			break
		}
		j.token(nesting)
		if len(j.open) < base {
			j.fail("has a bracket without its partner")
		}
	}
	if len(j.open) != base {
		j.fail("has a bracket without its partner")
	}
}

func (j *jqFilter) token(nesting int) {
	c := j.text[j.at]
	key := j.key
	if c != ' ' && c != '\t' && c != '\n' {
		j.key = false
	}
	switch {
	case c == ' ' || c == '\t' || c == '\n':
		j.at++
	case c == '"':
		j.quoted(nesting)
	case c >= '0' && c <= '9':
		j.take(digits + ".")
		if rest := j.text[j.at:]; len(rest) > 1 && (rest[0] == 'e' || rest[0] == 'E') {
			j.at++
			j.take("+-")
			j.take(digits)
		}
	case c == '.':
		j.take(".")
		if j.take(nameBytes) != "" { // .foo, and not ..foo, which jq does not read
			return
		}
	case c == '$':
		j.at++
		j.variable(j.take(nameBytes))
	case c == '@':
		j.at++
		if f := j.take(nameBytes); !jqFormats[f] {
			j.fail("uses @" + f + ", which is not known")
		}
	case isNameByte(c):
		j.name(j.take(nameBytes), key)
	default:
		j.sign(c)
	}
}

func (j *jqFilter) take(set string) string {
	from := j.at
	for j.at < len(j.text) && strings.IndexByte(set, j.text[j.at]) >= 0 {
		j.at++
	}
	return j.text[from:j.at]
}

func (j *jqFilter) variable(name string) {
	switch {
	case name == "ENV":
		j.environ = true
		j.fail("reads the environment")
	case name == "" || strings.HasPrefix(name, "__"):
		j.fail("uses a variable that is not known")
	}
}

func (j *jqFilter) name(name string, key bool) {
	switch {
	case strings.HasPrefix(j.text[j.at:], "::"):
		j.fail("uses a module")
	case key && strings.HasPrefix(strings.TrimLeft(j.text[j.at:], " \t\n"), ":"), key && j.shorthand():
	case name == "env":
		j.environ = true
		j.fail("reads the environment")
	case !jqFunctions[strings.ToLower(name)] && !jqKeywords[name]:
		j.fail("uses " + name + ", which is not known to be harmless")
	}
}

// shorthand reports whether {name} stands for {name: .name}: a comma or the
// closing brace follows.
func (j *jqFilter) shorthand() bool {
	rest := strings.TrimLeft(j.text[j.at:], " \t\n")
	return strings.HasPrefix(rest, ",") || strings.HasPrefix(rest, "}")
}

func (j *jqFilter) quoted(nesting int) {
	j.at++
	for j.at < len(j.text) {
		switch j.text[j.at] {
		case '"':
			j.at++
			return
		case '\\':
			j.at++
			if j.at < len(j.text) && j.text[j.at] == '(' {
				j.at++
				j.read(nesting + 1)
				if j.why != "" || j.at >= len(j.text) {
					j.fail("has a text without an end")
					return
				}
			}
			j.at++
		default:
			j.at++
		}
	}
	j.fail("has a text without an end")
}

const jqSigns = "|,:;=!<>+-*/%?()[]{}"

func (j *jqFilter) sign(c byte) {
	if strings.IndexByte(jqSigns, c) < 0 {
		j.fail("holds " + string(rune(c)) + ", which is not known")
		return
	}
	j.at++
	switch c {
	case '(', '[', '{':
		j.open = append(j.open, c)
		j.key = c == '{'
	case ')', ']', '}':
		partner := map[byte]byte{')': '(', ']': '[', '}': '{'}[c]
		if len(j.open) == 0 || j.open[len(j.open)-1] != partner {
			j.fail("has a bracket without its partner")
			return
		}
		j.open = j.open[:len(j.open)-1]
	case ',':
		j.key = len(j.open) > 0 && j.open[len(j.open)-1] == '{'
	}
}
