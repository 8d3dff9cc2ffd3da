package chat

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
)

// tellLate tells the author of a message that is worked on that a change of it comes too late.
func (a keeper) tellLate(ctx context.Context, in *Incoming) {
	e := in.Row
	was, err := a.c.Store.WorkedOn(ctx, inbox.Post{TeamID: e.TeamID, ChannelID: e.ChannelID, TS: e.TS, UserID: e.UserID})
	if errors.Is(err, pg.ErrNotFound) {
		return
	}
	late := deletedLate
	if !in.Change.Deleted && err == nil {
		late = editedLate
		var differs bool
		if _, differs, err = in.Change.Apply(was); err == nil && !differs {
			return
		}
	}
	if err != nil {
		a.c.Log.Error("tell that a change comes too late", zap.String("ts", e.TS), zap.Error(err))
		return
	}
	a.reply(in, view.Sentence(late))
}

// onChange has a message that still waits say what its author has made of it: it is
// received again, so that they are authorised again. What is worked on already is not
// changed. It reports false when that could not be written down, and Slack has to tell it
// again.
func (a keeper) onChange(ctx context.Context, in *Incoming) (ok bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, ackLimit, fmt.Errorf("change a message: no end in %s", ackLimit))
	defer cancel()
	e, post := in.Row, inbox.Post{TeamID: in.Row.TeamID, ChannelID: in.Row.ChannelID, TS: in.Row.TS, UserID: in.Row.UserID}
	var changed bool
	var rows []outbox.Row
	var err error
	if in.Change.Deleted {
		changed, rows, err = a.c.Store.Delete(ctx, post)
	} else {
		changed, err = a.c.Store.Edit(ctx, post, in.Change.Apply)
	}
	if err != nil {
		return a.changeFailed(in, "What you made of your message", err)
	}
	if !changed {
		return true
	}
	a.c.Log.Info("a message that waits was changed", zap.String("ts", e.TS), zap.String("user", e.UserID), zap.Bool("deleted", in.Change.Deleted))
	a.Outbox.Tell(rows...)
	if thread, err := a.c.Store.ThreadByKey(ctx, e.Key()); err == nil {
		a.refreshQueue(thread)
	}
	a.inbox.lookAgain(0)
	return true
}

// changeFailed reports false when Slack has to tell a change again. Else its author is told
// that what, at the beginning of a sentence, was not taken.
func (a keeper) changeFailed(in *Incoming, what string, err error) (told bool) {
	_, again := passes(err)
	a.c.Log.Error("a change of a message that waits", zap.String("ts", in.Row.TS), zap.Bool("again", again), zap.Error(err))
	if !again {
		a.reply(in, view.Sentence(what+" could not be taken, as Deckhand has trouble with it. Write it in a message of its own; if that fails, too, ask an admin to look at its log."))
	}
	return !again
}

// completeFiles gives a post that is in the inbox the files that this delivery of it has:
// a mention may come as two events, of which the first has none. It reports false when that
// could not be written down, and Slack has to tell it again.
func (a keeper) completeFiles(ctx context.Context, in *Incoming) (ok bool) {
	if in.Message == nil || len(in.Message.Files) == 0 {
		return true
	}
	e := in.Row
	changed, err := a.c.Store.Edit(ctx, inbox.Post{TeamID: e.TeamID, ChannelID: e.ChannelID, TS: e.TS, UserID: e.UserID}, in.Message.AddFiles)
	if err != nil {
		return a.changeFailed(in, "The files of your message", err)
	}
	if changed {
		a.inbox.lookAgain(0)
	}
	return true
}

// What authors of messages that are worked on are told when they change them.
const (
	editedLate  = "Deckhand works on this message already, as it read before your edit. Reply in the thread to add something, or write “stop” there to stop it."
	deletedLate = "Deckhand works on the message that you deleted. Write “stop” in the thread to stop it."
)
