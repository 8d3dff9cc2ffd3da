package render

import (
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
	"deckhand/internal/transcript"
)

const (

	// previewLines and previewMax bound what the list shows of a result.
	previewLines = 4
	previewMax   = 400
	// resultMax bounds what is shown of a result, in units: more than a model reads of one, and
	// less than costs anything at every turn of a page.
	resultMax = 1 << 20
	// stepNoted is how long a step takes, at least, of which it is said how long.
	stepNoted = time.Second
)

// stepsButton opens the window about a turn's steps.
func stepsButton(turnID int64) *slack.ButtonBlockElement {
	b := button(view.ActionSteps, view.StepsPage{Turn: turnID, First: -1}.String(), "Show steps", "")
	b.AccessibilityLabel = "Show steps: what each tool got and returned"
	return b
}

// Steps is the window that lists a turn's uses of tools, with the beginnings of what they
// gave back, or shows one of them page by page: what the model read of it, up to a
// million characters. All of it is shown as text that can
// do nothing.
func Steps(s view.Steps, o Options) slack.ModalViewRequest {
	v := modal("Steps of this turn", "", view.CallbackSteps, s.Page.String())
	w := &stepsWindow{shown: s, o: o, v: &turnWords{o: o, workspace: o.Workspace, ended: !s.Steps.Running}}
	switch {
	case s.Page.Step == 0:
		w.list()
	case len(s.Steps.List) == 0:
		w.add(section(w.id(), "This step is not known any more."))
		w.back()
	default:
		w.one()
	}
	v.Blocks.BlockSet = w.blocks
	return v
}

type stepsWindow struct {
	shown  view.Steps
	o      Options
	v      *turnWords
	blocks []slack.Block
}

func (w *stepsWindow) add(b slack.Block) { w.blocks = append(w.blocks, b) }

// id names a block so that no other state of the window has it.
func (w *stepsWindow) id() string {
	p := w.shown.Page
	return "steps:" + strconv.Itoa(p.First) + ":" + strconv.Itoa(p.Step) + ":" + strconv.Itoa(p.Page) + ":" + strconv.Itoa(len(w.blocks))
}

// list is a page of the steps.
func (w *stepsWindow) list() {
	total, first, last := w.shown.Steps.Total, w.shown.Steps.First, w.shown.Steps.First+len(w.shown.Steps.List)
	if len(w.shown.Steps.List) == 0 {
		text := "No tool was used in this turn."
		if w.shown.Steps.Running {
			text = "No tool was used in this turn yet."
		}
		w.add(section(w.id(), text))
		return
	}
	where := plural(total, "step", "steps")
	if total > len(w.shown.Steps.List) {
		where = "Steps " + count(first+1) + "–" + count(last) + " of " + count(total)
	}
	w.add(section(w.id(), "*"+where+"*, with the beginning of each result."))
	if note := w.missing(); note != "" {
		w.add(contextBlock(w.id(), note))
	}
	for i, step := range w.shown.Steps.List {
		n := first + i + 1
		line := section(w.id(), "*"+count(n)+"* · "+w.line(step))
		show := button(view.ActionStep, view.StepsPage{Turn: w.shown.Page.Turn, First: first, Step: n}.String(), "Show step "+strconv.Itoa(n), "")
		line.Accessory = slack.NewAccessory(show)
		w.add(line)
		if r, _, ok := w.result(step); ok {
			if preview := w.preview(r); preview != "" {
				w.add(preBlock(w.id(), preview))
			}
		}
	}
	turnPages(w.add, w.id(), view.ActionStepsPage, "steps",
		pageAt(view.StepsPage{Turn: w.shown.Page.Turn, First: max(0, first-view.StepsOnPage)}, first > 0), pageAt(view.StepsPage{Turn: w.shown.Page.Turn, First: last}, last < total))
}

func (w *stepsWindow) back() {
	w.add(slack.NewActionBlock(w.id(), button(view.ActionStepsBack, view.StepsPage{Turn: w.shown.Page.Turn, First: w.shown.Page.First}.String(), "Back to the list", "")))
}

