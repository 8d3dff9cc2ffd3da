package main

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/sync/errgroup"

	"deckhand/internal/report"
	"deckhand/internal/store"
)

const (
	// namesTimeout bounds all look-ups of a report: it is right without names, too.
	namesTimeout = 15 * time.Second
	// fewNames are looked up one by one; more come by the list.
	fewNames    = 40
	namesAtOnce = 4
	listPage    = 200
)

// nameIDs are the ids that a report shows.
type nameIDs struct{ users, channels map[string]bool }

func (n nameIDs) add(to map[string]bool, id string) {
	if id != "" {
		to[id] = true
	}
}

func idsOf(a report.Answer) nameIDs {
	n := nameIDs{users: map[string]bool{}, channels: map[string]bool{}}
	for _, id := range a.Question.Users {
		n.add(n.users, id)
	}
	for _, id := range a.Question.Channels {
		n.add(n.channels, id)
	}
	for _, l := range a.Lines {
		switch a.By {
		case store.ByUser:
			n.add(n.users, l.Key)
		case store.ByChannel:
			n.add(n.channels, l.Key)
		case store.ByNothing, store.ByProject, store.ByModel, store.ByThread, store.ByDay, store.ByMonth:
		}
		n.add(n.channels, l.ThreadKey.ChannelID)
	}
	for _, l := range a.Threads {
		n.add(n.channels, l.ThreadKey.ChannelID)
	}
	return n
}

// slackNames are the names of ids, as far as Slack told them. It is a [report.Names],
// once they are looked up.
type slackNames struct {
	mu       sync.Mutex // while they are looked up
	users    map[string]slackUser
	channels map[string]string
}

type slackUser struct {
	name    string
	deleted bool
}

func (n *slackNames) UserName(id string) (name string, deleted bool) {
	u := n.users[id]
	return u.name, u.deleted
}

func (n *slackNames) ChannelName(id string) string { return n.channels[id] }

// lookUpNames asks Slack what ids are called, if there is a token to ask with. What
// cannot be found out stays an id.
func lookUpNames(ctx context.Context, ids nameIDs) report.Names {
	token := os.Getenv("SLACK_BOT_TOKEN")
	if token == "" || len(ids.users)+len(ids.channels) == 0 {
		return nil
	}
	var options []slack.Option
	if url := os.Getenv("SLACK_API_URL"); url != "" {
		options = append(options, slack.OptionAPIURL(url))
	}
	return slackNamesOf(ctx, slack.New(token, options...), ids)
}

func slackNamesOf(ctx context.Context, api *slack.Client, ids nameIDs) *slackNames {
	ctx, cancel := context.WithTimeout(ctx, namesTimeout)
	defer cancel()
	n := &slackNames{users: map[string]slackUser{}, channels: map[string]string{}}
	var g errgroup.Group
	g.SetLimit(namesAtOnce)
	if len(ids.users) > fewNames {
		g.Go(func() error { return n.allUsers(ctx, api) })
	} else {
		for id := range ids.users {
			g.Go(func() error {
				u, err := api.GetUserInfoContext(ctx, id)
				if err == nil {
					n.addUser(u)
				}
				return nil
			})
		}
	}
	if len(ids.channels) > fewNames {
		g.Go(func() error { return n.allChannels(ctx, api) })
	} else {
		for id := range ids.channels {
			g.Go(func() error {
				c, err := api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
				if err == nil {
					n.addChannel(c)
				}
				return nil
			})
		}
	}
	_ = g.Wait() // whatever could not be looked up has no name
	return n
}

func (n *slackNames) allUsers(ctx context.Context, api *slack.Client) error {
	all, err := api.GetUsersContext(ctx, slack.GetUsersOptionLimit(listPage))
	for i := range all {
		n.addUser(&all[i])
	}
	return err
}

func (n *slackNames) allChannels(ctx context.Context, api *slack.Client) error {
	p := &slack.GetConversationsParameters{Limit: listPage, Types: []string{"public_channel", "private_channel"}}
	for {
		page, next, err := api.GetConversationsContext(ctx, p)
		if err != nil {
			return err
		}
		for i := range page {
			n.addChannel(&page[i])
		}
		if next == "" {
			return nil
		}
		p.Cursor = next
	}
}

func (n *slackNames) addUser(u *slack.User) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.users[u.ID] = slackUser{name: cmp.Or(u.Profile.DisplayName, u.RealName, u.Name), deleted: u.Deleted}
}

func (n *slackNames) addChannel(c *slack.Channel) {
	name := c.Name
	if c.IsIM {
		name = "direct message"
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.channels[c.ID] = name
}
