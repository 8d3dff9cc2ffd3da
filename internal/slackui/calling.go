package slackui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/outbox"
)

// Who is needed is called once, when a card is posted: the person who asked, if they may
// decide alone, else those who may. The card mentions them, or each of them gets a copy of
// it as a direct message, which is edited with it and has the same buttons. Edits call
// nobody.
//
// By default few people are sent a copy: whoever is mentioned follows the thread, and would
// hear of all that is said there from then on. Who has written there follows it already, and
// is mentioned.
//
// Security. A copy shows a request to people who may decide about it and, where the project
// says dm, may not be in its channel. It is posted to those alone who might decide at that moment, and gives no right:
// a click on it is authorised as one on the card is.

// callLook is how long a card waits for Slack to tell whom it calls.
const callLook = 2 * time.Second

// viewCard is a card with whom it calls. Where Slack does not tell in time whether the
// person who asked may decide, others are called; known is false then.
func (f *frontend) viewCard(ctx context.Context, list []approvals.Approval, copies []outbox.PostedMessage) (v cardView, known bool) {
	ctx, cancel := context.WithTimeout(ctx, callLook)
	defer cancel()
	v, known = cardView{list: list, call: map[string]chat.Call{}, names: map[string]string{}, copies: copies}, true
	for _, a := range list {
		if a.Status != approvals.Pending {
			continue
		}
		to, ok := f.app.Called(ctx, a)
		v.call[a.ID], known = to, known && ok
		named := []string{a.RequestedBy}
		if len(to.Direct) <= chat.CallMost { // who decides may be said by name
			named = append(named, to.Direct...)
		}
		for _, id := range named {
			if id == "" || strings.HasPrefix(id, "S") || v.names[id] != "" || slices.Contains(to.Mention, id) {
				continue
			}
			v.names[id] = f.app.people.Name(ctx, id)
			known = known && v.names[id] != id
		}
	}
	return v, known
}

// callsNow are a card's requests for which nobody was called directly yet: they are from
// now on. f.cardsMu is held.
func (f *frontend) callsNow(v cardView) (asked []string) {
	for _, a := range v.list {
		switch {
		case a.Status != approvals.Pending:
			delete(f.called, a.ID)
		case v.call[a.ID].Copies && !f.called[a.ID]:
			f.called[a.ID] = true
			asked = append(asked, a.ID)
		}
	}
	return asked
}

// callDirectly sends a card to those who may decide about approvals on it. end is called
// with what became of it; it may be nil. f.cardsMu is held.
func (f *frontend) callDirectly(cardID string, approvals []string, end func(error)) {
	if f.closed {
		return // the next process does
	}
	key := "call/" + approvals[0]
	f.reading[key] = &cardReading{done: make(chan struct{})}
	f.reads.Go(func() {
		v, err := f.tryToCall(cardID)
		f.cardsMu.Lock()
		defer f.cardsMu.Unlock()
		delete(f.reading, key)
		if err == nil {
			f.showCard(v, end)
			return
		}
		for _, id := range approvals {
			delete(f.called, id) // whoever shows the card next tries again
		}
		f.app.c.Log.Error("call those who may decide by direct message", zap.String("card", cardID), zap.Error(err))
		if end != nil {
			end(err)
		}
	})
}

// tryToCall is addCopies, tried again for a while.
func (f *frontend) tryToCall(cardID string) (v cardView, err error) {
	for range cardAttempts {
		ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
		v, err = f.addCopies(ctx, cardID)
		cancel()
		if err == nil {
			return v, nil
		}
		select {
		case <-f.closing:
			return v, err
		case <-time.After(cardPause):
		}
	}
	return v, err
}

