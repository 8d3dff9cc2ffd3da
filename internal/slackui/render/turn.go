package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// turnView is a turn, or a part of one, being rendered.
type turnView struct {
	turnWords
	card     *ask.Card // as whose message the part stands; nil for none
	segments []segment
	number   int // of the part's first page
	most     int // pages that it has at most
}

// turnWords are what is said of a turn, in words and lines.
type turnWords struct {
	t         agent.TurnView
	o         Options
	workspace string
	ended     bool
	asked     map[string]ask.Request    // of the turn, by their calls
	before    int                       // how many tables of the parts before are too big
	tables    []mrkdwn.BigTable         // of this one that are, in their order
	children  map[string][]*claude.Item // of a subagent, by the item that started it
	idle      bool                      // people or the policy let no tool use of the turn run
}

// Turn renders a turn into the messages that show it, in order: none while there
// is nothing to show. A turn's parts begin at its cards: each goes on in the message of its
// card once all on it is decided, and until then the card stands there, which is not among the
// pages. What stands before the first card has a message of its own if it was posted already or
// says more than a line, and belongs to the card's message if not. A closing answer is a part, too. So
// the thread reads in the order of what happened. A part has at most four pages: each but the
// last is full, and its text stays as it is in all later renderings of the turn.
// Where files can be attached (Options.Files), a text that one page does not hold is shown by
// its beginning and its last paragraph. A page that leaves text out says how much, and is
// marked Cut: [Files] are what has it.
func Turn(t agent.TurnView, o Options) []Page {
	var pages []Page
	parts := partsOf(t, o)
	for i, v := range parts {
		pages = append(pages, v.pages(i < len(parts)-1)...)
	}
	return pages
}

// pagesPerPart is more than a part of a turn can have.
const pagesPerPart = 16

// partsOf cuts a turn at its cards, and at its closing answer.
func partsOf(t agent.TurnView, o Options) []*turnView {
	v := &turnView{turnWords: turnWords{t: t, o: o, workspace: cmp.Or(o.Workspace, t.Workspace), ended: t.State.Ended(), asked: map[string]ask.Request{}}}
	cards := ownCards(t, o)
	part := map[string]int{} // of calls on cards
	for _, c := range t.Cards {
		for _, r := range c.Requests {
			if r.Host == "" {
				v.asked[r.ToolUseID] = r
			}
		}
	}
	v.idle = v.nothingRan()
	for i, c := range cards {
		for _, r := range c.Requests {
			if r.Host == "" {
				part[r.ToolUseID] = i + 1
			}
		}
	}
	items := make([][]claude.Item, len(cards)+2) // the last for the closing answer
	if items[0] = t.Content.Items; len(cards) > 0 || t.Closing > 0 {
		items[0] = nil
		n := 0
		for i, it := range t.Content.Items {
			for n < len(cards) && cards[n].From <= i {
				n++
			}
			at := n
			if t.Closing > 0 && i >= t.Closing {
				at = len(cards) + 1
			}
			if it.Tool != nil {
				if of, ok := part[it.Tool.ID]; ok {
					at = of
				}
			}
			items[at] = append(items[at], it)
		}
	}
	var parts []*turnView
	for n, list := range items {
		p := *v
		p.number, p.most, p.before = n*pagesPerPart, pagesMax, v.before
		if n > 0 && n <= len(cards) {
			p.card = &cards[n-1]
		}
		if n > 0 && n < len(cards) && cards[n].Meanwhile {
			p.most = 1 // another would stand below the next card
		}
		p.t.Content.Items = list
		p.segments = p.read(list)
		switch {
		case n == 0 && len(cards) > 0 && !o.Posted && (cards[0].Earlier || !p.speaks() || p.leads()):
			items[1] = slices.Concat(list, items[1])
			continue
		case len(p.segments) == 0 && p.card == nil && (n > 0 || len(cards) > 0):
			continue
		}
		parts, v.before = append(parts, &p), v.before+len(p.tables)
	}
	return parts
}

