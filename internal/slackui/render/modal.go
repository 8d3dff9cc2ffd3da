package render

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/forges"
)

const (
	inputChunk  = 2800 // units in a block
	inputChunks = 30   // blocks in a view
)

// ApprovalInput is a page of the modal that shows the whole input of an approval:
// every field, every character, secrets excepted. It says where in the input the
// page is, and has buttons to turn pages when there is more than one.
func ApprovalInput(a approvals.Approval, page int, o Options) slack.ModalViewRequest {
	chunks, deceits := inputChunksOf(a, o)
	v := modal("The whole input", "", view.CallbackInput, view.InputPage{ApprovalID: a.ID, Page: page}.String())
	c := cardOf(a, o)
	showPages(&v, chunks, page, pages{
		heading: "*" + mrkdwn.Escape(view.ToolName(a.ToolName)) + "*", of: "in all fields", note: c.allGrounds(a.Terms, 600),
		deceits: deceits, action: view.ActionViewPage, at: func(page int) string { return view.InputPage{ApprovalID: a.ID, Page: page}.String() },
	})
	return v
}

// pages are what a window says around the pieces that it shows.
type pages struct {
	heading, of, note string // in mrkdwn; the note is on the first page
	deceits           plaintext.Deceit
	action            string                // of the buttons that turn pages
	at                func(page int) string // their value
}

// showPages fills a window with a page of pieces, the nearest that there is to the one asked for.
func showPages(v *slack.ModalViewRequest, chunks []chunk, page int, p pages) {
	page, all, shown := pageOf(chunks, page)
	v.PrivateMetadata = p.at(page)
	add := func(b slack.Block) { v.Blocks.BlockSet = append(v.Blocks.BlockSet, b) }
	id := func() string { return "in:" + strconv.Itoa(page) + ":" + strconv.Itoa(len(v.Blocks.BlockSet)) }
	where := "All of it."
	if all > 1 {
		before, here, total := characters(chunks[:page*inputChunks]), characters(shown), characters(chunks)
		where = "Page " + count(page+1) + " of " + count(all) + ": characters " + count(before+1) + "–" + count(before+here) +
			" of " + count(total) + " " + p.of + "; " + count(total-before-here) + " follow."
	}
	add(section(id(), p.heading+" · "+where))
	if p.note != "" && page == 0 {
		add(contextBlock(id(), p.note))
	}
	if w := p.deceits.Warnings(); len(w) > 0 {
		add(section(id(), "⚠️ "+strings.Join(escapeAll(w), "\n⚠️ ")))
	}
	addChunks(add, id, shown)
	turn := func(to int) string {
		if to < 0 || to >= all {
			return ""
		}
		return p.at(to)
	}
	turnPages(add, id(), p.action, "page", turn(page-1), turn(page+1))
}

// TurnDiff is a page of the window that shows what a turn's commits would bring to the forge.
func TurnDiff(turn int64, p *forges.Push, page int, o Options) slack.ModalViewRequest {
	var chunks []chunk
	var found plaintext.Deceit
	files, added, removed := 0, 0, 0
	for _, r := range p.Refs {
		files, added, removed = files+len(r.Files)+r.More, added+r.Added, removed+r.Removed
	}
	for _, part := range pushParts(p) {
		some, d := textChunks("*"+part.label+"*", part.text, o)
		chunks, found = append(chunks, some...), found|d
	}
	heading := plural(files, "file", "files") + ", +" + count(added) + " −" + count(removed)
	if p.Unknown != "" {
		heading = "The diff could not be read"
	}
	v := modal("The diff", "", view.CallbackDiff, "")
	showPages(&v, chunks, page, pages{
		heading: "*" + heading + "*", of: "in all files",
		note: "As it was at the end of the turn, compared with the forge.", deceits: found,
		action: view.ActionDiffPage, at: func(page int) string { return view.DiffPage{Turn: turn, Page: page}.String() },
	})
	return v
}

// pageAt is the value of a button that leads to a page; empty if there is none.
func pageAt(p fmt.Stringer, there bool) string {
	if !there {
		return ""
	}
	return p.String()
}

// turnPages adds the buttons that lead to the pages before and behind, as far as there are some.
func turnPages(add func(slack.Block), id, action, what, before, behind string) {
	var buttons []slack.BlockElement
	if before != "" {
		buttons = append(buttons, button(action, before, "Previous "+what, ""))
	}
	if behind != "" {
		buttons = append(buttons, button(action+":next", behind, "Next "+what, slack.StylePrimary))
	}
	if len(buttons) > 0 {
		add(slack.NewActionBlock(id, buttons...))
	}
}

// chunk is a piece of an input as one block shows it.
type chunk struct {
	label      string // mrkdwn, before the first piece of a field
	text       string
	characters int // of the input, before anything was made visible
}

// pageOf is a page of pieces, the nearest that there is to the one that is asked for.
func pageOf(chunks []chunk, asked int) (page, pages int, here []chunk) {
	pages = max(1, (len(chunks)+inputChunks-1)/inputChunks)
	page = min(max(0, asked), pages-1)
	return page, pages, chunks[page*inputChunks : min(len(chunks), (page+1)*inputChunks)]
}

func addChunks(add func(slack.Block), id func() string, chunks []chunk) {
	for _, c := range chunks {
		if c.label != "" {
			add(section(id(), c.label))
		}
		add(preBlock(id(), c.text))
	}
}

// characters is how long pieces are together.
func characters(chunks []chunk) (n int) {
	for _, c := range chunks {
		n += c.characters
	}
	return n
}

