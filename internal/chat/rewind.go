package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/money"
	"deckhand/internal/plaintext"
	"deckhand/internal/store"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/transcript"
)

// pastShown is how many turns of a thread can be chosen from.
const pastShown = 5

// onRewindCommand lists the turns before which the thread can go back, has one of them looked at, or carries out what was
// shown: “rewind”, “rewind TURN”, “rewind TURN yes LAST SESSION”; TURN is “back” for what was before the last rewind.
func (a steerer) onRewindCommand(ctx context.Context, in *Incoming, t threads.Thread, words string) (outcome string, err error) {
	h, ok, err := a.past(ctx, in, t, "rewind")
	if err != nil || !ok {
		return "no rewind", err
	}
	of := strings.Fields(strings.ToLower(words))
	if len(of) == 0 {
		return a.listRewinds(in, h), nil
	}
	r := inbox.Rewind{Go: len(of) > 1, Name: plaintext.OneLine(a.people.Name(ctx, in.Row.UserID))}
	r.To, _ = strconv.ParseInt(of[0], 10, 64) // “back” is 0
	if r.Go {
		r.Point, _ = strconv.ParseInt(of[2], 10, 64)
		r.In = of[3]
	}
	if agent.GoneOn(h, r) {
		a.Answer(in, agent.NotRewound)
		return "not rewound", nil
	}
	_, ok, err = a.c.Store.AcceptPrompt(ctx, inbox.NewPrompt{
		InboxID: in.Row.ID, Thread: t.Key(), Project: t.Project, UserID: in.Row.UserID, UUID: uuid.NewString(), Text: "/rewind " + words, Edits: in.Row.Edits, Rewind: &r,
	})
	if ok {
		a.agent.Wake(t.ID)
		if r.Go && in.Click != nil {
			a.screen.Replace(in, view.Sentence(r.Name+" takes this thread back: what was shown here is being done."))
		}
	}
	return "accepted", err
}

// past is what the thread's session knows, if something of it can be taken back or forked; the person is told if not.
func (a steerer) past(ctx context.Context, in *Incoming, t threads.Thread, word string) (h store.History, ok bool, err error) {
	if !a.agent.KeepsWork(t.Project) {
		a.Answer(in, "The threads of project "+t.Project+" have no git folder of their own, so what their files were is not kept after each turn. An admin can give them one by workspace: worktree in deckhand.yaml.")
		return h, false, nil
	}
	last, err := a.c.Store.LastPrompt(ctx, t.ID)
	switch {
	case err != nil && !errors.Is(err, pg.ErrNotFound):
		return h, false, err
	case last.Running:
		a.Answer(in, "The last message is still being worked on, or waits. Write “stop” first, then “"+word+"”.")
		return h, false, nil
	}
	h, err = a.c.Store.History(ctx, t.ID)
	return h, err == nil, err
}

func (a steerer) listRewinds(in *Incoming, h store.History) (outcome string) {
	page := a.listPast(h, "Choose the message to go back to. The thread goes back to just before it; you see first what would change.", func(p store.Past) (string, bool) {
		_, kept := h.State(p.Before)
		return fmt.Sprintf("rewind %d", p.Turn), kept
	})
	if _, kept := h.State(h.BackTurn); kept && h.Back != "" {
		page.Sentence += "\nThis thread was rewound. “rewind back” undoes that."
		page.Choices = append(page.Choices, view.Choice{Say: "rewind back", Label: "undo the last rewind"})
	}
	if len(page.Choices) == 0 {
		page.Sentence = "There is nothing to go back to yet: what the files are is kept when a message has been worked on, a moment after that."
	}
	a.reply(in, page)
	return "rewinds"
}

// listPast lists the last messages that can be chosen, the newest first, with the command that each one's button is.
func (a steerer) listPast(h store.History, question string, say func(store.Past) (string, bool)) view.AskBack {
	page := view.AskBack{}
	lines := []string{question}
	for i := len(h.Turns) - 1; i >= 0 && len(page.Choices) < pastShown; i-- {
		p := h.Turns[i]
		words, ok := say(p)
		if !ok || p.Command {
			continue
		}
		label, at := a.c.Redact(plaintext.OneLine(plaintext.Visible(p.Beginning()))), p.StartedAt.In(a.c.Store.TimeZone())
		lines = append(lines, fmt.Sprintf("• “%s”, %s, %s", label, at.Format("2 January 15:04 MST"), money.USD(p.CostMicroUSD)))
		choice := view.Choice{Say: words, Label: plaintext.Clip(label, 60)}
		if slices.ContainsFunc(page.Choices, func(c view.Choice) bool { return c.Label == choice.Label }) {
			choice.Label += at.Format(", 15:04")
		}
		page.Choices = append(page.Choices, choice)
	}
	page.Sentence = strings.Join(lines, "\n")
	return page
}

// point is what the thread was after a turn, for a fork; what cannot be is told to people.
func (a steerer) point(ctx context.Context, in *Incoming, h store.History, words string) (point *store.Point, session string, err error) {
	turn, _ := strconv.ParseInt(words, 10, 64)
	states, kept := h.State(turn)
	session = uuid.NewString()
	for _, p := range h.Turns {
		if p.Turn == turn && kept && h.Held {
			point = &store.Point{Turn: turn, SessionID: p.SessionID, States: states}
			point.Conversation, err = transcript.Until(ctx, a.c.Store, p.SessionID, turn, session)
		}
	}
	if point == nil || errors.Is(err, transcript.ErrNotKept) {
		a.Answer(in, "What this thread was then is not kept where another one could begin with it. Write “fork from” to see what is, or “fork” for the thread as it is now.")
		return nil, "", nil
	}
	return point, session, err
}
