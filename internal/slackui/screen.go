package slackui

import (
	"context"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/agent"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// What [chat.Screen] needs beside what decode.go, record.go, modals.go and the frontend have.
var _ chat.Screen = (*App)(nil)

// shown is a page as Slack has it.
func (a *App) shown(page view.Page) render.Page { return render.Shown(page, a.rendering()) }

// Whisper implements [chat.Screen].
func (a *App) Whisper(at chat.Where, user string, page view.Page) {
	a.whisper(at.Channel, at.Thread, user, a.shown(page))
}

// Direct implements [chat.Screen].
func (a *App) Direct(user string, page view.Page) { a.direct(user, a.shown(page)) }

// direct sends a person a direct message.
func (a *App) direct(user string, page render.Page) {
	a.publisher.Once(publish.Call{
		Method: publish.PostMessage, Priority: publish.Click, Group: user, What: "message " + user,
		Do: func(ctx context.Context) error {
			return a.publisher.Reduced(publish.InMessage, "direct message", page, func(page render.Page) error {
				_, _, err := a.api.PostMessageContext(ctx, user, page.PostOptions()...)
				return err
			})
		},
	})
}

// Say implements [chat.Screen].
func (a *App) Say(at chat.Where, page view.Page) { a.say(at.Channel, at.Thread, a.shown(page)) }

const (
	askedPost = "asked/"         // before the key of what is posted for somebody
	askedType = "deckhand_asked" // metadata: {"inbox": id}
)

// PostOnce implements [chat.Screen].
func (a *App) PostOnce(ctx context.Context, in *chat.Incoming, page view.Page) (ts string, err error) {
	key, mark := in.Row.Key(), metadata(askedType, "inbox", chat.Number(in.Row.ID))
	find := a.frontend.find(key, in.Row.ReceivedAt, mark)
	if key.ThreadTS == "" {
		find = a.frontend.findDirect(key.ChannelID, in.Row.ReceivedAt, mark)
	}
	done := make(chan error, 1)
	a.publisher.Show(publish.Message{
		Key: askedPost + chat.Number(in.Row.ID) + "/" + key.ThreadTS, Channel: key.ChannelID, ThreadTS: key.ThreadTS, Group: key.ThreadTS,
		Page: a.shown(page), Priority: publish.Answer, Final: true,
		Metadata: mark, Find: find, Doubtful: !in.Row.ReceivedAt.IsZero(), // another process may have posted it
		OnPosted: func(posted string) { ts = posted },
		OnEnd:    func(err error) { done <- err },
	})
	select {
	case err := <-done:
		return ts, err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Attach implements [chat.Screen].
func (a *App) Attach(k threads.ThreadKey, name, text string) { a.frontend.Attach(k, name, text) }

// Replace implements [chat.Screen].
func (a *App) Replace(in *chat.Incoming, page view.Page) {
	a.publisher.Show(publish.Message{
		Key: "pick/" + in.Row.TS, Channel: in.Row.ChannelID, ThreadTS: in.Row.ThreadTS, Group: in.Row.ThreadTS, TS: in.Row.TS,
		Page: a.shown(page), Priority: publish.Normal, Final: true,
	})
}

// React implements [chat.Screen].
func (a *App) React(channel, ts string, m agent.PromptMark) { a.react(channel, ts, marks[m], nil) }

// MarkWaits implements [chat.Screen].
func (a *App) MarkWaits(channel, ts string, waits bool) { a.markWaits(channel, ts, waits, nil) }

// Suggest implements [chat.Screen].
func (a *App) Suggest(in *chat.Incoming, project string) {
	params := slack.AssistantThreadsSetSuggestedPromptsParameters{ChannelID: in.Row.ChannelID, ThreadTS: in.Row.ThreadTS}
	if project != "" {
		params.Title = render.PlainTitle("What should Deckhand do in " + project + "?")
		params.Prompts = []slack.AssistantThreadsPrompt{
			{Title: "Fix a failing test", Message: "Run the tests, find out why they fail, and propose a fix."},
			{Title: "Explain the code", Message: "How is this repository organized, and where should a newcomer start reading?"},
		}
	}
	params.Prompts = append(params.Prompts, slack.AssistantThreadsPrompt{Title: "What I spent this month", Message: "costs this month for me"})
	a.sessions.mu.Lock()
	defer a.sessions.mu.Unlock()
	a.sessions.once(in.Row.Key(), publish.SetPrompts, publish.Normal, "suggest what to say", func(ctx context.Context) error {
		return a.api.SetAssistantThreadsSuggestedPromptsContext(ctx, params)
	})
}

// ShowApproval implements [chat.Screen].
func (a *App) ShowApproval(ap approvals.Approval) { a.frontend.ShowApproval(ap) }

// Show implements [chat.Screen].
func (a *App) Show(kind outbox.PostKind, id string) { a.frontend.Show(kind, id) }

// CloseOffer implements [chat.Screen].
func (a *App) CloseOffer(turnID int64) { a.frontend.CloseOffer(turnID) }

// ShowPlace implements [chat.Screen].
func (a *App) ShowPlace(t threads.Thread, before int) { a.frontend.ShowPlace(t, before) }

// Running implements [chat.Screen].
func (a *App) Running(turnID int64) agent.TurnView { return a.frontend.running(turnID) }

// Send implements [chat.Screen].
func (a *App) Send(w outbox.Row, end func(error)) {
	f := a.frontend
	switch w.Kind {
	case outbox.Turn:
		f.showLeftTurn(w, end)
	case outbox.Left, outbox.GivenUp:
		f.leave(w, end)
	case outbox.Mark:
		f.mark(w, end)
	case outbox.Said:
		f.saySentence(w, outboxMark(w), end)
	case outbox.Whisper:
		f.whisper(w, end)
	case outbox.Waits:
		f.showWaits(w)
	case outbox.Queue:
		f.takeQueueOver(w)
	case outbox.Card, outbox.Wait, outbox.Budget: // they are shown, see Show
	}
}

// Left implements [chat.Screen].
func (a *App) Left(k threads.ThreadKey) { a.sessions.left(k) }

// Watched implements [chat.Screen].
func (a *App) Watched(threadTS string) { a.publisher.Watched(threadTS) }

// MayPass implements [chat.Screen].
func (*App) MayPass(err error) bool { return publish.MayPass(err) }

// Passes implements [chat.Screen].
func (*App) Passes(err error) (after time.Duration, ok bool) { return publish.Passes(err) }
