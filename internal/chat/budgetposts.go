package chat

import (
	"cmp"
	"context"
	"slices"

	"deckhand/internal/chat/view"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
)

// budgetPosts tell of budgets, and of the prompts that wait for one.
type budgetPosts struct{ *posts }

// read reads a notice, and how it was decided.
func (p budgetPosts) read(ctx context.Context, id string) (show func(), err error) {
	n, err := p.c.Store.BudgetNoticeByID(ctx, id)
	if err != nil {
		return nil, err
	}
	posts, err := p.c.Store.Posts(ctx, outbox.BudgetPost, id)
	return func() { p.put(n, posts) }, err
}

// put tells of a budget where it is not told of yet, or how it was decided where its
// notice stands.
func (p budgetPosts) put(n ledger.BudgetNotice, told []outbox.PostedMessage) {
	shown := view.Budget{Notice: n, Status: p.BudgetOf(n)}
	if n.DecidedBy == "" || len(told) == 0 {
		told = untold(shown, told)
	}
	if shown.Asks() {
		shown.Admins = p.raisers(n)
	}
	end := p.Outbox.Showing(outbox.Shown{Kind: outbox.Budget, Subject: n.ID, UpTo: n.OutboxID})
	if end != nil && len(told) == 0 {
		end(nil)
	}
	all := p.Together(len(told), end)
	for _, posted := range told {
		p.notice(shown, posted, all)
	}
}

// untold are the messages that are to tell of a budget, in its thread and where it says, but
// for those that do.
func untold(v view.Budget, told []outbox.PostedMessage) (out []outbox.PostedMessage) {
	for _, channel := range append([]string{""}, v.Status.Tell...) {
		if !slices.ContainsFunc(told, func(p outbox.PostedMessage) bool { return p.Audience == channel }) {
			out = append(out, outbox.PostedMessage{Kind: outbox.BudgetPost, Subject: v.Notice.ID, Audience: channel, ChannelID: cmp.Or(channel, v.Notice.Thread.ChannelID)})
		}
	}
	return out
}

// notice posts a notice once, or edits it when it is decided.
func (p budgetPosts) notice(shown view.Budget, posted outbox.PostedMessage, end func(error)) {
	n := shown.Notice
	m := Posting{
		Key: "budget/" + n.ID + "/" + posted.Audience + "/" + posted.TS, At: Where{Channel: posted.ChannelID}, Group: n.Thread.ThreadTS, TS: posted.TS,
		Urgency: Reply, Final: true, OnEnd: end,
		Wanted: func(ctx context.Context) (bool, error) { return p.c.Store.BudgetNoticeStands(ctx, n.ID) },
		OnPosted: func(ts string) {
			posted.TS = ts
			p.Note(posted)
			if shown.Asks() {
				p.Show(outbox.BudgetPost, n.ID) // it may have been decided, while this was on its way
			}
		},
	}
	if posted.Audience == "" {
		m.At.Thread = n.Thread.ThreadTS
	} else {
		shown.Link = p.screen.Permalink(n.Thread.ChannelID, n.Thread.ThreadTS)
	}
	if posted.TS != "" {
		m.Urgency = Clicked
	}
	m.Page = shown
	p.screen.Post(m)
}

// readWait reads what a prompt waits for: it is right whichever replica knows what became of
// the prompt.
func (p budgetPosts) readWait(ctx context.Context, id string) (show func(), err error) {
	w, err := p.c.Store.BudgetWaitByPrompt(ctx, ParseID(id))
	if err != nil {
		return nil, err
	}
	shown := view.BudgetWait{Wait: w, Status: p.BudgetOf(w.Notice)}
	if w.Waits {
		shown.Who = p.names(ctx, p.raisers(w.Notice))
		shown.Link = p.screen.Permalink(w.Notice.Thread.ChannelID, w.Notice.Thread.ThreadTS)
		notices, err := p.c.Store.Posts(ctx, outbox.BudgetPost, w.Notice.ID)
		if err != nil {
			return nil, err
		}
		for _, n := range notices {
			if n.ChannelID == w.Notice.Thread.ChannelID {
				shown.Link = p.screen.Permalink(n.ChannelID, n.TS)
			}
		}
	}
	ts, err := p.PostedAs(ctx, outbox.WaitPost, id)
	return func() { p.putWait(shown, ts) }, err
}

// putWait posts or edits the sentence. p.mu is held.
func (p budgetPosts) putWait(shown view.BudgetWait, ts string) {
	w, id := shown.Wait, FormatID(shown.Wait.InboxID)
	end := p.Outbox.Showing(outbox.Shown{Kind: outbox.Wait, Subject: id, UpTo: w.OutboxID})
	if !w.Waits && ts == "" && !p.waiting[w.InboxID] {
		if end != nil {
			end(nil)
		}
		return // it was never said, or is being said by a replica that looks again then
	}
	if p.waiting[w.InboxID] = w.Waits; !w.Waits {
		delete(p.waiting, w.InboxID)
	}
	m := inThread(w.ThreadKey, "wait/"+id, shown)
	m.TS, m.Final, m.OnEnd = ts, !w.Waits, end
	m.Mark = Mark{Kind: "wait", Of: "prompt", ID: id, Since: w.Since, Doubtful: ts == ""}
	if w.Waits {
		m.Urgency = Reply
	}
	m.OnPosted = func(ts string) {
		p.Note(outbox.PostedMessage{Kind: outbox.WaitPost, Subject: id, ChannelID: w.ChannelID, TS: ts})
		p.Show(outbox.WaitPost, id) // it may be over
	}
	p.screen.Post(m)
}
