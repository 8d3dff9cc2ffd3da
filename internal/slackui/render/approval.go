package render

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"deckhand/internal/store"
)

// The action ids of our buttons and inputs. A button's value is the approval's id,
// or for Stop the turn's id in decimal.
const (
	ActionApprove     = "approve"
	ActionDeny        = "deny"
	ActionDenyReason  = "deny_reason"
	ActionViewInput   = "view_input"
	ActionViewPage    = "view_page" // value: see ParseInputPage
	ActionPick        = "pick"
	ActionAnswer      = "answer"
	ActionAnswerOther = "answer_other"
	ActionOther       = "other"
	ActionStop        = "stop"
)

// Code is the short code by which an approval is named in a reply, as in
// "approve 7K2QX".
func Code(a store.Approval) string {
	return strings.ToUpper(a.ID[:min(5, len(a.ID))])
}

// Approval renders an approval's card: with buttons while it is pending, and as
// it ended afterwards.
func Approval(a store.Approval, o Options) Page {
	c := card{a: a, o: o}
	switch a.Kind {
	case store.ApprovalQuestion:
		c.question()
	case store.ApprovalPlan:
		c.plan()
	default:
		c.tool()
	}
	return Page{Text: clipEscaped(c.text, fallbackMax), Blocks: c.blocks}
}

// card collects a card's blocks.
type card struct {
	a      store.Approval
	o      Options
	blocks []slack.Block
	text   string
}

func (c *card) pending() bool { return c.a.Status == store.ApprovalPending }

// id is a new block id. It changes with the status, so that clients do not keep
// anything of the old card.
func (c *card) id() string {
	return clip(c.a.ID, 200) + ":" + string(c.a.Status) + ":" + strconv.Itoa(len(c.blocks))
}

func (c *card) section(text string) { c.blocks = append(c.blocks, section(c.id(), text)) }

func (c *card) context(text string) {
	if text != "" {
		c.blocks = append(c.blocks, contextBlock(c.id(), text))
	}
}

// pre shows text in a block that nothing in it can break out of.
func (c *card) pre(text string) {
	c.blocks = append(c.blocks, preBlock(c.id(), text))
}

func preBlock(id, text string) *slack.RichTextBlock {
	if text == "" {
		text = " " // Slack refuses an empty element
	}
	return slack.NewRichTextBlock(id, &slack.RichTextPreformatted{
		Type:     slack.RTEPreformatted,
		Elements: []slack.RichTextSectionElement{slack.NewRichTextSectionTextElement(text, nil)},
	})
}

func (c *card) tool() {
	r := describe(c.a)
	const objectMax = 300
	name := c.o.redact(r.object)
	if n := utf8.RuneCountInString(name); width(name) > objectMax {
		r.cautions = append(r.cautions, "The name is "+count(n)+" characters long: *View all* shows it.")
		name = clip(name, objectMax)
	}
	object := code(exactBlanks(name))
	if object == "" {
		object = "a tool"
	}
	headline := r.verb + " " + object
	if r.tool != "" {
		headline += " (" + code(r.tool) + ")"
	}
	c.section("*Deckhand asks to " + r.verb + "* " + strings.TrimPrefix(headline, r.verb+" "))

	raw := c.o.redact(r.pre)
	_, found := visible(name)
	found |= c.showInput(raw)
	cautions := append(r.cautions, found.warnings()...)
	if raw != r.pre {
		cautions = append(cautions, "Secrets in it are shown as "+redacted+".")
	}
	if len(cautions) > 0 {
		c.section("⚠️ " + strings.Join(escapeAll(cautions), "\n⚠️ "))
	}
	if r.why != "" {
		c.context("The model says: “" + escape(clip(visibleText(c.o.redact(oneLine(r.why))), 400)) + "”")
	}
	facts := escapeAll(r.facts)
	for _, f := range r.rest {
		facts = append(facts, code(c.o.redact(f)))
	}
	c.context(joinFacts(facts))
	c.provenance()
	buttons := []slack.BlockElement{
		button(ActionApprove, c.a.ID, "Approve", slack.StylePrimary),
		button(ActionDeny, c.a.ID, "Deny", slack.StyleDanger),
		button(ActionDenyReason, c.a.ID, "Deny with reason…", ""),
		button(ActionViewInput, c.a.ID, "View all", ""),
	}
	if c.a.Kind == store.ApprovalQuestion {
		buttons = buttons[1:] // there is nothing to answer with
	}
	shown := raw
	if width(visibleText(raw)) > excerptMax {
		shown = visiblePrefix(raw, excerptMax)
	}
	text := "Deckhand asks to " + headline + "\n" + escape(visibleText(shown))
	if left := utf8.RuneCountInString(raw) - utf8.RuneCountInString(shown); left > 0 {
		text = clipEscaped(text, fallbackMax-300) + "\n… " + count(left) + " more characters are not shown here."
	}
	c.end(buttons, text)
}

