package slackui

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent/ask"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// A card shows the approvals that were asked one right after the other. What it shows is read
// from the database whenever one of them changes: whichever replica they changed on, the last
// rendering shows them all as they stand.

const (
	cardAttempts = 8
	cardPause    = time.Second
	// cardFresh is how soon after it was asked an approval is shown by whoever asked it: a
	// process that takes over takes longer to begin.
	cardFresh = time.Second
)

// ShowApproval implements [agent.Frontend].
func (f *frontend) ShowApproval(a approvals.Approval) {
	if a.DecidedVia == "rule" || a.DecidedVia == "grant" {
		return // it never had a card
	}
	f.app.Homes.Changed()
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	asked := f.posting[a.CardID] || time.Since(a.CreatedAt) < cardFresh // else another process may have posted it
	if f.reading[showKey(outbox.CardPost, a.CardID)] == nil && asked && a.ID == a.CardID && a.Status == approvals.Pending && a.MessageTS == "" && len(a.Votes) == 0 {
		f.showNew(a) // it is alone: it need not wait for a read
		return
	}
	f.show(outbox.CardPost, a.CardID)
}

// showNew shows a card that nobody has seen, as soon as it is known whom it calls: at once,
// if Slack has been asked lately. f.cardsMu is held.
func (f *frontend) showNew(a approvals.Approval) {
	asked, cancel := context.WithCancel(context.Background())
	cancel()
	above := f.cardAbove(a)
	if v, known := f.viewCard(asked, []approvals.Approval{a}, nil); known && above == nil {
		v.first = true
		f.showing(v)()
		return
	}
	again := false
	f.refresh(showKey(outbox.CardPost, a.CardID), func(ctx context.Context) (show func(), err error) {
		if above != nil {
			<-above.done
		}
		if again {
			return f.read(ctx, outbox.CardPost, a.CardID)
		}
		again = true
		v, _ := f.viewCard(ctx, []approvals.Approval{a}, nil)
		v.first = true
		return f.showing(v), nil
	})
}

// cardAbove is the reading of a card that is to stand above a new one; nil for none. f.cardsMu
// is held.
func (f *frontend) cardAbove(a approvals.Approval) *cardReading {
	f.mu.Lock()
	defer f.mu.Unlock()
	var last *cardReading
	if s := f.turns[a.TurnID]; s != nil {
		for _, c := range s.latest.Cards {
			if r := f.reading[showKey(outbox.CardPost, c.ID)]; r != nil && c.ID != a.CardID {
				last = r
			}
		}
	}
	return last
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
	posts, err := f.app.c.Store.Posts(ctx, outbox.CardPost, id)
	if err != nil {
		return nil, err
	}
	v, _ := f.viewCard(ctx, list, chat.CopiesIn(posts))
	v.elsewhere, err = f.wentOn(ctx, list)
	return f.showing(v), err
}

// errShownElsewhere is why a card is not edited by this replica: another one holds the
// thread, and its turn goes on in the card's message. It may pass: a replica that dies leaves
// the card to the others.
var errShownElsewhere = errors.New("the replica that holds the thread shows this card")

// errBelow is why a decided card is not shown yet: one above it is still to be posted.
var errBelow = errors.New("a card above is still to be posted")

// errWentOn is why a decided card is not edited any more: its turn has gone on in its message.
var errWentOn = errors.New("the turn went on in the card's message")

// wentOn says why the message of a card is not this process's to edit: its turn, which does not
// run here, goes on in it once all is decided, or did, and what it says is not known here. The holder of
// the thread's lease decides that: Slack's state may be older than an edit that is on its way.
func (f *frontend) wentOn(ctx context.Context, list []approvals.Approval) (elsewhere, err error) {
	first := list[0]
	switch own := first.HeldBy == f.app.c.Replica; {
	case first.MessageTS == "", f.running(first.TurnID).ID != 0:
		return nil, nil
	case first.HeldBy != "" && !own: // also while it is pending: it may be decided before the edit is there
		return errShownElsewhere, nil
	case isPending(list):
		return nil, nil
	case f.knows(cardKey(first.CardID)) && (own || !f.app.Others()):
		return nil, nil
	}
	found, _, _, err := f.app.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
		ChannelID: first.ChannelID, Timestamp: first.MessageTS, Limit: 1, Oldest: first.MessageTS, Latest: first.MessageTS, Inclusive: true,
	})
	switch {
	case err != nil && publish.MayPass(err):
		return nil, err
	case slices.ContainsFunc(found, func(m slack.Message) bool { return m.Timestamp == first.MessageTS && asks(m) }):
		return nil, nil
	}
	return errWentOn, nil
}

