package publish

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"
)

// attempt is a message's state as one call sends it.
type attempt struct {
	msg    Message
	ts     string
	sum    uint64 // what Slack has
	plain  bool
	method Method
}

// options are what makes up the message in a post or an edit.
func (a attempt) options() []slack.MsgOption {
	text := a.msg.Page.Text
	if text == "" {
		text = "Deckhand has something to show here." // Slack refuses a message without text and blocks
	}
	opts := []slack.MsgOption{
		slack.MsgOptionText(text, false),
		// Only what we marked up ourselves may be a link or a mention.
		slack.MsgOptionParse(false),
		slack.MsgOptionDisableLinkUnfurl(),
		slack.MsgOptionDisableMediaUnfurl(),
	}
	switch {
	case !a.plain && len(a.msg.Page.Blocks) > 0:
		opts = append(opts, slack.MsgOptionBlocks(a.msg.Page.Blocks...))
	case a.ts != "":
		opts = append(opts, slack.MsgOptionBlocks()) // takes the old blocks away
	}
	if a.ts == "" && a.msg.ThreadTS != "" {
		opts = append(opts, slack.MsgOptionTS(a.msg.ThreadTS))
	}
	if a.ts == "" && a.msg.Metadata.EventType != "" {
		opts = append(opts, slack.MsgOptionMetadata(a.msg.Metadata))
	}
	return opts
}

// runMessage makes one attempt to show a message and settles what follows.
func (s *Scheduler) runMessage(base context.Context, j *job, a attempt) {
	sum, err := contentSum(a.msg.Page, a.plain)
	if err != nil {
		s.settle(j, a, 0, "", Permanent(err))
		return
	}
	if a.ts != "" && sum == a.sum {
		s.unchanged(j, a)
		return
	}
	ctx, cancel := context.WithTimeout(base, s.o.CallTimeout)
	defer cancel()
	if a.ts != "" {
		_, _, _, err = s.api.UpdateMessageContext(ctx, a.msg.Channel, a.ts, a.options()...)
		s.settle(j, a, sum, "", err)
		return
	}
	ts, err := s.post(ctx, a)
	if errors.Is(err, ErrNotWanted) {
		s.drop(j, a)
		return
	}
	if err == nil && a.msg.OnPosted != nil {
		a.msg.OnPosted(ts)
	}
	s.settle(j, a, sum, ts, err)
}

// post posts a message, by its Posting if it has one. What Slack has taken is posted,
// whatever else fails.
func (s *Scheduler) post(ctx context.Context, a attempt) (ts string, err error) {
	post := func() (err error) {
		_, ts, err = s.api.PostMessageContext(ctx, a.msg.Channel, a.options()...)
		if err == nil && ts == "" {
			err = Permanent(errors.New("slack accepted the message but sent no ts"))
		}
		return err
	}
	if a.msg.Posting == nil {
		err = post()
		return ts, err
	}
	if err = a.msg.Posting(ctx, post); ts != "" {
		err = nil
	}
	return ts, err
}

// drop forgets a message that is not wanted any more.
func (s *Scheduler) drop(j *job, a attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bucket(a.method, time.Now()).giveBack()
	s.land(j)
	s.forget(j)
}

// unchanged settles an attempt that needed no call.
func (s *Scheduler) unchanged(j *job, a attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bucket(a.method, time.Now()).giveBack()
	s.stats.Unchanged++
	s.land(j)
	s.conclude(j)
}

// settle notes an attempt's outcome: ts is where a post stands now.
func (s *Scheduler) settle(j *job, a attempt, sum uint64, ts string, err error) {
	v, wait := judge(err)
	if lost := s.settleLocked(j, a, sum, ts, v, wait, err); lost != nil && a.msg.OnError != nil {
		a.msg.OnError(lost)
	}
}

