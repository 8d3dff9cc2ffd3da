package chat

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/chat/view"
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

// callLook is how long a card waits for the chat to tell whom it calls.
const callLook = 2 * time.Second

// view is a card with whom it calls. Where the chat does not tell in time whether the
// person who asked may decide, others are called; known is false then.
func (p cards) view(ctx context.Context, list []approvals.Approval, copies []outbox.PostedMessage) (v cardView, known bool) {
	ctx, cancel := context.WithTimeout(ctx, callLook)
	defer cancel()
	v, known = cardView{list: list, call: map[string]Call{}, names: map[string]string{}, copies: copies}, true
	for _, a := range list {
		if a.Status != approvals.Pending {
			continue
		}
		to, ok := p.Called(ctx, a)
		v.call[a.ID], known = to, known && ok
		named := []string{a.RequestedBy}
		if len(to.Direct) <= callMost { // who decides may be said by name
			named = append(named, to.Direct...)
		}
		for _, id := range named {
			if id == "" || isGroup(id) || v.names[id] != "" {
				continue
			}
			v.names[id] = p.people.Name(ctx, id)
			known = known && v.names[id] != id
		}
	}
	return v, known
}

// callsNow are a card's requests for which nobody was called directly yet: they are from
// now on. p.mu is held.
func (p cards) callsNow(v cardView) (asked []string) {
	for _, a := range v.list {
		switch {
		case a.Status != approvals.Pending:
			delete(p.called, a.ID)
		case v.call[a.ID].Copies && !p.called[a.ID]:
			p.called[a.ID] = true
			asked = append(asked, a.ID)
		}
	}
	return asked
}

// callDirectly sends a card to those who may decide about approvals on it. end is called
// with what became of it; it may be nil. p.mu is held.
func (p cards) callDirectly(cardID string, asked []string, end func(error)) {
	if p.closed {
		return // the next process does
	}
	key := "call/" + asked[0]
	p.reading[key] = &reading{done: make(chan struct{})}
	p.reads.Go(func() {
		v, err := p.tryToCall(cardID)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.reading, key)
		if err == nil {
			p.showCard(v, end)
			return
		}
		for _, id := range asked {
			delete(p.called, id) // whoever shows the card next tries again
		}
		p.c.Log.Error("call those who may decide by direct message", zap.String("card", cardID), zap.Error(err))
		if end != nil {
			end(err)
		}
	})
}

// tryToCall is addCopies, tried again for a while.
func (p cards) tryToCall(cardID string) (v cardView, err error) {
	for range readAttempts {
		ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
		v, err = p.addCopies(ctx, cardID)
		cancel()
		if err == nil || !p.pause() {
			break
		}
	}
	return v, err
}

// addCopies records whom a card is sent to, before it is, and returns the card with its
// copies. If nobody can be sent one the thread is told, as by a reminder.
func (p cards) addCopies(ctx context.Context, cardID string) (cardView, error) {
	db := p.c.Store
	list, err := db.CardApprovals(ctx, cardID)
	if err != nil {
		return cardView{}, err
	}
	posts, err := db.Posts(ctx, outbox.CardPost, cardID)
	if err != nil {
		return cardView{}, err
	}
	v, _ := p.view(ctx, list, nil)
	have := map[string]bool{}
	for _, c := range copiesIn(posts) {
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
		people, err := p.WhoMayDecide(ctx, a, to.Direct)
		if to.Readers {
			people = slices.DeleteFunc(people, func(user string) bool { return !p.people.Reads(ctx, user, a.ChannelID) })
		}
		failed = errors.Join(failed, err)
		for _, user := range people {
			if have[user] {
				continue
			}
			channel, err := p.people.Direct(ctx, user)
			if failed = errors.Join(failed, err); err == nil {
				have[user] = true
				add = append(add, outbox.PostedMessage{Kind: outbox.CardPost, Subject: cardID, Audience: user, ChannelID: channel})
			}
		}
		if len(have)+len(to.Mention) == 0 && failed == nil {
			p.screen.Say(whereOf(a.ThreadKey), view.Reminder{Approval: a, To: to.Direct, Redact: p.c.Redact})
		}
	}
	if len(have) == 0 && failed != nil {
		return cardView{}, failed
	}
	if failed != nil {
		p.c.Log.Warn("not everybody who may decide can be sent a direct message", zap.String("card", cardID), zap.Error(failed))
	}
	if err := db.SavePosts(ctx, add...); err != nil {
		return cardView{}, err
	}
	posts, err = db.Posts(ctx, outbox.CardPost, cardID)
	if v.copies = copiesIn(posts); err != nil {
		return v, err
	}
	v.elsewhere, err = p.wentOn(ctx, list)
	return v, err
}

// showCopy shows a person's copy. p.mu is held.
func (p cards) showCopy(v cardView, c outbox.PostedMessage, final bool, end func(error)) {
	mark := CardMark(c.Subject, c.CreatedAt)
	mark.Doubtful = !v.fresh
	p.screen.Post(Posting{
		Key: "copy/" + c.Subject + "/" + c.Audience, At: Where{Channel: c.ChannelID}, Group: v.list[0].ThreadTS, TS: c.TS,
		Page: p.copyPage(v), Mark: mark, Urgency: cardUrgency(v.list, c.Audience), Final: final, OnEnd: end,
		OnPosted: func(ts string) {
			c.TS = ts
			p.Note(c)
		},
	})
}
