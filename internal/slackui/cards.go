package slackui

import (
	"context"
	"time"

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
		if err := f.recoverCard(ctx, &list[0]); err != nil {
			return nil, err
		}
		return func() { f.showCard(list) }, nil
	})
}

// recoverCard looks in Slack for a card that nobody has noted: a process that dies between
// its post and the note of it would leave it dead beside a second one.
func (f *frontend) recoverCard(ctx context.Context, first *store.Approval) error {
	f.cardsMu.Lock()
	ours := f.posting[first.CardID]
	f.cardsMu.Unlock()
	if ours || first.MessageTS != "" {
		return nil
	}
	ts, err := f.find(first.Thread, first.CreatedAt, metadata(cardType, "card", first.CardID))(ctx)
	if err != nil && publish.MayPass(err) {
		return err
	}
	if first.MessageTS = ts; ts != "" {
		f.save("card", func(ctx context.Context) error {
			return f.app.c.Store.SaveApprovalMessage(ctx, first.CardID, store.PostedMessage{ChannelID: first.Thread.ChannelID, TS: ts})
		})
	}
	return nil
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
	mark := metadata(cardType, "card", first.CardID)
	f.app.publisher.Show(publish.Message{
		Metadata: mark, Find: f.find(first.Thread, first.CreatedAt, mark),
		OnEnd: f.app.outbox.showing(store.Shown{Kind: store.WordCard, CardID: first.CardID, UpTo: first.Word}),
		Key:   "approval/" + first.CardID, After: f.lead(first.TurnID), Channel: first.Thread.ChannelID, ThreadTS: first.Thread.ThreadTS, Group: first.Thread.ThreadTS,
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
