package report

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"deckhand/internal/store/ledger"
)

// word is one word of a question.
type word struct {
	raw string // as it was written, without quotation marks and punctuation
	low string // as the vocabulary has it; empty for a name in quotation marks
}

// low is the i-th word as the vocabulary has it, or empty.
func low(words []word, i int) string {
	if i < 0 || i >= len(words) {
		return ""
	}
	return words[i].low
}

var (
	// entity is a person or a channel as Slack writes it: <@U123|ann>, <#C123|general>.
	entity = regexp.MustCompile(`^<([@#])([A-Z0-9]+)(?:\|[^<>]*)?>$`)
	// token is an entity, a name in quotation marks, of which two in a row are one of the
	// name's, or what stands between blanks.
	token = regexp.MustCompile(`<[@#][A-Z0-9]+(?:\|[^<>]*)?>|"(?:[^"]|"")+"|[“„][^“”"]+[“”"]|«[^»]+»|‘[^’]+’|[^\s,;<]+|<`)

	ordinal   = regexp.MustCompile(`^([0-9]{1,2})(?:st|nd|rd|th)$`)
	plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_/.:@\[\]-]*$`)
)

const (
	punctuation = ".,;:!?…)(*_~`"
	quotes      = `"“”„'‘’«»`
)

// split takes a question apart.
func split(text string) []word {
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.IsControl(r) && !unicode.IsSpace(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text)
	var words []word
	for _, t := range token.FindAllString(text, -1) {
		first, _ := utf8.DecodeRuneInString(t)
		switch name := strings.Trim(t, quotes); {
		case entity.MatchString(t):
			words = append(words, word{raw: t, low: t})
		case strings.ContainsRune(quotes, first) && len(name)+2 <= len(t) && strings.TrimSpace(name) != "" && !strings.ContainsRune("'’", first):
			words = append(words, word{raw: strings.ReplaceAll(name, `""`, `"`)})
		case nouns[low(words, len(words)-1)] != "":
			words = appendWord(words, t)
		default:
			for i, end := range ends(t) {
				if i > 0 {
					words = append(words, word{raw: "to", low: "to"})
				}
				words = appendWord(words, end)
			}
		}
	}
	return words
}

// appendWord adds what stands between blanks, if it is more than marks.
func appendWord(words []word, t string) []word {
	raw := strings.Trim(t, punctuation+quotes)
	if raw == "" {
		return words
	}
	l, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(raw), "’", "'"), "'") // yesterday's, we've
	if m := ordinal.FindStringSubmatch(l); m != nil {
		l = m[1]
	}
	for n, name := range numbers {
		if l == name {
			l = numerals[n]
		}
	}
	return append(words, word{raw: raw, low: l})
}

var (
	numbers  = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve")
	numerals = strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11 12")
)

// ends are the two ends of a range that is written in one: 1-5, Oct–Nov,
// 2026-10-01..2026-10-15. A hyphen is one between two of a kind alone: 2026-10 and
// 2026-Q3 are none. Anything else is one end.
func ends(t string) []string {
	if t == "-" || t == "–" || t == "—" || t == ".." {
		return []string{"", ""}
	}
	for _, dash := range []string{"..", "–", "—", "-"} {
		a, b, ok := strings.Cut(t, dash)
		if !ok {
			continue
		}
		x, y := low(appendWord(nil, a), 0), low(appendWord(nil, b), 0)
		day := func(s string) bool { return dayOnly.MatchString(s) }
		year := yearOnly.MatchString
		time := func(s string) bool { return isNamedTime(s) || day(s) || year(s) || isoDate.MatchString(s) }
		if isNamedTime(x) && (isNamedTime(y) || day(y)) || day(x) && day(y) || year(x) && year(y) || dash != "-" && time(x) && time(y) {
			return []string{a, strings.TrimLeft(b, ".")}
		}
	}
	return []string{t}
}

// isNamedTime: October, Mon, Q3.
func isNamedTime(low string) bool {
	_, weekday := weekdayOf[low]
	return weekday || monthOf[low] != 0 || quarterISO.MatchString(low)
}

// quote writes a name so that split reads it as one.
func quote(name string) string {
	if plainName.MatchString(name) && strings.Trim(name, punctuation) == name {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// nouns are the words before a name.
var nouns = map[string]string{
	"project": "project", "projects": "project", "repo": "project", "repository": "project", "model": "model", "models": "model",
	"team": "team", "user": "user", "users": "user", "person": "user", "channel": "channel", "channels": "channel",
}

// groupings are what costs can be broken down by.
var groupings = groupingNames(map[ledger.CostGroup]string{
	ledger.ByUser:    "user users person persons people member members developer developers spenders",
	ledger.ByChannel: "channel channels",
	ledger.ByProject: "project projects repo repos repository repositories",
	ledger.ByModel:   "model models",
	ledger.ByThread:  "thread threads session sessions conversation conversations",
	ledger.ByDay:     "day days date",
	ledger.ByMonth:   "month months",
	ByTeam:           "team teams department departments",
})

func groupingNames(words map[ledger.CostGroup]string) map[string]ledger.CostGroup {
	names := map[string]ledger.CostGroup{}
	for by, list := range words {
		for name := range strings.FieldsSeq(list) {
			names[name] = by
		}
	}
	return names
}

// oneWord are groupings that need no word before them.
var oneWord = map[string]ledger.CostGroup{
	"daily": ledger.ByDay, "monthly": ledger.ByMonth, "who": ledger.ByUser, "people": ledger.ByUser,
	"users": ledger.ByUser, "spenders": ledger.ByUser, "projects": ledger.ByProject, "repos": ledger.ByProject, "channels": ledger.ByChannel,
	"models": ledger.ByModel, "threads": ledger.ByThread, "sessions": ledger.ByThread, "conversations": ledger.ByThread,
}

var (
	// spendWords are about money that was spent, whatever stands beside them.
	spendWords = wordSet("cost costs costing costed spend spends spent spending spender spenders expense expenses expenditure usage")
	// moneyWords are as often about something else: they need words that say whose or when.
	moneyWords = wordSet(`bill bills billed invoice charge charged charges budget budgets money dollar dollars usd $ euro euros €
		price prices paid pay paying tokens token burn burned burnt expensive cash`)
	// uses are, too, after "how much".
	uses = wordSet("use used using")
	// by stands before a grouping.
	byWords = wordSet("by per each every which what top")
	// fillers may stand anywhere and mean nothing.
	fillers = wordSet(`a an the and also or please just only of in on at during over within for to from is are was were be been being am
		has have had having do does did done doing how much many what whats which whose show give tell list get see let know need want
		can could would like will you your report reports summary overview breakdown split grouped group broken down across
		total totals sum altogether overall so far until now up date as with by per each together
		claude deckhand bot ai agent agents hi hey hello thanks thank most top highest biggest more less amount number figures stats
		currently already why approximately about roughly i me out use used using`)
	// ours are words for the team that ask for nothing special: what the asker may see.
	ours      = wordSet("we our us ours")
	selves    = wordSet("me my mine myself i")
	giving    = wordSet("show give tell get let send") // "me" after these asks for nobody's costs
	asking    = wordSet("can could may should will would let")
	everybody = wordSet("everyone everybody all team anyone anybody company workspace organisation organization org")
	vague     = wordSet("this that it these those left remaining")
	here      = wordSet("thread conversation session chat")
	versus    = wordSet("vs versus compared than against")
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}
