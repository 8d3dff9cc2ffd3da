package chat

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/outbox"
)

// cards show approvals: those that were asked one right after the other are on one card. What it
// shows is read from the database whenever one of them changes: whichever replica they changed on,
// the last rendering shows them all as they stand.
type cards struct{ *posts }

// cardFresh is how soon after it was asked an approval is shown by whoever asked it: a process that
// takes over takes longer to begin.
const cardFresh = time.Second

// CardPosting is a card as it is to stand in its thread: by itself, or as a part of its turn.
type CardPosting struct {
	First   approvals.Approval // the first on it
	Page    view.Card
	Urgency Urgency
	Posted  bool // it stands there, or is on its way
	Pending bool // something on it waits
	// Elsewhere says that its message is not edited here unless its turn runs here; OnEnd is called with why.
	Elsewhere bool
	Why       error
	OnEnd     func(error)
}

// cardView is a card as it is to be shown.
type cardView struct {
	list   []approvals.Approval
	call   map[string]Call // of those that are pending, by approval
	names  map[string]string
	copies []outbox.PostedMessage
	fresh  bool // the copies that are not posted yet were never tried
	first  bool // nobody has seen it, and the copies that it calls for are about to be made
	// elsewhere, if it is not nil, says why its message in the thread is not edited here.
	elsewhere error
}

// showApproval shows an approval that was asked, or has changed.
func (p cards) showApproval(a approvals.Approval) {
	if a.DecidedVia == "rule" || a.DecidedVia == "grant" {
		return // it never had a card
	}
	p.Homes.Changed()
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.posting[a.CardID] || time.Since(a.CreatedAt) < cardFresh // else another process may have posted it
	if p.reading[showKey(outbox.CardPost, a.CardID)] == nil && asked && a.ID == a.CardID && a.Status == approvals.Pending && a.MessageTS == "" && len(a.Votes) == 0 {
		p.showNew(a) // it is alone: it need not wait for a read
		return
	}
	p.show(outbox.CardPost, a.CardID)
}

// showNew shows a card that nobody has seen, as soon as it is known whom it calls: at once,
// if the chat has told lately. p.mu is held.
func (p cards) showNew(a approvals.Approval) {
	asked, cancel := context.WithCancel(context.Background())
	cancel()
	above := p.above(a)
	if v, known := p.view(asked, []approvals.Approval{a}, nil); known && above == nil {
		v.first = true
		p.showing(v)()
		return
	}
	again := false
	p.refresh(showKey(outbox.CardPost, a.CardID), func(ctx context.Context) (show func(), err error) {
		if above != nil {
			<-above.done
		}
		if again {
			return p.read(ctx, a.CardID)
		}
		again = true
		v, _ := p.view(ctx, []approvals.Approval{a}, nil)
		v.first = true
		return p.showing(v), nil
	})
}

// above is the reading of a card that is to stand above a new one; nil for none. p.mu is held.
func (p cards) above(a approvals.Approval) (last *reading) {
	for _, c := range p.screen.Running(a.TurnID).Cards {
		if r := p.reading[showKey(outbox.CardPost, c.ID)]; r != nil && c.ID != a.CardID {
			last = r
		}
	}
	return last
}

// read reads a card as it stands.
func (p cards) read(ctx context.Context, id string) (show func(), err error) {
	list, err := p.c.Store.CardApprovals(ctx, id)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if err := p.recover(ctx, &list[0]); err != nil {
		return nil, err
	}
	posts, err := p.c.Store.Posts(ctx, outbox.CardPost, id)
	if err != nil {
		return nil, err
	}
	v, _ := p.view(ctx, list, copiesIn(posts))
	v.elsewhere, err = p.wentOn(ctx, list)
	return p.showing(v), err
}

// errShownElsewhere is why a card is not edited by this replica: another one holds the
// thread, and its turn goes on in the card's message. It may pass: a replica that dies leaves
// the card to the others.
var errShownElsewhere = errors.New("the replica that holds the thread shows this card")

// errWentOn is why a decided card is not edited any more: its turn has gone on in its message.
var errWentOn = errors.New("the turn went on in the card's message")

// wentOn says why the message of a card is not this process's to edit: its turn, which does not
// run here, goes on in it once all is decided, or did, and what it says is not known here. The holder of
// the thread's lease decides that: the chat's record may be older than an edit that is on its way.
func (p cards) wentOn(ctx context.Context, list []approvals.Approval) (elsewhere, err error) {
	first := list[0]
	switch own := first.HeldBy == p.c.Replica; {
	case first.MessageTS == "", p.screen.Running(first.TurnID).ID != 0:
		return nil, nil
	case first.HeldBy != "" && !own: // also while it is pending: it may be decided before the edit is there
		return errShownElsewhere, nil
	case isPending(list):
		return nil, nil
	case p.screen.Shows(CardKey(first.CardID)) && (own || !p.Others()):
		return nil, nil
	}
	asks, err := p.screen.Asks(ctx, first.ChannelID, first.MessageTS)
	switch {
	case err != nil && p.screen.IsTemporary(err):
		return nil, err
	case asks:
		return nil, nil
	}
	return errWentOn, nil
}

