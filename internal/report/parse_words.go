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

// split takes a question apart.
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

// appendPlain adds what stands between two blanks: a word, or times with dashes or dots
// between them, which become "to".
func appendPlain(words []word, raw string) []word {
	if raw == "-" {
		return append(words, to)
	}
	for _, dash := range []string{"..", "–", "—", "-"} {
		a, b, ok := strings.Cut(raw, dash)
		if !ok || !isRange(a, b, dash) {
			continue
		}
		if a != "" {
			words = append(words, plain(a))
		}
		words = append(words, to)
		if b = strings.TrimLeft(b, "."); b != "" {
			words = append(words, plain(b))
		}
		return words
	}
	if w := plain(raw); w.low != "" {
		words = append(words, w)
	}
	return words
}

// to stands between the ends of a range.
var to = word{raw: "to", low: "to"}

// isRange reports whether a dash stands between two times, or at the edge of one. A
// hyphen is one between two of a kind alone: 2026-10 and 2026-Q3 are no ranges.
func isRange(a, b, dash string) bool {
	x, y := plain(a).low, plain(b).low
	switch {
	case isNamedTime(x) && isNamedTime(y):
		return true
	case dash == "-":
		return ordinal.MatchString(x) && ordinal.MatchString(y) || yearOnly.MatchString(x) && yearOnly.MatchString(y)
	}
	return (a == "" || startsWithDigit(a)) && (b == "" || startsWithDigit(strings.TrimLeft(b, ".")) || isNamedTime(y)) ||
		isNamedTime(x) && startsWithDigit(b)
}

// isNamedTime: October, Mon, Q3.
func isNamedTime(low string) bool {
	_, weekday := weekdayOf[low]
	return weekday || monthOf[low] != 0 || quarterISO.MatchString(low)
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
	if plainName.MatchString(name) && len(appendPlain(nil, name)) == 1 {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// plainName is what needs no quotation marks, unless it can be taken apart as a time.
var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_/.-]*[A-Za-z0-9]$|^[A-Za-z]$|^[a-z][a-z0-9.-]*\[[a-z0-9]+\]$`)
