package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

const grantTimeDefault = 3 // 7 days

// scopeLabel says in plain words where a grant holds.
func scopeLabel(s approvals.GrantScope, project string) string {
	switch s {
	case approvals.GrantSession:
		return "This session, for a day at most"
	case approvals.GrantThread:
		return "This thread"
	case approvals.GrantChannel:
		return "This channel"
	case approvals.GrantProject:
		const before = "The whole project "
		return before + plaintext.Clip(plaintext.OneLine(plaintext.Visible(project)), optionMax-len(before))
	}
	return string(s)
}

// GrantModal is the modal that approves a call and makes a rule of it: which of
// the offers (at most 10 are shown), where, and until when. Without an offer or a
// scope it says that no rule can be made. below starts it with edits below the file's folder,
// in this thread, for an hour.
func GrantModal(a approvals.Approval, offers []view.GrantOffer, scopes []approvals.GrantScope, below bool, o Options) slack.ModalViewRequest {
	v := modal("Always allow", "Approve & allow", view.CallbackGrant, view.Ref(a))
	c := cardOf(a, o)
	c.asked(600)
	if len(offers) == 0 || len(scopes) == 0 {
		v.Submit, v.Close = nil, plain("Close", modalTitle)
		c.section("This request can't become a rule. Approve or deny it alone.")
		v.Blocks.BlockSet = c.blocks
		return v
	}
	var rules []*slack.OptionBlockObject
	for i, offer := range offers[:min(len(offers), view.OptionsMax)] {
		c.offer(i+1, offer)
		rules = append(rules, slack.NewOptionBlockObject(strconv.Itoa(i)+":"+offer.Shown(), c.offerLabel(i+1, offer), nil))
	}
	which := slack.NewRadioButtonsBlockElement(view.GrantRule, rules...)
	which.InitialOption = rules[0]
	var places []*slack.OptionBlockObject
	for _, s := range scopes {
		places = append(places, slack.NewOptionBlockObject(string(s), plain(scopeLabel(s, o.redact(a.Project)), optionMax), nil))
	}
	where := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, view.GrantWhere, places...)
	where.InitialOption = places[0]
	var times []*slack.OptionBlockObject
	for _, t := range view.GrantTimes {
		times = append(times, slack.NewOptionBlockObject(t.Value, plain(t.Label, optionMax), nil))
	}
	until := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, view.GrantUntil, times...)
	until.InitialOption = times[grantTimeDefault]
	if below {
		which.InitialOption = rules[max(0, slices.IndexFunc(offers[:len(rules)], func(g view.GrantOffer) bool { return strings.HasSuffix(g.Pattern, "/**)") }))]
		where.InitialOption = places[max(0, slices.Index(scopes, approvals.GrantThread))]
		until.InitialOption = times[0]
	}
	c.add(slack.NewInputBlock(view.GrantRule, plain("Which rule?", 2000), nil, which))
	c.add(slack.NewInputBlock(view.GrantWhere, plain("Where does it hold?", 2000), nil, where))
	c.add(slack.NewInputBlock(view.GrantUntil, plain("For how long?", 2000),
		plain("It is listed in your home tab and with “grants” in its threads; you and the admins can revoke it.", 2000), until))
	v.Blocks.BlockSet = c.blocks
	return v
}

// asked shows what a modal is about: the call, and its input in about most units.
func (c *card) asked(most int) {
	s := c.subjectOf(c.a, objectMax)
	c.section(joinNonEmpty("\n", c.headline(s), c.risks()))
	c.showInput(s, most)
	c.section(s.warnings())
}

// offer shows a rule as a whole: its number, its pattern, and what it allows.
func (c *card) offer(number int, g view.GrantOffer) {
	head := "*Rule " + strconv.Itoa(number) + "*"
	pattern := c.o.redact(g.Pattern)
	label := mrkdwn.EscapeWithin(c.o.redact(plaintext.OneLine(g.Label)), 300)
	switch {
	case pattern == "":
		c.section(head + " – " + joinNonEmpty(": ", "exactly this input", label))
	case isExactInCode(pattern) && plaintext.Width(pattern) <= 500:
		if label != "" && g.Label != g.Pattern {
			head += " – " + label + ":"
		}
		c.section(head + " " + mrkdwn.Code(pattern))
	default:
		c.section(joinNonEmpty(" – ", head, label) + ", with the pattern:")
		c.whole(pattern, 3)
	}
	if sentence := strings.TrimSpace(c.o.redact(g.Sentence)); sentence != "" {
		c.sentence(sentence)
	}
}

