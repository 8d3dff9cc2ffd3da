package slackui

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"deckhand/internal/report"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

const (
	// namesMost is how many people, and how many channels, are looked up one by one
	// for an answer. A file can hold thousands of people: beyond this many, Slack's
	// list of them is read, a thousand at a time.
	namesMost = 40
	// namesPages bounds the reading of that list, namesPatience all look-ups.
	namesPages    = 10
	namesPatience = 10 * time.Second
	// namesKept is how long that list is believed.
	namesKept = 10 * time.Minute
)

// costNameBook knows what people call the ids of one answer. It implements
// [report.Names]; what is not in it is shown as its id.
type costNameBook struct {
	users    map[string]userName
	channels map[string]string
}

type userName struct {
	name    string
	deleted bool
}

// UserName implements [report.Names].
func (b costNameBook) UserName(id string) (name string, deleted bool) {
	u := b.users[id]
	return u.name, u.deleted
}

// ChannelName implements [report.Names].
func (b costNameBook) ChannelName(id string) string { return b.channels[id] }

// privateNames says which private channels an answer may name: the one that it is
// shown in, and all of them to an admin alone.
type privateNames struct {
	here string
	all  bool
}

// costNames looks up who and what an answer shows, and no more than that: the lines
// of its table, or all of them for a file. What Slack does not tell in time keeps
// its id.
func (a *App) costNames(ctx context.Context, answer report.Answer, file bool, private privateNames) report.Names {
	users, channels := shownIDs(answer, file)
	ctx, cancel := context.WithTimeout(ctx, namesPatience)
	defer cancel()
	book := costNameBook{users: map[string]userName{}, channels: map[string]string{}}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(8)
	for _, id := range users[:min(len(users), namesMost)] {
		g.Go(func() error {
			name, ok := a.userName(ctx, id)
			if ok {
				mu.Lock()
				defer mu.Unlock()
				book.users[id] = name
			}
			return nil
		})
	}
	for _, id := range channels[:min(len(channels), namesMost)] {
		g.Go(func() error {
			name := a.channelName(ctx, id, private)
			mu.Lock()
			defer mu.Unlock()
			book.channels[id] = name
			return nil
		})
	}
	_ = g.Wait() // a name that is missing is no error
	if len(users) > namesMost {
		everybody := a.people.everybody(ctx)
		for _, id := range users[namesMost:] {
			if name, ok := everybody[id]; ok {
				book.users[id] = name
			}
		}
	}
	return book
}

// shownIDs are the people and channels of an answer, dearest first: those of its
// table, or of all its lines.
func shownIDs(a report.Answer, all bool) (users, channels []string) {
	q := a.Question
	users, channels = slices.Clone(q.Users), slices.Clone(q.Channels)
	lines := a.Lines
	if !all {
		lines, _, _ = a.Top(render.CostRows(a.By))
	}
	for _, l := range lines {
		switch a.By {
		case store.ByUser:
			users = append(users, l.Key)
		case store.ByChannel:
			channels = append(channels, l.Key)
		case store.ByThread:
			channels = append(channels, l.ThreadKey.ChannelID)
		case store.ByNothing, store.ByProject, store.ByModel, store.ByDay, store.ByMonth:
		}
	}
	for _, l := range a.Threads {
		channels = append(channels, l.ThreadKey.ChannelID)
	}
	return distinct(users), distinct(channels)
}

func distinct(ids []string) []string {
	seen := map[string]bool{"": true}
	var out []string
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// userName is what a person is called now. People whom Slack does not know any more
// are as good as deleted.
func (a *App) userName(ctx context.Context, id string) (userName, bool) {
	u, err := a.people.user(ctx, id)
	if refused, ok := errors.AsType[slack.SlackErrorResponse](err); ok && refused.Err == "user_not_found" {
		return userName{deleted: true}, true
	}
	if err != nil {
		a.log.Warn("look up a name", zap.String("user", id), zap.Error(err))
		return userName{}, false
	}
	return nameOf(u), true
}

func nameOf(u *slack.User) userName {
	name := u.Profile.DisplayName
	if name == "" {
		name = u.RealName
	}
	if name == "" {
		name = u.Name
	}
	return userName{name: name, deleted: u.Deleted}
}

// channelName is what a channel is called now, as far as it may be told.
func (a *App) channelName(ctx context.Context, id string, private privateNames) string {
	if isDirect(id) {
		return "direct messages" // Slack does not tell us whose
	}
	c, err := a.people.channel(ctx, id)
	switch {
	case err != nil:
		return "" // its id is shown
	case c.IsPrivate && !private.all && id != private.here:
		return "private-channel"
	}
	return c.Name
}

// everybody lists the names of all people of the workspace, as far as namesPages go.
// If Slack breaks off, it is what was read until then.
func (d *directory) everybody(ctx context.Context) map[string]userName {
	d.allMu.Lock()
	defer d.allMu.Unlock()
	if time.Now().Before(d.allUntil) {
		return d.all
	}
	all := map[string]userName{}
	page := d.api.GetUsersPaginated(slack.GetUsersOptionLimit(1000))
	var err error
	for range namesPages {
		if page, err = page.Next(ctx); err != nil {
			break
		}
		for i := range page.Users {
			all[page.Users[i].ID] = nameOf(&page.Users[i])
		}
	}
	if err == nil || page.Done(err) {
		d.all, d.allUntil = all, time.Now().Add(namesKept)
	}
	return all
}