// ownCards are the cards in whose messages a turn goes on: those that it has posted, and the
// first, if an earlier attempt posted that and nothing of this turn is posted yet.
func ownCards(t agent.TurnView, o Options) (own []ask.Card) {
	for i, c := range t.Cards {
		if !c.Earlier || i == 0 && !o.Posted {
			own = append(own, c)
		}
	}
	return own
}

// GoesOn reports whether a turn goes on in a card's message, now that all on it is decided.
func GoesOn(t agent.TurnView, o Options, cardID string) bool {
	return slices.ContainsFunc(ownCards(t, o), func(c ask.Card) bool { return c.ID == cardID && !c.Open() })
}

// pages renders a part of a turn; the turn is continued in a later one or not.
func (v *turnView) pages(continued bool) []Page {
	switch {
	case v.card != nil && v.card.Open(), v.card == nil && !continued && v.waitsToPost():
		return nil
	}
	sheets, cut := v.layout(v.segments)
	pages := make([]Page, len(sheets))
	for i, s := range sheets {
		last := i == len(sheets)-1
		pages[i] = v.page(s, i, last && !continued, cut && last)
		pages[i].Number = v.number + i
		if v.card != nil && i == 0 {
			pages[i].CardID = v.card.ID
		} else if last && !continued && !cut && (v.ended || !v.hasNews()) { // why nothing goes on stands below, and not for long
			pages[i].Stream = v.stream(s, pages[i].Number)
		}
		if i == 0 && !continued && v.ended && v.t.Closing > 0 && v.o.Call != "" {
			pages[i] = v.call(pages[i])
		}
	}
	return pages
}

// segment is a piece of a turn in its order: text, a run of tools, or a line of ours.
type segment struct {
	text string // cleaned markdown
	run  *run
	line string // mrkdwn
	open bool   // the text is still being written
	fold bool   // the line stands for what is left out
}

func (s segment) cost() int {
	switch {
	case s.run != nil:
		return s.run.cost()
	case s.line != "":
		return plaintext.Width(s.line)
	}
	return plaintext.Width(s.text)
}

// read puts items in order. What subagents do stands in the line of
// the call that started them.
func (v *turnView) read(items []claude.Item) []segment {
	out := make([]segment, 0, len(items))
	if v.card != nil {
		out = append(out, v.requests(items)...)
	}
	var current *run
	var parents map[string]bool
	for i := range items {
		if it := &items[i]; it.Tool != nil && view.Tools[it.Tool.Name].Agent {
			if parents == nil {
				parents = map[string]bool{}
			}
			parents[it.ID] = true
		}
	}
	for i := range items {
		it := &items[i]
		asked := it.Tool != nil && v.asked[it.Tool.ID].Status != ""
		if it.ParentID != "" && parents[it.ParentID] && !asked {
			if it.Tool != nil {
				if v.children == nil {
					v.children = map[string][]*claude.Item{}
				}
				v.children[it.ParentID] = append(v.children[it.ParentID], it)
			}
			continue
		}
		if it.Kind == claude.ItemToolUse {
			if it.Tool == nil || claude.ToolKeepsList(it.Tool.Name) {
				continue
			}
			if current == nil || current.asked != asked {
				current = &run{asked: asked}
				out = append(out, segment{run: current})
			}
			current.tools = append(current.tools, it)
			current.agent = current.agent || view.Tools[it.Tool.Name].Agent
			if plan := v.approvedPlan(it.Tool); asked && plan != "" {
				out, current = append(out, segment{text: plan}), nil
			}
			continue
		}
		if it.ParentID != "" {
			continue // a subagent's words, whose call stands in another message
		}
		s := v.words(it)
		if s == (segment{}) {
			continue
		}
		s.open = i == len(items)-1 && v.grows()
		current = nil
		out = append(out, s)
	}
	return out
}

