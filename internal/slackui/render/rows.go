package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/redact"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

// CardRows is how many pending requests a card shows with their buttons, at best:
// whoever puts no more into one keeps none of them waiting for room.
const CardRows = 8

const (
	rowObject = 120  // units of a row's object
	rowLeast  = 200  // units of a row's input, at least
	linesText = 3300 // units of what has been decided, next to what has not
	lineBlock = 2800 // units of such lines in one block
)

// row is a request in a card of several.
type row struct {
	a            approvals.Approval
	number       int
	verb, object string // in a few words; the object redacted, not yet cut

	// Of those that are shown with their buttons:

	subject             subject
	headline, footnotes string
	buttons             []slack.BlockElement
	fixed               int // units of the row without its input
}

// rows renders a card of several approvals: a line for each that has ended, and
// for those that are pending a row with buttons, as many as fit.
func (c *card) rows(list []approvals.Approval) Page {
	c.a = list[0] // for what they share, and for block ids
	all := make([]row, len(list))
	var pending []*row
	for i, a := range list {
		all[i] = row{a: a, number: i + 1}
		all[i].verb, all[i].object = c.name(a)
		if a.Status == approvals.Pending {
			pending = append(pending, &all[i])
		}
	}
	c.a = pending[0].a
	shared := c.origin(200)
	for _, r := range pending[:min(len(pending), CardRows)] {
		c.prepare(r)
	}
	lines := c.lines(all, linesText)
	shown, roomy := min(len(pending), CardRows), true
	for {
		c.blocks = nil
		c.drawRows(all, lines, pending[:shown], pending[shown:], shared, roomy)
		switch {
		case c.fits() || shown <= 1 && !roomy:
			return Page{Text: mrkdwn.ClipEscaped(c.rowsText(pending, shown), fallbackMax), Blocks: c.blocks, Instead: c.instead(list), Whom: c.whom(list)}
		case roomy:
			roomy = false
		default:
			shown--
		}
	}
}

// prepare fills a pending row in, all but its input.
func (c *card) prepare(r *row) {
	in := cardOf(r.a, c.o)
	r.subject = in.subjectOf(r.a, rowObject)
	verb, rest := r.subject.verb, r.subject.name
	switch r.a.Kind {
	case approvals.Question:
		if list, _, err := view.Questions(r.a); err == nil && len(list) <= questionsMax {
			verb, rest = "ask", oneOrMany(len(list), "a question", "questions")
			r.subject = in.plainSubject(questionLines(list))
			// The choices of several questions in one message would share their names.
			r.buttons = []slack.BlockElement{button(view.ActionAnswerOther, r.a.ID, "Answer…", slack.StylePrimary)}
		}
		r.buttons = append(r.buttons, button(view.ActionDeny, r.a.ID, "Skip", ""), button(view.ActionViewInput, r.a.ID, "View all", ""))
	case approvals.Plan:
		text, _ := view.FieldOf(r.a.Input, "plan")
		if string(r.a.Input) == "{}" {
			text = planNotShown
		}
		if text != "" {
			verb, rest, r.subject = "begin", "work on a plan", in.plainSubject(text)
		}
		r.buttons = in.planButtons()
	default:
		r.buttons = in.toolButtons("")
	}
	for _, e := range r.buttons {
		if b, ok := e.(*slack.ButtonBlockElement); ok { // each request has the same ones
			b.AccessibilityLabel = strings.TrimSuffix(b.Text.Text, "…") + ", request " + strconv.Itoa(r.number)
		}
	}
	r.headline = joinNonEmpty("\n", "*"+strconv.Itoa(r.number)+" · "+capital(verb)+"* "+rest, in.risks(), r.subject.warnings())
	r.footnotes = joinNonEmpty("\n", in.reason(r.subject, 120), joinFacts(in.facts(r.subject, 300), 300), in.grounds(90),
		joinNonEmpty(" · ", in.deciders(), in.deadline(), in.secondWay()))
	r.fixed = plaintext.Width(r.headline) + plaintext.Width(r.footnotes) + blockWidth(slack.NewActionBlock("", r.buttons...)) + 80
}

