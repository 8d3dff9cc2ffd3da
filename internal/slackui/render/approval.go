package render

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/redact"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

// preBlock shows text in a block that nothing in it can break out of.
func preBlock(id, text string) *slack.RichTextBlock {
	return slack.NewRichTextBlock(id, preElement(text))
}

func preElement(text string) *slack.RichTextPreformatted {
	text = cmp.Or(text, " ") // Slack refuses an empty element
	return &slack.RichTextPreformatted{
		Type:     slack.RTEPreformatted,
		Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(text, nil)},
	}
}

// subject is a tool call as its card or row shows it.
type subject struct {
	request
	name  string // the object, as it is shown
	raw   string // what matters most, redacted
	whole string // raw with everything in it made visible
	ago   string // what became of the like of it before a restart, in mrkdwn; or empty
	told  bool   // the name is all of raw
}

const objectMax = 300

// toldMax is how long a command is, in units, that stands in a headline alone.
const toldMax = 70

// forcePush is a command that does nothing but replace a branch.
var forcePush = regexp.MustCompile(`^git push (?:--force|-f|--force-with-lease) ([\w./-]+) ([\w./-]+)$`)

// subjectOf takes a tool call apart, its object in at most most units.
func (c *asking) subjectOf(a approvals.Approval, most int) subject {
	s := subject{request: describe(a), ago: ago(a)}
	s.raw = c.o.redact(s.pre)
	whole, found := plaintext.Reveal(s.raw)
	s.whole = whole
	name := c.o.redact(s.object)
	_, inName := plaintext.Reveal(name)
	if n := runes(name); plaintext.Width(name) > most {
		s.cautions = append(s.cautions, "The name is "+count(n)+" characters long: *View all* shows it.")
	}
	s.name = cmp.Or(mrkdwn.CodeWithin(plaintext.RevealBlanks(plaintext.Clip(name, most)), most), "a tool")
	switch pushed := forcePush.FindStringSubmatch(s.raw); {
	case s.raw != "" && isExactInCode(s.raw) && plaintext.Width(s.raw) <= toldMax && (s.pre == s.object || s.command) && pushed == nil:
		s.name, s.told = mrkdwn.Code(s.raw), true
	case !s.command:
	case pushed != nil:
		s.verb, s.name = "force-push", mrkdwn.Code(pushed[2])+" to "+mrkdwn.Code(pushed[1])
	default:
		s.name = "this command"
	}
	s.cautions = append(s.cautions, (found | inName).Warnings()...)
	if s.raw != s.pre {
		s.cautions = append(s.cautions, "Secrets in it are shown as "+redact.Mark+".")
	}
	return s
}

// warnings are lines about what is risky in a call, with more of them.
func (s subject) warnings(more ...string) string {
	lines := escapeAll(slices.Concat(s.cautions, more))
	if s.ago != "" {
		lines = append(lines, s.ago)
	}
	if len(lines) == 0 {
		return ""
	}
	return "⚠️ " + strings.Join(lines, "\n⚠️ ")
}

// ago says what became of the like of a call before a restart, as far as it is known: whoever
// approves it may have it done twice.
func ago(a approvals.Approval) string {
	b := a.Before
	if b == nil || a.Kind != approvals.Tool || isHost(a) {
		return ""
	}
	changed := ""
	if b.Changed {
		changed = ", as an approver had changed it"
	}
	switch {
	case b.Ended == nil:
		return "*It was approved before the restart*, " + dateTime(b.Approved) + changed + ". Whether it ran to its end is not known."
	case b.Failed:
		return "*It was approved before the restart*, " + dateTime(b.Approved) + changed + ", and came back with an error."
	case view.FieldsOf(a.Input).Flag("run_in_background"):
		return "*It was started before the restart*, in the background, " + dateTime(*b.Ended) + changed + ". How far it came is not known."
	}
	return "*It ran before the restart*, to its end and without an error, " + dateTime(*b.Ended) + changed + "."
}

