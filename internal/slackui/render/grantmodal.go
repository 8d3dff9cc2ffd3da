package render

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent/policy"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// The callback ids of the modals that approve; the private metadata of both is the
// approval's Ref.
const (
	CallbackGrant   = "grant"
	CallbackConfirm = "confirm"
)

// The blocks and actions of the inputs in these modals.
const (
	GrantRule  = "rule"
	GrantWhere = "where"
	GrantUntil = "until"
	ConfirmBox = "read"
)

// GrantOffer is a rule that could be made of a decision.
type GrantOffer struct {
	// Pattern is the policy's, as in "Bash(go test *)"; empty for exactly the input
	// that was asked for.
	Pattern string
	// Label names the rule in a few words.
	Label string
	// Sentence says all that it would allow.
	Sentence string
}

// shown is a fingerprint of what the offer says to people.
func (g GrantOffer) shown() string {
	sum := sha256.Sum256([]byte(strconv.Quote(g.Pattern) + strconv.Quote(g.Label) + strconv.Quote(g.Sentence)))
	return hex.EncodeToString(sum[:8])
}

// GrantChoice is what somebody chose in GrantModal.
type GrantChoice struct {
	Offer int // index into the offers
	Scope store.GrantScope
	For   time.Duration

	shown string // the offer's fingerprint
}

// Of returns the offer that was chosen, given the offers as they are made now. It
// is an [*AnswerError] when the one that was shown is no longer the same: nobody
// allows what they did not read.
func (c GrantChoice) Of(offers []GrantOffer) (GrantOffer, error) {
	if c.Offer < 0 || c.Offer >= len(offers) || offers[c.Offer].shown() != c.shown {
		return GrantOffer{}, &AnswerError{"The rules on offer have changed since. Please open “Always allow…” again."}
	}
	return offers[c.Offer], nil
}

// grantTimes are the choices of how long a rule holds.
var grantTimes = []struct {
	value, label string
	d            time.Duration
}{
	{"1h", "1 hour", time.Hour},
	{"8h", "8 hours – until tonight", 8 * time.Hour},
	{"24h", "24 hours", 24 * time.Hour},
	{"7d", "7 days", 7 * 24 * time.Hour},
	{"30d", "30 days", 30 * 24 * time.Hour},
	{"90d", "90 days", 90 * 24 * time.Hour},
}

const grantTimeDefault = 3 // 7 days

// scopeLabel says in plain words where a grant holds.
func scopeLabel(s store.GrantScope, project string) string {
	switch s {
	case store.GrantSession:
		return "This session, until it ends or is cleared"
	case store.GrantThread:
		return "This thread"
	case store.GrantChannel:
		return "This channel"
	case store.GrantProject:
		const before = "The whole project "
		return before + mrkdwn.Clip(mrkdwn.OneLine(mrkdwn.Visible(project)), optionMax-len(before))
	}
	return string(s)
}

