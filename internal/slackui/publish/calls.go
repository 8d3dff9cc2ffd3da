package publish

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"
)

// Upload attaches a file to a channel or a thread by a call, of which all but what it does is given.
func (s *Scheduler) Upload(file slack.UploadFileParameters, c Call) {
	file.FileSize = len(file.Content)
	c.Method, c.Timeout = UploadFile, time.Minute
	c.Do = func(ctx context.Context) error {
		_, err := s.api.UploadFileContext(ctx, file)
		return err
	}
	s.Once(c)
}

// runCall makes one attempt of a call and settles the outcome.
func (s *Scheduler) runCall(base context.Context, j *job, m Method) {
	c := j.call
	ctx, cancel := context.WithTimeout(base, cmp.Or(c.Timeout, s.o.CallTimeout))
	defer cancel()
	err := c.Do(ctx)
	over, lost := s.settleCall(j, m, err)
	if over && c.OnEnd != nil {
		c.OnEnd(lost)
	}
}

// settleCall reports whether the call is finished, and its final error.
func (s *Scheduler) settleCall(j *job, m Method, err error) (over bool, lost error) {
	v, wait := judge(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.land(j)
	log := s.o.Log.With(zap.String("method", string(m)), zap.String("what", j.call.What))
	switch v {
	case sent:
		s.forget(j)
		return true, nil
	case limited:
		s.pause(m, now, wait, j)
		log.Warn("slack limits the rate", zap.Duration("retry_after", wait))
		s.requeue(j)
		return false, nil
	case passing:
		j.fails++
		if j.failing.IsZero() {
			j.failing = now
		}
		if j.fails < callAttempts || j.call.Patient && now.Sub(j.failing) < giveUpAfter {
			j.retryAt = now.Add(backoff(j.fails - 1))
			log.Warn("a call to slack failed; trying again", zap.Error(err))
			s.requeue(j)
			return false, nil
		}
	}
	err = fmt.Errorf("%s: %w", m, explain(err))
	log.Error("giving up on a call", zap.Error(err))
	s.forget(j)
	return true, err
}
