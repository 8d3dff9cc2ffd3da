package chat

import (
	"context"
	"slices"
	"strings"

	"deckhand/internal/access"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// callMost is how many people are called directly where the project does not say how.
const callMost = 5

// Call is whom a pending approval calls: users and user groups.
type Call struct {
	Mention []string
	Direct  []string
	Copies  bool // those in direct are sent one
	Readers bool // if they can read the channel
}

// callFew calls those directly who are not in the thread, if there are few of them, and all
// by a mention if not. known is false if Slack did not tell who they are.
func (a *gate) callFew(ctx context.Context, ap approvals.Approval, whom []string, excluded func(id string) bool) (to Call, known bool) {
	to.Readers = true
	err := a.EachUser(ctx, whom, func(user string) {
		switch {
		case excluded(user), slices.Contains(to.Mention, user), slices.Contains(to.Direct, user):
		case user == ap.RequestedBy, a.visitors.follows(ap.ThreadKey, user):
			to.Mention = append(to.Mention, user)
		default:
			to.Direct = append(to.Direct, user)
		}
	})
	if err != nil || len(to.Direct) > callMost {
		return Call{Mention: whom}, err == nil
	}
	to.Copies = len(to.Direct) > 0 || len(to.Mention) == 0
	return to, true
}

// Broadcasts reports whether a card is to be seen in its channel, too.
func (a *gate) Broadcasts(project string, k threads.ThreadKey) bool {
	return a.c.Calls[project] == access.CallChannel && !access.IsDirect(k.ChannelID)
}

// isCopy reports whether a message is a copy of an approval's card.
func (a router) isCopy(ctx context.Context, ap approvals.Approval, channel, ts string) (bool, error) {
	posts, err := a.c.Store.Posts(ctx, outbox.CardPost, ap.CardID)
	return slices.ContainsFunc(copiesIn(posts), func(c outbox.PostedMessage) bool {
		return c.ChannelID == channel && (c.TS == ts || c.TS == "") // it is not known yet while it is being posted
	}), err
}

// copiesIn are those of a card's messages that are people's copies.
func copiesIn(posts []outbox.PostedMessage) []outbox.PostedMessage {
	return slices.DeleteFunc(posts, func(p outbox.PostedMessage) bool { return p.Audience == "" })
}

// Called says whom an approval calls. known is false if Slack did not tell whether it is the
// person who asked.
func (a *gate) Called(ctx context.Context, ap approvals.Approval) (to Call, known bool) {
	terms := termsOf(ap)
	if terms.Question {
		return Call{Mention: []string{terms.Requester}}, true
	}
	known = true
	if terms.Requester != "" && terms.RequesterMay && ap.Terms.Quorum <= 1 {
		refusal := a.mayDecide(ctx, person{TeamID: a.self.Team, UserID: terms.Requester}, ap)
		if refusal == nil {
			return Call{Mention: []string{terms.Requester}}, true
		}
		known = refusal.Err == nil
	}
	whom := a.c.Access.Called(*terms, ap.Project, ap.ChannelID)
	excluded := func(id string) bool {
		return !terms.RequesterMay && (id == terms.Requester || id == terms.Editor)
	}
	whom = slices.DeleteFunc(slices.Clone(whom), excluded)
	switch way := a.c.Calls[ap.Project]; {
	case way == access.CallDirect, access.IsDirect(ap.ChannelID): // which nobody else sees
		return Call{Direct: whom, Copies: true}, known
	case way == access.CallAuto:
		to, ok := a.callFew(ctx, ap, whom, excluded)
		return to, known && ok
	}
	return Call{Mention: whom}, known
}

// isGroup reports whether an id is a user group's, and not a person's.
func isGroup(id string) bool { return strings.HasPrefix(id, "S") }
