package slackui

import (
	"context"
	"errors"
	"slices"
	"time"

	"deckhand/internal/agent/ask"
	"deckhand/internal/chat"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// errBelow is why a decided card is not shown yet: one above it is still to be posted.
var errBelow = errors.New("a card above is still to be posted")

// ShowCard implements [chat.Screen]: as the card, below what its turn said before, or as
// the message in which its turn goes on. No other place decides that.
func (f *turnScreen) ShowCard(c chat.CardPosting) {
	first, end := c.First, c.OnEnd
	m := f.cardMessage(first.ThreadKey, first.Project, first.CardID, first.CreatedAt)
	m.OnEnd = end
	f.mu.Lock()
	defer f.mu.Unlock()
	s, own := f.shown[first.TurnID], false
	if s != nil {
		own = slices.ContainsFunc(s.latest.Cards, func(c ask.Card) bool { return c.ID == first.CardID })
		if render.GoesOn(s.latest, f.rendering(s.latest), first.CardID) {
			shown := false
			s.render(f, func(page *publish.Message) {
				if page.Key == m.Key {
					shown, page.OnEnd, page.TS, page.Priority = true, end, first.MessageTS, priorities[c.Urgency]
				}
			})
			if !shown && end != nil {
				end(errBelow)
			}
			return
		}
		if own && !c.Posted {
			s.render(f, unchanged) // what led to it
		}
		if own {
			m.After = s.above(m.Key)
		}
	}
	if c.Elsewhere || f.again[first.TurnID] {
		if end != nil {
			end(c.Why)
		}
		return
	}
	m.TS, m.Page, m.Priority = first.MessageTS, f.poster.shown(c.Page), priorities[c.Urgency]
	m.Final = !c.Pending && !own && !first.TurnEnded // whoever shows how its turn ended may go on in it
	f.publisher.Show(m)
	if own && !c.Posted {
		s.render(f, unchanged) // what waited for it, see untilOpenCard
	}
}

// cardMessage is the message of a card that was asked for at a time.
func (f *turnScreen) cardMessage(k threads.ThreadKey, project, cardID string, at time.Time) publish.Message {
	mark := chat.CardMark(cardID, at)
	return publish.Message{
		Key: chat.CardKey(cardID), Channel: k.ChannelID, ThreadTS: k.ThreadTS, Group: k.ThreadTS, Broadcast: f.chat.Broadcasts(project, k),
		Metadata: metadataOf(mark), Find: func(ctx context.Context) (string, error) { return f.Find(ctx, whereOf(k), mark) },
		OnPosted: func(ts string) {
			f.sessions.posted(k)
			f.chat.Note(outbox.PostedMessage{Kind: outbox.CardPost, Subject: cardID, ChannelID: k.ChannelID, TS: ts})
		},
	}
}
