package slackui

import (
	"context"
	"strings"

	"deckhand/internal/report"
	"deckhand/internal/slackui/directory"
)

// people implements [chat.People].
type people struct{ *directory.Directory }

func (p people) Profile(ctx context.Context, user string) (name, email string, err error) {
	u, err := p.User(ctx, user)
	if err != nil {
		return "", "", err
	}
	return strings.TrimSpace(u.RealName), u.Profile.Email, nil
}

// Names and Zone are of [costs.People].
func (p people) Names(ctx context.Context, users, channels []string, private func(id string) bool) report.Names {
	return p.Directory.Names(ctx, users, channels, private)
}

func (p people) Zone(ctx context.Context, user string) string {
	u, err := p.User(ctx, user)
	if err != nil {
		return ""
	}
	return u.TZ
}

func (p people) Topic(ctx context.Context, channel string) (string, error) {
	c, err := p.Channel(ctx, channel)
	if err != nil {
		return "", err
	}
	return c.Topic.Value + "\n" + c.Purpose.Value, nil
}

func (p people) Public(ctx context.Context, channel string) bool {
	c, err := p.Channel(ctx, channel)
	return err == nil && !c.IsPrivate && !c.IsIM && !c.IsMpIM && !c.IsGroup && !c.IsExtShared
}

func (p people) Joined(ctx context.Context, channel string) (bool, error) {
	c, err := p.Channel(ctx, channel)
	if err != nil {
		return false, err
	}
	return c.IsMember, nil
}