// plainSubject is a text as a call without an object.
func (c *asking) plainSubject(text string) subject {
	s := subject{raw: c.o.redact(text)}
	whole, found := plaintext.Reveal(s.raw)
	s.whole, s.cautions = whole, found.Warnings()
	if s.raw != text {
		s.cautions = append(s.cautions, "Secrets in it are shown as "+redact.Mark+".")
	}
	return s
}

func questionLines(list []view.Question) string {
	var lines []string
	for _, q := range list {
		lines = append(lines, q.Question)
		for _, option := range q.Options {
			lines = append(lines, "• "+joinNonEmpty(" – ", option.Label, option.Description))
		}
	}
	return strings.Join(lines, "\n")
}

func capital(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

// drawRows draws the card: with buttons for the pending rows that are shown, and a
// sentence for those that wait. In a roomy one the rows stand apart.
func (c *card) drawRows(list []row, lines []string, shown, wait []*row, shared string, roomy bool) {
	pending := len(shown) + len(wait)
	title := "*Deckhand asks for " + plural(len(list), "thing", "things") + "*: " + count(pending) + " to decide"
	if n := len(list) - pending; n > 0 {
		title += ", " + count(n) + " decided"
	}
	c.where()
	c.section(title)
	c.context(shared)
	last := ""
	if len(wait) > 0 {
		last = waiting(wait)
	}

	together := batch(shown)
	used := plaintext.Width(last) + blocksWidth(together) + blocksWidth(c.blocks)
	for _, l := range lines {
		used += plaintext.Width(l) + 1
	}
	needs := make([]int, len(shown))
	for i, r := range shown {
		used += r.fixed
		needs[i] = plaintext.Width(r.subject.whole)
	}
	room := max(rowLeast, min(preMax, share(messageText-used, needs)))

	var gathered []string
	flush := func() {
		for _, text := range gather(gathered, lineBlock) {
			c.section(text)
		}
		gathered = nil
	}
	next := 0
	for i, r := range list {
		if r.a.Status != approvals.Pending {
			gathered = append(gathered, lines[i])
			continue
		}
		if next == len(shown) {
			continue
		}
		flush()
		c.drawRow(shown[next], room, roomy, together != nil && InBatch(r.a))
		next++
	}
	flush()
	if last != "" {
		c.section(last)
	}
	c.blocks = append(c.blocks, together...)
}

// gather puts lines together to texts of at most most units; one that has more is alone.
func gather(lines []string, most int) (texts []string) {
	for _, line := range lines {
		n := len(texts) - 1
		switch {
		case line == "":
		case n >= 0 && plaintext.Width(texts[n])+1+plaintext.Width(line) <= most:
			texts[n] += "\n" + line
		default:
			texts = append(texts, line)
		}
	}
	return texts
}

// drawRow draws a pending row. One that is decided together with others has its menu alone.
func (c *card) drawRow(r *row, room int, roomy, together bool) {
	in := cardOf(r.a, c.o)
	in.blocks = c.blocks
	if roomy {
		in.add(slack.NewDividerBlock())
	}
	head := section(in.id(), r.headline)
	if together {
		head.Accessory = slack.NewAccessory(r.buttons[len(r.buttons)-1])
	}
	in.add(head)
	if !r.subject.told {
		in.showInput(r.subject, room)
	}
	in.changed(max(rowLeast, room/2))
	in.context(r.footnotes)
	if !together {
		in.actions(r.buttons)
	}
	c.blocks = in.blocks
}

// waiting names the requests that have no row yet.
func waiting(more []*row) string {
	var names []string
	for _, r := range more {
		names = append(names, strconv.Itoa(r.number)+" "+r.brief(40))
	}
	return "… *" + plural(len(more), "more request", "more requests") + "* wait: " + strings.Join(firstOf(names, 8, "and "), ", ") +
		". They appear here, with buttons, as those above are decided."
}

// name says in a few words what is asked for: a verb and an object, which is
// redacted and not yet cut.
func (c *drawing) name(a approvals.Approval) (verb, object string) {
	switch a.Kind {
	case approvals.Question:
		if list, _, err := view.Questions(a); err == nil {
			object = plaintext.OneLine(list[0].Question)
			if more := len(list) - 1; more > 0 {
				object += " (and " + plural(more, "more question", "more questions") + ")"
			}
		}
		return "answer", c.o.redact(object)
	case approvals.Plan:
		return "begin", ""
	}
	r := describe(a)
	if command := strings.TrimSpace(r.pre); r.command && command != "" {
		// On one line, two commands must not read as one.
		return r.verb, strings.ReplaceAll(c.o.redact(command), "\n", " ⏎ ")
	}
	return r.verb, c.o.redact(r.object)
}

// brief names the request in mrkdwn, its object in at most about most units.
func (r *row) brief(most int) string {
	object := mrkdwn.CodeWithin(r.object, most)
	switch {
	case r.a.Kind == approvals.Question:
		if object = "a question"; r.object != "" {
			object = "“" + mrkdwn.EscapeWithin(r.object, most) + "”"
		}
	case r.a.Kind == approvals.Plan:
		object = "work on a plan"
	case object == "":
		object = "a tool"
	}
	return r.verb + " " + object
}

// brief names the card's own request likewise.
func (c *asking) brief(most int) string {
	r := row{a: c.a}
	r.verb, r.object = c.name(c.a)
	return r.brief(most)
}

// lines are a line for each of list that has ended, in order, shorter ones where all of them
// would not fit into room units; "" for the others.
func (c *card) lines(list []row, room int) []string {
	out := make([]string, len(list))
	for _, terse := range []bool{false, true} {
		total := 0
		for i := range list {
			if list[i].a.Status != approvals.Pending {
				out[i] = c.line(&list[i], terse)
				total += plaintext.Width(out[i]) + 1
			}
		}
		if total <= room {
			break
		}
	}
	return out
}

// line says of an ended request what it was and how it ended.
func (c *card) line(r *row, terse bool) string {
	if !terse {
		line := decidedLine(r.a, c.o)
		if r.number > 0 {
			line = "*" + strconv.Itoa(r.number) + "* · " + line
		}
		return line
	}
	head := statusSign(r.a.Status) + " "
	if r.number > 0 {
		head += strconv.Itoa(r.number) + " · "
	}
	return head + capital(r.brief(30)) + " · " + strings.ToLower(mrkdwn.EscapeWithin(statusWord(r.a), 30))
}

// share is the largest part that each of needs may have so that all of them
// together stay within total.
func share(total int, needs []int) int {
	sorted := slices.Sorted(slices.Values(needs))
	for i, need := range sorted {
		if part := total / (len(sorted) - i); need > part {
			return part
		}
		total -= need
	}
	return preMax
}

// rowsText is what a notification says. Only what the card shows has a code to
// decide by.
func (c *card) rowsText(pending []*row, shown int) string {
	hint := "\n" + c.allDecide(pending) + " decides with the buttons, or replies with the words in brackets, or with “deny” and the code."
	if c.isCopy() {
		hint = "\nDecide with the buttons."
	}
	room := fallbackMax - 300
	var text strings.Builder
	text.WriteString("Deckhand asks for " + plural(len(pending), "decision", "decisions") + ":")
	for i, r := range pending {
		line := "\n" + strconv.Itoa(r.number) + " · " + r.brief(200)
		switch {
		case i >= shown:
			line += " (waits)"
		case c.isCopy():
		case r.a.Kind == approvals.Question:
			line += " (" + mrkdwn.Code("deny "+view.Code(r.a)) + " to skip)"
		default:
			line += " (" + mrkdwn.Code(approveWords(r.a)) + ")"
		}
		if room -= plaintext.Width(line); room < 0 {
			text.WriteString("\n… and " + count(len(pending)-i) + " more")
			break
		}
		text.WriteString(line)
	}
	return text.String() + hint
}
