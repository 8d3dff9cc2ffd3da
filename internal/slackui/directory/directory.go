// Package directory knows the people, user groups and channels of a Slack workspace:
// who they are now, and what they are called. It decides nothing: what follows from
// who somebody is, is access's to say.
package directory

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"
)

const (
	// ttl is how long what Slack says of people, groups and channels is believed: a
	// person who is removed may act for this long at most.
	ttl = time.Minute
	// timeout bounds one look-up.
	timeout = 10 * time.Second
	// cacheMax bounds each cache; past it the cache is emptied.
	cacheMax = 10_000
)

// Directory looks up people, user groups and channels in Slack. Answers are believed
// for a minute; failures are asked again. Safe for concurrent use.
type Directory struct {
	api *slack.Client
	log *zap.Logger

	users    cache[*slack.User]
	groups   cache[map[string]bool]
	channels cache[*slack.Channel]
	directs  cache[string]
	privates cache[map[string]bool] // channels that a person is in, by user

	// What people and channels are called, all of them at once; see Names.
	everybody listing[person]
	anywhere  listing[channel]
}

// New is the directory of the workspace that the client's token belongs to.
func New(api *slack.Client, log *zap.Logger) *Directory {
	return &Directory{api: api, log: log}
}

// User is a person as Slack has them now.
func (d *Directory) User(ctx context.Context, id string) (*slack.User, error) {
	return d.users.get(ctx, id, func(ctx context.Context) (*slack.User, error) {
		return d.api.GetUserInfoContext(ctx, id)
	})
}

// Name is what a person is called, or their id where that cannot be known.
func (d *Directory) Name(ctx context.Context, id string) string {
	u, err := d.User(ctx, id)
	if err != nil {
		return id
	}
	return nameOf(u)
}

// nameOf is the name that a person chose, or the first one that they have that is more than
// blanks.
func nameOf(u *slack.User) string {
	return cmp.Or(strings.TrimSpace(u.Profile.DisplayName), strings.TrimSpace(u.RealName), u.Name)
}

// Group is the set of a user group's members.
func (d *Directory) Group(ctx context.Context, groupID string) (map[string]bool, error) {
	return d.groups.get(ctx, groupID, func(ctx context.Context) (map[string]bool, error) {
		ids, err := d.api.GetUserGroupMembersContext(ctx, groupID)
		if err != nil {
			return nil, err
		}
		set := make(map[string]bool, len(ids))
		for _, id := range ids {
			set[id] = true
		}
		return set, nil
	})
}

// Channel is a channel as Slack has it now.
func (d *Directory) Channel(ctx context.Context, id string) (*slack.Channel, error) {
	return d.channels.get(ctx, id, func(ctx context.Context) (*slack.Channel, error) {
		return d.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
	})
}

// Direct is the conversation between a person and the bot, which is opened if need be.
func (d *Directory) Direct(ctx context.Context, userID string) (channelID string, err error) {
	return d.directs.get(ctx, userID, func(ctx context.Context) (string, error) {
		c, _, _, err := d.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{userID}})
		if err != nil {
			return "", err
		}
		return c.ID, nil
	})
}

// Reads reports whether a person can read a channel: a public one, or one that they and
// we are in. What cannot be established is not.
func (d *Directory) Reads(ctx context.Context, userID, channelID string) bool {
	c, err := d.Channel(ctx, channelID)
	if err != nil || c.IsIM {
		return false
	}
	if !c.IsPrivate && !c.IsMpIM && !c.IsGroup {
		return true
	}
	in, err := d.privates.get(ctx, userID, func(ctx context.Context) (map[string]bool, error) { return d.privatesOf(ctx, userID) })
	return err == nil && in[channelID]
}

// privatesOf are the private channels that a person and the bot are in: archived ones, too, whose
// members Slack keeps, and who read on there.
func (d *Directory) privatesOf(ctx context.Context, userID string) (map[string]bool, error) {
	in, cursor := map[string]bool{}, ""
	for range listPages {
		page, next, err := d.api.GetConversationsForUserContext(ctx, &slack.GetConversationsForUserParameters{
			UserID: userID, Types: []string{"private_channel"}, Limit: listPage - 1, Cursor: cursor,
		})
		if err != nil {
			return nil, err
		}
		for _, c := range page {
			in[c.ID] = true
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return in, nil
}

type cache[T any] struct {
	mu      sync.Mutex
	entries map[string]cached[T]
	flight  singleflight.Group
}

type cached[T any] struct {
	value T
	until time.Time
}

func (c *cache[T]) get(ctx context.Context, key string, load func(context.Context) (T, error)) (T, error) {
	c.mu.Lock()
	e, ok := c.entries[key]
	c.mu.Unlock()
	if ok && time.Now().Before(e.until) {
		return e.value, nil
	}
	// The look-up is shared by all who wait for it, so it does not end with the
	// first one's context, but nobody waits for it longer than their own.
	looking := c.flight.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), timeout, fmt.Errorf("look up %s: no answer in %s", key, timeout))
		defer cancel()
		v, err := load(ctx)
		if err != nil {
			return v, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.entries == nil || len(c.entries) >= cacheMax {
			c.entries = map[string]cached[T]{}
		}
		c.entries[key] = cached[T]{value: v, until: time.Now().Add(ttl)}
		return v, nil
	})
	var zero T
	select {
	case found := <-looking:
		if found.Err != nil {
			return zero, fmt.Errorf("look up %s: %w", key, found.Err)
		}
		return found.Val.(T), nil
	case <-ctx.Done():
		return zero, fmt.Errorf("look up %s: %w", key, context.Cause(ctx))
	}
}
