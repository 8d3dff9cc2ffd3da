package slackui

import (
	"context"
	"errors"
	"slices"

	"deckhand/internal/agent"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/store/outbox"
)

// takeAway returns what ends the showing of a turn of which some pages have no place any more,
// as those that had a closing answer before: their messages are deleted, and then end is called.
func (f *frontend) takeAway(t agent.TurnView, pages []int, end func(error)) func(error) {
	if len(pages) == 0 || end == nil {
		return end
	}
	return func(err error) {
		if err != nil {
			end(err)
			return
		}
		f.app.publisher.Once(publish.Call{
			Method: publish.DeleteMessage, Priority: publish.Answer, Group: t.Thread.ThreadTS, Patient: true, OnEnd: end,
			What: "take away what a closing answer has said again",
			Do: func(ctx context.Context) error {
				posted, err := f.app.c.Store.TurnPosts(ctx, t.ID)
				for _, m := range posted {
					if m.Kind == outbox.TurnPost && slices.Contains(pages, m.Part) {
						err = errors.Join(err, f.remove(ctx, m))
					}
				}
				return err
			},
		})
	}
}

// remove deletes a message of ours, also one that is a stream.
func (f *frontend) remove(ctx context.Context, m outbox.PostedMessage) error {
	_, _, err := f.app.api.DeleteMessageContext(ctx, m.ChannelID, m.TS)
	if refusedAs(err, "cant_delete_message") {
		if _, _, err := f.app.api.StopStreamContext(ctx, m.ChannelID, m.TS); err != nil && !publish.IsOver(err) {
			return err
		}
		_, _, err = f.app.api.DeleteMessageContext(ctx, m.ChannelID, m.TS)
	}
	if refusedAs(err, "message_not_found") {
		return nil
	}
	return err
}
