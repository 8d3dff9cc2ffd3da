package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/money"
	"deckhand/internal/plaintext"
	"deckhand/internal/report"
	"deckhand/internal/slackui/render/mrkdwn"
)

const (
	lineMax   = 195 // units of a line about a tool
	argMax    = 80  // units of its argument
	runLines  = 6   // lines of a run of tools without text between
	agentWork = 2   // lines about what a subagent is doing
	askedMax  = 900 // units of the line about a call that people were asked about
	// redactMax bounds what is redacted of an argument, of which much less is shown:
	// a secret that this cuts is far behind.
	redactMax = 64 << 10
)

// run is a row of tool calls with no text between them.
type run struct {
	tools []*claude.Item
	agent bool // one of them has a subagent
	asked bool // people were asked about them
}

// cost is what a run is counted for on a page. It depends on nothing that changes
// after the run has ended, so that pages do not move when a tool finishes.
func (r *run) cost() int {
	if r.asked {
		return len(r.tools) * askedMax
	}
	lines := min(len(r.tools), runLines)
	if r.agent {
		lines += agentWork
	}
	return lines * (lineMax + 1)
}

func unfinished(s claude.ToolState) bool {
	return s == claude.ToolStreaming || s == claude.ToolAsked || s == claude.ToolRunning
}