// exactBlanks shows the blanks in a name that one line of code would not: line
// feeds, tabs, several in a row, and those at its ends.
func exactBlanks(s string) string {
	if !strings.ContainsAny(s, "\n\t") && !strings.Contains(s, "  ") && strings.TrimSpace(s) == s {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if r == '\n' || r == '\t' || r == ' ' && (i == 0 || i == len(s)-1 || s[i-1] == ' ') {
			writeCodePoint(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// joinFacts puts facts on one line, and says how many do not fit.
func joinFacts(facts []string) string {
	var b strings.Builder
	for i, f := range facts {
		if b.Len()+len(f) > contextMax-100 {
			return b.String() + " · and " + plural(len(facts)-i, "more field", "more fields") + ": *View all* shows them"
		}
		if i > 0 {
			b.WriteString(" · ")
		}
		b.WriteString(f)
	}
	return b.String()
}

// showInput shows what matters of an input, whole if it fits, else both of its
// ends and how much lies between. It returns what it found in the whole of it.
func (c *card) showInput(raw string) deceit {
	whole, found := visible(raw)
	if width(whole) <= preMax {
		c.pre(whole)
		return found
	}
	head, tail := visiblePrefix(raw, preHead), visibleSuffix(raw, preTail)
	left := utf8.RuneCountInString(raw) - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
	c.pre(visibleText(head))
	c.section("⚠️ … *" + count(left) + " more characters* are left out here: *View all* shows them.")
	c.pre(visibleText(tail))
	return found
}

// visiblePrefix is the longest beginning of s that visible shows in n units,
// within a factor of two when s has much to make visible.
func visiblePrefix(s string, n int) string {
	for most := n; ; most /= 2 {
		if head := prefix(s, most); width(visibleText(head)) <= n || most < 16 {
			return head
		}
	}
}

// visibleSuffix is visiblePrefix for the end.
func visibleSuffix(s string, n int) string {
	at := len(s)
	for units := 0; at > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:at])
		units++
		if r > 0xffff {
			units++
		}
		if deceives(r) && r != '\n' && r != '\t' || r == utf8.RuneError {
			units += 9
		}
		if units > n {
			break
		}
		at -= size
	}
	return s[at:]
}

// provenance says who asked, where, and why it is asked.
func (c *card) provenance() {
	var parts []string
	if c.a.RequestedBy != "" {
		parts = append(parts, "asked by "+mention(c.a.RequestedBy))
	}
	if c.a.Workspace != "" {
		parts = append(parts, "in "+code(clip(c.a.Workspace, 200)))
	}
	if c.a.DecisionReason != "" {
		parts = append(parts, escape(clip(visibleText(c.o.redact(oneLine(c.a.DecisionReason))), 300)))
	}
	if c.a.Rule != "" {
		parts = append(parts, "rule "+code(clip(c.o.redact(c.a.Rule), 200)))
	}
	switch {
	case !c.pending():
	case c.a.Kind == store.ApprovalQuestion:
		parts = append(parts, "or reply "+code("deny "+Code(c.a))+" to skip")
	default:
		parts = append(parts, "or reply "+code("approve "+Code(c.a)))
	}
	c.context(strings.Join(parts, " · "))
}

// end closes the card: with its buttons, or with how it ended. text is what a
// notification says while it is pending.
func (c *card) end(buttons []slack.BlockElement, text string) {
	if c.pending() {
		c.blocks = append(c.blocks, slack.NewActionBlock(c.id(), buttons...))
		hint := "\nDecide with the buttons, or reply “approve " + Code(c.a) + "” or “deny " + Code(c.a) + "”."
		if c.a.Kind == store.ApprovalQuestion {
			hint = "\nAnswer with the buttons, or reply “deny " + Code(c.a) + "” to skip."
		}
		c.text = clipEscaped(text, fallbackMax-200) + hint
		return
	}
	c.section(c.ending())
	what := c.a.ToolName
	switch c.a.Kind {
	case store.ApprovalQuestion:
		what = "a question"
	case store.ApprovalPlan:
		what = "a plan"
	}
	c.text = escape(statusWord(c.a)) + ": " + code(what)
}

// statusWord is how an approval ended, in a word.
func statusWord(a store.Approval) string {
	switch a.Status {
	case store.ApprovalAllowed:
		if a.Kind == store.ApprovalQuestion {
			return "Answered"
		}
		return "Approved"
	case store.ApprovalDenied:
		if a.Kind == store.ApprovalQuestion {
			return "Skipped"
		}
		return "Denied"
	case store.ApprovalExpired:
		return "Expired"
	case store.ApprovalCancelled:
		return "Cancelled"
	case store.ApprovalInterrupted:
		return "Interrupted"
	case store.ApprovalPending:
		return "Pending"
	}
	return string(a.Status)
}

// ending says in a sentence how the approval ended.
func (c *card) ending() string {
	a := c.a
	ran := "The tool did not run."
	switch a.Kind {
	case store.ApprovalQuestion:
		ran = "Nothing was answered."
	case store.ApprovalPlan:
		ran = "Work on it did not start."
	case store.ApprovalTool:
	}
	at := ""
	if !a.DecidedAt.IsZero() {
		at = " · " + clockTime(a.DecidedAt)
	}
	word := "*" + statusWord(a) + "*"
	switch a.Status {
	case store.ApprovalAllowed:
		return "✅ " + word + c.decider() + at + c.reason()
	case store.ApprovalDenied:
		return "🚫 " + word + c.decider() + at + c.reason()
	case store.ApprovalExpired:
		return "⌛ " + word + at + ": nobody decided in time. " + ran + c.reason()
	case store.ApprovalCancelled:
		return "⏹️ " + word + at + ": the turn was stopped. " + ran + c.reason()
	case store.ApprovalInterrupted:
		return "🔌 " + word + at + ": the session ended before anybody decided. " + ran + c.reason()
	case store.ApprovalPending:
	}
	return "❔ " + escape(statusWord(a)) + at + c.reason()
}

func (c *card) decider() string {
	by := " by " + mention(c.a.DecidedBy)
	switch c.a.DecidedBy {
	case "":
		return ""
	case "rule":
		by = " by a rule"
		if c.a.Rule != "" {
			by += " " + code(clip(c.a.Rule, 200))
		}
	}
	if c.a.DecidedVia == "command" {
		by += " with a reply"
	}
	return by
}

func (c *card) reason() string {
	if c.a.Reason == "" {
		return ""
	}
	reason := escape(clip(strings.TrimSpace(c.o.redact(c.a.Reason)), 1500))
	return "\n> " + strings.ReplaceAll(reason, "\n", "\n> ")
}

func button(action, value, label string, style slack.Style) *slack.ButtonBlockElement {
	b := slack.NewButtonBlockElement(action, value, plain(label, buttonMax))
	b.Style = style
	return b
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func escapeAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = escape(s)
	}
	return out
}
