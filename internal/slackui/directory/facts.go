package directory

import (
	"context"
	"strings"

	"deckhand/internal/access"
)

// Establish puts a question about a person in a channel to access, and looks up what it
// needs to know, one fact at a time, until there is an answer. team is the workspace
// that we work in.
func (d *Directory) Establish(ctx context.Context, team, user, channel string, ask func(access.Facts) access.Answer) access.Answer {
	f := access.Facts{Team: team, Groups: map[string]access.Group{}}
	for {
		answer := ask(f)
		switch need := answer.Need; {
		case need.Person:
			f.Person = d.personNow(ctx, user)
		case need.Channel:
			f.Channel = d.channelNow(ctx, channel)
		case need.Group != "":
			members, err := d.Group(ctx, need.Group)
			f.Groups[need.Group] = access.Group{Member: members[user], Err: err}
		default:
			return answer
		}
	}
}

func (d *Directory) personNow(ctx context.Context, id string) *access.Person {
	u, err := d.User(ctx, id)
	if err != nil {
		return &access.Person{Err: err}
	}
	return &access.Person{Team: u.TeamID, Stranger: u.IsStranger, Deleted: u.Deleted, Bot: u.IsBot, Guest: u.IsRestricted || u.IsUltraRestricted}
}

func (d *Directory) channelNow(ctx context.Context, id string) *access.Channel {
	c, err := d.Channel(ctx, id)
	if err != nil {
		return &access.Channel{Err: err}
	}
	return &access.Channel{Shared: c.IsExtShared || c.IsPendingExtShared}
}

// Profile is what a person is called, and their address; either may be empty.
func (d *Directory) Profile(ctx context.Context, user string) (name, email string, err error) {
	u, err := d.User(ctx, user)
	if err != nil {
		return "", "", err
	}
	return strings.TrimSpace(u.RealName), u.Profile.Email, nil
}

// Zone names the time zone in which a person lives; empty if that is not known.
func (d *Directory) Zone(ctx context.Context, user string) string {
	u, err := d.User(ctx, user)
	if err != nil {
		return ""
	}
	return u.TZ
}

// Topic is what a channel says that it is about.
func (d *Directory) Topic(ctx context.Context, channel string) (string, error) {
	c, err := d.Channel(ctx, channel)
	if err != nil {
		return "", err
	}
	return c.Topic.Value + "\n" + c.Purpose.Value, nil
}

// Public reports whether everybody of the workspace, and nobody else, can read a channel.
func (d *Directory) Public(ctx context.Context, channel string) bool {
	c, err := d.Channel(ctx, channel)
	return err == nil && !c.IsPrivate && !c.IsIM && !c.IsMpIM && !c.IsGroup && !c.IsExtShared
}

// Joined reports whether we are in a channel.
func (d *Directory) Joined(ctx context.Context, channel string) (bool, error) {
	c, err := d.Channel(ctx, channel)
	if err != nil {
		return false, err
	}
	return c.IsMember, nil
}
