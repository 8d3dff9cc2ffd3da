package chat

import (
	"context"
	"errors"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/outbox"
)

// show shows what an outbox row says; end is called with what became of it.
func (o *Outbox) show(w outbox.Row, end func(error)) {
	a := o.app
	switch w.Kind {
	case outbox.Turn:
		t, err := agent.DecodeTurn(w.Body)
		if err != nil {
			end(errors.Join(errUnknownRow, err))
			return
		}
		a.screen.ShowLeftTurn(w, t, end)
	case outbox.Left:
		a.screen.LeaveTurn(w, end, nil)
	case outbox.GivenUp:
		a.screen.LeaveTurn(w, end, func() { o.say(w, outboxMark(w), end) })
	case outbox.Mark:
		a.said.forget(w.ThreadKey)
		if w.TS == "" {
			end(nil)
			return
		}
		a.screen.React(w.ChannelID, w.TS, agent.PromptMark(w.Body), end)
	case outbox.Said:
		o.say(w, outboxMark(w), end)
	case outbox.Whisper: // the chat cannot be asked whether it was told
		a.screen.Whisper(whereOf(w.ThreadKey), w.UserID, view.Sentence(a.c.Redact(w.Body)), end)
	case outbox.Card, outbox.Wait, outbox.Waits, outbox.Budget, outbox.Queue: // are shown as they stand, see Tell
	}
}

func outboxMark(w outbox.Row) Mark {
	return Mark{Kind: "outbox", Of: "outbox", ID: FormatID(w.ID), Since: w.CreatedAt, Doubtful: w.Again}
}

// OutboxKey names an outbox row's message. It has the row's beginning in it: a database that was taken
// over by a standby gives numbers a second time that the old one had given last.
func OutboxKey(w outbox.Row) string {
	return "outbox/" + FormatID(w.ID) + "/" + FormatID(w.CreatedAt.UnixMicro())
}

// sentence is an [outbox.Said] as people see it.
func (o *Outbox) sentence(w outbox.Row) view.Page {
	said := o.app.c.Redact(w.Body)
	if w.AdminsOf != "" {
		return view.Call{Sentence: said, Whom: o.app.c.Access.Administrators(access.ReachProject, w.AdminsOf, "")}
	}
	page := view.AskBack{Sentence: said}
	for _, b := range w.Buttons {
		page.Choices = append(page.Choices, view.Choice(b))
	}
	return page
}

// say says a sentence in a thread, in a message that mark tells from others.
func (o *Outbox) say(w outbox.Row, mark Mark, end func(error)) {
	if !w.Again && o.app.stands(w.ThreadKey, w.Body) && len(w.Buttons) == 0 { // a button answers who asked for it
		end(nil)
		return
	}
	m := inThread(w.ThreadKey, OutboxKey(w), o.sentence(w))
	m.Mark, m.Urgency, m.Final, m.OnEnd = mark, Reply, true, end
	o.app.screen.Post(m)
}

// showWaits shows on a person's message whether it waits, as its row says; and in its
// thread that it was given up.
func (o *Outbox) showWaits(w outbox.Row) {
	a := o.app
	end := o.Showing(outbox.Shown{Kind: outbox.Waits, Subject: FormatID(w.InboxID), UpTo: w.ID})
	a.posts.begin(func() {
		ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
		defer cancel()
		p, err := a.c.Store.PostWaits(ctx, w.InboxID)
		switch {
		case err != nil:
			end(err)
		case p.Waits:
			a.screen.MarkWaits(w.ChannelID, w.TS, true, end)
		case p.GivenUp != "":
			end = a.Together(4, end)
			a.screen.MarkWaits(w.ChannelID, w.TS, false, end)
			a.screen.Unreact(w.ChannelID, w.TS, Heard, end)
			a.screen.React(w.ChannelID, w.TS, agent.PromptFailed, end)
			w.ThreadTS, w.Body = p.ThreadTS, notWorkedOn(p.GivenUp)
			w.Again = true // an earlier row of the same post may have said it
			o.say(w, Mark{Kind: "outbox", Of: "given up", ID: FormatID(w.InboxID), Since: w.CreatedAt, Doubtful: true}, end)
		default:
			a.screen.MarkWaits(w.ChannelID, w.TS, false, end)
		}
	})
}
