package slackui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/report"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// Several requests of a card are approved together by a modal that shows the whole input of
// each. What is approved is what it showed: its ids are in the modal, and each is decided by
// itself, as a click on its own button would.

// onApproveAllClick opens the modal for the requests of a card that the person may decide
// about.
func (a *App) onApproveAllClick(ctx context.Context, in *incoming, first store.Approval) (outcome string, err error) {
	list, err := a.c.Store.CardApprovals(ctx, first.CardID)
	if err != nil {
		return "", err
	}
	var mine []string
	var refused store.Approval
	for _, ap := range list {
		switch {
		case !render.Together(ap):
		case a.mayDecide(ctx, in.person(), ap) == nil:
			mine = append(mine, ap.ID)
		default:
			refused = ap
		}
	}
	if len(mine) == 0 && refused.ID != "" {
		if r := a.authoriseDecision(ctx, in.person(), refused); r != nil { // which is recorded
			a.answer(in, r.Sentence)
		}
		return "refused", nil
	}
	view, listed := render.ApproveAll(list, mine, a.rendering())
	if len(listed.IDs) == 0 {
		a.answer(in, "There is nothing left here that can be approved together.")
		a.frontend.ShowApproval(first)
		return "too late", nil
	}
	return "asked for more", a.open(ctx, in, view)
}

// onApproveAllSubmission approves what the modal showed, and tells what became of it.
func (a *App) onApproveAllSubmission(ctx context.Context, in *incoming) (outcome string, err error) {
	listed, ok := render.ParseListed(in.submission.View.PrivateMetadata)
	if !ok {
		return "", fmt.Errorf("the modal's metadata is not a list of approvals: %q", in.submission.View.PrivateMetadata)
	}
	var approved, noted, late int
	var refusal string
	for _, ref := range listed.IDs {
		id, seen := render.ParseRef(ref)
		ap, err := a.c.Store.ApprovalByID(ctx, id)
		if err != nil {
			return "", err
		}
		if ap.CardID != listed.CardID || ap.Kind != store.ApprovalTool || ap.Terms.Dangerous {
			return "", fmt.Errorf("approval %s cannot be approved together with those of card %s", id, listed.CardID)
		}
		in.store.ChannelID, in.store.ThreadTS = ap.Thread.ChannelID, ap.Thread.ThreadTS // a modal is nowhere itself
		if r := a.authoriseDecision(ctx, in.person(), ap); r != nil {
			refusal = r.Sentence
			continue
		}
		decided, err := a.agent.Decide(ctx, store.Decision{ApprovalID: id, Status: store.ApprovalAllowed, By: in.submission.User.ID, Via: "together", Seen: seen})
		switch {
		case errors.Is(err, store.ErrVoted):
			noted++
		case errors.Is(err, store.ErrEnded), errors.Is(err, store.ErrChanged):
			late++
		case err != nil:
			return "", err
		case decided.Status == store.ApprovalPending:
			noted++
		default:
			approved++
		}
		a.frontend.ShowApproval(decided)
	}
	a.log.Info("approved together", zap.String("card", listed.CardID), zap.Int("approved", approved), zap.Int("noted", noted), zap.Int("late", late), zap.String("by", in.submission.User.ID))
	if said := approvedTogether(approved, noted, late, refusal); said != "" {
		a.answer(in, said)
	}
	return fmt.Sprintf("%d allowed", approved), nil
}

// approvedTogether says what the cards do not: which of the requests was not approved, and
// why.
func approvedTogether(approved, noted, late int, refusal string) string {
	var said []string
	requests := func(n int) string { return report.Plural(int64(n), "request", "requests") }
	if noted+late > 0 || refusal != "" {
		said = append(said, requests(approved)+" approved.")
	}
	if noted > 0 {
		said = append(said, requests(noted)+" noted: more people have to approve before it runs.")
	}
	if late > 0 {
		said = append(said, requests(late)+" decided or changed already, or not asked for any more.")
	}
	if refusal != "" {
		said = append(said, refusal)
	}
	return strings.Join(said, " ")
}