// asks reports whether a message has the buttons of a card that waits.
func asks(m slack.Message) bool {
	return slices.ContainsFunc(m.Blocks.BlockSet, func(b slack.Block) bool {
		actions, ok := b.(*slack.ActionBlock)
		return ok && actions.Elements != nil && slices.ContainsFunc(actions.Elements.ElementSet, func(e slack.BlockElement) bool {
			button, ok := e.(*slack.ButtonBlockElement)
			return ok && slices.Contains([]string{view.ActionApprove, view.ActionDeny, view.ActionDenyReason, view.ActionAnswer}, button.ActionID)
		})
	})
}

func isPending(list []approvals.Approval) bool {
	return slices.ContainsFunc(list, func(a approvals.Approval) bool { return a.Status == approvals.Pending })
}

func (f *frontend) showing(v cardView) func() {
	return func() {
		f.showCard(v, f.app.Outbox.Showing(outbox.Shown{Kind: outbox.Card, Subject: v.list[0].CardID, UpTo: v.list[0].OutboxID}))
	}
}

// recoverCard looks in Slack for a card that nobody has noted: a process that dies between
// its post and the note of it would leave it dead beside a second one.
func (f *frontend) recoverCard(ctx context.Context, first *approvals.Approval) error {
	f.cardsMu.Lock()
	ours := f.posting[first.CardID]
	f.cardsMu.Unlock()
	if ours || first.MessageTS != "" {
		return nil
	}
	ts, err := f.find(first.ThreadKey, first.CreatedAt, metadata(cardType, "card", first.CardID))(ctx)
	if err != nil && publish.MayPass(err) {
		return err
	}
	if first.MessageTS = ts; ts != "" {
		f.note(outbox.PostedMessage{Kind: outbox.CardPost, Subject: first.CardID, ChannelID: first.ChannelID, TS: ts})
	}
	return nil
}

// cardReading is a card that is being read.
type cardReading struct {
	again bool // something has changed since
	done  chan struct{}
}

// refresh has something read and shown, by its id. f.cardsMu is held, and so it is when
// it is shown.
func (f *frontend) refresh(id string, read func(context.Context) (show func(), err error)) {
	if r := f.reading[id]; r != nil {
		r.again = true
		return
	}
	if f.closed {
		return
	}
	f.reading[id] = &cardReading{done: make(chan struct{})}
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
		r := f.reading[id]
		again := r.again
		failed := err != nil && attempt < cardAttempts && !f.closed
		if !again && !failed {
			delete(f.reading, id)
			close(r.done)
			f.cardsMu.Unlock()
			if err != nil {
				f.app.c.Log.Error("read what is to be shown", zap.String("what", id), zap.Error(err))
			}
			return
		}
		r.again = false
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
	list   []approvals.Approval
	call   map[string]chat.Call // of those that are pending, by approval
	names  map[string]string
	copies []outbox.PostedMessage
	fresh  bool // the copies that are not posted yet were never tried
	first  bool // nobody has seen it, and the copies that it calls for are about to be made
	// elsewhere, if it is not nil, says why its message in the thread is not edited here.
	elsewhere error
}

// showCard hands the card and its copies to the publisher. f.cardsMu is held, so that
// renderings reach it in order. end, if it is not nil, is called with what became of it.
func (f *frontend) showCard(v cardView, end func(error)) {
	first, pending := v.list[0], isPending(v.list)
	posted := f.posting[first.CardID] || first.MessageTS != ""
	if f.posting[first.CardID] = true; !pending && first.TurnEnded {
		delete(f.posting, first.CardID)
	}
	parts := 1 + len(v.copies)
	approvals := f.callsNow(v)
	if len(approvals) > 0 {
		parts++
	}
	end = together(parts, end)
	f.showInThread(v, posted, pending, end)
	for _, c := range v.copies {
		f.showCopy(v, c, !pending && first.TurnEnded, end)
	}
	if len(approvals) > 0 {
		f.callDirectly(first.CardID, approvals, end)
	}
}

// cardPriority is how urgent a card is, or the copy of it that a person has: whoever clicked
// waits for it to change, and nobody for one that has ended by itself.
func cardPriority(list []approvals.Approval, owner string) publish.Priority {
	priority := publish.Normal
	for _, a := range list {
		switch {
		case a.DecidedBy == "" && len(a.Votes) == 0 && a.Edited.Times == 0:
			if a.Status == approvals.Pending {
				priority = max(priority, publish.Card)
			}
		case owner == "", a.DecidedBy == owner, slices.ContainsFunc(a.Votes, func(v approvals.Vote) bool { return v.UserID == owner }), a.Edited.By == owner:
			return publish.Click
		default:
			priority = max(priority, publish.Answer)
		}
	}
	return priority
}

