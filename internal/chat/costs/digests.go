package costs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/jobs"
	"deckhand/internal/report"
	"deckhand/internal/store/pg"
)

const (
	// digestLate is how long after its time a digest is still worth sending.
	digestLate = 24 * time.Hour
	// digestForeign is how long a digest that this replica does not know waits for one
	// that does: while a new configuration is rolled out, some have the old one.
	digestForeign = time.Hour
	// digestAgain is when it is offered to all replicas again.
	digestAgain = 20 * time.Second
	// digestsKept is how often it is made sure that all digests are scheduled.
	digestsKept = time.Hour
	// digestsRetry is when it is tried again, if that failed.
	digestsRetry = 30 * time.Second
)

// KeepDigestsScheduled makes sure that each digest has a job for its next due time,
// until ctx ends. All replicas do; a job is there once.
func (a *Accountant) KeepDigestsScheduled(ctx context.Context) {
	for len(a.c.Digests) > 0 {
		wait := digestsKept
		for _, d := range a.c.Digests {
			if err := a.scheduleDigest(ctx, d, d.next(time.Now(), a.c.Store.TimeZone())); err != nil && ctx.Err() == nil {
				a.c.Log.Error("schedule a digest", zap.String("digest", d.key(a.c.Store.TimeZone())), zap.Error(err))
				wait = digestsRetry
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (a *Accountant) scheduleDigest(ctx context.Context, d Digest, due time.Time) error {
	due = due.UTC().Truncate(time.Second)
	return a.c.Store.Schedule(ctx, pg.Job{Args: digestDue{Digest: d.key(a.c.Store.TimeZone()), Due: due}, At: due, Once: true})
}

// digestDue is the job that sends a digest for its due time.
type digestDue struct {
	Digest string    `json:"digest"` // its key
	Due    time.Time `json:"due"`    // in UTC, to the second
}

// Kind implements [pg.JobArgs].
func (digestDue) Kind() string { return "digest" }

// JobHandlers send the digests that are due. They need a publisher that runs.
func (a *Accountant) JobHandlers() []jobs.Handler {
	return []jobs.Handler{jobs.Handle(func(ctx context.Context, j jobs.Job[digestDue]) error {
		return a.runDigest(ctx, j.Args, j.Attempt > 1)
	})}
}

// runDigest sends a digest that is due, and schedules the next; again says that an
// earlier attempt may have sent it.
func (a *Accountant) runDigest(ctx context.Context, due digestDue, again bool) error {
	now, zone := time.Now(), a.c.Store.TimeZone()
	d, known := a.digestOf(due.Digest)
	log := a.c.Log.With(zap.String("digest", due.Digest), zap.Time("due", due.Due))
	if !known {
		if now.Sub(due.Due) < digestForeign {
			return jobs.Again(digestAgain)
		}
		log.Info("a digest is not in the configuration any more")
		return nil
	}
	after := now
	if due.Due.After(after) {
		after = due.Due
	}
	if err := a.scheduleDigest(ctx, d, d.next(after, zone)); err != nil {
		return err
	}
	// After a long pause the latest one counts, and it once.
	if last := d.last(now, zone); last.After(due.Due) {
		return a.scheduleDigest(ctx, d, last)
	}
	if now.Sub(due.Due) >= digestLate {
		log.Warn("a digest was due too long ago to be sent")
		return nil
	}
	err := a.sendDigest(ctx, d, due, again)
	if slices.Contains(deadEnds, a.c.Screen.Refused(err)) {
		log.Error("a digest cannot be sent to where deckhand.yaml says", zap.String("to", d.To), zap.Error(err))
		return nil // it will not be better the next time
	}
	return err
}

// deadEnds are the chat's words for a place that cannot be written to.
var deadEnds = []string{
	"channel_not_found", "not_in_channel", "is_archived", "user_not_found", "user_not_visible", "cannot_dm_bot",
	"restricted_action", "missing_scope", "team_access_not_granted",
}

func (a *Accountant) digestOf(key string) (Digest, bool) {
	for _, d := range a.c.Digests {
		if d.key(a.c.Store.TimeZone()) == key {
			return d, true
		}
	}
	return Digest{}, false
}

// sendDigest posts a digest and waits until it is there.
func (a *Accountant) sendDigest(ctx context.Context, d Digest, due digestDue, again bool) error {
	if r := a.admitted(ctx, d.To); r.Refusal.Err != nil {
		return r.Refusal.Err
	} else if !r.Allowed {
		a.c.Log.Error("a digest is not sent to where people of other companies, guests or nobody would read it", zap.String("to", d.To), zap.String("reason", r.Refusal.Reason))
		return nil
	}
	q, err := report.Parse(d.Words(), report.Context{Now: due.Due, Location: a.c.Store.TimeZone(), Projects: a.c.Access.ProjectNames(), Teams: a.c.Teams})
	if err != nil {
		a.c.Log.Error("understand a digest's question", zap.String("words", d.Words()), zap.Error(err))
		return nil
	}
	out := view.CostDelivery{Channel: d.To, Mark: digestMark(due), CSV: q.CSV}
	if again {
		// The attempt before may have posted it and died before that was known.
		there, err := a.digestIsThere(ctx, d, due, out.Mark)
		if code := a.c.Screen.Refused(err); code != "" {
			// Better twice than never.
			a.c.Log.Warn("cannot see whether a digest was posted", zap.String("to", d.To), zap.String("error", code))
		} else if err != nil || there {
			return err
		}
	}
	answer, err := a.ask(ctx, q, false)
	if err != nil {
		return err
	}
	if isChannel(d.To) {
		answer.SumUp(func(channel string) bool { return !access.IsDirect(channel) })
	}
	out.Report = view.CostReport{
		Answer: answer, Link: a.threadLink, Names: a.names(ctx, answer, q.CSV, d.To, a.isAdmin(ctx, d.To)), Notes: []string{d.says()},
	}
	sent := make(chan error, 1)
	out.Stale = ctx.Err
	a.c.Screen.Deliver(out, func(err error) { sent <- err })
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return fmt.Errorf("send a digest: %w", context.Cause(ctx))
	}
}

func (d Digest) says() string {
	return map[DigestPeriod]string{Daily: "This comes every day", Weekly: "This comes every Monday", Monthly: "This comes on the first of every month"}[d.Every] +
		fmt.Sprintf(" at %02d:%02d; deckhand.yaml says so, under reports.", d.Hour, d.Minute)
}

// digestMark is the block id by which a digest is found in a channel.
func digestMark(due digestDue) string {
	sum := sha256.Sum256([]byte(due.Digest))
	return "digest:" + hex.EncodeToString(sum[:8]) + ":" + due.Due.UTC().Format("20060102T1504")
}

// digestIsThere looks for a digest among what was posted since it was due.
func (a *Accountant) digestIsThere(ctx context.Context, d Digest, due digestDue, mark string) (bool, error) {
	channel := d.To
	if !isChannel(channel) {
		var err error
		if channel, err = a.c.People.Direct(ctx, d.To); err != nil {
			return false, fmt.Errorf("open a direct message: %w", err)
		}
	}
	since := due.Due.Add(-time.Minute) // our clock need not be Slack's
	if first := time.Now().Add(-digestLate); since.Before(first) || due.Due.After(time.Now()) {
		since = first
	}
	return a.c.Screen.Delivered(ctx, channel, since, mark)
}

func isChannel(id string) bool { return strings.HasPrefix(id, "C") || strings.HasPrefix(id, "G") }

// admitted decides whether what is sent to a person or a channel is read by members of
// our workspace alone.
func (a *Accountant) admitted(ctx context.Context, to string) access.Answer {
	user, channel := to, ""
	if isChannel(to) {
		user, channel = "", to
	}
	return a.c.People.Establish(ctx, a.c.Team, user, channel, func(f access.Facts) access.Answer { return f.Reader(channel) })
}

// isAdmin reports whether an id is that of one of the team's admins.
func (a *Accountant) isAdmin(ctx context.Context, id string) bool {
	if isChannel(id) {
		return false
	}
	q := access.Request{Act: access.Administer, Team: a.c.Team, User: id, Reach: access.ReachTeam}
	return a.c.People.Establish(ctx, a.c.Team, id, "", func(f access.Facts) access.Answer { return a.c.Access.Authorise(q, f) }).Allowed
}
