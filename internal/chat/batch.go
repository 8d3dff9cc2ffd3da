package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/chat/view"
	"deckhand/internal/report"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
)

// onBatchClick decides about the requests that a card showed together: what is ticked is
// approved and the rest denied, or all are denied. Each is decided as by a button of its own.
// The ticks are those of the person who clicked.
func (a decider) onBatchClick(ctx context.Context, in *Incoming, first approvals.Approval, _ approvals.Decision) (outcome string, err error) {
	var ticked []string
	if in.Click.Action == view.ActionApproveTicked {
		if ticked = view.Ticked(in.Click.Inputs); len(ticked) == 0 {
			a.Answer(in, "Nothing is ticked. Tick what may run, or press *Deny all*.")
			return "nothing ticked", nil
		}
	}
	var approved, denied, noted, late int
	var refusal string
	for ref := range strings.FieldsSeq(in.Click.Value) {
		id, seen := view.ParseRef(ref)
		ap, err := a.c.Store.ApprovalByID(ctx, id)
		if err != nil {
			return "", err
		}
		if ap.CardID != first.CardID || ap.Kind != approvals.Tool || ap.Terms.Dangerous {
			return "", fmt.Errorf("approval %s cannot be decided together with those of card %s", id, first.CardID)
		}
		if r := a.authoriseDecision(ctx, in.person(), ap); r != nil {
			refusal = r.Sentence
			continue
		}
		d := approvals.Decision{ApprovalID: id, Status: approvals.Denied, By: in.Row.UserID, Via: "together", Seen: seen}
		if slices.Contains(ticked, ref) {
			d.Status = approvals.Allowed
		}
		decided, err := a.agent.Decide(ctx, d)
		switch {
		case errors.Is(err, approvals.ErrVoted):
			noted++
		case errors.Is(err, pg.ErrEnded), errors.Is(err, approvals.ErrChanged):
			late++
		case err != nil:
			return "", err
		case decided.Status == approvals.Pending:
			noted++
		case decided.Status == approvals.Denied:
			denied++
		default:
			approved++
		}
		cards{a.posts}.showApproval(decided)
	}
	a.c.Log.Info("decided together", zap.String("card", first.CardID), zap.Int("approved", approved), zap.Int("denied", denied), zap.Int("noted", noted), zap.Int("late", late), zap.String("by", in.Row.UserID))
	if said := decidedTogether(approved, denied, noted, late, refusal); said != "" {
		a.Answer(in, said)
	}
	return fmt.Sprintf("%d allowed, %d denied", approved, denied), nil
}

// decidedTogether says what the card does not: which of the requests was not decided, and why.
func decidedTogether(approved, denied, noted, late int, refusal string) string {
	if noted+late == 0 && refusal == "" {
		return ""
	}
	requests := func(n int) string { return report.Plural(int64(n), "request", "requests") }
	said := []string{requests(approved) + " approved, " + requests(denied) + " denied."}
	if noted > 0 {
		said = append(said, requests(noted)+" noted: more people have to approve before it runs.")
	}
	if late > 0 {
		said = append(said, requests(late)+" decided or changed already, or not asked for any more.")
	}
	return strings.Join(append(said, refusal), " ")
}