// whole shows a text in blocks of which there are at most most, and counts what
// does not fit.
func (c *card) whole(s string, most int) {
	for range most {
		head := visiblePrefix(s, inputChunk)
		c.add(preBlock(c.id(), plaintext.Visible(head)))
		if s = s[len(head):]; s == "" {
			return
		}
	}
	c.section("⚠️ … *" + count(runes(s)) + " more characters* do not fit here.")
}

// sentence shows a sentence without markup, so that nothing in it is lost.
func (c *card) sentence(s string) {
	shown := plaintext.Visible(s)
	if plaintext.Width(shown) > sectionMax {
		c.whole(s, 2)
		return
	}
	b := slack.NewSectionBlock(plain(shown, sectionMax), nil, nil)
	b.BlockID = c.id()
	c.add(b)
}

// isExactInCode reports whether inline code shows s as it is.
func isExactInCode(s string) bool {
	return plaintext.Visible(s) == s && plaintext.OneLine(s) == s && !strings.Contains(s, "`")
}

// offerLabel is an offer's place among the choices: its number, and the pattern or
// the label where all of it fits.
func (c *card) offerLabel(number int, g view.GrantOffer) *slack.TextBlockObject {
	text := "Rule " + strconv.Itoa(number)
	pattern, label := c.o.redact(g.Pattern), plaintext.OneLine(c.o.redact(g.Label))
	long := text + ": " + label
	switch {
	case pattern == "" && label == "":
		long = text + ": exactly this input"
	case pattern != "":
		if !isExactInCode(pattern) {
			break
		}
		if marked := text + " " + mrkdwn.Code(pattern); plaintext.Width(marked) <= optionMax {
			return markup(marked)
		}
	}
	if shown := plaintext.Visible(long); label+pattern != "" && plaintext.Width(shown) <= optionMax && shown == long && (pattern == "" || label != "") {
		return plain(shown, optionMax)
	}
	if pattern == "" {
		return plain(text+": exactly this input", optionMax)
	}
	return plain(text+", as it is written above", optionMax)
}

// ConfirmModal is the second step of approving a dangerous call: all of the input,
// or its first page and how to see the rest, what is risky, what speaks against it now,
// why it is asked, and a box that must be ticked.
func ConfirmModal(a approvals.Approval, o Options, facts ...string) slack.ModalViewRequest {
	v := modal("Approve this?", "Approve", view.CallbackConfirm, view.Ref(a))
	c := cardOf(a, o)
	chunks, deceits := inputChunksOf(a, o)
	s := c.subjectOf(a, objectMax)
	c.section(joinNonEmpty("\n", c.headline(s), c.risks()))
	if len(facts) > 0 {
		c.section("⚠️ " + mrkdwn.EscapeWithin(o.redact(strings.Join(facts, "\n⚠️ ")), inputChunk))
	}
	c.context(c.origin(200), c.grounds(300), c.deciders())
	loses, _ := view.Dangers(a, o.redact)
	c.section("⚠️ *" + strings.ReplaceAll(mrkdwn.Escape(loses), "*", "") + "*")
	c.section(s.warnings(newWarnings(deceits, s.cautions)...))
	_, _, shown := pageOf(chunks, 0)
	addChunks(c.add, c.id, shown)
	if left := characters(chunks[len(shown):]); left > 0 {
		c.section("⚠️ … *" + count(left) + " more characters* are not on this page. Cancel, read them with *View all* on the card, and come back.")
	}
	box := slack.NewCheckboxGroupsBlockElement(view.ConfirmBox,
		slack.NewOptionBlockObject("yes", plain("I have read all of it and it may run", optionMax), nil))
	c.add(slack.NewInputBlock(view.ConfirmBox, plain("Confirm", 2000), nil, box))
	v.Blocks.BlockSet = c.blocks
	return v
}

// newWarnings are d's warnings but those that are there already.
func newWarnings(d plaintext.Deceit, have []string) []string {
	return slices.DeleteFunc(d.Warnings(), func(w string) bool { return slices.Contains(have, w) })
}