func isPending(list []approvals.Approval) bool {
	return slices.ContainsFunc(list, func(a approvals.Approval) bool { return a.Status == approvals.Pending })
}

func (p cards) showing(v cardView) func() {
	return func() {
		p.showCard(v, p.Outbox.Showing(outbox.Shown{Kind: outbox.Card, Subject: v.list[0].CardID, UpTo: v.list[0].OutboxID}))
	}
}

// CardMark finds a card that was asked for at a time.
func CardMark(id string, at time.Time) Mark {
	return Mark{Kind: "card", Of: "card", ID: id, Since: at}
}

// CardKey names a card's message in its thread.
func CardKey(id string) string { return "approval/" + id }

// recover looks in the chat for a card that nobody has noted: a process that dies between
// its post and the note of it would leave it dead beside a second one.
func (p cards) recover(ctx context.Context, first *approvals.Approval) error {
	p.mu.Lock()
	ours := p.posting[first.CardID]
	p.mu.Unlock()
	if ours || first.MessageTS != "" {
		return nil
	}
	ts, err := p.screen.Find(ctx, whereOf(first.ThreadKey), CardMark(first.CardID, first.CreatedAt))
	if err != nil && p.screen.IsTemporary(err) {
		return err
	}
	if first.MessageTS = ts; ts != "" {
		p.Note(outbox.PostedMessage{Kind: outbox.CardPost, Subject: first.CardID, ChannelID: first.ChannelID, TS: ts})
	}
	return nil
}

// showCard shows the card and its copies. p.mu is held, so that they are shown in order. end, if it
// is not nil, is called with what became of it.
func (p cards) showCard(v cardView, end func(error)) {
	first, pending := v.list[0], isPending(v.list)
	posted := p.posting[first.CardID] || first.MessageTS != ""
	over := !pending && first.TurnEnded
	if p.posting[first.CardID] = true; over {
		delete(p.posting, first.CardID)
	}
	parts := 1 + len(v.copies)
	asked := p.callsNow(v)
	if len(asked) > 0 {
		parts++
	}
	end = p.Together(parts, end)
	c := CardPosting{First: first, Page: p.page(v), Urgency: cardUrgency(v.list, ""), Posted: posted, Pending: pending, Elsewhere: v.elsewhere != nil, OnEnd: end}
	if !errors.Is(v.elsewhere, errWentOn) {
		c.Why = v.elsewhere
	}
	p.screen.ShowCard(c)
	for _, c := range v.copies {
		p.showCopy(v, c, over, end)
	}
	if len(asked) > 0 {
		p.callDirectly(first.CardID, asked, end)
	}
}

// cardUrgency is how urgent a card is, or the copy of it that a person has: whoever clicked
// waits for it to change, and nobody for one that has ended by itself.
func cardUrgency(list []approvals.Approval, owner string) Urgency {
	urgency := Soon
	for _, a := range list {
		switch {
		case a.DecidedBy == "" && len(a.Votes) == 0 && a.Edited.Times == 0:
			if a.Status == approvals.Pending {
				urgency = max(urgency, Decide)
			}
		case owner == "", a.DecidedBy == owner, slices.ContainsFunc(a.Votes, func(v approvals.Vote) bool { return v.UserID == owner }), a.Edited.By == owner:
			return Clicked
		default:
			urgency = max(urgency, Reply)
		}
	}
	return urgency
}

// calledDirectly is how many people a card that is new is sent to; 0 where groups are among
// them, whose people are not known yet.
func (v cardView) calledDirectly() int {
	whom := map[string]bool{}
	for _, to := range v.call {
		for _, id := range to.Direct {
			if isGroup(id) {
				return 0
			}
			whom[id] = to.Copies
		}
	}
	maps.DeleteFunc(whom, func(_ string, sent bool) bool { return !sent })
	return len(whom)
}

// page is the card in its thread.
func (p cards) page(v cardView) view.Card {
	call := &view.Calling{
		Mention: func(a approvals.Approval) []string { return v.call[a.ID].Mention },
		Sent:    func(a approvals.Approval) []string { return v.call[a.ID].Direct },
		Name:    func(id string) string { return cmp.Or(v.names[id], id) },
		Direct:  len(v.copies),
	}
	if v.first { // it is complete when it is posted: it need not be edited when its copies are on their way
		call.Direct = v.calledDirectly()
	}
	return view.Card{List: v.list, Calling: call, OneFile: OneFile}
}

// copyPage is the copy of it that a person has.
func (p cards) copyPage(v cardView) view.Card {
	page, first := p.page(v), v.list[0]
	page.Calling.Copy, page.Calling.Direct, page.Calling.Mention = true, 0, func(approvals.Approval) []string { return nil }
	if !access.IsDirect(first.ChannelID) {
		page.Calling.Thread = p.screen.Permalink(first.ChannelID, first.ThreadTS)
	}
	return page
}

// CardIn is a card as it is to stand in its thread, with the messages that show it.
func (a *Chat) CardIn(ctx context.Context, list []approvals.Approval, posts []outbox.PostedMessage) view.Card {
	v, _ := cards{a.posts}.view(ctx, list, copiesIn(posts))
	return cards{a.posts}.page(v)
}