// showInThread shows a card in its thread: as the card, below what its turn said before, or as
// the message in which its turn goes on. No other place decides that.
func (f *frontend) showInThread(v cardView, posted, pending bool, end func(error)) {
	first := v.list[0]
	m := f.cardMessage(first.ThreadKey, first.Project, first.CardID, first.CreatedAt)
	m.OnEnd = end
	f.mu.Lock()
	defer f.mu.Unlock()
	s, own := f.turns[first.TurnID], false
	if s != nil {
		own = slices.ContainsFunc(s.latest.Cards, func(c ask.Card) bool { return c.ID == first.CardID })
		if render.GoesOn(s.latest, f.rendering(s.latest), first.CardID) {
			shown := false
			s.render(f, func(page *publish.Message) {
				if page.Key == m.Key {
					shown, page.OnEnd, page.TS, page.Priority = true, end, first.MessageTS, cardPriority(v.list, "")
				}
			})
			if !shown && end != nil {
				end(errBelow)
			}
			return
		}
		if own && !posted {
			s.render(f, unchanged) // what led to it
		}
		if own {
			m.After = s.below(m.Key)
		}
	}
	if v.elsewhere != nil || f.again[first.TurnID] {
		why := v.elsewhere
		if errors.Is(why, errWentOn) {
			why = nil
		}
		if end != nil {
			end(why)
		}
		return
	}
	m.TS, m.Page, m.Priority = first.MessageTS, f.cardPage(v, false), cardPriority(v.list, "")
	m.Final = !pending && !own && !first.TurnEnded // whoever shows how its turn ended may go on in it
	f.app.publisher.Show(m)
	if own && !posted {
		s.render(f, unchanged) // what waited for it, see belowCards
	}
}

// cardMessage is the message of a card that was asked for at a time.
func (f *frontend) cardMessage(k threads.ThreadKey, project, cardID string, at time.Time) publish.Message {
	mark := metadata(cardType, "card", cardID)
	return publish.Message{
		Key: cardKey(cardID), Channel: k.ChannelID, ThreadTS: k.ThreadTS, Group: k.ThreadTS,
		Metadata: mark, Find: f.find(k, at, mark), Broadcast: f.app.Broadcasts(project, k),
		OnPosted: func(ts string) {
			f.app.sessions.posted(k)
			f.note(outbox.PostedMessage{Kind: outbox.CardPost, Subject: cardID, ChannelID: k.ChannelID, TS: ts})
		},
		OnError: func(err error) {
			f.app.c.Log.Error("show an approval's card", zap.String("card", cardID), zap.Error(err))
		},
	}
}

func cardKey(id string) string { return "approval/" + id }

// calledDirectly is how many people a card that is new is sent to; 0 where groups are among
// them, whose people are not known yet.
func (v cardView) calledDirectly() int {
	whom := map[string]bool{}
	for _, to := range v.call {
		for _, id := range to.Direct {
			if strings.HasPrefix(id, "S") {
				return 0
			}
			whom[id] = to.Copies
		}
	}
	maps.DeleteFunc(whom, func(_ string, sent bool) bool { return !sent })
	return len(whom)
}

// cardPage renders a card, or a copy of it.
func (f *frontend) cardPage(v cardView, isCopy bool) render.Page {
	first := v.list[0]
	call := &render.Calling{
		Mention: func(a approvals.Approval) []string { return v.call[a.ID].Mention },
		Sent:    func(a approvals.Approval) []string { return v.call[a.ID].Direct },
		Name:    func(id string) string { return cmp.Or(v.names[id], id) },
		Direct:  len(v.copies),
	}
	if v.first { // it is complete when it is posted: it need not be edited when its copies are on their way
		call.Direct = v.calledDirectly()
	}
	if isCopy {
		call.Copy, call.Direct, call.Mention = true, 0, func(approvals.Approval) []string { return nil }
		if !access.IsDirect(first.ChannelID) {
			call.Thread = f.app.Permalink(first.ChannelID, first.ThreadTS)
		}
	}
	return render.Card(v.list, render.Options{Redact: f.app.c.Redact, Workspace: first.Workspace, OneFile: chat.OneFile, Calling: call})
}