// words renders an item that is no tool call; an empty segment means nothing.
func (v *turnWords) words(it *claude.Item) segment {
	text := it.Text
	if !it.Final && !v.ended {
		text = holdBack(text)
	}
	switch it.Kind {
	case claude.ItemText:
		return segment{text: strings.TrimSpace(mrkdwn.Clean(v.readable(v.o.redact(text), it.Final || v.ended)))}
	case claude.ItemCommandOutput:
		text = strings.Trim(plaintext.Printable(v.o.redact(text)), "\n")
		if text == "" {
			return segment{}
		}
		return segment{text: mrkdwn.Clean(mrkdwn.CodeBlock(text))}
	case claude.ItemImage:
		return segment{line: "🖼️ _an image_"}
	case claude.ItemNotice:
		icon := "ℹ️ "
		if it.Error {
			icon = "⚠️ "
		}
		if text = plaintext.OneLine(plaintext.Visible(v.o.redact(text))); text != "" {
			return segment{line: icon + mrkdwn.Escape(plaintext.Clip(text, 300))}
		}
	}
	return segment{}
}

// hasNews reports whether there is something to say before there is any text: why nothing
// goes on. That work goes on is no news, and that a decision is waited for stands on its
// card.
func (v *turnWords) hasNews() bool { return v.t.Held != "" || v.t.Content.Status != "" }

// page builds the message of one sheet.
func (v *turnView) page(s sheet, n int, last, cut bool) Page {
	blocks := make([]slack.Block, 0, len(s.segments)+5)
	id := func(kind string) string {
		return "turn:" + strconv.FormatInt(v.t.ID, 10) + ":" + strconv.Itoa(n) + ":" + kind + strconv.Itoa(len(blocks))
	}
	if cut {
		sentence := " Ask for the part that you need."
		switch {
		case v.o.Files && v.ended:
			sentence = " They are in the file " + mrkdwn.Code(v.answerName()) + " below, which has all of it."
		case v.o.Files:
			sentence = " All of it comes as a file when the turn ends."
		}
		blocks = append(blocks, contextBlock(id("cut"), s.before+sentence))
	}
	for _, p := range s.segments {
		switch {
		case p.run != nil:
			blocks = append(blocks, contextBlock(id("tools"), v.lines(p.run)))
		case p.line != "":
			blocks = append(blocks, contextBlock(id("note"), p.line))
		default:
			blocks = append(blocks, slack.NewMarkdownBlock("", p.text))
		}
	}
	text, tools := v.told(s, last)
	if !last {
		if text == "" {
			text = "Deckhand took " + plural(tools, "step", "steps") + ", and goes on below."
		}
		return Page{Text: v.excerpt(text, ""), Blocks: blocks, Cut: cut || s.folded}
	}
	if todos := v.todos(); todos != "" {
		blocks = append(blocks, section(id("todos"), todos))
	}
	problem := v.problem()
	if problem != "" {
		blocks = append(blocks, section(id("problem"), problem))
	}
	status := v.status()
	if v.ended || !v.saysItWaits(s) {
		blocks = append(blocks, contextBlock(id("status"), status))
	}
	switch {
	case v.ended && v.t.State == agent.TurnDone && text != "" && problem == "":
		status = "" // a lock screen is for what came out
	case !v.ended && !v.hasNews(): // and not for that work goes on
		status, text = "", v.sentences(text)
		if text == "" {
			status = "Deckhand " + mrkdwn.Escape(Doing(v.t, v.o)) + "."
			if tools > 0 {
				status = strings.TrimSuffix(status, ".") + ": " + plural(tools, "step", "steps") + " so far."
			}
		}
	}
	instead, kind := "", ""
	var buttons []slack.BlockElement
	turn := strconv.FormatInt(v.t.ID, 10)
	switch {
	case !v.ended:
		instead = "To stop it, write " + mrkdwn.Code("stop") + "."
		kind, buttons = "stop", append(buttons, button(view.ActionStop, turn, "Stop", ""))
	case v.t.Continue:
		kind, buttons = "continue", append(buttons, button(view.ActionContinue, turn, "Continue", slack.StylePrimary))
	case v.t.OpensPull:
		kind, buttons = "pull", append(buttons, button(view.ActionOpenPull, turn, "Open pull request", slack.StylePrimary))
	}
	if v.ended && v.t.Committed {
		kind, buttons = cmp.Or(kind, "diff"), append(buttons, button(view.ActionDiff, view.DiffPage{Turn: v.t.ID}.String(), "View diff", ""))
	}
	if v.t.Steps > 0 {
		kind, buttons = cmp.Or(kind, "steps"), append(buttons, stepsButton(v.t.ID))
	}
	if len(buttons) > 0 {
		blocks = append(blocks, slack.NewActionBlock(id(kind), buttons...))
	}
	if b := v.feedback(id("feedback")); b != nil {
		blocks = append(blocks, b)
	}
	return Page{Text: v.excerpt(text, status), Blocks: blocks, Instead: instead, Cut: cut || s.folded}
}

