package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
)

// remindedMost bounds the people who get a direct message for one approval.
const remindedMost = 20

// Remind implements [agent.Reminder]. Whom a stage tells is configured; direct
// messages go to those only who may decide about the approval now.
func (a *Chat) Remind(ctx context.Context, ap approvals.Approval, stage int) error {
	if stage < 0 || stage >= len(a.c.Reminders) {
		return nil // the configuration has fewer stages by now
	}
	to := a.c.Reminders[stage]
	eligible := a.c.Access.Deciders(*termsOf(ap), ap.Project, ap.ChannelID)
	shown := view.Reminder{
		Approval: ap, Link: a.screen.Permalink(ap.ChannelID, cmp.Or(ap.MessageTS, ap.ThreadTS)),
		To: eligible, Redact: a.c.Redact, Escalation: stage > 0 && stage == len(a.c.Reminders)-1,
	}
	var failed error
	for _, t := range to {
		switch t {
		case "thread":
			a.screen.Say(Where{ap.ChannelID, ap.ThreadTS}, shown)
		case "approvers":
			people, err := a.WhoMayDecide(ctx, ap, eligible)
			failed = errors.Join(failed, err)
			direct := shown
			direct.To = nil
			for _, user := range people {
				a.screen.Direct(user, direct)
			}
		default:
			a.screen.Say(Where{Channel: t}, shown)
		}
	}
	if failed != nil {
		a.c.Log.Warn("find the people to remind: " + failed.Error())
	}
	return a.c.Store.Audit(ctx, audit.Entry{
		Kind: audit.Reminded, TeamID: ap.TeamID, ThreadID: ap.ThreadID, TurnID: ap.TurnID, ApprovalID: ap.ID,
		Details: map[string]any{"stage": stage, "to": to},
	})
}

// MayDecide implements [agent.Authoriser].
func (a *gate) MayDecide(ctx context.Context, userID string, ap approvals.Approval) bool {
	return a.mayDecide(ctx, person{TeamID: a.self.Team, UserID: userID}, ap) == nil
}

// WhoMayDecide are the people among the members who may decide about the approval
// now, at most remindedMost.
func (a *gate) WhoMayDecide(ctx context.Context, ap approvals.Approval, members []string) ([]string, error) {
	var out []string
	err := a.EachUser(ctx, members, func(user string) {
		if len(out) < remindedMost && !slices.Contains(out, user) && a.MayDecide(ctx, user, ap) {
			out = append(out, user)
		}
	})
	return out, err
}

// EachUser names the users among the members, and those of the groups among them. A group
// that cannot be looked up is an error, after all others.
func (a *gate) EachUser(ctx context.Context, members []string, f func(user string)) error {
	var failed error
	for _, m := range members {
		if !isGroup(m) {
			f(m)
			continue
		}
		group, err := a.people.Group(ctx, m)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("user group %s: %w", m, err))
		}
		for _, user := range slices.Sorted(maps.Keys(group)) {
			f(user)
		}
	}
	return failed
}
