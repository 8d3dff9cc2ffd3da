package slackui

import (
	"context"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// Act is something a person wants to do.
type Act string

// The acts. Each needs the role that [Roles] gives it.
const (
	ActPrompt  Act = "prompt"  // give the agent work
	ActStop    Act = "stop"    // stop a running turn
	ActSee     Act = "see"     // costs, the whole input of a request, the home tab
	ActApprove Act = "approve" // decide about a tool call, a plan or a question
)

// Roles says who may do what: Slack user ids (U…, W…) and user group ids (S…).
// An admin may do all that an approver may, an approver all that a user may.
// Nobody is listed: nobody may do anything.
type Roles struct {
	Admins    []string
	Approvers []string
	Users     []string
}

// role lists the members of an act, from the least to the most entitled.
func (r Roles) role(act Act) (name string, members []string) {
	if act == ActApprove {
		return "an approver", slices.Concat(r.Approvers, r.Admins)
	}
	return "a user", slices.Concat(r.Users, r.Approvers, r.Admins)
}

// person is who does something, and where.
type person struct {
	TeamID    string // as the payload says
	UserID    string
	ChannelID string // empty for the home tab
}

// refusal is why somebody may not do something: a sentence for that person, and
// the whole reason for the log.
type refusal struct {
	sentence string
	reason   string
	err      error
}

func (r *refusal) Error() string { return r.reason }
func (r *refusal) Unwrap() error { return r.err }

// authorise is the one check that every way in passes: messages, clicks, modals,
// slash commands and the home tab. It asks Slack who the person is now, and
// whatever cannot be established refuses. The caller shows the refusal's
// sentence to that person alone.
func (a *App) authorise(ctx context.Context, p person, act Act) *refusal {
	r := a.mayDo(ctx, p, act)
	if r != nil {
		a.log.Warn("refused", zap.String("act", string(act)), zap.String("user", p.UserID),
			zap.String("team", p.TeamID), zap.String("channel", p.ChannelID), zap.String("reason", r.reason), zap.Error(r.err))
	}
	return r
}

func (a *App) mayDo(ctx context.Context, p person, act Act) *refusal {
	if p.TeamID != a.self.TeamID || p.UserID == "" {
		return &refusal{sentence: "Deckhand works for members of its own workspace only.", reason: "another team"}
	}
	u, err := a.people.user(ctx, p.UserID)
	if err != nil {
		return &refusal{sentence: "Slack could not tell who you are just now, so this was refused. Try again in a minute.", reason: "the user could not be looked up", err: err}
	}
	switch {
	case u.TeamID != "" && u.TeamID != a.self.TeamID, u.IsStranger:
		return &refusal{sentence: "Deckhand works for members of its own workspace only.", reason: "a member of another team"}
	case u.Deleted:
		return &refusal{sentence: "This account is deactivated.", reason: "a deleted user"}
	case u.IsBot:
		return &refusal{sentence: "Deckhand takes no orders from bots.", reason: "a bot"}
	case u.IsRestricted, u.IsUltraRestricted:
		return &refusal{sentence: "Guests may not use Deckhand. Ask a full member.", reason: "a guest"}
	}
	if p.ChannelID != "" && !strings.HasPrefix(p.ChannelID, "D") {
		c, err := a.people.channel(ctx, p.ChannelID)
		if err != nil {
			return &refusal{sentence: "Slack could not tell what channel this is just now, so this was refused. Try again in a minute.", reason: "the channel could not be looked up", err: err}
		}
		if c.IsExtShared || c.IsPendingExtShared {
			return &refusal{sentence: "Deckhand does not work in channels that are shared with other companies.", reason: "an externally shared channel"}
		}
	}
	name, members := a.c.Roles.role(act)
	if slices.Contains(members, p.UserID) {
		return nil
	}
	var failed error
	for _, m := range members {
		if !strings.HasPrefix(m, "S") {
			continue
		}
		in, err := a.people.inGroup(ctx, m, p.UserID)
		if in {
			return nil
		}
		if err != nil {
			failed = err
		}
	}
	if failed != nil {
		return &refusal{sentence: "Slack could not tell which user groups you are in just now, so this was refused. Try again in a minute.", reason: "a user group could not be looked up", err: failed}
	}
	what := "use Deckhand"
	if act == ActApprove {
		what = "decide about this"
	}
	return &refusal{
		sentence: "You may not " + what + ": you are not " + name + " in deckhand.yaml. An admin can add you under roles.",
		reason:   "not " + name,
	}
}
