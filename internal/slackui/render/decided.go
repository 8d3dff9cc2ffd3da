package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

// What people were asked about is a line once it is decided: in the message of its turn, and
// alone where the turn does not go on in the card's message, and on the card's copies.

// decidedReason is how much of a decider's reason is shown, in units.
const decidedReason = 500

// notRun reports whether a request ended without letting its call run.
func notRun(r ask.Request) bool {
	return r.Status != "" && r.Status != approvals.Pending && r.Status != approvals.Allowed
}

// decision says how a request ended, and who ended it.
func (v *turnWords) decision(r ask.Request) string {
	verb, ended, kind := "approved", "", view.Tools[r.ToolName]
	switch r.Status {
	case approvals.Allowed:
		switch {
		case kind.Allowed != "":
			verb = kind.Allowed
		case r.ChangedBy != "" && slices.Equal(r.By, []string{r.ChangedBy}):
			verb = "changed and approved"
		case r.ChangedBy != "":
			verb = "changed by " + mentionAny(r.ChangedBy) + ", approved"
		}
	case approvals.Denied:
		verb = cmp.Or(kind.Denied, "denied")
	case approvals.Expired:
		ended = "expired: nobody decided in time"
	case approvals.Cancelled:
		if ended = "cancelled: the turn was stopped"; r.Host != "" {
			ended = "cancelled: the turn ended"
		}
	case approvals.Interrupted:
		ended = "interrupted: the session ended before anybody decided"
	case approvals.Pending:
		return ""
	}
	by := slices.DeleteFunc(slices.Clone(r.By), func(id string) bool { return id == "" })
	switch {
	case ended != "" && len(by) > 0:
		return ended + " (" + strconv.Itoa(len(by)) + " of " + strconv.Itoa(r.Quorum) + " had approved: " + joinAnd(by) + ")"
	case ended != "":
		return ended
	case len(by) == 0:
		return verb
	}
	return verb + " by " + joinAnd(by)
}

// reason quotes what the decider wrote.
func (v *turnWords) reason(r ask.Request) string {
	if r.Reason == "" || !notRun(r) {
		return ""
	}
	reason := mrkdwn.EscapeLines(strings.TrimSpace(v.o.redact(r.Reason)), decidedReason)
	return "\n> " + strings.ReplaceAll(reason, "\n", "\n> ")
}

// requests are the lines of what was asked on a part's card and has no call among its items:
// hosts, and calls that are not known any more.
func (v *turnView) requests(items []claude.Item) (out []segment) {
	for _, r := range v.card.Requests {
		if r.Host != "" || !slices.ContainsFunc(items, func(it claude.Item) bool { return it.Tool != nil && it.Tool.ID == r.ToolUseID }) {
			out = append(out, segment{line: v.requestLine(r)})
		}
	}
	return out
}

// requestLine is a request by itself.
func (v *turnWords) requestLine(r ask.Request) string {
	what := mrkdwn.Escape(plaintext.Clip(view.ToolName(r.ToolName), 40))
	if r.Host != "" {
		what = "Reach " + mrkdwn.CodeWithin(v.o.redact(r.Host), argMax)
	}
	if notRun(r) {
		what = "~" + what + "~"
	}
	return statusSign(r.Status) + " " + joinNonEmpty(" · ", what, v.decision(r)) + v.reason(r)
}

// answers are what people have answered, each below its question.
func (v *turnWords) answers(t *claude.ToolUse, r ask.Request) string {
	var lines []string
	for _, q := range gjson.GetBytes(t.Input, "questions.#.question").Array() {
		if answer, ok := r.Answers[q.String()]; ok {
			lines = append(lines, "“"+mrkdwn.EscapeWithin(v.o.redact(plaintext.OneLine(q.String())), 150)+"” → *"+strings.ReplaceAll(mrkdwn.EscapeWithin(v.o.redact(plaintext.OneLine(answer)), 200), "*", "∗")+"*")
		}
	}
	return strings.Join(lines, "\n")
}

// approvedPlan is the text of a plan that people have approved, which the thread keeps.
func (v *turnWords) approvedPlan(t *claude.ToolUse) string {
	if t.Name != view.PlanTool || v.asked[t.ID].Status != approvals.Allowed {
		return ""
	}
	return strings.TrimSpace(mrkdwn.Clean(v.readable(v.o.redact(plaintext.Printable(gjson.GetBytes(t.Input, "plan").String())), true)))
}

// decidedLine is an approval that has ended as one line, without what came out of its call.
func decidedLine(a approvals.Approval, o Options) string {
	r := ask.RequestOf(a)
	v := &turnWords{o: o, workspace: a.Workspace, asked: map[string]ask.Request{a.ToolUseID: r}}
	if r.Host != "" {
		return v.requestLine(r)
	}
	return v.line(&claude.Item{Tool: &claude.ToolUse{ID: a.ToolUseID, Name: a.ToolName, Input: a.ToRun(), State: claude.ToolDone, ResultBytes: -1}}, "")
}

// decided is a card on which nothing waits any more: a line for each request.
func (c *card) decided(list []approvals.Approval) Page {
	c.a = list[0]
	all, said := make([]row, len(list)), make([]string, len(list))
	for i, a := range list {
		all[i] = row{a: a}
		all[i].verb, all[i].object = c.name(a)
		said[i] = statusWord(a) + ": " + all[i].brief(200)
	}
	c.where()
	for _, text := range gather(c.lines(all, messageText-1000), contextMax) {
		c.context(text)
	}
	return Page{Text: mrkdwn.ClipEscaped(strings.Join(said, "\n"), fallbackMax), Blocks: c.blocks}
}
