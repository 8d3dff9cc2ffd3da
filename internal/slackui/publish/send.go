package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/slackui/render"
)

// attempt is a message's state in one call.
type attempt struct {
	msg       Message
	ts        string
	sum       uint64 // of the content in Slack
	rendering rendering
	page      render.Page // in its rendering
	cut       bool        // something is missing in it
	doubt     bool
	ends      int // how many of job.ends are for this state or older ones
	method    Method
	growth    growth // for a stream
}

// options are the message's content for a post or an edit.
func (a attempt) options() []slack.MsgOption {
	text := cmp.Or(a.page.Text, "Deckhand has something to show here.") // Slack refuses a message without text and blocks
	opts := []slack.MsgOption{
		slack.MsgOptionText(text, false),
		// Only our own markup may become a link or a mention.
		slack.MsgOptionParse(false),
	}
	switch {
	case len(a.page.Blocks) > 0:
		opts = append(opts, slack.MsgOptionBlocks(a.page.Blocks...))
	case a.ts != "":
		opts = append(opts, slack.MsgOptionBlocks()) // removes the old blocks
	}
	if a.ts == "" { // edits have no such arguments
		opts = append(opts, slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
	}
	if a.ts == "" && a.msg.ThreadTS != "" {
		opts = append(opts, slack.MsgOptionTS(a.msg.ThreadTS))
	}
	if a.ts == "" && a.msg.ThreadTS != "" && a.msg.Broadcast {
		opts = append(opts, slack.MsgOptionBroadcast())
	}
	if a.ts == "" && a.msg.Metadata.EventType != "" {
		opts = append(opts, slack.MsgOptionMetadata(a.msg.Metadata))
	}
	return opts
}

// runMessage makes one attempt to show a message and settles the outcome.
func (s *Scheduler) runMessage(base context.Context, j *job, a attempt) {
	if a.msg.held() { // since it was picked
		s.hold(j, a)
		return
	}
	if a.method == StartStream || a.method == AppendStream || a.method == StopStream {
		s.runStream(base, j, a)
		return
	}
	a.rendering, a.page, a.cut = s.refusals.put(a.rendering, InMessage, a.msg.Page)
	sum, err := contentSum(a.page)
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
	if a.doubt && a.msg.Find != nil {
		ts, err := a.msg.Find(ctx)
		if err != nil || ts != "" {
			if ts != "" && a.msg.OnPosted != nil {
				a.msg.OnPosted(ts)
			}
			s.found(j, a, ts, err)
			return
		}
	}
	if a.msg.Wanted != nil {
		wanted, err := a.msg.Wanted(ctx)
		if err != nil {
			s.settle(j, a, sum, "", err)
			return
		}
		if !wanted {
			s.drop(j, a)
			return
		}
	}
	_, ts, err := s.api.PostMessageContext(ctx, a.msg.Channel, a.options()...)
	if err == nil && ts == "" {
		err = Permanent(errors.New("slack accepted the message but sent no ts"))
	}
	if err == nil && a.msg.OnPosted != nil {
		a.msg.OnPosted(ts)
	}
	s.settle(j, a, sum, ts, err)
}

// runStream makes one attempt to start, append to or stop a stream.
func (s *Scheduler) runStream(base context.Context, j *job, a attempt) {
	ctx, cancel := context.WithTimeout(base, s.o.CallTimeout)
	defer cancel()
	var opts []slack.MsgOption
	if len(a.growth.chunks) > 0 {
		opts = append(opts, slack.MsgOptionChunks(a.growth.chunks...))
	}
	ts := a.ts
	var err error
	switch a.method {
	case StartStream:
		opts = append(opts, slack.MsgOptionTS(a.msg.ThreadTS), slack.MsgOptionRecipientTeamID(a.msg.Recipient.Team),
			slack.MsgOptionRecipientUserID(a.msg.Recipient.User), slack.MsgOptionTaskDisplayMode(slack.TaskDisplayModeTimeline))
		_, ts, err = s.api.StartStreamContext(ctx, a.msg.Channel, opts...)
		if err == nil && a.msg.OnPosted != nil {
			a.msg.OnPosted(ts)
		}
	case AppendStream:
		_, _, err = s.api.AppendStreamContext(ctx, a.msg.Channel, ts, opts...)
	default:
		if a.msg.Metadata.EventType != "" {
			opts = append(opts, slack.MsgOptionMetadata(a.msg.Metadata))
		}
		_, _, err = s.api.StopStreamContext(ctx, a.msg.Channel, ts, opts...)
	}
	s.settle(j, a, 0, ts, err)
}

// found settles the search for a message that an earlier attempt may have posted: if found it is edited, after an
// error the search is repeated.
func (s *Scheduler) found(j *job, a attempt, ts string, err error) {
	if err != nil {
		s.settle(j, a, 0, "", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.landUnused(j, a)
	j.ts, j.doubt, j.fails, j.failing = ts, false, 0, time.Time{}
	s.requeue(j)
}

// landUnused ends an attempt whose call was not made, so that its share of the rate is there again.
func (s *Scheduler) landUnused(j *job, a attempt) {
	s.bucket(a.method, time.Now()).giveBack()
	s.land(j)
}

// hold returns an attempt that may not be made now.
func (s *Scheduler) hold(j *job, a attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.landUnused(j, a)
	s.requeue(j)
}

// drop forgets a message that is not wanted any more.
func (s *Scheduler) drop(j *job, a attempt) {
	s.mu.Lock()
	s.landUnused(j, a)
	ended := j.ended(len(j.ends))
	s.forget(j)
	s.mu.Unlock()
	tell(ended, nil)
}

func tell(ended []func(error), err error) {
	for _, end := range ended {
		end(err)
	}
}

// unchanged settles an attempt that needed no call.
func (s *Scheduler) unchanged(j *job, a attempt) {
	s.mu.Lock()
	s.landUnused(j, a)
	ended := j.reached(a)
	s.conclude(j)
	s.mu.Unlock()
	tell(ended, nil)
}

// settle records an attempt's outcome: ts is the post's.
func (s *Scheduler) settle(j *job, a attempt, sum uint64, ts string, err error) {
	v, wait := judge(err)
	ended, lost := s.settleLocked(j, a, sum, ts, v, wait, err)
	if v == sent {
		s.attach(j, a)
	}
	tell(ended, lost)
}

// attach uploads a message's full text as a file into its thread if Slack accepted only a part: once, when somebody
// waits for the message or it is its last state.
func (s *Scheduler) attach(j *job, a attempt) {
	if !a.cut || !a.msg.stays() {
		return
	}
	s.mu.Lock()
	again := j.filed
	j.filed = true
	s.mu.Unlock()
	if again {
		return
	}
	s.Upload(slack.UploadFileParameters{
		Content: a.msg.Page.Everything(), Filename: "message.txt", Title: "All of the message", Channel: a.msg.Channel, ThreadTimestamp: a.msg.ThreadTS,
	}, Call{Priority: Answer, Group: a.msg.Group, What: "attach what slack did not take"})
}

// settleLocked returns the callbacks to call, and the error with which the message is given up, or nil.
func (s *Scheduler) settleLocked(j *job, a attempt, sum uint64, ts string, v verdict, wait time.Duration, err error) (ended []func(error), lost error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.land(j)
	if s.settleStream(j, a, ts, v, wait, err, now) {
		return nil, nil
	}
	if v == sent {
		j.sum = sum
		if ts != "" {
			j.ts = ts
		} else {
			j.edits++
		}
		j.fails, j.failing, j.retryAt, j.doubt = 0, time.Time{}, time.Time{}, false
		ended = j.reached(a)
		s.conclude(j)
		return ended, nil
	}
	log := s.o.Log.With(zap.String("method", string(a.method)), zap.String("key", a.msg.Key), zap.String("channel", a.msg.Channel))
	switch v {
	case limited:
		s.pause(a.method, now, wait, j)
		log.Warn("slack limits the rate", zap.Duration("retry_after", wait))
		s.requeue(j)
		return nil, nil

	case content:
		if next, ok := s.refused(InMessage, a.msg.Key, a.rendering, a.page, err); ok {
			j.rendering = next
			s.requeue(j)
			return nil, nil
		}

	case passing:
		j.sum, j.doubt = 0, true // it may have arrived
		if j.failing.IsZero() {
			j.failing = now
		}
		if now.Sub(j.failing) < giveUpAfter {
			j.retryAt = now.Add(backoff(j.fails))
			j.fails++
			log.Warn("slack did not take the message; trying again", zap.Error(err), zap.Time("at", j.retryAt))
			s.requeue(j)
			return nil, nil
		}

	}
	err = fmt.Errorf("%s: %w", a.method, explain(err))
	log.Error("giving up on a message", zap.Error(err))
	j.fails, j.failing, j.retryAt = 0, time.Time{}, time.Time{}
	switch {
	case v == permanent:
		ended = j.ended(len(j.ends))
		s.forget(j)
	case v == passing && !j.newer && j.msg.Final:
		// It may be shown again when Slack is back.
		ended = j.ended(len(j.ends))
		s.forget(j)
		delete(s.ended.known, j.key)
	default:
		// Only this state is lost: a newer one may succeed.
		ended = j.ended(a.ends)
		s.conclude(j)
	}
	s.signal() // a message may have waited for this one
	return ended, err
}

// land marks j as no longer in flight.
func (s *Scheduler) land(j *job) {
	j.flying = false
	s.inFlight--
	if j.live > 0 {
		s.pools[j.next] = s.pools[j.next].with(j.live, -1)
		j.live = 0
	}
	s.signal()
}

// conclude ends an attempt without a retry: a newer state is next.
func (s *queue) conclude(j *job) {
	switch {
	case j.newer:
		s.enqueue(j)
	case j.msg.Final:
		s.forget(j)
	}
}

// pause stops a method for as long as Slack says. Without a Retry-After the pause doubles with each consecutive
// refusal.
func (s *usage) pause(m Method, now time.Time, wait time.Duration, j *job) {
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
