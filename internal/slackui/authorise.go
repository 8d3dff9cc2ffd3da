package slackui

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/store"
)

// Act is something a person wants to do.
type Act string

// The acts. Each needs the role that [Access] gives it.
const (
	ActPrompt     Act = "prompt"     // give the agent work
	ActStop       Act = "stop"       // stop a running turn
	ActSee        Act = "see"        // costs, the whole input of a request, the home tab
	ActApprove    Act = "approve"    // decide about a tool call or a plan
	ActAdminister Act = "administer" // permissions beyond a thread, everybody's grants, reports on people
)

// Roles says who may do what: Slack user ids (U…, W…) and user group ids (S…).
// An admin may do all that an approver may, an approver all that a user may.
// Nobody is listed: nobody may do anything.
type Roles struct {
	Admins    []string
	Approvers []string
	Users     []string
}

// Access is who may do what, where. Where a project or a channel names its own
// approvers or users, they take the place of the wider ones; a channel's go before
// its project's. Its own admins come in addition.
type Access struct {
	Roles
	Projects map[string]Roles // by name
	Channels map[string]Roles // by id
}

// in narrows the roles to a place. project and channel may be empty.
func (a Access) in(project, channel string) Roles {
	r := a.Roles
	for _, own := range []Roles{a.Projects[project], a.Channels[channel]} {
		if own.Users != nil {
			r.Users = own.Users
		}
		if own.Approvers != nil {
			r.Approvers = own.Approvers
		}
		r.Admins = slices.Concat(r.Admins, own.Admins)
	}
	return r
}

// members lists who may do an act, from the least to the most entitled.
func (r Roles) members(act Act) (role string, members []string) {
	switch act {
	case ActAdminister:
		return "an admin", r.Admins
	case ActApprove:
		return "an approver", slices.Concat(r.Approvers, r.Admins)
	}
	return "a user", slices.Concat(r.Users, r.Approvers, r.Admins)
}

