package slackui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent/pulls"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

const pullType = "deckhand_pull" // metadata: {"pull": id}

// readPull reads a pull request and its message.
func (f *frontend) readPull(ctx context.Context, id string) (show func(), err error) {
	p, err := f.app.c.Store.PullByID(ctx, numbered(id))
	if err != nil {
		return nil, err
	}
	ts, err := f.app.postedAs(ctx, store.PullPost, id)
	connects := false
	if u, bad := url.Parse(p.Repository); bad == nil {
		host := strings.ToLower(u.Host)
		if _, can := f.app.c.Accounts.Site(host); can {
			_, none := f.app.c.Store.Connection(ctx, p.TeamID, p.Requester, host)
			connects = errors.Is(none, store.ErrNotFound)
		}
	}
	return func() { f.showPull(p, ts, connects) }, err
}

// showPull posts or edits the message of a pull request. f.cardsMu is held.
func (f *frontend) showPull(p store.Pull, ts string, connects bool) {
	id := number(p.ID)
	mark := metadata(pullType, "pull", id)
	f.app.publisher.Show(publish.Message{
		Metadata: mark, Find: f.find(p.ThreadKey, p.CreatedAt, mark), Doubtful: ts == "",
		Key: "pull/" + id + "/" + number(p.CreatedAt.UnixMicro()), Channel: p.ChannelID, ThreadTS: p.ThreadTS, Group: p.ThreadTS, TS: ts,
		Page: render.Pull(render.PullView{Pull: p, Wrong: pulls.Trouble(p) != "", Connects: connects}, f.app.rendering()), Priority: publish.Normal,
		OnPosted: func(ts string) {
			f.note(store.PostedMessage{Kind: store.PullPost, Subject: id, ChannelID: p.ChannelID, TS: ts})
		},
		OnError: func(err error) { f.app.log.Error("show a pull request", zap.String("url", p.URL), zap.Error(err)) },
	})
}

// onOpenPullClick gives the thread the work of opening a pull request, as whoever pressed.
func (a *App) onOpenPullClick(ctx context.Context, in *incoming, button *slack.BlockAction) (outcome string, err error) {
	turnID := numbered(button.Value)
	thread, err := a.c.Store.ThreadOfTurn(ctx, turnID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", err
	}
	if err != nil || thread.ChannelID != in.store.ChannelID || thread.ThreadTS != in.store.ThreadTS {
		a.answer(in, "This button does not belong to a turn here.")
		return "wrong turn", nil
	}
	outcome, err = a.pressed(ctx, in, thread, access.Prompt, "Open pull request", "Open a pull request for this work, with a title and a text for reviewers.")
	if outcome == "accepted" {
		a.frontend.CloseOffer(turnID)
	}
	return outcome, err
}

// onPullClick gives the thread work about its pull request, as whoever pressed. A merge is asked
// for by people alone who may decide about one; it is decided by its card.
func (a *App) onPullClick(ctx context.Context, in *incoming, button *slack.BlockAction) (outcome string, err error) {
	p, err := a.c.Store.PullByID(ctx, numbered(button.Value))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", err
	}
	if err != nil || p.ChannelID != in.store.ChannelID || p.ThreadTS != in.store.ThreadTS {
		a.answer(in, "This button does not belong to a pull request here.")
		return "wrong pull request", nil
	}
	act, label, text := access.Prompt, "Address these", pulls.Trouble(p)
	if render.ActionOf(button.ActionID) == render.ActionMergePull {
		act, label, text = access.Approve, "Merge", pulls.Merge(p)
	}
	if p.State != "open" || text == "" {
		a.answer(in, fmt.Sprintf("There is nothing to be done about pull request #%d any more: it is %s.", p.Number, p.State))
		return "too late", nil
	}
	thread, err := a.c.Store.ThreadByKey(ctx, p.ThreadKey)
	if err != nil {
		return "", err
	}
	return a.pressed(ctx, in, thread, act, label, text)
}

// pressed makes a prompt of a button, as whoever pressed it.
func (a *App) pressed(ctx context.Context, in *incoming, thread store.Thread, act access.Act, label, text string) (outcome string, err error) {
	who := in.person()
	who.Project = thread.Project
	if r := a.authorise(ctx, who, act); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	_, ok, err := a.c.Store.AcceptPrompt(ctx, store.NewPrompt{
		InboxID: in.store.ID, Thread: thread.Key(), Project: thread.Project, UserID: in.store.UserID, UUID: uuid.NewString(),
		Text: fmt.Sprintf("[%s pressed %s:]\n%s", mrkdwn.OneLine(a.people.Name(ctx, in.store.UserID)), label, text),
	})
	if err != nil {
		return "", err
	}
	if ok {
		a.agent.Wake(thread.ID)
	}
	return "accepted", nil
}

// NameOf implements [pulls.People].
func (a *App) NameOf(ctx context.Context, user string) string { return a.people.Name(ctx, user) }

// AuthorOf implements [pulls.People]. Where the profile has no address, it is what the configuration says.
func (a *App) AuthorOf(ctx context.Context, user string) (name, email string) {
	if u, err := a.people.User(ctx, user); err == nil {
		name, email = cmp.Or(strings.TrimSpace(u.RealName), a.people.Name(ctx, user)), u.Profile.Email
	}
	if email != "" {
		return name, email
	}
	known := a.c.Authors[user]
	return cmp.Or(known.Name, name), known.Address
}

// LinkTo implements [pulls.People].
func (a *App) LinkTo(k store.ThreadKey) string { return a.permalink(k.ChannelID, k.ThreadTS) }

// MayAsk implements [pulls.People].
func (a *App) MayAsk(ctx context.Context, user string, t store.Thread) bool {
	who := person{TeamID: t.TeamID, UserID: user, ChannelID: t.ChannelID, Project: t.Project, Via: "pull request"}
	return a.authorise(ctx, who, access.Prompt) == nil
}