// settleLocked returns the error with which the message is given up, or nil.
func (s *Scheduler) settleLocked(j *job, a attempt, sum uint64, ts string, v verdict, wait time.Duration, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.land(j)
	if v == sent {
		s.stats.Sent++
		j.sum = sum
		if ts != "" {
			j.ts = ts
		} else {
			j.edits++
		}
		j.fails, j.failing, j.retryAt = 0, time.Time{}, time.Time{}
		s.conclude(j)
		return nil
	}
	log := s.o.Log.With(zap.String("method", string(a.method)), zap.String("key", a.msg.Key), zap.String("channel", a.msg.Channel))
	switch v {
	case sent:
	case limited:
		s.pause(a.method, now, wait, j)
		log.Warn("slack limits the rate", zap.Duration("retry_after", wait))
		s.requeue(j)
		return nil

	case content:
		if !a.plain && len(a.msg.Page.Blocks) > 0 {
			log.Error("slack refused the blocks; sending plain text", zap.Error(explain(err)))
			s.stats.FellBack++
			j.plain = true
			s.requeue(j)
			return nil
		}

	case passing:
		j.sum = 0 // the edit may have arrived all the same
		if j.failing.IsZero() {
			j.failing = now
		}
		if now.Sub(j.failing) < s.o.GiveUpAfter {
			j.retryAt = now.Add(backoff(j.fails))
			j.fails++
			s.stats.Retried++
			log.Warn("slack did not take the message; trying again", zap.Error(err), zap.Time("at", j.retryAt))
			s.requeue(j)
			return nil
		}

	case permanent:
	}
	err = fmt.Errorf("%s: %w", a.method, explain(err))
	log.Error("giving up on a message", zap.Error(err))
	s.stats.GaveUp++
	j.fails, j.failing, j.retryAt = 0, time.Time{}, time.Time{}
	if v == permanent {
		s.forget(j)
	} else {
		// Only this state is lost: a newer one may fare better.
		s.conclude(j)
	}
	s.signal() // a message may have waited for this one
	return err
}

// land takes j out of flight.
func (s *Scheduler) land(j *job) {
	j.flying = false
	s.inFlight--
	if j.live {
		j.live = false
		s.liveNow--
	}
	s.signal()
}

// conclude ends an attempt that is not repeated: what was shown meanwhile is next.
func (s *Scheduler) conclude(j *job) {
	switch {
	case j.newer:
		s.enqueue(j)
	case j.msg.Final:
		s.forget(j)
	}
}

// pause stops a method for as long as Slack says. Without a Retry-After the pause
// doubles with each refusal in a row.
func (s *Scheduler) pause(m Method, now time.Time, wait time.Duration, j *job) {
	s.stats.Limited++
	if wait <= 0 {
		wait = min(time.Minute, 5*time.Second<<min(j.fails, 4))
		j.fails++
	}
	until := now.Add(wait + time.Duration(rand.Int64N(int64(250*time.Millisecond+wait/20))))
	b := s.bucket(m, now)
	if until.After(b.at) {
		b.drainUntil(now, until)
	}
	j.retryAt = later(j.retryAt, until)
}

// backoff is how long to wait after the n-th error in a row: 1 s, 2 s, 4 s … 60 s,
// less up to a quarter.
func backoff(n int) time.Duration {
	d := min(time.Minute, time.Second<<min(n, 6))
	return d - time.Duration(rand.Int64N(int64(d/4)))
}

// runCall makes one attempt of a call and settles what follows.
func (s *Scheduler) runCall(base context.Context, j *job, m Method) {
	c := j.call
	timeout := c.Timeout
	if timeout == 0 {
		timeout = s.o.CallTimeout
	}
	ctx, cancel := context.WithTimeout(base, timeout)
	defer cancel()
	err := c.Do(ctx)
	if lost := s.settleCall(j, m, err); lost != nil && c.OnError != nil {
		c.OnError(lost)
	}
}

func (s *Scheduler) settleCall(j *job, m Method, err error) error {
	v, wait := judge(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.land(j)
	log := s.o.Log.With(zap.String("method", string(m)), zap.String("what", j.call.What))
	switch v {
	case sent:
		s.stats.Sent++
		s.forget(j)
		return nil
	case limited:
		s.pause(m, now, wait, j)
		log.Warn("slack limits the rate", zap.Duration("retry_after", wait))
		s.requeue(j)
		return nil
	case passing:
		j.fails++
		if j.fails < s.o.CallAttempts {
			j.retryAt = now.Add(backoff(j.fails - 1))
			s.stats.Retried++
			log.Warn("a call to slack failed; trying again", zap.Error(err))
			s.requeue(j)
			return nil
		}
	case content, permanent:
	}
	err = fmt.Errorf("%s: %w", m, explain(err))
	log.Error("giving up on a call", zap.Error(err))
	s.stats.GaveUp++
	s.forget(j)
	return err
}