// person is who does something, and where.
type person struct {
	TeamID    string // as the payload says
	UserID    string
	ChannelID string // empty for the home tab
	Project   string // empty: the channel's
	TeamWide  bool   // what they do reaches beyond the place: the team's own roles count
	Via       string // the way in: message, action, view, command, event
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
// whatever cannot be established refuses. A refusal is logged and audited; the
// caller shows its sentence to that person alone.
func (a *App) authorise(ctx context.Context, p person, act Act) *refusal {
	return a.recordRefusal(ctx, p, act, a.mayDo(ctx, p, act))
}

// authoriseDecision is authorise for an approval, with what the approval's terms
// add: the people whom the policy names instead of the role, and whether the person
// who asked may decide. A question is put to the person who asked, so any user may
// answer it.
func (a *App) authoriseDecision(ctx context.Context, p person, approval store.Approval) *refusal {
	p.ChannelID, p.Project = approval.Thread.ChannelID, approval.Project
	act := ActApprove
	if approval.Kind == store.ApprovalQuestion {
		act = ActPrompt
	}
	return a.recordRefusal(ctx, p, act, a.mayDecide(ctx, p, act, approval))
}

func (a *App) mayDecide(ctx context.Context, p person, act Act, approval store.Approval) *refusal {
	role, members := a.access(p).members(act)
	if act == ActApprove && len(approval.Terms.Approvers) > 0 {
		role, members = "among those whom the policy names for this", approval.Terms.Approvers
	}
	if r := a.isAmong(ctx, p, act, role, members); r != nil {
		return r
	}
	if act == ActApprove && p.UserID == approval.RequestedBy && !approval.Terms.RequesterMay {
		return &refusal{sentence: "You asked for this work, so somebody else has to decide about it.", reason: "the requester"}
	}
	return nil
}

func (a *App) recordRefusal(ctx context.Context, p person, act Act, r *refusal) *refusal {
	if r == nil {
		return nil
	}
	a.log.Warn("refused", zap.String("act", string(act)), zap.String("user", p.UserID), zap.String("via", p.Via),
		zap.String("team", p.TeamID), zap.String("channel", p.ChannelID), zap.String("reason", r.reason), zap.Error(r.err))
	before, ok := a.refused.admit(p.UserID, time.Now())
	if !ok {
		return r // told and logged; the audit is told of it with the next one
	}
	err := a.c.Store.Audit(ctx, store.AuditEntry{
		Kind: store.AuditRefused, TeamID: a.self.TeamID, Actor: p.UserID,
		Details: map[string]any{"act": act, "via": p.Via, "team": p.TeamID, "channel": p.ChannelID, "reason": r.reason, "left_out_before": before},
	})
	if err != nil {
		a.log.Error("write a refusal into the audit", zap.Error(err))
	}
	return r
}

// refusals keeps somebody who is refused again and again from filling the audit,
// whose rows all replicas write one after another. The zero value admits
// refusalsPerMinute of each person.
type refusals struct {
	mu      sync.Mutex
	people  map[string]*refusedPerson
	unbound bool // for tests that count
}

type refusedPerson struct {
	since   time.Time
	rows    int
	leftOut int
}

const (
	refusalsPerMinute = 20
	// refusedMost bounds the people who are counted; past it all begin anew.
	refusedMost = 10_000
)

// admit reports whether a refusal gets a row of its own, and how many of that person
// did not get one before it.
func (f *refusals) admit(user string, now time.Time) (leftOut int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.people == nil || len(f.people) >= refusedMost {
		f.people = map[string]*refusedPerson{}
	}
	p := f.people[user]
	if p == nil {
		p = &refusedPerson{since: now}
		f.people[user] = p
	}
	if now.Sub(p.since) >= time.Minute {
		p.since, p.rows = now, 0
	}
	if p.rows >= refusalsPerMinute && !f.unbound {
		p.leftOut++
		return 0, false
	}
	leftOut, p.leftOut = p.leftOut, 0
	p.rows++
	return leftOut, true
}

// access are the roles where the person is.
func (a *App) access(p person) Roles {
	if p.TeamWide {
		return a.c.Access.Roles
	}
	project := p.Project
	if project == "" {
		project = a.projectOf(p.ChannelID)
	}
	return a.c.Access.in(project, p.ChannelID)
}

func (a *App) mayDo(ctx context.Context, p person, act Act) *refusal {
	role, members := a.access(p).members(act)
	return a.isAmong(ctx, p, act, role, members)
}

// isAmong establishes who the person is, and that they are a member. role says what
// the members are, for the refusal.
func (a *App) isAmong(ctx context.Context, p person, act Act, role string, members []string) *refusal {
	if p.TeamID != a.self.TeamID || p.UserID == "" {
		return &refusal{sentence: "Deckhand works for members of its own workspace only.", reason: "another team"}
	}
	u, err := a.people.User(ctx, p.UserID)
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
		c, err := a.people.Channel(ctx, p.ChannelID)
		if err != nil {
			return &refusal{sentence: "Slack could not tell what channel this is just now, so this was refused. Try again in a minute.", reason: "the channel could not be looked up", err: err}
		}
		if c.IsExtShared || c.IsPendingExtShared {
			return &refusal{sentence: "Deckhand does not work in channels that are shared with other companies.", reason: "an externally shared channel"}
		}
	}
	in, failed := a.isMember(ctx, p.UserID, members)
	if in {
		return nil
	}
	if failed != nil {
		return &refusal{sentence: "Slack could not tell which user groups you are in just now, so this was refused. Try again in a minute.", reason: "a user group could not be looked up", err: failed}
	}
	return &refusal{
		sentence: "You may not " + doing[act] + ": you are not " + role + ". Roles and policy are in deckhand.yaml; an admin can change them.",
		reason:   "not " + role,
	}
}

// isMember reports whether a person is on a list of users and user groups; err is why
// that could not be established.
func (a *App) isMember(ctx context.Context, user string, members []string) (bool, error) {
	if slices.Contains(members, user) {
		return true, nil
	}
	var failed error
	for _, m := range members {
		if !strings.HasPrefix(m, "S") {
			continue
		}
		group, err := a.people.Group(ctx, m)
		if group[user] {
			return true, nil
		}
		if err != nil {
			failed = err
		}
	}
	return false, failed
}

// doing is what a person is told that they may not do.
var doing = map[Act]string{
	ActPrompt: "use Deckhand here", ActStop: "stop this", ActSee: "use Deckhand here",
	ActApprove: "decide about this", ActAdminister: "do this", ActCosts: "see these costs",
}
