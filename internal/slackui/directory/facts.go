package directory

import (
	"context"

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
