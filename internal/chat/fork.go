package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/chat/view"
	"deckhand/internal/store"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

const (
	// savedWait is how long a fork waits at most until the last turn's work is saved, and savedEvery
	// how often it asks.
	savedWait  = time.Minute
	savedEvery = 200 * time.Millisecond
)

// onForkCommand begins a thread in the channel that has the conversation and the files of the
// one in which it is said, as they are kept, or were after a turn, and links the two. Done again after a crash, it
// finds the post that it has made, and the thread of it.
func (a steerer) onForkCommand(ctx context.Context, in *Incoming, t threads.Thread, words string) (outcome string, err error) {
	last, err := a.c.Store.LastPrompt(ctx, t.ID)
	switch {
	case errors.Is(err, pg.ErrNotFound):
		a.Answer(in, noSession)
		return "no session", nil
	case err != nil:
		return "", err
	case last.Running:
		a.Answer(in, "The last message is still being worked on, or waits. Write “fork” when it is done, or “stop” first.")
		return "still running", nil
	}
	var after *store.Point
	session := uuid.NewString()
	if words != "" {
		h, ok, err := a.past(ctx, in, t, "fork")
		if err != nil || !ok {
			return "no fork", err
		}
		if strings.EqualFold(words, "from") {
			page := a.listPast(h, "Choose the message after which the other thread begins. “fork” alone takes this thread as it is now.", func(p store.Past) (string, bool) {
				_, kept := h.State(p.Turn)
				return fmt.Sprintf("fork %d", p.Turn), kept && h.Held
			})
			if len(page.Choices) == 0 {
				page.Sentence = "There is no message yet after which another thread could begin. Write “fork” to take this thread as it is now."
			}
			a.reply(in, page)
			return "forks", nil
		}
		if after, session, err = a.point(ctx, in, h, words); err != nil || after == nil {
			return "no fork", err
		}
	} else if a.agent.KeepsWork(t.Project) {
		a.untilSaved(ctx, t.ID)
	}
	name := a.nameOf(ctx, in)
	above := *in
	above.Row.ThreadTS = ""
	ts, err := a.screen.PostOnce(ctx, &above, view.Forked{Name: name, Title: t.Title, Address: a.screen.Permalink(t.ChannelID, t.ThreadTS)})
	if err != nil {
		return "", err
	}
	key := t.Key()
	key.ThreadTS = ts
	_, err = a.c.Store.Fork(ctx, store.Fork{From: t.ID, Key: key, By: in.Row.UserID, SessionID: session, Title: t.Title, After: after})
	page, outcome := view.Page(view.ForkedHere{Name: name, Address: a.screen.Permalink(key.ChannelID, ts)}), "forked"
	switch {
	case errors.Is(err, pg.ErrNotYet), errors.Is(err, store.ErrNothingKept):
		above.Row.ThreadTS = ts
		page, outcome = view.Sentence("This thread was not begun: a message is being worked on in the one that it was to be forked from. Write “fork” there again."), "still running"
		if errors.Is(err, store.ErrNothingKept) {
			page, outcome = view.Sentence("This thread was not begun: the conversation that it was to begin with is not kept any more. Write in the old thread what is to be done."), "nothing kept"
		}
		_, err = a.screen.PostOnce(ctx, &above, page)
		return outcome, err
	case err != nil:
		return "", err
	}
	_, err = a.screen.PostOnce(ctx, in, page)
	return outcome, err
}

// untilSaved waits until the work of the thread's last turn is saved, or savedWait: what could not be
// saved does not come along.
func (a steerer) untilSaved(ctx context.Context, threadID int64) {
	until(ctx, savedWait, savedEvery, func(ctx context.Context) bool {
		saved, err := a.c.Store.WorkSaved(ctx, threadID)
		return err == nil && saved
	})
}

// until asks again and again, for some time, whether something is done.
func until(ctx context.Context, most, every time.Duration, done func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !done(ctx) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
