package render

import (
	"path"
	"strings"

	"github.com/tidwall/gjson"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/slackui/render/mrkdwn"
)

// doingMax is how long a status line is, in units: it stands on one line of a phone.
const doingMax = 60

// Doing says what a running turn is doing, to be read after the bot's name: "is reading
// auth.go". It is plain text of at most 60 units without secrets and live mentions; of a
// turn that does nothing it is empty.
func Doing(t agent.TurnView, o Options) string {
	switch {
	case t.State.Ended() || t.Aside:
		return ""
	case t.Waiting == 1:
		return "waits for an approval"
	case t.Waiting > 1:
		return "waits for " + count(t.Waiting) + " approvals"
	case t.Held != "":
		return "waits for a budget"
	case t.Content.Status != "":
		return plainWords("is waiting: " + o.redact(t.Content.Status))
	}
	for i := len(t.Content.Items) - 1; i >= 0; i-- {
		it := &t.Content.Items[i]
		switch {
		case it.ParentID != "": // of a subagent, whose call stands before it
		case it.Kind == claude.ItemToolUse && it.Tool != nil:
			if unfinished(it.Tool.State) {
				return plainWords(doingTool(it.Tool, t.Workspace, o))
			}
		case it.Kind == claude.ItemText && !it.Final:
			return "is writing"
		default:
			return "is thinking"
		}
	}
	return "is thinking"
}

// doingTool is what a call that runs does.
func doingTool(t *claude.ToolUse, workspace string, o Options) string {
	arg := func() string {
		line, _, _ := strings.Cut(strings.TrimSpace(gjson.GetBytes(t.Input, arguments[t.Name]).String()), "\n")
		return o.redact(mrkdwn.Prefix(line, redactMax))
	}
	with := func(verb, what, otherwise string) string {
		if what == "" {
			return otherwise
		}
		return verb + " " + what
	}
	switch t.Name {
	case "Read", "NotebookRead", "LS":
		return with("is reading", base(relative(arg(), workspace)), "is reading files")
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return with("is editing", base(relative(arg(), workspace)), "is editing files")
	case "Grep", "Glob":
		return "is searching the files"
	case "Bash":
		return with("is running", arg(), "is running a command")
	case "WebSearch":
		return "is searching the web"
	case "WebFetch":
		host := arg()
		if _, rest, ok := strings.Cut(host, "://"); ok {
			host, _, _ = strings.Cut(rest, "/")
		}
		return with("is reading", host, "is reading the web")
	case "Task", "Agent":
		return with("has a subagent at work:", arg(), "has a subagent at work")
	}
	if listTools[t.Name] {
		return "is planning"
	}
	return "is using " + toolName(t.Name)
}

func base(file string) string {
	if file == "" {
		return ""
	}
	return path.Base(file)
}

// WaitsFor is a status line of a turn that waits for one person's word, whose name may be
// anything.
func WaitsFor(name string, answer bool) string {
	what := "approval"
	if answer {
		what = "answer"
	}
	return plainWords("waits for " + mrkdwn.Clip(mrkdwn.OneLine(name), 30) + "’s " + what)
}

// PlainTitle is a title for a place that shows neither markup nor blocks.
func PlainTitle(s string) string { return plainWords(s) }

// plainWords is text for a place that shows neither markup nor blocks.
func plainWords(s string) string {
	s = mrkdwn.OneLine(mrkdwn.Visible(s))
	s = plainAngles.Replace(s) // Slack's tokens stand in them
	return mrkdwn.Clip(mrkdwn.Mute(s), doingMax)
}

var plainAngles = strings.NewReplacer("<", "‹", ">", "›")
