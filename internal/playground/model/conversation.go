package model

import (
	"regexp"
	"slices"
	"strings"
)

// conversation is what a script sees of a request: the last thing a person
// said, and the rounds of tool calls since.
type conversation struct {
	Last   string // text of the last real user message, reminders removed
	index  int    // index of that message in the request
	Rounds []round
	// Added are messages that a person sent while the turn was running. The
	// CLI hands them to the model inside the turn.
	Added []string
	// Notice is set when the latest message is not a person's but the CLI's,
	// about a background task that ended: what to say about it.
	Notice string
	// CWD is the client's working directory, "" when it does not say.
	CWD string
	// PlanFile is where the CLI wants its plan written, "" outside plan mode.
	PlanFile string
}

// round is one assistant message with tool calls, and what came back.
type round struct {
	Calls    []block
	Results  []result
	planFile string // PlanFile when the calls were made
}

// result is a tool_result as the model sees it.
type result struct {
	Tool    string
	Text    string
	IsError bool
}

const (
	interrupted  = "[Request interrupted by user"
	compacted    = "This session is being continued from a previous conversation"
	toolLoaded   = "Tool loaded." // stands beside the result of ToolSearch
	lostCall     = "[Tool call interrupted: the session ended"
	unanswered   = "No response requested."
	addedMessage = "The user sent a new message while you were working:\n"
	addedNote    = "This is how Claude Code surfaces messages"
)

var (
	reminder = regexp.MustCompile(`(?s)<(system-reminder|local-command-caveat|local-command-stdout|local-command-stderr|command-name|command-message|command-args)>.*?</(?:system-reminder|local-command-caveat|local-command-stdout|local-command-stderr|command-name|command-message|command-args)>`)
	workDir  = regexp.MustCompile(`(?m)^[\s-]*(?:Primary working directory|Working directory|cwd): *(\S.*?) *$`)
	planOver = regexp.MustCompile(`(?i)approved (?:exiting plan mode|your plan)|exited plan mode`)
	planFile = regexp.MustCompile(`(?:create your plan at|plan file already exists at|plan file exists from plan mode at:?) (/[^\n]+?\.md)`)
	carryOn  = regexp.MustCompile(`(?i)\b(?:continue|carry on|go on|pick up|resume)\b`)
)

// userText is what a person said in a user message: its text blocks without
// reminders, nothing from before an interruption, no summary of an earlier
// conversation, and no block that a later one repeats (a prompt that is sent
// again inside a note after a crash).
func userText(m message) string {
	var parts []string
	for _, b := range m.Content {
		if b.Type != "text" {
			continue
		}
		t := strings.TrimSpace(reminder.ReplaceAllString(b.Text, ""))
		switch {
		case strings.HasPrefix(t, interrupted):
			parts = nil
		case t == toolLoaded:
		case t != "" && !strings.HasPrefix(t, compacted):
			parts = append(parts, t)
		}
	}
	var kept []string
	for i, p := range parts {
		if !slices.ContainsFunc(parts[i+1:], func(later string) bool { return strings.Contains(later, p) }) {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n")
}

// read folds a request into the conversation that scripts act on.
func (r *request) read() conversation {
	c := conversation{index: -1}
	before := -1 // the real user message before the last one
	for i, m := range r.Messages {
		if m.Role != "user" {
			continue
		}
		if t := userText(m); t != "" {
			before = c.index
			c.Last, c.index = t, i
		}
	}
	if before >= 0 && carryOn.MatchString(c.Last) && !hasDirectives(c.Last) && r.unfinished(before, c.index) {
		// A note after a restart: the turn before goes on where it stopped.
		c.Last, c.index = userText(r.Messages[before]), before
	}
	names := map[string]string{}
	for i, m := range r.Messages {
		c.followPlan(m)
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				names[b.ID] = b.Name
			}
		}
		if i <= c.index {
			continue
		}
		switch m.Role {
		case "assistant":
			c.addRound(m)
		case "system":
			for _, b := range m.Content {
				c.addMessage(b.Text)
			}
		case "user":
			c.addResults(m, names)
		}
	}
	// A call whose outcome was lost with the process is made again.
	c.Rounds = slices.DeleteFunc(c.Rounds, func(r round) bool {
		return slices.ContainsFunc(r.Results, func(res result) bool { return strings.HasPrefix(res.Text, lostCall) })
	})
	c.CWD = r.workingDirectory()
	c.Notice = r.notice()
	return c
}

