package slackui

import (
	"cmp"
	"context"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/access"
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
	f.app.homes.changed()
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	asked := f.posting[a.CardID] || time.Since(a.CreatedAt) < cardFresh // else another process may have posted it
	if _, reading := f.reading[a.CardID]; !reading && asked && a.ID == a.CardID && a.Status == store.ApprovalPending && a.MessageTS == "" && len(a.Votes) == 0 {
		f.showNew(a) // it is alone: it need not wait for a read
		return
	}
	f.refreshCard(a.CardID)
}

// showNew shows a card that nobody has seen, as soon as it is known whom it calls: at once,
// if Slack has been asked lately. What its turn says from now on belongs below it. f.cardsMu
// is held.
func (f *frontend) showNew(a store.Approval) {
	asked, cancel := context.WithCancel(context.Background())
	cancel()
	if v, known := f.viewCard(asked, []store.Approval{a}, nil); known {
		f.showing(v)()
		return
	}
	f.hold(a.TurnID, 1)
	again := false
	f.refresh(a.CardID, func(ctx context.Context) (show func(), err error) {
		if again {
			return f.readCard(ctx, a.CardID)
		}
		again = true
		v, _ := f.viewCard(ctx, []store.Approval{a}, nil)
		return func() {
			f.showing(v)()
			f.hold(a.TurnID, -1)
		}, nil
	})
}

// above is what stands above a turn's first message.
type above struct {
	cards int    // that are not posted yet, and whose keys are not known
	key   string // of the last one that is
}

// hold has a turn of which nothing is shown yet wait for so many more cards.
func (f *frontend) hold(turnID int64, cards int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	over := f.above[turnID]
	over.cards += cards
	f.above[turnID] = over
	if s := f.turns[turnID]; s != nil && s.last == "" && over.cards == 0 {
		s.render(f, false)
	}
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
	f.refresh(id, func(ctx context.Context) (show func(), err error) { return f.readCard(ctx, id) })
}

// readCard reads a card as it stands.
func (f *frontend) readCard(ctx context.Context, id string) (show func(), err error) {
	list, err := f.app.c.Store.CardApprovals(ctx, id)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if err := f.recoverCard(ctx, &list[0]); err != nil {
		return nil, err
	}
	copies, err := f.app.c.Store.CardCopies(ctx, id)
	if err != nil {
		return nil, err
	}
	v, _ := f.viewCard(ctx, list, copies)
	return f.showing(v), nil
}

func (f *frontend) showing(v cardView) func() {
	return func() {
		f.showCard(v, f.app.outbox.showing(store.Shown{Kind: store.WordCard, CardID: v.list[0].CardID, UpTo: v.list[0].Word}))
	}
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

// cardView is a card as it is to be shown, and whom it calls; see calling.go.
type cardView struct {
	list   []store.Approval
	call   map[string]call // of those that are pending, by approval
	names  map[string]string
	copies []store.CardCopy
	fresh  bool // the copies that are not posted yet were never tried
}

// showCard hands the card and its copies to the publisher. f.cardsMu is held, so that
// renderings reach it in order. end, if it is not nil, is called with what became of it.
func (f *frontend) showCard(v cardView, end func(error)) {
	first, open := v.list[0], false
	for _, a := range v.list {
		open = open || a.Status == store.ApprovalPending || !a.TurnEnded
	}
	posted := f.posting[first.CardID] || first.MessageTS != ""
	if f.posting[first.CardID] = true; !open {
		delete(f.posting, first.CardID)
	}
	parts := 1 + len(v.copies)
	approvals := f.callsNow(v)
	if len(approvals) > 0 {
		parts++
	}
	end = together(parts, end)
	after := f.lead(first, posted)
	mark := metadata(cardType, "card", first.CardID)
	f.app.publisher.Show(publish.Message{
		Metadata: mark, Find: f.find(first.Thread, first.CreatedAt, mark), OnEnd: end,
		Key: cardKey(first.CardID), After: after, Channel: first.Thread.ChannelID, ThreadTS: first.Thread.ThreadTS, Group: first.Thread.ThreadTS,
		TS: first.MessageTS, Page: f.cardPage(v, false), Broadcast: f.app.broadcasts(first),
		Priority: publish.High, Final: !open,
		OnPosted: func(ts string) {
			f.app.sessions.posted(first.Thread)
			f.save("card", func(ctx context.Context) error {
				return f.app.c.Store.SaveApprovalMessage(ctx, first.CardID, store.PostedMessage{ChannelID: first.Thread.ChannelID, TS: ts})
			})
		},
		OnError: func(err error) {
			f.app.log.Error("show an approval's card", zap.String("approval", first.ID), zap.Error(err))
		},
	})
	for _, c := range v.copies {
		f.showCopy(v, c, !open, end)
	}
	if len(approvals) > 0 {
		f.callDirectly(first.CardID, approvals, end)
	}
}

func cardKey(id string) string { return "approval/" + id }

// cardPage renders a card, or a copy of it.
func (f *frontend) cardPage(v cardView, isCopy bool) render.Page {
	first := v.list[0]
	call := &render.Calling{
		Mention: func(a store.Approval) []string { return v.call[a.ID].mention },
		Sent:    func(a store.Approval) []string { return v.call[a.ID].direct },
		Name:    func(id string) string { return cmp.Or(v.names[id], id) },
		Direct:  len(v.copies),
	}
	if isCopy {
		call.Copy, call.Direct, call.Mention = true, 0, func(store.Approval) []string { return nil }
		if !access.IsDirect(first.Thread.ChannelID) {
			call.Thread = f.app.permalink(first.Thread.ChannelID, first.Thread.ThreadTS)
		}
	}
	return render.Card(v.list, render.Options{Redact: f.app.c.Redact, Workspace: first.Workspace, SessionGrant: sessionGrantSentence, OneFile: oneFile, Calling: call})
}
