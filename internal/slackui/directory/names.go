package directory

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"deckhand/internal/access"
)

const (
	// namesMost is how many people, and how many channels, are looked up one by one.
	// A file can hold thousands of them: beyond this many Slack's list is read, a
	// thousand at a time.
	namesMost   = 40
	namesAtOnce = 8
	// listPages bounds the reading of such a list, namesPatience all look-ups.
	listPages     = 10
	listPage      = 1000
	namesPatience = 10 * time.Second
	// listKept is how long a list is believed.
	listKept = 10 * time.Minute
)

// Names knows what people call some ids. It implements report.Names. The zero value
// knows nobody.
type Names struct {
	people   map[string]person
	channels map[string]string
}

type person struct {
	name    string
	deleted bool
}

type channel struct {
	name    string
	private bool
}

// UserName is the person's name, or empty if it is not known. People whom Slack does
// not know any more are as good as deleted.
func (n Names) UserName(id string) (name string, deleted bool) {
	p := n.people[id]
	return p.name, p.deleted
}

// ChannelName is the channel's name without #, or empty if it is not known.
func (n Names) ChannelName(id string) string { return n.channels[id] }

// Names looks up what people and channels are called; the first ones are the most
// important. private says which private channels may be named; nil: all. What Slack
// does not tell in time has no name, which is no error.
func (d *Directory) Names(ctx context.Context, people, channels []string, private func(id string) bool) Names {
	ctx, cancel := context.WithTimeout(ctx, namesPatience)
	defer cancel()
	out := Names{people: map[string]person{}, channels: map[string]string{}}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(namesAtOnce)
	for _, id := range people[:min(len(people), namesMost)] {
		g.Go(func() error {
			if p, ok := d.person(ctx, id); ok {
				mu.Lock()
				defer mu.Unlock()
				out.people[id] = p
			}
			return nil
		})
	}
	called := func(id string, c channel) {
		mu.Lock()
		defer mu.Unlock()
		if c.private && private != nil && !private(id) {
			c.name = "private-channel"
		}
		out.channels[id] = c.name
	}
	for _, id := range channels[:min(len(channels), namesMost)] {
		g.Go(func() error {
			if access.IsDirect(id) {
				called(id, channel{name: "direct messages"}) // Slack does not tell us whose
			} else if c, err := d.Channel(ctx, id); err == nil {
				called(id, channel{name: c.Name, private: c.IsPrivate})
			}
			return nil
		})
	}
	_ = g.Wait()
	if len(people) > namesMost {
		all := d.everybody.read(ctx, d.listPeople)
		for _, id := range people[namesMost:] {
			if p, ok := all[id]; ok {
				out.people[id] = p
			}
		}
	}
	if len(channels) > namesMost {
		all := d.anywhere.read(ctx, d.listChannels)
		for _, id := range channels[namesMost:] {
			if access.IsDirect(id) {
				called(id, channel{name: "direct messages"})
			} else if c, ok := all[id]; ok {
				called(id, c)
			}
		}
	}
	return out
}

func (d *Directory) person(ctx context.Context, id string) (person, bool) {
	u, err := d.User(ctx, id)
	if refused, ok := errors.AsType[slack.SlackErrorResponse](err); ok && refused.Err == "user_not_found" {
		return person{deleted: true}, true
	}
	if err != nil {
		d.log.Warn("look up a name", zap.String("user", id), zap.Error(err))
		return person{}, false
	}
	return person{name: nameOf(u), deleted: u.Deleted}, true
}

// listing is a list of everything of a kind, as it was read last.
type listing[T any] struct {
	mu    sync.Mutex
	all   map[string]T
	until time.Time
}

// read is the list, which load reads page by page: it adds what it reads and returns
// the cursor of the next page, empty after the last. If Slack breaks off, the list is
// what was read until then, and is read anew the next time.
func (l *listing[T]) read(ctx context.Context, load func(ctx context.Context, cursor string, into map[string]T) (next string, err error)) map[string]T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.until) {
		return l.all
	}
	all := map[string]T{}
	cursor := ""
	for range listPages {
		next, err := load(ctx, cursor, all)
		if err != nil {
			return all
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	l.all, l.until = all, time.Now().Add(listKept)
	return all
}

func (d *Directory) listPeople(ctx context.Context, cursor string, into map[string]person) (next string, err error) {
	page, err := d.api.GetUsersPaginated(slack.GetUsersOptionLimit(listPage), slack.GetUsersOptionCursor(cursor)).Next(ctx)
	if err != nil {
		return "", err
	}
	for i := range page.Users {
		u := &page.Users[i]
		into[u.ID] = person{name: nameOf(u), deleted: u.Deleted}
	}
	return page.Cursor, nil
}

func (d *Directory) listChannels(ctx context.Context, cursor string, into map[string]channel) (next string, err error) {
	page, next, err := d.api.GetConversationsContext(ctx, &slack.GetConversationsParameters{
		Cursor: cursor, Limit: listPage, Types: []string{"public_channel", "private_channel"},
	})
	for _, c := range page {
		into[c.ID] = channel{name: c.Name, private: c.IsPrivate}
	}
	return next, err
}