// addCopies records whom a card is sent to, before it is, and returns the card with its
// copies. If nobody can be sent one the thread is told, as by a reminder.
func (f *frontend) addCopies(ctx context.Context, cardID string) (cardView, error) {
	db := f.app.c.Store
	list, err := db.CardApprovals(ctx, cardID)
	if err != nil {
		return cardView{}, err
	}
	posts, err := db.Posts(ctx, outbox.CardPost, cardID)
	if err != nil {
		return cardView{}, err
	}
	v, _ := f.viewCard(ctx, list, nil)
	have := map[string]bool{}
	for _, c := range chat.CopiesIn(posts) {
		have[c.Audience] = true
	}
	v.fresh = len(have) == 0
	var add []outbox.PostedMessage
	var failed error
	for _, a := range list {
		to, pending := v.call[a.ID]
		if !pending || !to.Copies {
			continue
		}
		people, err := f.app.WhoMayDecide(ctx, a, to.Direct)
		if to.Readers {
			people = slices.DeleteFunc(people, func(user string) bool { return !f.app.people.Reads(ctx, user, a.ChannelID) })
		}
		failed = errors.Join(failed, err)
		for _, user := range people {
			if have[user] {
				continue
			}
			channel, err := f.app.people.Direct(ctx, user)
			if failed = errors.Join(failed, err); err == nil {
				have[user] = true
				add = append(add, outbox.PostedMessage{Kind: outbox.CardPost, Subject: cardID, Audience: user, ChannelID: channel})
			}
		}
		if len(have)+len(to.Mention) == 0 && failed == nil {
			f.app.say(a.ChannelID, a.ThreadTS, render.Reminder(view.Reminder{Approval: a, To: to.Direct, Redact: f.app.c.Redact}))
		}
	}
	if len(have) == 0 && failed != nil {
		return cardView{}, failed
	}
	if failed != nil {
		f.app.c.Log.Warn("not everybody who may decide can be sent a direct message", zap.String("card", cardID), zap.Error(failed))
	}
	if err := db.SavePosts(ctx, add...); err != nil {
		return cardView{}, err
	}
	posts, err = db.Posts(ctx, outbox.CardPost, cardID)
	if v.copies = chat.CopiesIn(posts); err != nil {
		return v, err
	}
	v.elsewhere, err = f.wentOn(ctx, list)
	return v, err
}

// showCopy hands a copy to the publisher. f.cardsMu is held.
func (f *frontend) showCopy(v cardView, c outbox.PostedMessage, final bool, end func(error)) {
	first := v.list[0]
	mark := metadata(cardType, "card", c.Subject)
	f.app.publisher.Show(publish.Message{
		Key: "copy/" + c.Subject + "/" + c.Audience, Channel: c.ChannelID, Group: first.ThreadTS, TS: c.TS,
		Page: f.cardPage(v, true), Metadata: mark,
		Find: f.findDirect(c.ChannelID, c.CreatedAt, mark), Doubtful: !v.fresh, Priority: cardPriority(v.list, c.Audience), Final: final, OnEnd: end,
		OnPosted: func(ts string) {
			c.TS = ts
			f.note(c)
		},
		OnError: func(err error) {
			f.app.c.Log.Warn("show a card's copy", zap.String("card", c.Subject), zap.String("user", c.Audience), zap.Error(err))
		},
	})
}

// findDirect returns the ts of our message in a direct message that was posted with this
// metadata, or "".
func (f *frontend) findDirect(channel string, since time.Time, mark slack.SlackMetadata) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		found, err := f.app.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
			ChannelID: channel, Oldest: slackTime(since.Add(-lookBack)), Limit: 200, IncludeAllMetadata: true,
		})
		if err != nil {
			return "", err
		}
		for _, m := range found.Messages {
			if m.User == f.app.self.UserID && marked(m, mark) {
				return m.Timestamp, nil
			}
		}
		return "", nil
	}
}

// marked reports whether a message was posted with this metadata, or begun as a stream of
// the page of a turn that has it.
func marked(m slack.Message, mark slack.SlackMetadata) bool {
	if turn, page := mark.EventPayload["turn"], mark.EventPayload["page"]; mark.EventType == turnType && m.Metadata.EventType == "" {
		return streamOf(m, fmt.Sprint(turn)) == fmt.Sprint(page)
	}
	return m.Metadata.EventType == mark.EventType && maps.EqualFunc(m.Metadata.EventPayload, mark.EventPayload, func(a, b any) bool { return a == b })
}
