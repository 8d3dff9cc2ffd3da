package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"deckhand/internal/access"
	"deckhand/internal/agent/pulls"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// onOpenPullClick gives the thread the work of opening a pull request, as whoever pressed.
func (a puller) onOpenPullClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	turnID := ParseID(in.Click.Value)
	thread, refused, err := prompter(a).ofTurn(ctx, in, turnID, access.Prompt)
	if err != nil || refused != "" {
		return refused, err
	}
	outcome, err = a.pressed(ctx, in, thread, "Open pull request", "Open a pull request for this work, with a title and a text for reviewers.")
	if outcome == "accepted" {
		a.screen.CloseOffer(turnID)
	}
	return outcome, err
}

// onPullClick gives the thread work about its pull request, as whoever pressed. A merge is asked
// for by people alone who may decide about one; it is decided by its card.
func (a puller) onPullClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	p, err := a.c.Store.PullByID(ctx, ParseID(in.Click.Value))
	if err != nil && !errors.Is(err, pg.ErrNotFound) {
		return "", err
	}
	if err != nil || p.ChannelID != in.Row.ChannelID || p.ThreadTS != in.Row.ThreadTS {
		a.Answer(in, "This button does not belong to a pull request here.")
		return "wrong pull request", nil
	}
	act, label, text := access.Prompt, "Address these", pulls.Trouble(p)
	if in.Click.Action == view.ActionMergePull {
		act, label, text = access.Approve, "Merge", pulls.Merge(p)
	}
	if p.State != "open" || text == "" {
		a.Answer(in, fmt.Sprintf("There is nothing to be done about pull request #%d any more: it is %s.", p.Number, p.State))
		return "too late", nil
	}
	thread, err := a.c.Store.ThreadByKey(ctx, p.ThreadKey)
	if err != nil {
		return "", err
	}
	if a.refuses(ctx, in, in.at(thread), act) {
		return "refused", nil
	}
	return a.pressed(ctx, in, thread, label, text)
}

// pressed makes a prompt of a button, as whoever pressed it.
func (a puller) pressed(ctx context.Context, in *Incoming, thread threads.Thread, label, text string) (outcome string, err error) {
	return prompter(a).give(ctx, in, thread, inbox.NewPrompt{Text: fmt.Sprintf("[%s pressed %s:]\n%s", a.nameOf(ctx, in), label, text)})
}

// NameOf implements [pulls.People].
func (a *Chat) NameOf(ctx context.Context, user string) string { return a.people.Name(ctx, user) }

// AuthorOf implements [pulls.People]. Where the profile has no address, it is what the configuration says.
func (a *Chat) AuthorOf(ctx context.Context, user string) (name, email string) {
	name, email, _ = a.people.Profile(ctx, user) // who is not known has none
	name = cmp.Or(name, a.people.Name(ctx, user))
	if email != "" {
		return name, email
	}
	known := a.c.Authors[user]
	return cmp.Or(known.Name, name), known.Address
}

// LinkTo implements [pulls.People].
func (a *Chat) LinkTo(k threads.ThreadKey) string { return a.screen.Permalink(k.ChannelID, k.ThreadTS) }

// MayAsk implements [pulls.People].
func (a *Chat) MayAsk(ctx context.Context, user string, t threads.Thread) bool {
	who := person{TeamID: t.TeamID, UserID: user, ChannelID: t.ChannelID, Project: t.Project, Via: "pull request"}
	return a.authorise(ctx, who, access.Prompt) == nil
}

// readPull reads a pull request and its message.
func (p *posts) readPull(ctx context.Context, id string) (show func(), err error) {
	pull, err := p.c.Store.PullByID(ctx, ParseID(id))
	if err != nil {
		return nil, err
	}
	ts, err := p.PostedAs(ctx, outbox.PullPost, id)
	shown := view.Pull{Pull: pull, Wrong: pulls.Trouble(pull) != ""}
	if u, bad := url.Parse(pull.Repository); bad == nil {
		host := strings.ToLower(u.Host)
		if _, can := p.c.Accounts.Site(host); can {
			_, none := p.c.Store.Connection(ctx, pull.TeamID, pull.Requester, host)
			shown.Connects = errors.Is(none, pg.ErrNotFound)
		}
	}
	m := inThread(pull.ThreadKey, "pull/"+id+"/"+FormatID(pull.CreatedAt.UnixMicro()), shown)
	m.TS, m.Mark = ts, Mark{Kind: "pull", Of: "pull", ID: id, Since: pull.CreatedAt, Doubtful: ts == ""}
	m.OnPosted = func(ts string) {
		p.Note(outbox.PostedMessage{Kind: outbox.PullPost, Subject: id, ChannelID: pull.ChannelID, TS: ts})
	}
	return func() { p.screen.Post(m) }, err
}
