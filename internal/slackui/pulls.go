package slackui

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/agent/pulls"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
)

const pullType = "deckhand_pull" // metadata: {"pull": id}

// readPull reads a pull request and its message.
func (f *frontend) readPull(ctx context.Context, id string) (show func(), err error) {
	p, err := f.app.c.Store.PullByID(ctx, chat.Numbered(id))
	if err != nil {
		return nil, err
	}
	ts, err := f.app.PostedAs(ctx, outbox.PullPost, id)
	connects := false
	if u, bad := url.Parse(p.Repository); bad == nil {
		host := strings.ToLower(u.Host)
		if _, can := f.app.c.Accounts.Site(host); can {
			_, none := f.app.c.Store.Connection(ctx, p.TeamID, p.Requester, host)
			connects = errors.Is(none, pg.ErrNotFound)
		}
	}
	return func() { f.showPull(p, ts, connects) }, err
}

// showPull posts or edits the message of a pull request. f.cardsMu is held.
func (f *frontend) showPull(p forges.Pull, ts string, connects bool) {
	id := chat.Number(p.ID)
	mark := metadata(pullType, "pull", id)
	f.app.publisher.Show(publish.Message{
		Metadata: mark, Find: f.find(p.ThreadKey, p.CreatedAt, mark), Doubtful: ts == "",
		Key: "pull/" + id + "/" + chat.Number(p.CreatedAt.UnixMicro()), Channel: p.ChannelID, ThreadTS: p.ThreadTS, Group: p.ThreadTS, TS: ts,
		Page: render.Pull(view.Pull{Pull: p, Wrong: pulls.Trouble(p) != "", Connects: connects}, f.app.rendering()), Priority: publish.Normal,
		OnPosted: func(ts string) {
			f.note(outbox.PostedMessage{Kind: outbox.PullPost, Subject: id, ChannelID: p.ChannelID, TS: ts})
		},
		OnError: func(err error) { f.app.c.Log.Error("show a pull request", zap.String("url", p.URL), zap.Error(err)) },
	})
}
