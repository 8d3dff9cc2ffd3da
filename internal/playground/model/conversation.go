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
	// Attached says what the message shows beside its words.
	Attached []string
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
	imageSource  = "[Image: source: " // the CLI's own, beside each picture
	addedMessage = "The user sent a new message while you were working:\n"
	addedNote    = "This is how Claude Code surfaces messages"
)

// Requests are long and come by the hundred, so these are tried on what has a word of
// theirs, and on no more.
var (
	workDir  = regexp.MustCompile(`^[\s-]*(?:Primary working directory|Working directory|cwd): *(\S.*?) *$`)
	planOver = regexp.MustCompile(`[Aa]pproved (?:exiting plan mode|your plan)|[Ee]xited [Pp]lan [Mm]ode`)
	planFile = regexp.MustCompile(`(?:create your plan at|plan file already exists at|plan file exists from plan mode at:?) (/[^\n]+?\.md)`)
	carryOn  = regexp.MustCompile(`(?i)\b(?:continue|carry on|go on|pick up|resume)\b`)
)

// asides are the elements with what nobody said.
var asides = []string{
	"system-reminder>", "local-command-caveat>", "local-command-stdout>", "local-command-stderr>", "command-name>", "command-message>", "command-args>",
}

// withoutAsides cuts from each tag that opens an aside to the next that closes one.
func withoutAsides(text string) string {
	tag := func(text, opening string) (at, end int) {
		for at < len(text) {
			i := strings.Index(text[at:], opening)
			if i < 0 {
				break
			}
			at += i
			for _, name := range asides {
				if strings.HasPrefix(text[at+len(opening):], name) {
					return at, at + len(opening) + len(name)
				}
			}
			at += len(opening)
		}
		return -1, -1
	}
	var kept strings.Builder
	for {
		at, begun := tag(text, "<")
		if at < 0 {
			break
		}
		_, end := tag(text[begun:], "</")
		if end < 0 {
			break
		}
		kept.WriteString(text[:at])
		text = text[begun+end:]
	}
	kept.WriteString(text)
	return kept.String()
}

// containsAny reports whether one of the words stands in text.
func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// planEnds reports whether a text says that plan mode is over.
func planEnds(text string) bool {
	return containsAny(text, "xited ", "pproved ") && planOver.MatchString(text)
}

// planIn is the file that a text wants a plan in; empty if it wants none.
func planIn(text string) string {
	if !containsAny(text, "create your plan at", "plan file already exists at", "plan file exists from plan mode at") {
		return ""
	}
	if g := planFile.FindStringSubmatch(text); g != nil {
		return g[1]
	}
	return ""
}

// directoryIn is the working directory that a line of a text names, or empty.
func directoryIn(text string) string {
	if !containsAny(text, "orking directory:", "cwd:") {
		return ""
	}
	for line := range strings.SplitSeq(text, "\n") {
		if containsAny(line, "orking directory:", "cwd:") {
			if g := workDir.FindStringSubmatch(line); g != nil {
				dir, _, _ := strings.Cut(g[1], " (was ") // so a forked session says it
				return dir
			}
		}
	}
	return ""
}

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
		t := strings.TrimSpace(withoutAsides(b.Text))
		switch {
		case strings.HasPrefix(t, interrupted):
			parts = nil
		case t == toolLoaded, strings.HasPrefix(t, imageSource):
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
	var c conversation
	c.index, c.Last = r.saidBefore(len(r.Messages))
	if carryOn.MatchString(c.Last) && !hasDirectives(c.Last) {
		// A note after a restart: the turn before goes on where it stopped.
		if before, text := r.saidBefore(c.index); before >= 0 && r.unfinished(before, c.index) {
			c.index, c.Last = before, text
		}
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
	if c.index >= 0 {
		c.Attached = attachedTo(r.Messages[c.index])
	}
	c.CWD = r.workingDirectory()
	c.Notice = r.notice()
	return c
}

// saidBefore is the last real user message before the one at i, and its text; -1
// without one.
func (r *request) saidBefore(i int) (int, string) {
	for i--; i >= 0; i-- {
		if m := r.Messages[i]; m.Role == "user" {
			if text := userText(m); text != "" {
				return i, text
			}
		}
	}
	return -1, ""
}

// followPlan keeps track of plan mode, which the CLI announces in system
// messages and reminders, and ends in the result of ExitPlanMode.
func (c *conversation) followPlan(m message) {
	if m.Role == "assistant" {
		return
	}
	for _, b := range m.Content {
		if b.Type == "tool_result" {
			if planEnds(b.Content.text()) {
				c.PlanFile = ""
			}
			continue
		}
		if m.Role == "user" && !strings.Contains(b.Text, "<system-reminder>") {
			continue
		}
		if file := planIn(b.Text); file != "" {
			c.PlanFile = file
		} else if planEnds(b.Text) {
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

var speaker = regexp.MustCompile(`^(?:\[[^\]]*\]:?\s*|<@[^>\s]+>[:,]?\s*|@[\w.-]+[:,]?\s+)+`)

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
			if dir := directoryIn(b.Text); dir != "" {
				return dir
			}
		}
	}
	return directoryIn(r.System.text())
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