// inputChunksOf cuts an input into pieces. Texts are shown as they are, everything
// else as JSON.
func inputChunksOf(a approvals.Approval, o Options) ([]chunk, plaintext.Deceit) {
	var out []chunk
	var found plaintext.Deceit
	add := func(label, s string) {
		chunks, d := textChunks(label, s, o)
		out, found = append(out, chunks...), found|d
	}
	if change := a.ToolChange; change != nil {
		for _, t := range []struct {
			when string
			text approvals.ToolText
		}{{"was told of this tool", change.Before}, {"is told of this tool now", change.Now}} {
			add("*What the model "+t.when+"*", t.text.Description)
			add("*The input that it "+t.when+"*", t.text.Schema)
		}
	}
	all, ok := view.Fields(a.ToRun())
	if !ok || len(all) == 0 {
		add("", string(a.ToRun()))
		return out, found
	}
	for _, part := range pushParts(a.Push) {
		add("*"+part.label+"*", part.text)
	}
	for _, f := range all {
		label := fieldLabel(f, a.ToolName, o)
		var text *string
		switch {
		case json.Unmarshal(f.Raw, &text) == nil && text != nil:
			add(label+" · "+plural(runes(o.redact(*text)), "character", "characters"), *text)
		case string(f.Raw) == "true":
			add(label, "yes")
		case string(f.Raw) == "false":
			add(label, "no")
		default:
			add(label, indented(f.Raw))
		}
	}
	return out, found
}

// fieldLabel names a field: in words for those of Claude Code's own tools, else by its key as code.
func fieldLabel(f view.Field, tool string, o Options) string {
	if words := fieldWords[f.Key]; words != "" && !strings.HasPrefix(tool, "mcp__") {
		return "*" + words + "*"
	}
	if label := mrkdwn.Code(plaintext.Clip(o.redact(f.Key), 200)); label != "" {
		return "*" + label + "*"
	}
	return "*(no name)*"
}

// textChunks cuts a text into pieces, secrets excepted.
func textChunks(label, s string, o Options) (out []chunk, found plaintext.Deceit) {
	s = o.redact(s)
	_, found = plaintext.Reveal(s)
	for first := true; first || s != ""; first = false {
		head := visiblePrefix(s, inputChunk)
		if i := strings.LastIndexByte(head, '\n'); i > len(head)/2 && len(head) < len(s) {
			head = head[:i+1]
		}
		out = append(out, chunk{label, plaintext.Visible(head), utf8.RuneCountInString(head)})
		s, label = s[len(head):], ""
	}
	return out, found
}

// modal is a form with a button that sends it, or, where that has no name, a window to be read.
func modal(title, submit, callback, metadata string) slack.ModalViewRequest {
	v := slack.ModalViewRequest{
		Type: slack.VTModal, Title: plain(title, modalTitle), Close: plain("Close", modalTitle), CallbackID: callback, PrivateMetadata: metadata,
	}
	if submit != "" {
		v.Submit, v.Close = plain(submit, modalTitle), plain("Cancel", modalTitle)
	}
	return v
}

// longText is an input for several lines.
func longText(action string, most int) *slack.PlainTextInputBlockElement {
	input := slack.NewPlainTextInputBlockElement(nil, action)
	input.Multiline, input.MaxLength = true, most
	return input
}

// DenyReason is the modal that asks why an approval is denied, or, for a plan,
// what should be different. The reason reaches the model.
func DenyReason(a approvals.Approval, o Options) slack.ModalViewRequest {
	title, label, hint := "Deny", "Why not?", "Deckhand passes it on to the model, which goes on without this tool call."
	if a.Kind == approvals.Plan {
		title, label, hint = "Keep planning", "What should be different?", "Deckhand passes it on to the model, which goes on planning."
	}
	v := modal(title, title, view.CallbackDenyReason, a.ID)
	if a.Kind == approvals.Tool {
		c := cardOf(a, o)
		c.asked(600)
		v.Blocks.BlockSet = c.blocks
	}
	v.Blocks.BlockSet = append(v.Blocks.BlockSet, slack.NewInputBlock(view.ReasonBlock, plain(label, 2000), plain(hint, 2000), longText(view.ReasonAction, 2000)))
	return v
}

// AnswerOther is the modal in which questions are answered in one's own words, or
// by the choices on the card.
func AnswerOther(a approvals.Approval, o Options) slack.ModalViewRequest {
	v := modal("Answer", "Send", view.CallbackAnswer, a.ID)
	list, _, err := view.Questions(a)
	if err != nil || len(list) > questionsMax {
		v.Submit = nil
		v.Blocks.BlockSet = append(v.Blocks.BlockSet, section("none", "These questions cannot be answered here. Skip them, and write into the thread instead."))
		return v
	}
	c := cardOf(a, o)
	for i, q := range list {
		n := strconv.Itoa(i)
		v.Blocks.BlockSet = append(v.Blocks.BlockSet, section("t"+n, c.questionText(q, 1800)))
		if element := c.options(q); element != nil {
			pick := slack.NewInputBlock("q"+n, plain("Choices", 2000), nil, element)
			pick.Optional = true
			v.Blocks.BlockSet = append(v.Blocks.BlockSet, pick)
		}
		own := slack.NewInputBlock("o"+n, plain("In your own words", 2000), nil, longText(view.ActionOther, 2000))
		own.Optional = true
		v.Blocks.BlockSet = append(v.Blocks.BlockSet, own)
	}
	return v
}
