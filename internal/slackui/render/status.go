package render

import (
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/agent"
	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/money"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

// todos is the model's list of work, while something is left of it. It may be left
// from an earlier turn.
func (v *turnWords) todos() string {
	const most = 12
	list := v.t.Content.Todos
	done := 0
	for _, todo := range list {
		if todo.State == "completed" {
			done++
		}
	}
	if done == len(list) {
		return ""
	}
	// The list is shown around what is being worked on.
	first := 0
	if len(list) > most {
		first = min(max(0, done-2), len(list)-most)
	}
	var b strings.Builder
	if first > 0 {
		b.WriteString("☑ " + plural(first, "earlier step", "earlier steps") + " done\n")
	}
	for _, todo := range list[first:min(len(list), first+most)] {
		text := mrkdwn.Escape(plaintext.Clip(plaintext.OneLine(v.o.redact(todo.Text)), 120))
		switch todo.State {
		case "completed":
			b.WriteString("☑ ~" + strings.ReplaceAll(text, "~", "") + "~ · done\n")
		case "in_progress":
			b.WriteString("▸ *" + strings.ReplaceAll(text, "*", "") + "* · in progress\n")
		default:
			b.WriteString("☐ " + text + "\n")
		}
	}
	if more := len(list) - first - most; more > 0 {
		b.WriteString("… and " + plural(more, "more step", "more steps"))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// status says what the turn is doing, or how it ended.
func (v *turnWords) status() string {
	if v.ended {
		return v.footer()
	}
	switch {
	case v.t.Parked:
		return "✋ Waiting for " + plural(v.t.Waiting, "approval", "approvals") + ". Nothing runs meanwhile. Work goes on after a decision."
	case v.t.Waiting == 1:
		return "✋ Waiting for " + v.awaitedNow() + v.quiet()
	case v.t.Waiting > 1:
		return "✋ Waiting for " + count(v.t.Waiting) + " approvals" + v.quiet()
	case v.t.Held != "":
		return "⏳ " + mrkdwn.Escape(plaintext.Clip(plaintext.OneLine(v.t.Held), 200)) + ": other calls that are running have reserved what is left. This goes on when they end."
	case v.t.Content.Status != "":
		return "⏳ " + mrkdwn.Escape(plaintext.Clip(plaintext.OneLine(v.o.redact(v.t.Content.Status)), 200))
	}
	if items := v.t.Content.Items; len(items) > 0 {
		if it := &items[len(items)-1]; it.Kind == claude.ItemThinking && !it.Final {
			return "💭 Thinking…" + v.quiet()
		}
	}
	return "⏳ Working…" + v.quiet()
}

// quiet says since when nothing was heard, if there is anything to tell of that.
func (v *turnWords) quiet() string {
	q := v.t.Quiet
	switch {
	case q == nil:
		return ""
	case q.Of == "":
		return " since " + clockTime(q.Since)
	}
	return " Nothing heard from " + mrkdwn.EscapeWithin(plaintext.OneLine(v.o.redact(q.Of)), 60) + " since " + clockTime(q.Since)
}

// saysItWaits reports whether a line of a sheet says all that the status would: that one
// call waits for people.
func (v *turnWords) saysItWaits(s sheet) bool {
	return v.t.Waiting == 1 && !v.t.Parked && slices.ContainsFunc(s.segments, func(p segment) bool {
		return p.run != nil && slices.ContainsFunc(p.run.tools, func(it *claude.Item) bool { return it.Tool.State == claude.ToolAsked })
	})
}

// awaitedNow is what the call that is asked about waits for.
func (v *turnWords) awaitedNow() string {
	for i := range v.t.Content.Items {
		if t := v.t.Content.Items[i].Tool; t != nil && t.State == claude.ToolAsked {
			return awaited(t)
		}
	}
	return "approval"
}

// nothingRan reports whether the model wanted to use tools, and none of these uses was allowed.
func (v *turnWords) nothingRan() bool {
	some := false
	for i := range v.t.Content.Items {
		switch t := v.t.Content.Items[i].Tool; {
		case t == nil || claude.ToolKeepsList(t.Name):
		case t.Name == view.QuestionTool || t.State != claude.ToolDenied && !notRun(v.asked[t.ID]):
			return false
		default:
			some = true
		}
	}
	return some
}

// idleSteps counts the steps of a turn of which none ran.
func idleSteps(of agent.TurnView, asked map[string]ask.Request) string {
	cancelled := 0
	for i := range of.Content.Items {
		if t := of.Content.Items[i].Tool; t != nil {
			switch asked[t.ID].Status {
			case approvals.Cancelled, approvals.Interrupted:
				cancelled++
			}
		}
	}
	switch denied := of.Steps - cancelled; {
	case cancelled == 0:
		return plural(denied, "step", "steps") + " denied"
	case denied <= 0:
		return plural(cancelled, "step", "steps") + " cancelled"
	default:
		return plural(denied, "step", "steps") + " denied, " + count(cancelled) + " cancelled"
	}
}

// footer sums an ended turn up.
func (v *turnWords) footer() string {
	t := v.t
	var parts []string
	switch t.State {
	case agent.TurnInterrupted:
		switch {
		case t.StoppedBy != "":
			parts = append(parts, "⏹️ Stopped by "+mrkdwn.Mention(t.StoppedBy))
		case t.Mark == agent.PromptOverBudget:
			parts = append(parts, "💸 Stopped by a budget")
		default:
			parts = append(parts, "⏸️ Paused")
		}
	case agent.TurnFailed:
		parts = append(parts, "❌ Failed")
	case agent.TurnDone, agent.TurnRunning:
		parts = append(parts, "✅ Done")
		if v.idle {
			parts[0] = "🚫 Nothing ran"
		}
	}
	if t.Steps > 0 {
		steps := plural(t.Steps, "step", "steps")
		switch {
		case v.idle:
			steps = idleSteps(t, v.asked)
		case t.Contained >= t.Steps:
			steps += " in the sandbox"
		case t.Contained > 0:
			steps += ", " + count(t.Contained) + " in the sandbox"
		}
		parts = append(parts, steps)
	}
	if !t.StartedAt.IsZero() && !t.EndedAt.IsZero() {
		parts = append(parts, span(t.EndedAt.Sub(t.StartedAt)))
	}
	switch {
	case t.Unfinished:
		parts = append(parts, "at least "+money.USD(t.CostMicroUSD))
	case t.CostMicroUSD != 0 || t.AgentTurns > 0:
		parts = append(parts, money.USD(t.CostMicroUSD))
	}
	if t.Content.Model != "" {
		parts = append(parts, mrkdwn.Escape(plaintext.Clip(ModelName(t.Content.Model), 60)))
	}
	if t.Effort != "" {
		parts = append(parts, mrkdwn.Escape(t.Effort)+" effort")
	}
	return strings.Join(parts, " · ") + v.left()
}

// left names the programs that the turn has left running.
func (v *turnWords) left() string {
	if len(v.t.Left) == 0 {
		return ""
	}
	commands := make([]string, len(v.t.Left))
	for i, c := range v.t.Left {
		commands[i] = mrkdwn.CodeWithin(plaintext.OneLine(v.o.redact(c)), 80)
	}
	return "\nLeft running: " + strings.Join(commands, ", ")
}

// ModelName shortens a model's id for people: claude-sonnet-4-5-20250929 is
// "sonnet 4.5".
func ModelName(id string) string {
	name := strings.TrimPrefix(id, "claude-")
	name, suffix, _ := strings.Cut(name, "[") // as in claude-sonnet-4-5[1m]
	parts := strings.Split(name, "-")
	var words, numbers []string
	for _, p := range parts {
		switch _, err := strconv.Atoi(p); {
		case err != nil:
			words = append(words, p)
		case len(p) <= 2:
			numbers = append(numbers, p)
		}
	}
	if len(words) == 0 || len(words) > 2 || words[0] == "" || name == id {
		return id
	}
	out := strings.Join(words, " ")
	if len(numbers) > 0 {
		out += " " + strings.Join(numbers, ".")
	}
	if suffix != "" {
		out += " [" + suffix
	}
	return out
}
