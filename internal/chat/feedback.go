package chat

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// onFeedbackClick notes what somebody thinks of an answer, and asks why it is a bad one.
func (a rater) onFeedbackClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	turnID, good, ok := view.ParseFeedback(in.Click.Value)
	if !ok {
		return "", fmt.Errorf("the value of a feedback button is %q", in.Click.Value)
	}
	outcome, err = a.saveFeedback(ctx, in, turns.Feedback{TurnID: turnID, Good: good})
	if err != nil || good || !strings.HasPrefix(outcome, "noted") {
		return outcome, err
	}
	return outcome, a.open(ctx, in, view.WhyBad(turnID))
}

// onFeedbackSubmission notes why somebody thinks that an answer is a bad one.
func (a rater) onFeedbackSubmission(ctx context.Context, in *Incoming) (outcome string, err error) {
	turnID, err := strconv.ParseInt(in.Submission.State, 10, 64)
	if err != nil {
		return "", fmt.Errorf("a modal about the answer %q", in.Submission.State)
	}
	reason := strings.TrimSpace(strings.ReplaceAll(in.Submission.Inputs[view.ReasonBlock][view.ReasonAction].Value, "\x00", ""))
	if reason == "" {
		return "no reason", nil
	}
	return a.saveFeedback(ctx, in, turns.Feedback{TurnID: turnID, Reason: a.c.Redact(reason)})
}

// saveFeedback notes what a person thinks of an answer, if they may see it.
func (a rater) saveFeedback(ctx context.Context, in *Incoming, f turns.Feedback) (outcome string, err error) {
	if _, refused, err := prompter(a).ofTurn(ctx, in, f.TurnID, access.See); err != nil || refused != "" {
		return refused, err
	}
	f.UserID = in.Row.UserID
	changed, err := a.c.Store.SaveFeedback(ctx, f)
	switch {
	case err != nil:
		return "", err
	case !changed:
		return "noted already", nil
	case f.Good:
		a.Answer(in, "Noted as a good answer. Thank you.")
	case f.Reason != "":
		a.Answer(in, "Noted, with your reason. Thank you.")
	}
	return "noted", nil
}

const (
	// feedbackShown is how many reasons are shown, of feedbackRead that are looked at: of
	// channels that an admin cannot read there is none.
	feedbackShown = 15
	feedbackRead  = 200
)

// onFeedbackCommand tells an admin what people think of the answers. What they wrote is about
// what a channel was told: the admin reads the reasons of channels that they can read, and
// in direct messages their own.
func (a rater) onFeedbackCommand(ctx context.Context, in *Incoming, days string) (outcome string, err error) {
	n := periodDays(days)
	now, who := time.Now(), in.person()
	found, err := a.c.Store.FeedbackReport(ctx, a.self.Team, now.AddDate(0, 0, -n), now, feedbackRead)
	if err != nil {
		return "", err
	}
	shown := view.FeedbackReport{Period: fmt.Sprintf("the last %d days", n), Projects: found.Projects, Redact: a.c.Redact}
	readable := map[threads.Place]bool{}
	for _, r := range found.Reasons {
		place := threads.Place{ChannelID: r.ChannelID, Project: r.Project}
		may, asked := readable[place]
		if !asked {
			may = tab(a).mayRead(ctx, who, place)
			readable[place] = may
		}
		switch {
		case !may && (!access.IsDirect(r.ChannelID) || r.UserID != who.UserID):
			shown.Hidden++
		case len(shown.Reasons) == feedbackShown:
			shown.More++
		default:
			shown.Reasons = append(shown.Reasons, view.FeedbackReason{FeedbackReason: r, Permalink: a.screen.Permalink(r.ChannelID, cmp.Or(r.MessageTS, r.ThreadTS))})
		}
	}
	a.reply(in, shown)
	return "feedback", nil
}

// reportDays is what a report covers when nothing else is said.
const reportDays = 30

// periodDays reads the number of days of a report; it is empty for the usual ones.
func periodDays(days string) int {
	n, _ := strconv.Atoi(days) // a form let digits alone through
	return cmp.Or(n, reportDays)
}

// onApprovalsCommand says how long people waited for decisions, and how they were made.
func (a router) onApprovalsCommand(ctx context.Context, in *Incoming, days string) (outcome string, err error) {
	n := periodDays(days)
	report, err := a.c.Store.ApprovalsReport(ctx, a.self.Team, time.Now().AddDate(0, 0, -n), time.Now())
	if err != nil {
		return "", err
	}
	a.reply(in, view.ApprovalsReport{Period: fmt.Sprintf("the last %d days", n), Report: report})
	return "approvals", nil
}
