package report

import (
	"regexp"
	"strings"
	"unicode"
)

// word is one word of a question.
type word struct {
	raw    string // as it was written, without quotation marks
	low    string // in small letters, without punctuation and possessive s
	quoted bool   // a name, and never a word of the grammar
	comma  bool   // a comma followed
}

// entity is a person or a channel as Slack writes it: <@U123|ann>, <#C123|general>.
var entity = regexp.MustCompile(`^<([@#])([A-Z0-9]+)(?:\|[^<>]*)?>`)

// closers are the marks that end what the key begins.
var closers = map[rune]string{'"': `"”“`, '“': `”"“`, '”': `”"`, '„': `“”"`, '\'': `'’`, '‘': `’'`, '«': `»`}

const punctuation = ".,;:!?…)(*_`"

// split takes a question apart. Dashes and dots between two dates become "to".
func split(text string) []word {
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || (unicode.IsControl(r) && !unicode.IsSpace(r)) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text)
	var words []word
	for {
		text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == ';' })
		if text == "" {
			return words
		}
		var w word
		if m := entity.FindString(text); m != "" {
			w, text = word{raw: m, low: m}, text[len(m):]
		} else if name, rest, ok := quotedName(text); ok {
			w, text = word{raw: name, low: strings.ToLower(name), quoted: true}, rest
		} else {
			end := len(text)
			if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == ';' }); i >= 0 {
				end = i
			}
			if i := strings.IndexByte(text[:end], '<'); i > 0 {
				end = i
			}
			raw := text[:end]
			text = text[end:]
			words = appendPlain(words, raw)
			markComma(words, text)
			continue
		}
		words = append(words, w)
		markComma(words, text)
	}
}

func markComma(words []word, rest string) {
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	if len(words) > 0 && (strings.HasPrefix(rest, ",") || strings.HasPrefix(rest, ";")) {
		words[len(words)-1].comma = true
	}
}

// quotedName reads a name in quotation marks; two marks in a row are one of the name's.
func quotedName(text string) (name, rest string, ok bool) {
	var until string
	var b strings.Builder
	skip := false
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case i == 0:
			if until = closers[r]; until == "" {
				return "", "", false
			}
		case skip:
			skip = false
		case strings.ContainsRune(until, r):
			if i+1 < len(runes) && runes[0] == '"' && runes[i+1] == '"' && r == '"' {
				b.WriteRune(r)
				skip = true
				continue
			}
			if strings.TrimSpace(b.String()) == "" {
				return "", "", false
			}
			return b.String(), string(runes[i+1:]), true
		default:
			b.WriteRune(r)
		}
	}
	return "", "", false
}

func appendPlain(words []word, raw string) []word {
	for _, dash := range []string{"..", "–", "—"} {
		a, b, ok := strings.Cut(raw, dash)
		if ok && (a == "" || startsWithDigit(a)) && (b == "" || startsWithDigit(b)) {
			if a != "" {
				words = append(words, plain(a))
			}
			words = append(words, word{raw: "to", low: "to"})
			if b = strings.TrimLeft(b, "."); b != "" {
				words = append(words, plain(b))
			}
			return words
		}
	}
	w := plain(raw)
	if raw == "-" {
		w = word{raw: "to", low: "to"}
	}
	if w.low == "" {
		return words
	}
	return append(words, w)
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

func plain(raw string) word {
	low := strings.ToLower(strings.Trim(raw, punctuation+`"“”„'‘’`))
	for _, s := range []string{"'s", "’s"} {
		low = strings.TrimSuffix(low, s)
	}
	return word{raw: raw, low: low}
}

// bare is a name that was written without quotation marks, without the sentence's
// punctuation around it.
func (w word) bare() string {
	if w.quoted {
		return w.raw
	}
	return strings.Trim(w.raw, punctuation+`"“”„'‘’`)
}

// quote writes a name so that split reads it as one.
func quote(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// plainName is what needs no quotation marks. Names that look like dates could be
// taken apart.
var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_/.-]*[A-Za-z0-9]$|^[A-Za-z]$|^[a-z][a-z0-9.-]*\[[a-z0-9]+\]$`)