// missing says why there are no results of any step; empty where they were read.
func (w *stepsWindow) missing() string {
	switch {
	case w.shown.Unread:
		return "⚠️ Deckhand can't read the results now: it has trouble with its database. Open this again in a minute."
	case w.shown.Found == nil:
		return "Reading the results…"
	case !w.shown.Found.Kept && w.shown.Steps.Running:
		return "Nothing of this conversation is saved yet. Open this again in a few seconds."
	case !w.shown.Found.Kept:
		return "The results are no longer kept: Deckhand deletes conversations some time after the last message of their thread, and on `/clear`."
	case w.shown.Found.Damaged:
		return "⚠️ A part of this conversation's copy is damaged and not shown."
	}
	return ""
}

// absent says why there is no result of a step, of which there should be one.
func (w *stepsWindow) absent(step approvals.Step) string {
	if note := w.missing(); note != "" {
		return note
	}
	switch {
	case step.Status == approvals.Pending:
		return "It waits for a decision: nothing has run."
	case step.Status != approvals.Allowed:
		return "Nothing has run."
	case w.shown.Steps.Running:
		return "Its result is not saved yet: that takes a few seconds after its end. Then open this again."
	case w.shown.Found.Full:
		return "Its result is not kept: the copy of this conversation had reached its limit."
	}
	return "Its result is not in the copy of this conversation."
}

// result is what a step gave back, as people read it. shortened says that this is less than
// there was, by its own first words.
func (w *stepsWindow) result(step approvals.Step) (r transcript.Result, shortened, ok bool) {
	if w.shown.Found == nil {
		return transcript.Result{}, false, false
	}
	if r, ok = w.shown.Found.Results[step.ToolUseID]; ok {
		use := claude.ToolUse{Name: step.ToolName, Result: r.Text}
		r.Text, shortened = use.Unframed()
	}
	return r, shortened, ok
}

// line is the step as its turn's message shows it, with how long it took.
func (w *stepsWindow) line(step approvals.Step) string {
	t := &claude.ToolUse{ID: step.ToolUseID, Name: step.ToolName, Input: step.Input, State: claude.ToolInterrupted}
	r, shortened, found := w.result(step)
	if t.Result, t.ResultBytes = r.Text, len(r.Text); !found || shortened {
		t.Result, t.ResultBytes = "", -1 // nothing is known of what came out, or how much
	}
	switch {
	case step.Status == approvals.Pending:
		t.State = claude.ToolAsked
	case step.Status == approvals.Denied:
		t.State = claude.ToolDenied
	case step.Status != approvals.Allowed:
	case step.ResultAt.IsZero() && !found:
		t.State = claude.ToolRunning
	case step.Failed:
		t.State = claude.ToolFailed
	default:
		t.State = claude.ToolDone
	}
	line := w.v.line(&claude.Item{Kind: claude.ItemToolUse, ID: step.ToolUseID, Tool: t}, "")
	if r.Subagent {
		line = "↳ by a subagent: " + line
	}
	if took := step.ResultAt.Sub(step.DecidedAt); !step.ResultAt.IsZero() && !step.DecidedAt.IsZero() && took >= stepNoted {
		line += " · " + span(took)
	}
	return line
}

// preview is the beginning of a result, as it can be shown, and how much is left out of it.
func (w *stepsWindow) preview(r transcript.Result) string {
	text := strings.TrimRight(r.Text, "\n")
	if strings.TrimSpace(text) == "" {
		return ""
	}
	rest := ""
	if len(text) > redactMax {
		text = plaintext.Prefix(text, redactMax)
		rest = r.Text[len(text):]
	}
	text = w.o.redact(text)
	head := visiblePrefix(text, previewMax)
	if lines := strings.SplitAfterN(head, "\n", previewLines+1); len(lines) > previewLines {
		head = strings.Join(lines[:previewLines], "")
	}
	shown := strings.TrimRight(plaintext.Visible(head), "\n")
	if left := runes(text) - runes(head) + runes(rest); len(head) < len(text) && left > 0 {
		shown += "\n… " + plural(left, "more character", "more characters")
	}
	return shown
}

