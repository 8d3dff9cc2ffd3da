package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// onQueueClick sends a prompt that waits at once, or drops it. Who may stop what runs may
// do both, and its author may drop it.
func (a prompter) onQueueClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	inboxID, err := strconv.ParseInt(in.Click.Value, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the value of a button of the queue is not a message: %w", err)
	}
	thread, err := a.here(ctx, in)
	if err != nil {
		return "", err
	}
	q, err := a.c.Store.Queue(ctx, thread.ID)
	if err != nil && !errors.Is(err, pg.ErrNotFound) {
		return "", err
	}
	ts, err := a.PostedAs(ctx, outbox.QueuePost, FormatID(thread.ID))
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(q.Prompts, func(p inbox.QueuedPrompt) bool { return p.InboxID == inboxID })
	who, act := in.at(thread), access.Stop
	if i >= 0 && in.Click.Action == view.ActionDrop && q.Prompts[i].UserID == who.UserID {
		act = access.Prompt
	}
	if a.refuses(ctx, in, who, act) {
		return "refused", nil
	}
	// A message's ts is not known yet while it is being posted.
	if ts != "" && ts != in.Row.TS {
		a.Answer(in, "This button does not belong to what waits in this thread now.")
		return "wrong message", nil
	}
	done, ok := "sent at once", false
	var rows []outbox.Row
	switch {
	case i < 0:
	case in.Click.Action == view.ActionDrop:
		done = "dropped"
		said := ""
		if author := q.Prompts[i].UserID; author != who.UserID {
			said = a.nameOf(ctx, in) + " dropped the waiting message of " + a.people.Name(ctx, author) + "."
		}
		ok, rows, err = a.c.Store.DropWaiting(ctx, inboxID, who.UserID, string(agent.PromptStopped), said)
	default:
		ok, err = a.c.Store.SendNow(ctx, inboxID, who.UserID)
	}
	if err != nil {
		return "", err
	}
	a.Outbox.Tell(rows...)
	a.refreshQueue(thread)
	if !ok {
		a.Answer(in, "That message waits no longer: it is being worked on, or was dropped or taken back.")
		return "too late", nil
	}
	a.agent.Wake(thread.ID)
	return done, nil
}

// refreshQueue shows what waits in a thread, unless another replica that works on the
// thread does.
func (a *Chat) refreshQueue(t threads.Thread) {
	if t.ID == 0 || t.LeaseOwner != "" && t.LeaseOwner != a.c.Replica {
		return
	}
	a.posts.Show(outbox.QueuePost, FormatID(t.ID))
}
