package chat

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// gate is who may do what, and who is called to decide.
type gate struct {
	c        Config
	self     Self
	screen   Screen
	people   People
	refused  refusals
	visitors visitors
}

// authorise is the one check that every way in passes: messages, clicks, modals,
// slash commands and the home tab. It asks Slack who the person is now, and
// whatever cannot be established refuses. A refusal is logged and audited; the
// caller shows its sentence to that person alone.
func (a *gate) authorise(ctx context.Context, p person, act access.Act) *access.Refusal {
	return a.recordRefusal(ctx, p, act, a.mayDo(ctx, p, act))
}

// refuses is authorise, and tells the person who may not.
func (a *Chat) refuses(ctx context.Context, in *Incoming, p person, act access.Act) bool {
	r := a.authorise(ctx, p, act)
	if r != nil {
		a.Answer(in, r.Sentence)
	}
	return r != nil
}

// here is the thread in which something is done; the zero value where there is none.
func (a *gate) here(ctx context.Context, in *Incoming) (threads.Thread, error) {
	thread, err := a.c.Store.ThreadByKey(ctx, in.Row.Key())
	if errors.Is(err, pg.ErrNotFound) {
		return threads.Thread{}, nil
	}
	return thread, err
}

// personHere is whoever acts, in the thread in which they do.
func (a *gate) personHere(ctx context.Context, in *Incoming) (person, error) {
	thread, err := a.here(ctx, in)
	return in.at(thread), err
}

// authoriseDecision is authorise for an approval, with what the approval's terms add.
func (a *gate) authoriseDecision(ctx context.Context, p person, approval approvals.Approval) *access.Refusal {
	return a.recordRefusal(ctx, p.at(approval.ChannelID, approval.Project), access.Request{Terms: termsOf(approval)}.What(), a.mayDecide(ctx, p, approval))
}

// mayDo is authorise without a record, for what is asked in a person's place.
func (a *gate) mayDo(ctx context.Context, p person, act access.Act) *access.Refusal {
	return a.answerOf(ctx, p.request(act))
}

// mayDecide is authoriseDecision without a record.
func (a *gate) mayDecide(ctx context.Context, p person, approval approvals.Approval) *access.Refusal {
	q := p.at(approval.ChannelID, approval.Project).request("")
	q.Terms = termsOf(approval)
	return a.answerOf(ctx, q)
}

func termsOf(a approvals.Approval) *access.Terms {
	return &access.Terms{
		Question: a.Kind == approvals.Question, Approvers: a.Terms.Approvers, Requester: a.RequestedBy, RequesterMay: a.Terms.RequesterMay,
		Editor: a.Edited.By,
	}
}

func (a *gate) answerOf(ctx context.Context, q access.Request) *access.Refusal {
	for began := time.Now(); ; {
		answer := a.people.Establish(ctx, a.self.Team, q.User, q.Channel, func(f access.Facts) access.Answer { return a.c.Access.Authorise(q, f) })
		if answer.Allowed {
			return nil
		}
		// What is not known refuses; but a hiccup of Slack's is no reason to refuse anybody.
		later, _ := errors.AsType[*laterError](a.unknown(&answer.Refusal))
		if later == nil || ctx.Err() != nil {
			return &answer.Refusal
		}
		pause := max(later.after, lookAgain)
		if time.Since(began)+pause > lookPatience {
			return &answer.Refusal
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

const (
	// lookPatience is how long people wait for what Slack does not tell at once, before
	// they are told so, or see that their message waits.
	lookPatience = 4 * time.Second
	lookAgain    = time.Second
)

// unknown is a [*laterError] if somebody was refused since a fact could not be
// established, and may be soon; else nil.
func (a *gate) unknown(r *access.Refusal) error {
	if r.Err == nil {
		return nil
	}
	after, ok := a.screen.RetryAfter(r.Err)
	if !ok {
		return nil
	}
	return &laterError{after: after, err: r}
}

func (a *gate) recordRefusal(ctx context.Context, p person, act access.Act, r *access.Refusal) *access.Refusal {
	if r == nil {
		return nil
	}
	a.c.Log.Warn("refused", zap.String("act", string(act)), zap.String("user", p.UserID), zap.String("via", p.Via),
		zap.String("team", p.TeamID), zap.String("channel", p.ChannelID), zap.String("reason", r.Reason), zap.Error(r.Err))
	before, ok := a.refused.admit(p.UserID, time.Now())
	if !ok {
		return r // told and logged; the audit is told of it with the next one
	}
	err := a.c.Store.Audit(ctx, audit.Entry{
		Kind: audit.Refused, TeamID: a.self.Team, Actor: p.UserID,
		Details: map[string]any{"act": act, "via": p.Via, "team": p.TeamID, "channel": p.ChannelID, "reason": r.Reason, "left_out_before": before},
	})
	if err != nil {
		a.c.Log.Error("write a refusal into the audit", zap.Error(err))
	}
	return r
}

// refusals keeps somebody who is refused again and again from filling the audit,
// whose rows all replicas write one after another. The zero value admits
// refusalsPerMinute of each person.
type refusals struct {
	mu     sync.Mutex
	people map[string]*refusedPerson
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
	if p.rows >= refusalsPerMinute {
		p.leftOut++
		return 0, false
	}
	leftOut, p.leftOut = p.leftOut, 0
	p.rows++
	return leftOut, true
}