// one is a step with all that it was given and gave back.
func (w *stepsWindow) one() {
	step := w.shown.Steps.List[0]
	w.add(section(w.id(), "*"+count(w.shown.Page.Step)+" of "+count(w.shown.Steps.Total)+"* · "+w.line(step)))
	chunks, deceits := inputChunksOf(approvals.Approval{Input: step.Input}, w.o)
	r, shortened, found := w.result(step)
	shown, left := w.beginning(r.Text)
	if found && strings.TrimSpace(shown) != "" {
		back, d := textChunks("*Result*", shown, w.o)
		chunks, deceits = append(chunks, back...), deceits|d
	}
	page, pages, here := pageOf(chunks, w.shown.Page.Page)
	if pages > 1 {
		w.add(contextBlock(w.id(), "Page "+count(page+1)+" of "+count(pages)))
	}
	if page == 0 {
		w.remarks(step, r, found, deceits)
	}
	addChunks(w.add, w.id, here)
	if page == pages-1 {
		w.after(step, r, found)
		switch {
		case left > 0:
			w.add(contextBlock(w.id(), "… another "+bytesOf(left)+" of it are not shown here. Ask for the part that you need."))
		case shortened:
			w.add(contextBlock(w.id(), "Its first words say that this output was too long for the model, and that the model has read only this. (A program can print such words, too.)"))
		}
	}
	at := w.shown.Page
	turnPages(w.add, w.id(), view.ActionStepPage, "page",
		pageAt(view.StepsPage{Turn: at.Turn, First: at.First, Step: at.Step, Page: page - 1}, page > 0), pageAt(view.StepsPage{Turn: at.Turn, First: at.First, Step: at.Step, Page: page + 1}, page < pages-1))
	w.back()
}

// beginning is what is shown of a result, and how many bytes are left out of it. What is cut
// is redacted before, with enough of what follows that no secret is cut with it.
func (w *stepsWindow) beginning(text string) (shown string, left int) {
	cut := plaintext.Prefix(text, resultMax+redactMax)
	if len(cut) == len(text) {
		return text, 0
	}
	shown = w.o.redact(cut)
	shown = plaintext.Prefix(shown, min(resultMax, max(0, plaintext.Width(shown)-redactMax)))
	return shown, max(1, len(text)-len(shown))
}

// remarks are what there is to know before a step is read.
func (w *stepsWindow) remarks(step approvals.Step, r transcript.Result, found bool, deceits plaintext.Deceit) {
	if step.Status == approvals.Denied && step.Reason != "" {
		w.add(section(w.id(), "Denied: "+mrkdwn.Escape(plaintext.Clip(plaintext.OneLine(plaintext.Visible(w.o.redact(step.Reason))), 600))))
	}
	warnings := escapeAll(deceits.Warnings())
	if found && step.SHA256 != "" && step.SHA256 != r.SHA256 {
		warnings = append(warnings, "The audit knows of another result: a program in the session may have changed this copy. Do not rely on it.")
	}
	if len(warnings) > 0 {
		w.add(section(w.id(), "⚠️ "+strings.Join(warnings, "\n⚠️ ")))
	}
}

// after says what is missing of a result.
func (w *stepsWindow) after(step approvals.Step, r transcript.Result, found bool) {
	switch {
	case !found:
		w.add(contextBlock(w.id(), w.absent(step)))
	case r.Pictures > 0:
		w.add(contextBlock(w.id(), "It returned "+plural(r.Pictures, "picture or document", "pictures or documents")+" that this window does not show."))
	case strings.TrimSpace(r.Text) == "":
		w.add(contextBlock(w.id(), "It returned no text."))
	}
}
