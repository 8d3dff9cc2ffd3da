package render

import (
	"strings"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/plaintext"
)

// doingMax is how long a status line is, in units: it stands on one line of a phone.
const doingMax = 60

// Doing says what a running turn is doing, to be read after the bot's name: "is reading
// auth.go". It is plain text of at most 60 units without secrets and live mentions; of a
// turn that does nothing it is empty.
func Doing(t agent.TurnView, o Options) string {
	switch {
	case t.State.Ended() || t.Parked:
		return ""
	case t.Waiting == 1:
		return "waits for an approval"
	case t.Waiting > 1:
		return "waits for " + count(t.Waiting) + " approvals"
	case t.Held != "":
		return "waits for a budget"
	case t.Content.Status != "":
		return PlainWords("is waiting: " + o.redact(t.Content.Status))
	}
	for i := len(t.Content.Items) - 1; i >= 0; i-- {
		it := &t.Content.Items[i]
		switch {
		case it.ParentID != "": // of a subagent, whose call stands before it
		case it.Kind == claude.ItemToolUse && it.Tool != nil:
			if unfinished(it.Tool.State) {
				return PlainWords(doingTool(it.Tool, t.Workspace, o))
			}
		case it.Kind == claude.ItemText && !it.Final:
			return "is writing"
		default:
			return "is thinking"
		}
	}
	return "is thinking"
}

// WaitsFor is a status line of a turn that waits for one person's word, whose name may be
// anything.
func WaitsFor(name string, answer bool) string {
	what := "approval"
	if answer {
		what = "answer"
	}
	return PlainWords("waits for " + plaintext.Clip(plaintext.OneLine(name), 30) + "’s " + what)
}

// PlainWords is text for a place that shows neither markup nor blocks.
func PlainWords(s string) string {
	s = plaintext.OneLine(plaintext.Visible(s))
	s = plainAngles.Replace(s) // Slack's tokens stand in them
	return plaintext.Clip(plaintext.Mute(s), doingMax)
}

var plainAngles = strings.NewReplacer("<", "‹", ">", "›")