// facts are those about a call, what it touches in about most units, and the fields that are
// not shown apart.
func (c *asking) facts(s subject, most int) []string {
	facts := escapeAll(s.facts)
	if touches := c.touches(most); touches != "" {
		facts = append(facts, touches)
	}
	if _, why := view.Editable(c.a, c.o.redact); why != "" {
		facts = append(facts, why)
	}
	for _, f := range s.rest {
		facts = append(facts, mrkdwn.Code(fieldLine(f, c.o)))
	}
	return facts
}

// risks are the marks that the policy put on a call.
func (c *asking) risks() string {
	var marks []string
	for _, r := range c.a.Risks {
		marks = append(marks, mrkdwn.EscapeWithin(c.o.redact(plaintext.OneLine(r)), 50))
	}
	if len(marks) == 0 {
		return ""
	}
	return "⚠️ *" + strings.ReplaceAll(strings.Join(firstOf(marks, 8, "and "), " · "), "*", "") + "*"
}

func (c *card) tool() {
	s := c.subjectOf(c.a, objectMax)
	c.section(joinNonEmpty("\n", c.headline(s), c.risks()))
	c.pushed()
	if !s.told || c.pushHeadline() != "" {
		c.showInput(s, min(preMax, c.room))
	}
	c.changed(min(1500, c.room/2))
	c.retold(min(1200, c.room/3))
	c.section(s.warnings())
	c.context(c.why(s, 300), joinFacts(c.facts(s, 1500), 1200))
	c.provenance()
	buttons := c.toolButtons("")
	if c.a.Kind == approvals.Question {
		buttons = buttons[1:] // there is nothing to answer with
	}
	c.end(c.asks(s)+c.excerpt(s, excerptMax)+s.inShort(), buttons)
}

// headline is what a call does, and where, in words.
func (c *asking) headline(s subject) string {
	if push := c.pushHeadline(); push != "" {
		return push
	}
	verb, rest := s.verb, s.name
	if c.a.Project != "" && !isHost(c.a) {
		rest += " in " + mrkdwn.EscapeWithin(c.o.redact(c.a.Project), 80)
	}
	return "*" + capital(verb) + "* " + rest
}

// asks begins a notification: who asks for what, for which task and why.
func (c *asking) asks(s subject) string {
	who := ""
	if c.a.RequestedBy != "" && c.o.Calling != nil {
		who = joinNonEmpty(": ", mrkdwn.EscapeWithin(c.o.Calling.Name(c.a.RequestedBy), 80), c.task())
	}
	return joinNonEmpty("\n", strings.ReplaceAll(c.headline(s), "*", ""), c.risks(), joinNonEmpty(" · ", who, c.reason(s, 160)))
}

// why says for which task a call is, and the model's own reason, or who asks for a host, in
// about most units.
func (c *asking) why(s subject, most int) string {
	task := ""
	if !c.isCopy() && c.a.RequestedBy != "" { // else where has it
		if task = "asked by " + c.person(c.a.RequestedBy); c.task() != "" {
			task = c.person(c.a.RequestedBy) + ": " + c.task()
		}
	}
	return joinNonEmpty(" · ", task, c.reason(s, most))
}

// reason is the model's own: its description of the call, or the last sentences that it said
// before.
func (c *asking) reason(s subject, most int) string {
	said := s.why
	switch {
	case isHost(c.a):
		return c.asker(most)
	case said == "":
		said = lastSentences(plaintext.OneLine(c.a.Said), min(most, leadMax))
	}
	if said = strings.TrimSpace(c.o.redact(plaintext.OneLine(said))); said == "" {
		return ""
	}
	return "Claude: “" + mrkdwn.EscapeWithin(strings.NewReplacer("**", "", "`", "").Replace(said), most) + "”"
}

// lastSentences are the last whole sentences of a text that fit into most units, one at least.
func lastSentences(s string, most int) string {
	out := ""
	for _, end := range slices.Backward(append([][]int{{0, 0}}, sentenceEnd.FindAllStringIndex(s, -1)...)) {
		tail := strings.TrimSpace(s[end[1]:])
		if out != "" && plaintext.Width(tail) > most {
			break
		}
		out = tail
	}
	return out
}