// GrantModal is the modal that approves a call and makes a rule of it: which of
// the offers (at most 10 are shown), where, and until when. Without an offer or a
// scope it says that no rule can be made. below starts it with edits below the file's folder,
// in this thread, for an hour.
func GrantModal(a store.Approval, offers []GrantOffer, scopes []store.GrantScope, below bool, o Options) slack.ModalViewRequest {
	v := modal("Always allow", CallbackGrant, Ref(a))
	c := card{a: a, o: o}
	c.asked(600)
	if len(offers) == 0 || len(scopes) == 0 {
		v.Submit, v.Close = nil, plain("Close", modalTitle)
		c.section("This request can't become a rule. Approve or deny it alone.")
		v.Blocks.BlockSet = c.blocks
		return v
	}
	v.Submit = plain("Approve & allow", modalTitle)
	var rules []*slack.OptionBlockObject
	for i, offer := range offers[:min(len(offers), optionsMax)] {
		c.offer(i+1, offer)
		rules = append(rules, slack.NewOptionBlockObject(strconv.Itoa(i)+":"+offer.shown(), c.offerLabel(i+1, offer), nil))
	}
	which := slack.NewRadioButtonsBlockElement(GrantRule, rules...)
	which.InitialOption = rules[0]
	var places []*slack.OptionBlockObject
	for _, s := range scopes {
		places = append(places, slack.NewOptionBlockObject(string(s), plain(scopeLabel(s, o.redact(a.Project)), optionMax), nil))
	}
	where := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, GrantWhere, places...)
	where.InitialOption = places[0]
	var times []*slack.OptionBlockObject
	for _, t := range grantTimes {
		times = append(times, slack.NewOptionBlockObject(t.value, plain(t.label, optionMax), nil))
	}
	until := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, GrantUntil, times...)
	until.InitialOption = times[grantTimeDefault]
	if below {
		which.InitialOption = rules[max(0, slices.IndexFunc(offers[:len(rules)], func(g GrantOffer) bool { return strings.HasSuffix(g.Pattern, "/**)") }))]
		where.InitialOption = places[max(0, slices.Index(scopes, store.GrantThread))]
		until.InitialOption = times[0]
	}
	c.add(slack.NewInputBlock(GrantRule, plain("Which rule?", 2000), nil, which))
	c.add(slack.NewInputBlock(GrantWhere, plain("Where does it hold?", 2000), nil, where))
	c.add(slack.NewInputBlock(GrantUntil, plain("For how long?", 2000),
		plain("It is listed in your home tab and with “grants” in its threads; you and the admins can revoke it.", 2000), until))
	v.Blocks.BlockSet = c.blocks
	return v
}

// asked shows what a modal is about: the call, and its input in about most units.
func (c *card) asked(most int) {
	s := c.subjectOf(c.a, objectMax)
	c.section(joinNonEmpty("\n", c.headline(s), c.risks()))
	c.showInput(s, most)
	if w := s.warnings(); w != "" {
		c.section(w)
	}
}

// offer shows a rule as a whole: its number, its pattern, and what it allows.
func (c *card) offer(number int, g GrantOffer) {
	head := "*Rule " + strconv.Itoa(number) + "*"
	pattern := c.o.redact(g.Pattern)
	label := mrkdwn.EscapeWithin(c.o.redact(mrkdwn.OneLine(g.Label)), 300)
	switch {
	case pattern == "":
		c.section(head + " – " + joinNonEmpty(": ", "exactly this input", label))
	case isExactInCode(pattern) && mrkdwn.Width(pattern) <= 500:
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
		c.add(preBlock(c.id(), mrkdwn.Visible(head)))
		if s = s[len(head):]; s == "" {
			return
		}
	}
	c.section("⚠️ … *" + count(runes(s)) + " more characters* do not fit here.")
}

// sentence shows a sentence without markup, so that nothing in it is lost.
func (c *card) sentence(s string) {
	shown := mrkdwn.Visible(s)
	if mrkdwn.Width(shown) > sectionMax {
		c.whole(s, 2)
		return
	}
	b := slack.NewSectionBlock(plain(shown, sectionMax), nil, nil)
	b.BlockID = c.id()
	c.add(b)
}

// isExactInCode reports whether inline code shows s as it is.
func isExactInCode(s string) bool {
	return mrkdwn.Visible(s) == s && mrkdwn.OneLine(s) == s && !strings.Contains(s, "`")
}

// offerLabel is an offer's place among the choices: its number, and the pattern or
// the label where all of it fits.
func (c *card) offerLabel(number int, g GrantOffer) *slack.TextBlockObject {
	text := "Rule " + strconv.Itoa(number)
	pattern, label := c.o.redact(g.Pattern), mrkdwn.OneLine(c.o.redact(g.Label))
	long := text + ": " + label
	switch {
	case pattern == "" && label == "":
		long = text + ": exactly this input"
	case pattern != "":
		if !isExactInCode(pattern) {
			break
		}
		if marked := text + " " + mrkdwn.Code(pattern); mrkdwn.Width(marked) <= optionMax {
			return markup(marked)
		}
	}
	if shown := mrkdwn.Visible(long); label+pattern != "" && mrkdwn.Width(shown) <= optionMax && shown == long && (pattern == "" || label != "") {
		return plain(shown, optionMax)
	}
	if pattern == "" {
		return plain(text+": exactly this input", optionMax)
	}
	return plain(text+", as it is written above", optionMax)
}

