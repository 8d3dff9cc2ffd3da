package slackui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/access"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// onFeedbackClick notes what somebody thinks of an answer, and asks why it is a bad one.
func (a *App) onFeedbackClick(ctx context.Context, in *incoming, action *slack.BlockAction) (outcome string, err error) {
	turnID, good, ok := render.ParseFeedback(action.Value)
	if !ok {
		return "", fmt.Errorf("the value of a feedback button is %q", action.Value)
	}
	outcome, err = a.saveFeedback(ctx, in, store.Feedback{TurnID: turnID, Good: good})
	if err != nil || outcome == "refused" || good {
		return outcome, err
	}
	return outcome, a.open(ctx, in, render.WhyBad(turnID))
}

// onFeedbackSubmission notes why somebody thinks that an answer is a bad one.
func (a *App) onFeedbackSubmission(ctx context.Context, in *incoming) (outcome string, err error) {
	turnID, err := strconv.ParseInt(in.submission.View.PrivateMetadata, 10, 64)
	if err != nil {
		return "", fmt.Errorf("a modal about the answer %q", in.submission.View.PrivateMetadata)
	}
	reason := strings.TrimSpace(strings.ReplaceAll(in.submitted()[render.ReasonBlock][render.ReasonAction].Value, "\x00", ""))
	if reason == "" {
		return "no reason", nil
	}
	return a.saveFeedback(ctx, in, store.Feedback{TurnID: turnID, Reason: a.c.Redact(reason)})
}

// saveFeedback notes what a person thinks of an answer, if they may see it. A click must
// come from the turn's own channel: an id that was learnt elsewhere says nothing.
func (a *App) saveFeedback(ctx context.Context, in *incoming, f store.Feedback) (outcome string, err error) {
	thread, err := a.c.Store.ThreadOfTurn(ctx, f.TurnID)
	if errors.Is(err, store.ErrNotFound) || err == nil && in.click != nil && thread.ChannelID != in.store.ChannelID {
		a.answer(in, "This button does not belong to an answer here.")
		return "refused", nil
	}
	if err != nil {
		return "", err
	}
	in.store.ChannelID, in.store.ThreadTS = thread.ChannelID, thread.ThreadTS // a modal is nowhere itself
	who := in.person()
	who.Project = thread.Project
	if r := a.authorise(ctx, who, access.See); r != nil {
		a.answer(in, r.Sentence+a.typed(in))
		return "refused", nil
	}
	f.UserID = in.store.UserID
	changed, err := a.c.Store.SaveFeedback(ctx, f)
	switch {
	case err != nil:
		return "", err
	case !changed:
		return "noted already", nil
	case f.Good:
		a.answer(in, "Noted as a good answer. Thank you.")
	case f.Reason != "":
		a.answer(in, "Noted, with your reason. Thank you.")
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
func (a *App) onFeedbackCommand(ctx context.Context, in *incoming, days string) (outcome string, err error) {
	n, err := periodDays(days)
	if err != nil {
		return "", err
	}
	now, who := time.Now(), in.person()
	found, err := a.c.Store.FeedbackReport(ctx, a.self.TeamID, now.AddDate(0, 0, -n), now, feedbackRead)
	if err != nil {
		return "", err
	}
	view := render.FeedbackView{Period: fmt.Sprintf("the last %d days", n), Projects: found.Projects, Redact: a.c.Redact}
	readable := map[store.ThreadPlace]bool{}
	for _, r := range found.Reasons {
		place := store.ThreadPlace{ChannelID: r.ChannelID, Project: r.Project}
		may, asked := readable[place]
		if !asked {
			may = a.mayRead(ctx, who, place)
			readable[place] = may
		}
		switch {
		case !may && (!access.IsDirect(r.ChannelID) || r.UserID != who.UserID):
			view.Hidden++
		case len(view.Reasons) == feedbackShown:
			view.More++
		default:
			view.Reasons = append(view.Reasons, render.FeedbackReason{FeedbackReason: r, Permalink: a.permalink(r.ChannelID, cmp.Or(r.MessageTS, r.ThreadTS))})
		}
	}
	a.reply(in, render.FeedbackReport(view))
	return "feedback", nil
}
