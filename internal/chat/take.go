package chat

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
)

const (
	// ackLimit is a chat's time for an acknowledgement, less the way back.
	ackLimit = 2500 * time.Millisecond
	// routeLimit bounds what may be done about one envelope after it is acknowledged.
	routeLimit = inbox.HoldFor * 3 / 4
	// saveLimit bounds a write that nobody waits for.
	saveLimit = 10 * time.Second
)

// Ack acknowledges what the chat has delivered: with what is wrong in a form, by input, or nil.
type Ack func(ctx context.Context, wrong map[string]string)

// Take commits what was delivered, acknowledges it, and then acts on it. What cannot be
// committed is not acknowledged, so that the chat delivers it again. in is nil for what is none of
// our business.
func (a *Chat) Take(ctx context.Context, in *Incoming, ack Ack) {
	if in == nil || (keeper{a}).ours(in.Row) {
		ack(ctx, nil)
		return
	}
	if in.ByBot {
		ack(ctx, nil)
		a.inbox.acting.Go(func() { // no answer: two bots that answer each other never end
			_ = a.recordRefusal(context.WithoutCancel(ctx), in.person(), access.Prompt, &access.Refusal{Reason: "a bot"})
		})
		return
	}
	if wrong := a.wrongIn(in.Submission); wrong != nil {
		ack(ctx, wrong)
		return
	}
	enter, leave := func() {}, func() {}
	if in.Row.Kind == inbox.Message { // or a change of one
		enter, leave = a.inbox.lanes.reserve(in.Row.ChannelID + "/" + in.Row.ThreadTS)
	}
	a.inbox.acting.Go(func() {
		defer leave()
		enter()
		// What was begun is finished even while the bot stops.
		ctx := context.WithoutCancel(ctx)
		switch {
		case in.Change != nil:
			keeper{a}.takeChange(ctx, ack, in)
		case in.Transient:
			ack(ctx, nil)
			a.Act(ctx, in)
		case in.Click != nil && !a.IsPrompt(in.Click.Action):
			// A decision is committed before it has any effect, so it need not wait for
			// the inbox: the person does, for the tool.
			var outcome string
			in.Lasts = true
			var acting sync.WaitGroup
			acting.Go(func() { outcome = a.Act(ctx, in) })
			id, fresh := keeper{a}.commit(ctx, ack, in)
			acting.Wait()
			if fresh {
				keeper{a}.finish(ctx, id, in, outcome)
			} else {
				keeper{a}.tellNow(in)
			}
		default:
			if id, fresh := (keeper{a}).commit(ctx, ack, in); fresh {
				in.Row.ID, in.Lasts = id, true
				keeper{a}.work(ctx, in)
			}
		}
	})
}

// wrongIn are the mistakes in a form that is sent, by input; nil for none.
func (a *Chat) wrongIn(s *Submission) map[string]string {
	if s == nil || a.table.forms[s.Form].wrong == nil {
		return nil
	}
	return a.table.forms[s.Form].wrong(s)
}

// takeChange acts on a change of a message. One by which the message mentions us for the first
// time is taken as a message, unless it is here already.
func (a keeper) takeChange(ctx context.Context, ack Ack, in *Incoming) {
	if !a.onChange(ctx, in) {
		return
	}
	post := in.Change.Post
	if post == nil {
		ack(ctx, nil)
	} else if id, fresh := a.commit(ctx, ack, post); fresh {
		post.Row.ID, post.Lasts = id, true
		a.work(ctx, post)
		return
	}
	a.tellLate(ctx, in)
}

// commit stores and acknowledges what was delivered. fresh is false when it was here
// already, is not for us, or could not be stored.
func (a keeper) commit(ctx context.Context, ack Ack, in *Incoming) (id int64, fresh bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, ackLimit, fmt.Errorf("commit an envelope: no end in %s", ackLimit))
	defer cancel()
	if !a.relevant(ctx, in) {
		ack(ctx, nil)
		return 0, false
	}
	row := in.Row // which whoever acts on a click reads meanwhile
	row.Holder = a.inbox.holder
	id, fresh, err := a.c.Store.Receive(ctx, row)
	if err != nil {
		a.c.Log.Error("an envelope could not be stored and is not acknowledged", zap.String("event", in.Row.EventID), zap.Error(err))
		if in.Row.Kind == inbox.Message {
			a.keepUnstored(in)
		} else if in.Row.ChannelID != "" { // it is not delivered again
			a.reply(in, view.Sentence(sorry))
		}
		return 0, false
	}
	if !fresh && !a.completeFiles(ctx, in) {
		return 0, false
	}
	ack(ctx, nil)
	return id, fresh
}