// lines renders a run: all of it when it is short, else a summary, a line for the
// oldest calls that are not finished, and one for each of the last ones.
func (v *turnWords) lines(r *run) string {
	shown, rest := r.tools, []*claude.Item(nil)
	if len(r.tools) > runLines && !r.asked {
		const oldMax = 2
		var old []*claude.Item
		edge := len(r.tools) - (runLines - 1)
		for i := 0; i < edge; i++ {
			if t := r.tools[i]; unfinished(t.Tool.State) && len(old) < oldMax {
				old = append(old, t)
				edge = len(r.tools) - (runLines - 1 - len(old))
			} else {
				rest = append(rest, t)
			}
		}
		shown = append(old, r.tools[edge:]...)
	}
	var b strings.Builder
	b.WriteString(v.summary(rest))
	agents := agentWork
	for i, t := range shown {
		if i > 0 && v.together(shown[i-1], t) {
			b.WriteString(", " + v.argument(t.Tool))
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if i+1 < len(shown) && v.together(t, shown[i+1]) {
			b.WriteString("✅ " + mrkdwn.Escape(view.ToolName(t.Tool.Name)) + " " + v.argument(t.Tool))
			continue
		}
		b.WriteString(v.line(t, ""))
		if view.Tools[t.Tool.Name].Agent && unfinished(t.Tool.State) {
			work := v.children[t.ID]
			for _, child := range work[max(0, len(work)-agents):] {
				b.WriteString("\n")
				b.WriteString(v.line(child, "   ↳ "))
				agents--
			}
		}
	}
	return b.String()
}

// summary counts calls by name, the most frequent first.
func (v *turnWords) summary(tools []*claude.Item) string {
	if len(tools) == 0 {
		return ""
	}
	var names []string // in the order of their first calls
	times := map[string]int{}
	failed, open := 0, 0
	for _, it := range tools {
		switch state := it.Tool.State; {
		case state == claude.ToolFailed || state == claude.ToolDenied:
			failed++
		case unfinished(state):
			open++
		}
		if times[it.Tool.Name]++; times[it.Tool.Name] == 1 {
			names = append(names, it.Tool.Name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return times[b] - times[a] })
	s := "✅ " + plural(len(tools), "tool call", "tool calls") + " done"
	if open > 0 {
		s = "⏳ " + plural(len(tools), "tool call", "tool calls")
	}
	const most = 4
	for i, name := range names[:min(len(names), most)] {
		names[i] = mrkdwn.Escape(plaintext.Clip(view.ToolName(name), 30)) + " ×" + strconv.Itoa(times[name])
	}
	s += ": " + strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		s += " …"
	}
	if failed > 0 {
		s += " · " + strconv.Itoa(failed) + " failed or denied"
	}
	if open > 0 {
		s += " · " + strconv.Itoa(open) + " not finished"
	}
	return s
}

// together reports whether two calls stand on one line: looks at something, with nothing to
// tell of them but at what.
func (v *turnWords) together(a, b *claude.Item) bool {
	looks := func(it *claude.Item) bool {
		_, granted := v.t.Granted[it.Tool.ID]
		return it.Tool.State == claude.ToolDone && !granted && v.asked[it.Tool.ID].Status == "" && view.Tools[it.Tool.Name].Looks && v.argument(it.Tool) != ""
	}
	return a.Tool.Name == b.Tool.Name && looks(a) && looks(b)
}

// line renders one call: state, what it is and works on, what came out, and who decided.
func (v *turnWords) line(it *claude.Item, indent string) string {
	t := it.Tool
	r := v.asked[t.ID]
	parts := []string{v.subject(t, r), v.outcome(t)}
	if r.Status != "" {
		parts = slices.DeleteFunc(parts, func(p string) bool { return p == "denied" })
		parts = append(parts, v.decision(r))
	}
	// No name: a mention would call its maker at every use. The list of grants has it.
	if g, ok := v.t.Granted[t.ID]; ok {
		parts = append(parts, "by a rule of "+g.At.UTC().Format("2 Jan"))
	}
	if view.Tools[t.Name].Agent {
		if n := len(v.children[it.ID]); n > 0 {
			parts = append(parts, plural(n, "tool call", "tool calls"))
		}
		if micro, ok := v.t.Spent[t.ID]; ok {
			parts = append(parts, money.USD(micro))
		}
	}
	return indent + v.sign(t, r) + " " + joinNonEmpty(" · ", parts...) + v.reason(r)
}

// sign is how a call stands, and how a request ended that did not let it run.
func (v *turnWords) sign(t *claude.ToolUse, r ask.Request) string {
	switch {
	case notRun(r):
		return statusSign(r.Status)
	case unfinished(t.State) && v.ended:
		return "⏹️"
	}
	return cmp.Or(toolSigns[t.State], "⏳")
}

var toolSigns = map[claude.ToolState]string{
	claude.ToolAsked: "✋", claude.ToolDone: "✅", claude.ToolFailed: "❌", claude.ToolDenied: "🚫", claude.ToolInterrupted: "⏹️",
}

// subject is what a call does, and what it works on; struck where it did not run.
func (v *turnWords) subject(t *claude.ToolUse, r ask.Request) string {
	arg := v.argument(t)
	s := joinNonEmpty(" ", mrkdwn.Escape(plaintext.Clip(view.ToolName(t.Name), 40)), arg)
	switch {
	case view.Tools[t.Name].Unnamed && arg != "":
		s = arg
	case len(r.Answers) > 0 && !notRun(r):
		s = v.answers(t, r)
	}
	if notRun(r) {
		s = "~" + strings.ReplaceAll(s, "~", "∼") + "~"
	}
	return s
}

// argument is what the call works on, as code.
func (v *turnWords) argument(t *claude.ToolUse) string {
	if len(t.Input) == 0 {
		return ""
	}
	s, more := subjectIn(t, v.workspace, v.o)
	if more {
		s = plaintext.Clip(s, argMax-2) + " …"
	}
	return mrkdwn.CodeWithin(s, argMax)
}

// awaited is what a call waits for while it is asked about.
func awaited(t *claude.ToolUse) string { return cmp.Or(view.Tools[t.Name].Awaits, "approval") }

// outcome says how a call stands, in a word and not by its sign alone, or what came out of one
// that is done.
func (v *turnWords) outcome(t *claude.ToolUse) string {
	if r := v.asked[t.ID]; notRun(r) || len(r.Answers) > 0 {
		return "" // the decision says all
	}
	if t.State == claude.ToolInterrupted || unfinished(t.State) && v.ended {
		if v.t.StoppedBy != "" {
			return "stopped"
		}
		return "interrupted"
	}
	switch t.State {
	case claude.ToolAsked:
		return "waiting for " + awaited(t)
	case claude.ToolDenied:
		return "denied"
	case claude.ToolFailed:
		return "failed" + v.failure(t)
	case claude.ToolStreaming, claude.ToolRunning:
		return "running"
	}
	return cmp.Or(view.Tools[t.Name].Allowed, v.gist(t))
}

// gist is what came out of a call that is done, in a few words.
func (v *turnWords) gist(t *claude.ToolUse) string {
	k := view.Tools[t.Name]
	if gist := gists[t.Name]; gist != nil {
		if said := gist(v, t); said != "" {
			return said
		}
	}
	switch {
	case k.Agent || t.ResultBytes < 0: // nothing is known of it
		return ""
	case t.ResultBytes > len(t.Result):
		return bytesOf(t.ResultBytes) // only the beginning was kept
	case t.Result == "":
		return ""
	}
	return plural(countLines(t.Result), "line", "lines")
}

// failure is a failed call's exit code or the first line of what it said, after “failed”.
func (v *turnWords) failure(t *claude.ToolUse) string {
	plain, _ := t.Unframed()
	first := strings.TrimPrefix(firstLine(plain), "Error: ")
	if rest, ok := strings.CutPrefix(first, "Exit code "); ok && len(rest) <= 3 {
		return ", exit " + mrkdwn.Escape(rest)
	}
	if first == "" {
		return ""
	}
	return ": " + mrkdwn.Escape(plaintext.Clip(plaintext.Visible(v.o.redact(first)), 32))
}

func firstLine(s string) string {
	s = strings.TrimLeft(s, " \n\t")
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

func countLines(s string) int { return len(splitLines(s)) }

// bytesOf writes a size for people.
func bytesOf(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n) + " bytes"
	case n < 999_950:
		return report.Short(int64(n), 1000, 1) + " kB"
	}
	return report.Short(int64(n), 1_000_000, 1) + " MB"
}

// holdBack cuts the last word off a text that is still being written when it is
// long enough to be the beginning of a secret or of a link: it is shown once it is
// complete and can be judged.
func holdBack(s string) string {
	const wordMax = 12
	i := strings.LastIndexAny(s, " \t\n")
	if len(s)-i-1 <= wordMax {
		return s
	}
	word := s[i+1:]
	if utf8.RuneCountInString(word) < len(word)/2 {
		return s // a script that puts no blanks between words
	}
	return s[:i+1]
}
