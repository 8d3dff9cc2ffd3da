package slackui

import (
	"context"
	"fmt"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// A card shows the approvals that were asked without a word between them, so what
// it shows is read from the database whenever one of them changes: whichever
// replica they changed on, the last rendering shows them all as they stand.

const (
	cardAttempts = 8
	cardPause    = time.Second
	// cardFresh is how soon after it was asked an approval is shown by whoever asked it: a
	// process that takes over takes longer to begin.
	cardFresh = time.Second
)

// ShowApproval implements [agent.Frontend].
func (f *frontend) ShowApproval(a store.Approval) {
	if a.DecidedVia == "rule" || a.DecidedVia == "grant" {
		return // it never had a card
	}
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	asked := f.posting[a.CardID] || time.Since(a.CreatedAt) < cardFresh // else another process may have posted it
	if _, reading := f.reading[a.CardID]; !reading && asked && a.ID == a.CardID && a.Status == store.ApprovalPending && a.MessageTS == "" && len(a.Votes) == 0 {
		f.showCard([]store.Approval{a}) // it is new, and alone: it need not wait for a read
		return
	}
	f.refreshCard(a.CardID)
}

// CloseCards implements [agent.Frontend].
func (f *frontend) CloseCards(ids []string) {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	for _, id := range ids {
		f.refreshCard(id)
	}
}

// refreshCard has a card read and shown. f.cardsMu is held.
func (f *frontend) refreshCard(id string) {
	f.refresh(id, func(ctx context.Context) (show func(), err error) {
		list, err := f.app.c.Store.CardApprovals(ctx, id)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		f.recoverCard(ctx, &list[0])
		return func() { f.showCard(list) }, nil
	})
}

// cardType is the type of the metadata that a card is posted with; its payload is
// {"card": CardID}, which the card's buttons have, too.
const cardType = "deckhand_card"

// recoverCard looks in Slack for a card that nobody has noted: a process that dies between
// its post and the note of it would leave it dead beside a second one. What cannot be
// looked up is posted, since a second card is better than none.
func (f *frontend) recoverCard(ctx context.Context, first *store.Approval) {
	f.cardsMu.Lock()
	ours := f.posting[first.CardID]
	f.cardsMu.Unlock()
	if ours || first.MessageTS != "" {
		return
	}
	found, _, _, err := f.app.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
		ChannelID: first.Thread.ChannelID, Timestamp: first.Thread.ThreadTS, Limit: 200, IncludeAllMetadata: true,
		Oldest: fmt.Sprintf("%d.000000", first.CreatedAt.Add(-time.Minute).Unix()), // our clock need not be Slack's
	})
	if err != nil {
		f.app.log.Warn("look for a card that an earlier process may have posted", zap.String("card", first.CardID), zap.Error(err))
	}
	for _, m := range found {
		if m.User != f.app.self.UserID || m.Metadata.EventType != cardType || m.Metadata.EventPayload["card"] != first.CardID {
			continue // anybody may write metadata
		}
		first.MessageTS = m.Timestamp
		f.save("card", func(ctx context.Context) error {
			return f.app.c.Store.SaveApprovalMessage(ctx, first.CardID, store.PostedMessage{ChannelID: first.Thread.ChannelID, TS: m.Timestamp})
		})
	}
}

// refresh has something read and shown, by its id. f.cardsMu is held, and so it is when
// it is shown.
func (f *frontend) refresh(id string, read func(context.Context) (show func(), err error)) {
	if _, reading := f.reading[id]; reading {
		f.reading[id] = true
		return
	}
	if f.closed {
		return
	}
	f.reading[id] = false
	f.reads.Go(func() { f.keepReading(id, read) })
}

// finish waits for the cards that are being read; from then on none is.
func (f *frontend) finish() {
	f.cardsMu.Lock()
	if !f.closed {
		f.closed = true
		close(f.closing)
	}
	f.cardsMu.Unlock()
	f.reads.Wait()
}

// keepReading shows something as it stands until nothing has changed meanwhile.
func (f *frontend) keepReading(id string, read func(context.Context) (show func(), err error)) {
	for attempt := 1; ; attempt++ {
		ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
		show, err := read(ctx)
		cancel()
		f.cardsMu.Lock()
		if err == nil && show != nil {
			show()
		}
		again := f.reading[id]
		failed := err != nil && attempt < cardAttempts && !f.closed
		if !again && !failed {
			delete(f.reading, id)
			f.cardsMu.Unlock()
			if err != nil {
				f.app.log.Error("read a card", zap.String("card", id), zap.Error(err))
			}
			return
		}
		f.reading[id] = false
		f.cardsMu.Unlock()
		if failed {
			select {
			case <-f.closing:
			case <-time.After(cardPause):
			}
		}
	}
}

// showCard hands the card to the publisher. f.cardsMu is held, so that renderings
// reach it in order.
func (f *frontend) showCard(list []store.Approval) {
	first, open := list[0], false
	for _, a := range list {
		open = open || a.Status == store.ApprovalPending || !a.TurnEnded
	}
	if f.posting[first.CardID] = true; !open {
		delete(f.posting, first.CardID)
	}
	f.app.publisher.Show(publish.Message{
		Metadata: slack.SlackMetadata{EventType: cardType, EventPayload: map[string]any{"card": first.CardID}},
		Key:      "approval/" + first.CardID, After: f.lead(first.TurnID), Channel: first.Thread.ChannelID, ThreadTS: first.Thread.ThreadTS, Group: first.Thread.ThreadTS,
		TS: first.MessageTS, Page: f.card(list),
		Priority: publish.High, Final: !open,
		OnPosted: func(ts string) {
			f.save("card", func(ctx context.Context) error {
				return f.app.c.Store.SaveApprovalMessage(ctx, first.CardID, store.PostedMessage{ChannelID: first.Thread.ChannelID, TS: ts})
			})
		},
		OnError: func(err error) {
			f.app.log.Error("show an approval's card", zap.String("approval", first.ID), zap.Error(err))
		},
	})
}

// card renders the approvals that stand on one card.
func (f *frontend) card(list []store.Approval) render.Page {
	return render.Card(list, render.Options{Redact: f.app.c.Redact, Workspace: list[0].Workspace, SessionGrant: sessionGrantSentence})
}
