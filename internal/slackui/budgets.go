package slackui

import (
	"cmp"
	"context"
	"slices"

	"go.uber.org/zap"

	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
)

// readBudget reads a notice, and how it was decided.
func (f *frontend) readBudget(ctx context.Context, id string) (show func(), err error) {
	n, err := f.app.c.Store.BudgetNoticeByID(ctx, id)
	if err != nil {
		return nil, err
	}
	posts, err := f.app.c.Store.Posts(ctx, outbox.BudgetPost, id)
	return func() { f.showBudget(n, posts) }, err
}

// showBudget tells of a budget where it is not told of yet, or how it was decided where its
// notice stands.
func (f *frontend) showBudget(n ledger.BudgetNotice, posts []outbox.PostedMessage) {
	shown := view.Budget{Notice: n, Status: f.app.BudgetOf(n)}
	if n.DecidedBy == "" || len(posts) == 0 {
		posts = untold(shown, posts)
	}
	if shown.Asks() {
		shown.Admins = f.app.Raisers(n)
	}
	end := f.app.Outbox.Showing(outbox.Shown{Kind: outbox.Budget, Subject: n.ID, UpTo: n.OutboxID})
	if end != nil && len(posts) == 0 {
		end(nil)
	}
	all := together(len(posts), end)
	for _, p := range posts {
		if shown.Link = ""; p.Audience != "" {
			shown.Link = f.app.Permalink(n.Thread.ChannelID, n.Thread.ThreadTS)
		}
		f.showNotice(shown, p, all)
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

// showNotice posts a notice once, or edits it when it is decided.
func (f *frontend) showNotice(shown view.Budget, p outbox.PostedMessage, end func(error)) {
	n := shown.Notice
	m := publish.Message{
		Key: "budget/" + n.ID + "/" + p.Audience + "/" + p.TS, Channel: p.ChannelID, Group: n.Thread.ThreadTS, TS: p.TS,
		Page: render.Budget(shown), Priority: publish.Answer, Final: true, OnEnd: end,
		Wanted: func(ctx context.Context) (bool, error) { return f.app.c.Store.BudgetNoticeStands(ctx, n.ID) },
		OnPosted: func(ts string) {
			p.TS = ts
			f.note(p)
			if shown.Asks() {
				f.Show(outbox.BudgetPost, n.ID) // it may have been decided, while this was on its way
			}
		},
		OnError: func(err error) { f.app.c.Log.Error("tell of a budget", zap.Error(err)) },
	}
	if p.Audience == "" {
		m.ThreadTS = n.Thread.ThreadTS
	}
	if p.TS != "" {
		m.Priority = publish.Click
	}
	f.app.publisher.Show(m)
}

// readWait reads what a prompt waits for: it is right whichever replica knows what became of
// the prompt.
func (f *frontend) readWait(ctx context.Context, id string) (show func(), err error) {
	w, err := f.app.c.Store.BudgetWaitByPrompt(ctx, chat.Numbered(id))
	if err != nil {
		return nil, err
	}
	shown := view.BudgetWait{Wait: w, Status: f.app.BudgetOf(w.Notice)}
	if w.Waits {
		shown.Who = f.app.Names(ctx, f.app.Raisers(w.Notice))
		shown.Link = f.app.Permalink(w.Notice.Thread.ChannelID, w.Notice.Thread.ThreadTS)
		notices, err := f.app.c.Store.Posts(ctx, outbox.BudgetPost, w.Notice.ID)
		if err != nil {
			return nil, err
		}
		for _, p := range notices {
			if p.ChannelID == w.Notice.Thread.ChannelID {
				shown.Link = f.app.Permalink(p.ChannelID, p.TS)
			}
		}
	}
	ts, err := f.app.PostedAs(ctx, outbox.WaitPost, id)
	return func() { f.showWait(shown, ts) }, err
}

// showWait posts or edits the sentence. f.cardsMu is held.
func (f *frontend) showWait(shown view.BudgetWait, ts string) {
	w, id := shown.Wait, chat.Number(shown.Wait.InboxID)
	end := f.app.Outbox.Showing(outbox.Shown{Kind: outbox.Wait, Subject: id, UpTo: w.OutboxID})
	if !w.Waits && ts == "" && !f.waiting[w.InboxID] {
		if end != nil {
			end(nil)
		}
		return // it was never said, or is being said by a replica that looks again then
	}
	if f.waiting[w.InboxID] = w.Waits; !w.Waits {
		delete(f.waiting, w.InboxID)
	}
	mark, priority := metadata(waitType, "prompt", id), publish.Answer
	if !w.Waits {
		priority = publish.Normal
	}
	f.app.publisher.Show(publish.Message{
		Metadata: mark, Find: f.find(w.ThreadKey, w.Since, mark), Doubtful: ts == "", OnEnd: end,
		Key: "wait/" + id, Channel: w.ChannelID, ThreadTS: w.ThreadTS, Group: w.ThreadTS, TS: ts,
		Page: render.BudgetWait(shown), Priority: priority, Final: !w.Waits,
		OnPosted: func(ts string) {
			f.note(outbox.PostedMessage{Kind: outbox.WaitPost, Subject: id, ChannelID: w.ChannelID, TS: ts})
			f.Show(outbox.WaitPost, id) // it may be over
		},
		OnError: func(err error) { f.app.c.Log.Error("say what a prompt waits for", zap.Error(err)) },
	})
}