// ParseGrant reads GrantModal's values: block id → action id → value. What is
// missing or was not offered gives an [*AnswerError].
func ParseGrant(values map[string]map[string]slack.BlockAction) (GrantChoice, error) {
	var out GrantChoice
	number, shown, ok := strings.Cut(values[GrantRule][GrantRule].SelectedOption.Value, ":")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 || n >= optionsMax {
		return GrantChoice{}, &AnswerError{"Please choose which rule to make."}
	}
	out.Offer, out.shown = n, shown
	switch s := store.GrantScope(values[GrantWhere][GrantWhere].SelectedOption.Value); s {
	case store.GrantSession, store.GrantThread, store.GrantChannel, store.GrantProject:
		out.Scope = s
	default:
		return GrantChoice{}, &AnswerError{"Please choose where the rule holds."}
	}
	for _, t := range grantTimes {
		if t.value == values[GrantUntil][GrantUntil].SelectedOption.Value {
			out.For = t.d
			return out, nil
		}
	}
	return GrantChoice{}, &AnswerError{"Please choose for how long the rule holds."}
}

// ConfirmModal is the second step of approving a dangerous call: all of the input,
// or its first page and how to see the rest, what is risky, why it is asked, and a
// box that must be ticked.
func ConfirmModal(a store.Approval, o Options) slack.ModalViewRequest {
	v := modal("Approve this?", CallbackConfirm, Ref(a))
	v.Submit = plain("Approve", modalTitle)
	c := card{a: a, o: o}
	chunks, deceits := inputChunksOf(a, o)
	s := c.subjectOf(a, objectMax)
	c.section(joinNonEmpty("\n", c.headline(s), c.risks()))
	c.context(c.origin(200), c.grounds(300), c.deciders())
	loses, _ := Dangers(a, o)
	c.section("⚠️ *" + strings.ReplaceAll(mrkdwn.Escape(loses), "*", "") + "*")
	if w := s.warnings(newWarnings(deceits, s.cautions)...); w != "" {
		c.section(w)
	}
	_, _, shown := pageOf(chunks, 0)
	addChunks(c.add, c.id, shown)
	if left := characters(chunks[len(shown):]); left > 0 {
		c.section("⚠️ … *" + count(left) + " more characters* are not on this page. Cancel, read them with *View all* on the card, and come back.")
	}
	box := slack.NewCheckboxGroupsBlockElement(ConfirmBox,
		slack.NewOptionBlockObject("yes", plain("I have read all of it and it may run", optionMax), nil))
	c.add(slack.NewInputBlock(ConfirmBox, plain("Confirm", 2000), nil, box))
	v.Blocks.BlockSet = c.blocks
	return v
}

// Dangers says what will be lost by a call that is dangerous, and the word that confirms it.
func Dangers(a store.Approval, o Options) (loses, word string) {
	input := policy.Call{Tool: a.ToolName, Input: a.Input, Workspace: a.Workspace, Dir: a.Dir, Project: a.Project, Channel: a.ChannelID}
	found := policy.Dangers(input)
	if len(found) == 0 {
		return "The policy calls this dangerous.", "confirm"
	}
	var sentences []string
	for _, d := range found {
		sentences = append(sentences, d.Loses)
	}
	if a.Push != nil && a.Push.Unknown == "" && a.Push.Pull == nil {
		sentences = append(sentences, lostBy(a.Push))
	}
	return mrkdwn.Visible(o.redact(strings.Join(sentences, " "))), found[0].Word
}

// newWarnings are d's warnings but those that are there already.
func newWarnings(d mrkdwn.Deceit, have []string) []string {
	return slices.DeleteFunc(d.Warnings(), func(w string) bool { return slices.Contains(have, w) })
}

// ParseConfirm reports whether the box in ConfirmModal was ticked.
func ParseConfirm(values map[string]map[string]slack.BlockAction) bool {
	return slices.ContainsFunc(values[ConfirmBox][ConfirmBox].SelectedOptions, func(o slack.OptionBlockObject) bool { return o.Value == "yes" })
}
