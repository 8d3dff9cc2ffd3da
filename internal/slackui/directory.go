package slackui

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/sync/singleflight"
)

const (
	// directoryTTL is how long what Slack says of people, groups and channels is
	// believed: a person who is removed may act for this long at most.
	directoryTTL = time.Minute
	// directoryTimeout bounds one look-up.
	directoryTimeout = 10 * time.Second
	// directoryMax bounds each cache; past it the cache is emptied.
	directoryMax = 10_000
)

// directory looks up people, user groups and channels in Slack. Answers are
// cached for directoryTTL; failures are not. Safe for concurrent use.
type directory struct {
	api    *slack.Client
	teamID string

	users    cache[*slack.User]
	groups   cache[map[string]bool]
	channels cache[*slack.Channel]

	// what people are called, all of them at once; see everybody
	allMu    sync.Mutex
	all      map[string]userName
	allUntil time.Time
}

func newDirectory(api *slack.Client, teamID string) *directory {
	return &directory{api: api, teamID: teamID}
}

func (d *directory) user(ctx context.Context, id string) (*slack.User, error) {
	return d.users.get(ctx, id, func(ctx context.Context) (*slack.User, error) {
		return d.api.GetUserInfoContext(ctx, id)
	})
}

// name is what a person is called, or their id where that cannot be known.
func (d *directory) name(ctx context.Context, id string) string {
	u, err := d.user(ctx, id)
	if err != nil {
		return id
	}
	switch {
	case u.Profile.DisplayName != "":
		return u.Profile.DisplayName
	case u.RealName != "":
		return u.RealName
	}
	return u.Name
}

func (d *directory) inGroup(ctx context.Context, groupID, userID string) (bool, error) {
	members, err := d.group(ctx, groupID)
	return members[userID], err
}

// group is the set of a user group's members.
func (d *directory) group(ctx context.Context, groupID string) (map[string]bool, error) {
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

func (d *directory) channel(ctx context.Context, id string) (*slack.Channel, error) {
	return d.channels.get(ctx, id, func(ctx context.Context) (*slack.Channel, error) {
		return d.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
	})
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
	// first one's context.
	v, err, _ := c.flight.Do(key, func() (any, error) {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), directoryTimeout, fmt.Errorf("look up %s: no answer in %s", key, directoryTimeout))
		defer cancel()
		v, err := load(ctx)
		if err != nil {
			return v, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.entries == nil || len(c.entries) >= directoryMax {
			c.entries = map[string]cached[T]{}
		}
		c.entries[key] = cached[T]{value: v, until: time.Now().Add(directoryTTL)}
		return v, nil
	})
	if err != nil {
		var zero T
		return zero, fmt.Errorf("look up %s: %w", key, err)
	}
	return v.(T), nil
}
