package chat

import (
	"context"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/store/approvals"
)

// onEditClick opens the form in which somebody who may decide changes what a call is about
// to do.
func (a decider) onEditClick(ctx context.Context, in *Incoming, approval approvals.Approval, _ approvals.Decision) (outcome string, err error) {
	if text, _ := view.Editable(approval, a.c.Redact); text == "" && approval.Status == approvals.Pending {
		a.Answer(in, "This request cannot be changed here. Approve it as it is, or deny it and say what should be different.")
		return "not editable", nil
	}
	return a.openForm(ctx, in, approval, view.Edit{Approval: approval})
}

// onEditSubmission allows a call as the person has written it. It is judged by the policy as
// a new request would be, and for the input that the form showed: somebody may have decided,
// or changed it, since.
func (a decider) onEditSubmission(ctx context.Context, in *Incoming, approval approvals.Approval, d approvals.Decision) (outcome string, err error) {
	if approval.Status != approvals.Pending || approval.Edited.Times != d.Seen {
		return a.decide(ctx, in, approval, d) // which tells why not
	}
	values := in.Submission.Inputs
	input, err := view.ParseEdit(approval, values)
	if err != nil {
		return a.incomplete(in, err)
	}
	if r := a.authoriseDecision(ctx, in.person(), approval); r != nil {
		a.Answer(in, r.Sentence+a.typed(in))
		return "refused", nil
	}
	change, why := a.agent.Change(approval, input)
	if why != "" {
		a.c.Log.Warn("a change was refused", zap.String("approval", approval.ID), zap.String("by", d.By), zap.String("why", why))
		a.Answer(in, why+a.typed(in))
		return "change refused", nil
	}
	d.Edit, d.Via = &change, "edited"
	return a.decide(ctx, in, approval, d)
}

// keptMost is how much of what somebody has written is given back to them, in characters:
// a sentence has room for it.
const keptMost = 2200

// typed gives somebody back what they wrote into the form that they sent, if anything.
func (a *Chat) typed(in *Incoming) string {
	if in.Submission == nil {
		return ""
	}
	values := in.Submission.Inputs
	var texts []string
	for _, block := range slices.Sorted(maps.Keys(values)) {
		for _, action := range slices.Sorted(maps.Keys(values[block])) {
			if text := strings.TrimSpace(values[block][action].Value); text != "" {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return a.kept(strings.Join(texts, "\n"))
}

// kept gives somebody back what they wrote into a form that is closed and came to nothing.
func (a *Chat) kept(text string) string {
	return " You wrote:\n" + plaintext.Clip(plaintext.Visible(a.c.Redact(strings.TrimSpace(text))), keptMost)
}
