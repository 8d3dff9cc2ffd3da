package render

import (
	"cmp"
	"html"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// Stream is a growing page as a message that can only be appended to: what of it later
// text does not change, in its order. The stream of each later rendering of the page has
// this one's pieces first, the last of them longer at most; where it has not, since a
// secret was recognised late or a page was cut, the page has to be shown as a whole.
type Stream struct {
	// Head has the page's controls, which stand above it: what is appended stands below.
	Head []slack.Block
	// Pieces are the page's text and tools.
	Pieces []Piece
	// Plan is the model's list of work, in no place of its own.
	Plan []Task
}

// Piece is a part of a stream: one of its fields is set.
type Piece struct {
	Text string // CommonMark, cleaned
	Line string // a line of ours, mrkdwn
	Task *Task
}

// Task is a tool use, or a step of the model's list of work.
type Task struct {
	ID     string // it keeps
	Title  string // plain, at most 200 units
	Status slack.TaskCardStatus
	Output string // what came out in a few words, once it has ended; plain
}

// taskMax bounds a task's title and output, of which Slack takes 256 characters.
const taskMax = 200

// stream is what of a page that is being written can be appended; of an ended turn's, all.
func (v *turnView) stream(s sheet, number int) *Stream {
	turn := strconv.FormatInt(v.t.ID, 10)
	out := &Stream{
		Head: []slack.Block{slack.NewActionBlock(StreamID(turn, strconv.Itoa(number)), button(view.ActionStop, turn, "Stop", ""))},
		Plan: v.plan(),
	}
	for _, p := range s.segments {
		switch {
		case p.run != nil:
			for _, it := range p.run.tools {
				out.Pieces = append(out.Pieces, Piece{Task: v.task(it)})
			}
		case p.fold && p.line != goesOn: // which was said while it grew, and stays
			out.Pieces = append(out.Pieces, Piece{Line: goesOn}, Piece{Line: p.line})
		case p.line != "":
			out.Pieces = append(out.Pieces, Piece{Line: p.line})
		default:
			text := p.text
			if p.open {
				text = text[:v.seam(text)]
			}
			if n := len(out.Pieces) - 1; n >= 0 && out.Pieces[n].Text != "" && text != "" {
				out.Pieces[n].Text += "\n\n" + text // Slack makes one text of both
			} else if text != "" {
				out.Pieces = append(out.Pieces, Piece{Text: text})
			}
		}
	}
	if v.ended {
		if problem := v.problem(); problem != "" {
			out.Pieces = append(out.Pieces, Piece{Line: problem})
		}
		out.Pieces = append(out.Pieces, Piece{Line: v.status()})
	}
	return out
}

// grows reports whether the last text of the turn is being written.
func (v *turnWords) grows() bool {
	n := len(v.t.Content.Items) - 1
	if v.ended || n < 0 || v.t.Content.Items[n].Final {
		return false
	}
	return v.t.Content.Items[n].Kind == claude.ItemText
}

// StreamID is the block_id by which the message of a turn's page is known that was begun
// as a stream: one has no metadata before it ends.
func StreamID(turn, page string) string { return "turn:" + turn + ":stream:" + page }

// seam is up to where a cleaned text that is being written can be shown for good: the last
// end of a line, as each line is judged by itself, or the last end of a sentence where
// nothing is open that later text would close.
func (v *turnWords) seam(s string) int {
	items := v.t.Content.Items
	whole := items[len(items)-1].Text
	said := strings.TrimRight(whole, " \t\n")
	if said == whole || !strings.HasSuffix(said, tail(s)) {
		return seam(s)
	}
	blank := " " // that follows, and was trimmed
	if strings.Contains(whole[len(said):], "\n") {
		blank = "\n"
	}
	return min(len(s), seam(s+blank))
}

// tail is the last word of a text.
func tail(s string) string { return s[strings.LastIndexAny(s, " \t\n")+1:] }

func seam(s string) int {
	at := strings.LastIndexByte(s, '\n') + 1
	line := s[at:]
	if strings.Contains(line, "|") || strings.HasPrefix(strings.TrimLeft(line, " >"), "```") || mrkdwn.InFence(s[:at]) {
		return at
	}
	ends := sentenceEnd.FindAllStringIndex(line, -1)
	for _, end := range slices.Backward(ends) {
		if closed(line[:end[1]]) {
			return at + end[1]
		}
	}
	return at
}

// closed reports whether nothing in a part of a line waits for what closes it.
func closed(s string) bool {
	even := func(mark string) bool { return strings.Count(s, mark)%2 == 0 }
	same := func(open, shut string) bool { return strings.Count(s, open) == strings.Count(s, shut) }
	return even("`") && even("*") && even("_") && even("~") && same("[", "]") && same("(", ")") && !strings.ContainsAny(s, `<&\`)
}

// task is a tool use as a task of a stream.
func (v *turnWords) task(it *claude.Item) *Task {
	t := it.Tool
	title := plaintext.Visible(view.ToolName(t.Name))
	if arg := v.argument(t); arg != "" {
		title += " " + arg
	}
	out := &Task{ID: it.ID, Title: plainTask(title), Status: cmp.Or(taskStates[t.State], slack.TaskCardStatusInProgress)}
	if v.ended && out.Status == slack.TaskCardStatusInProgress {
		out.Status = slack.TaskCardStatusError
	}
	if !unfinished(t.State) {
		out.Output = plainTask(v.gist(t))
	}
	return out
}

var taskStates = map[claude.ToolState]slack.TaskCardStatus{
	claude.ToolAsked: slack.TaskCardStatusPending, claude.ToolDone: slack.TaskCardStatusComplete,
	claude.ToolFailed: slack.TaskCardStatusError, claude.ToolDenied: slack.TaskCardStatusError, claude.ToolInterrupted: slack.TaskCardStatusError,
}

// plan is the model's list of work as tasks, while something is left of it.
func (v *turnWords) plan() []Task {
	if v.todos() == "" {
		return nil
	}
	const most = 12
	var out []Task
	for i, todo := range v.t.Content.Todos[:min(len(v.t.Content.Todos), most)] {
		status := slack.TaskCardStatusPending
		switch todo.State {
		case "completed":
			status = slack.TaskCardStatusComplete
		case "in_progress":
			status = slack.TaskCardStatusInProgress
		}
		out = append(out, Task{ID: "step:" + strconv.Itoa(i), Title: plainTask(plaintext.Visible(v.o.redact(todo.Text))), Status: status})
	}
	return out
}

// plainTask is a line of mrkdwn as a plain one in which no mention is live.
func plainTask(s string) string {
	s = html.UnescapeString(strings.ReplaceAll(plaintext.OneLine(s), "`", ""))
	s = strings.NewReplacer("<", "<\u200b", "&", "&\u200b").Replace(plaintext.Mute(s))
	return plaintext.Clip(s, taskMax)
}