// inShort is ago's first words, on a line of their own.
func (s subject) inShort() string {
	_, words, _ := strings.Cut(s.ago, "*")
	words, _, ok := strings.Cut(words, "*")
	if !ok {
		return ""
	}
	return "\n" + words + "."
}

// excerpt is the beginning of a call's input for a notification, on lines of its
// own.
func (c *asking) excerpt(s subject, most int) string {
	if s.raw == "" || s.told { // the headline has it
		return ""
	}
	shown := s.raw
	if plaintext.Width(s.whole) > most {
		shown = visiblePrefix(s.raw, most)
	}
	text := "\n" + mrkdwn.Escape(plaintext.Visible(shown))
	if left := runes(s.raw) - runes(shown); left > 0 {
		text = mrkdwn.ClipEscaped(text, most+most/2) + "\n… " + count(left) + " more characters are not shown here."
	}
	return text
}

// joinFacts puts facts on one line of about most units, and says how many do not
// fit.
func joinFacts(facts []string, most int) string {
	var b strings.Builder
	used := 0
	for i, f := range facts {
		if used += plaintext.Width(f) + 3; used > most {
			more := plural(len(facts)-i, "more field", "more fields") + ": *View all* shows " + oneOrMany(len(facts)-i, "it", "them")
			return joinNonEmpty(" · and ", b.String(), more)
		}
		if i > 0 {
			b.WriteString(" · ")
		}
		b.WriteString(f)
	}
	return b.String()
}

// showInput shows what matters of an input, whole if it fits into room units, else
// both of its ends and how much lies between.
func (c *card) showInput(s subject, room int) {
	if plaintext.Width(s.whole) <= room {
		c.add(preBlock(c.id(), s.whole))
		return
	}
	head, tail := visiblePrefix(s.raw, room*2/3), visibleSuffix(s.raw, room/4)
	left := runes(s.raw) - runes(head) - runes(tail)
	c.add(slack.NewRichTextBlock(c.id(),
		preElement(plaintext.Visible(head)),
		slack.NewRichTextSection(
			slack.NewRichTextSectionTextElement("⚠️ … ", nil),
			slack.NewRichTextSectionTextElement(count(left)+" more characters", &slack.RichTextSectionTextStyle{Bold: true}),
			slack.NewRichTextSectionTextElement(" are left out here: ", nil),
			slack.NewRichTextSectionTextElement("View all", &slack.RichTextSectionTextStyle{Bold: true}),
			slack.NewRichTextSectionTextElement(" shows them.", nil)),
		preElement(plaintext.Visible(tail))))
}

// visiblePrefix is a beginning of s that visible shows in n units, with room for nine of
// each character that is made visible.
func visiblePrefix(s string, n int) string {
	units, plain := 0, 0
	for _, r := range s {
		own, shown := visibleUnits(r)
		if units += shown; units > n {
			break
		}
		plain += own
	}
	return plaintext.Prefix(s, plain)
}

// visibleSuffix is visiblePrefix for the end.
func visibleSuffix(s string, n int) string {
	at := len(s)
	for units := 0; at > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:at])
		_, shown := visibleUnits(r)
		if units += shown; units > n {
			break
		}
		at -= size
	}
	return s[at:]
}

// visibleUnits are the units of a character, and those that visible shows it in, at most.
func visibleUnits(r rune) (own, shown int) {
	own = 1
	if r > 0xffff {
		own = 2
	}
	if plaintext.Deceives(r) && r != '\n' && r != '\t' || r == utf8.RuneError {
		return own, own + 9
	}
	return own, own
}

// end closes the card with its buttons. text is what a notification says.
func (c *card) end(text string, buttons []slack.BlockElement) {
	c.actions(buttons)
	hint := "\n" + c.whoDecides() + " decides with the buttons, or replies “" + approveWords(c.a) + "” or “deny " + view.Code(c.a) + "”."
	if c.a.Kind == approvals.Question {
		hint = "\n" + c.whoDecides() + " answers with the buttons, or replies “deny " + view.Code(c.a) + "” to skip."
	}
	if c.isCopy() {
		hint = "\nDecide with the buttons."
	}
	c.text = mrkdwn.ClipEscaped(text, fallbackMax-200) + hint
}