// told is the text of a sheet that its fallback begins with, and how many tools it has: if it
// is the last one, what was said after them.
func (v *turnWords) told(s sheet, last bool) (text string, tools int) {
	for _, p := range s.segments {
		switch {
		case p.run != nil:
			tools += len(p.run.tools)
		case p.line == "" && len(text) < excerptMax:
			text += p.text + "\n\n"
		}
	}
	if !last {
		return text, tools
	}
	final := ""
	for _, p := range slices.Backward(s.segments) {
		if p.run != nil {
			break
		}
		if p.line == "" {
			final = p.text + "\n\n" + final
		}
	}
	return cmp.Or(final, text), tools
}

// call has the first page of a closing answer mention who has left the thread.
func (v *turnWords) call(p Page) Page {
	call := mrkdwn.Mention(v.o.Call) + ", this is done:"
	p.Text = mrkdwn.ClipEscaped(call+" "+p.Text, fallbackMax)
	p.Blocks = slices.Insert(p.Blocks, 0, slack.Block(contextBlock("turn:"+strconv.FormatInt(v.t.ID, 10)+":call", call)))
	return p
}

// problem is why the turn failed, if its text does not say so already: what the provider
// refuses is both.
func (v *turnWords) problem() string {
	if !v.ended || v.t.Problem == "" {
		return ""
	}
	problem := v.o.redact(v.t.Problem)
	for i := range v.t.Content.Items {
		it := &v.t.Content.Items[i]
		if said := strings.TrimSpace(v.o.redact(it.Text)); it.Kind == claude.ItemText && strings.Contains(problem, said) && said != "" && plaintext.Width(said)*2 >= plaintext.Width(problem) {
			return ""
		}
	}
	return mrkdwn.Escape(plaintext.Clip(problem, 1000))
}

// excerptMax is how much of a page's text stands in its fallback.
const excerptMax = 1500

// excerpt is a page in mrkdwn, for notifications and where blocks are not shown.
func (v *turnWords) excerpt(text, status string) string {
	text = strings.TrimSpace(text)
	if plaintext.Width(text) > excerptMax {
		text = plaintext.Prefix(text, excerptMax) + "…"
	}
	out := mrkdwn.Convert(text)
	if strings.HasPrefix(out, "```") {
		out = "This came out:\n" + out // a lock screen shows the first line
	}
	if problem := v.problem(); problem != "" && status != "" {
		out += "\n" + problem
	}
	if status != "" {
		out += "\n" + status
	}
	// Blanks in code come to nothing.
	return cmp.Or(mrkdwn.ClipEscaped(strings.TrimSpace(out), fallbackMax), "Deckhand has something to show here.")
}
