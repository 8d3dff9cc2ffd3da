package slackui

import (
	"context"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/chat"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/store/outbox"
)

// waitEmoji marks a message that waits: ⏳.
const waitEmoji = "hourglass_flowing_sand"

// showWaits shows on a person's message whether it waits, as its row says; and in its
// thread that it was given up.
func (f *frontend) showWaits(w outbox.Row) {
	end := f.app.Outbox.Showing(outbox.Shown{Kind: outbox.Waits, Subject: chat.Number(w.InboxID), UpTo: w.ID})
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	if f.closed {
		return // it is in the database
	}
	f.reads.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
		defer cancel()
		p, err := f.app.c.Store.PostWaits(ctx, w.InboxID)
		switch {
		case err != nil:
			end(err)
		case p.Waits:
			f.app.markWaits(w.ChannelID, w.TS, true, end)
		case p.GivenUp != "":
			end = together(4, end)
			f.app.markWaits(w.ChannelID, w.TS, false, end)
			f.app.unreact(w.ChannelID, w.TS, "eyes", end)
			f.app.react(w.ChannelID, w.TS, marks[agent.PromptFailed], end)
			w.ThreadTS, w.Body = p.ThreadTS, chat.NotWorkedOn(p.GivenUp)
			w.Again = true // an earlier row of the same post may have said it
			f.saySentence(w, metadata(outboxType, "given up", chat.Number(w.InboxID)), end)
		default:
			f.app.markWaits(w.ChannelID, w.TS, false, end)
		}
	})
}

// markWaits shows on a person's message that it waits, or that it does no longer. end,
// if it is not nil, is called with what became of it.
func (a *App) markWaits(channel, ts string, waits bool, end func(error)) {
	method, call := publish.RemoveReaction, a.api.RemoveReactionContext
	if waits {
		method, call = publish.AddReaction, a.api.AddReactionContext
	}
	a.publisher.Once(publish.Call{
		Method: method, Priority: publish.Answer, Group: ts, Key: "waits/" + channel + "/" + ts, Replace: true, What: "mark a message that waits", Patient: end != nil, OnEnd: end,
		Do: func(ctx context.Context) error {
			err := call(ctx, waitEmoji, slack.NewRefToMessage(channel, ts))
			if refusedAs(err, "already_reacted") || refusedAs(err, "no_reaction") {
				return nil
			}
			return err
		},
	})
}