// followPlan keeps track of plan mode, which the CLI announces in system
// messages and reminders, and ends in the result of ExitPlanMode.
func (c *conversation) followPlan(m message) {
	if m.Role == "assistant" {
		return
	}
	for _, b := range m.Content {
		if b.Type == "tool_result" {
			if planOver.MatchString(b.Content.text()) {
				c.PlanFile = ""
			}
			continue
		}
		if m.Role == "user" && !strings.Contains(b.Text, "<system-reminder>") {
			continue
		}
		if g := planFile.FindStringSubmatch(b.Text); g != nil {
			c.PlanFile = g[1]
		} else if planOver.MatchString(b.Text) {
			c.PlanFile = ""
		}
	}
}

// notice answers a note about a background task, when that is all the latest
// user message holds.
func (r *request) notice() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "system" {
			continue
		}
		if m.Role != "user" || userText(m) != "" || slices.ContainsFunc(m.Content, func(b block) bool { return b.Type == "tool_result" }) {
			return ""
		}
		text := m.Content.text()
		_, note, found := strings.Cut(text, "<task-notification>")
		if !found {
			return ""
		}
		out := "A background task has news."
		if s := element(note, "summary"); s != "" {
			out = s + "."
		}
		if res := element(note, "result"); res != "" {
			out += " It says: " + res
		}
		return out
	}
	return ""
}

// element is the trimmed text of an XML element in text, "" without it.
func element(text, name string) string {
	_, rest, _ := strings.Cut(text, "<"+name+">")
	inner, _, found := strings.Cut(rest, "</"+name+">")
	if !found {
		return ""
	}
	return strings.TrimSpace(inner)
}

var speaker = regexp.MustCompile(`^(?:\[[^\]\n]*\]:?\s*|<@[^>\s]+>[:,]?\s*|@[\w.-]+[:,]?\s+)+`)

// spoken is a message without who says it and to whom ("[Alice in #general]:
// @deckhand ").
func spoken(text string) string { return speaker.ReplaceAllString(text, "") }

// unfinished reports whether the turn of the user message at from had no end
// before the user message at to: the process was killed in it.
func (r *request) unfinished(from, to int) bool {
	for i := to - 1; i > from; i-- {
		m := r.Messages[i]
		if m.Role != "assistant" {
			continue
		}
		calls := slices.ContainsFunc(m.Content, func(b block) bool { return b.Type == "tool_use" })
		return calls || strings.TrimSpace(m.Content.text()) == unanswered
	}
	return true
}

func (c *conversation) addRound(m message) {
	var calls []block
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			calls = append(calls, b)
		}
	}
	if len(calls) > 0 {
		c.Rounds = append(c.Rounds, round{Calls: calls, planFile: c.PlanFile})
	}
}

// addMessage takes a message sent during the turn out of the note that the
// CLI wraps it in.
func (c *conversation) addMessage(text string) {
	for {
		_, after, found := strings.Cut(text, addedMessage)
		if !found {
			return
		}
		said, _, _ := strings.Cut(after, addedNote)
		if said, _, _ = strings.Cut(said, addedMessage); strings.TrimSpace(said) != "" {
			c.Added = append(c.Added, strings.TrimSpace(said))
		}
		text = after
	}
}

func (c *conversation) addResults(m message, names map[string]string) {
	for _, b := range m.Content {
		switch {
		case b.Type == "tool_result" && len(c.Rounds) > 0:
			last := &c.Rounds[len(c.Rounds)-1]
			last.Results = append(last.Results, result{Tool: names[b.ToolUseID], Text: b.Content.text(), IsError: b.IsError})
		case b.Type == "text" && strings.Contains(b.Text, "<system-reminder>"):
			c.addMessage(b.Text)
		}
	}
}

// workingDirectory finds the folder the client says it works in: newer CLIs
// say so in system messages and reminders inside the conversation (the latest
// counts), older ones in the system prompt.
func (r *request) workingDirectory() string {
	for _, m := range slices.Backward(r.Messages) {
		for _, b := range m.Content {
			if m.Role != "system" && (m.Role != "user" || !strings.Contains(b.Text, "<system-reminder>")) {
				continue
			}
			if g := workDir.FindStringSubmatch(b.Text); g != nil {
				return g[1]
			}
		}
	}
	if g := workDir.FindStringSubmatch(r.System.text()); g != nil {
		return g[1]
	}
	return ""
}

// lastResults are the results of the latest round of tool calls.
func (c *conversation) lastResults() []result {
	if len(c.Rounds) == 0 {
		return nil
	}
	return c.Rounds[len(c.Rounds)-1].Results
}

// denied reports whether the result is a refusal by a person or a rule, not
// the failure of a tool that ran. The API does not tell the two apart; the
// CLI's own failures have known beginnings.
func (r result) denied() bool {
	if !r.IsError {
		return false
	}
	return !slices.ContainsFunc(failures, func(p string) bool { return strings.HasPrefix(r.Text, p) })
}

var failures = []string{"Exit code ", "<tool_use_error>", "Error: ", "File does not exist", "Request was aborted", "API Error"}
