package publish

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"
)

// Places without streams, by Slack's error.
var (
	noStreamCodes = []string{
		"unknown_method", "method_deprecated", "missing_scope", "not_allowed_token_type", "no_permission", "access_denied",
		"team_access_not_granted", "feature_not_enabled", "method_not_supported_for_channel_type", "not_allowed", "streaming_not_allowed",
	}
	noStreamHereCodes = []string{"channel_type_not_supported", "restricted_action", "messages_tab_disabled"}
)

const (
	notStreaming = "message_not_in_streaming_state"
	conflict     = "streaming_state_conflict"
)

// IsStream reports whether Slack refused to change a message because it is being streamed.
func IsStream(err error) bool { return RefusedAs(err, conflict) }

// IsOver reports whether Slack refused to append to a stream, or to stop it, because it has ended.
func IsOver(err error) bool { return RefusedAs(err, notStreaming) }

// opened records that a message was begun as a stream.
func (s *queue) opened(j *job, a attempt) {
	j.stream = a.growth.then
	j.stream.open, j.stream.since, j.stream.last = true, j.begun, j.begun
	j.stream.stop = s.draining
	j.grown, j.streamed = nil, true
	s.open[j] = struct{}{}
}

// closed records that a message is no longer a stream: the next state is an edit, at once.
func (s *queue) closed(j *job) {
	j.stream, j.grown, j.sum, j.edits, j.edited = stream{}, nil, 0, 0, true
	delete(s.open, j)
}

// settleStream settles a call about a stream. It returns false if the attempt is to be settled like any other. s.mu
// is held, and j has landed.
func (s *Scheduler) settleStream(j *job, a attempt, ts string, v verdict, wait time.Duration, err error, now time.Time) bool {
	log := s.o.Log.With(zap.String("method", string(a.method)), zap.String("key", a.msg.Key), zap.String("channel", a.msg.Channel))
	if j.gone && (a.method == StartStream || a.method == AppendStream || a.method == StopStream) {
		s.forget(j) // its caller deletes it
		return true
	}
	if v == sent && (a.method == StartStream || a.method == AppendStream) {
		j.fails, j.failing, j.retryAt = 0, time.Time{}, time.Time{}
	}
	switch {
	case v == limited && (a.method == AppendStream || a.method == StopStream):
		s.pause(a.method, now, wait, j)
		log.Warn("slack limits the rate", zap.Duration("retry_after", wait))
	case a.method != UpdateMessage && a.method != StartStream && a.method != AppendStream && a.method != StopStream:
		return false
	case a.method == UpdateMessage && RefusedAs(err, conflict) && (j.failing.IsZero() || now.Sub(j.failing) < giveUpAfter):
		// An unknown attempt or process has begun it as a stream.
		j.stream = stream{open: true, broken: true, since: now, last: now}
		if j.failing.IsZero() {
			j.failing = now
		} else {
			j.retryAt = now.Add(backoff(j.fails))
		}
		j.fails++
		s.open[j] = struct{}{}
	case a.method == StartStream && v == sent:
		j.ts = ts
		s.opened(j, a)
		s.goOn(j, now)
		return true
	case a.method == StartStream:
		s.notStarted(j, a, v, wait, err, now)
		if v == passing {
			return false // it may have been posted
		}
	case a.method == AppendStream && v == sent:
		open := a.growth.then
		open.stop, open.last = j.stream.stop, j.begun
		j.told = a.msg.Final
		j.stream, j.grown = open, nil
		j.edits++
		s.goOn(j, now)
		return true
	case a.method == AppendStream && RefusedAs(err, notStreaming):
		log.Warn("slack has ended a stream; its message is edited")
		s.closed(j)
	case a.method == AppendStream:
		// Either it is unknown whether it has what was appended, or it never will.
		log.Warn("slack did not take what was appended; the message is edited", zap.Error(explain(err)))
		j.stream.broken = true
		if v == content {
			s.chunksRefused(err)
		}
	case a.method == StopStream:
		if v != sent && !RefusedAs(err, notStreaming) {
			log.Warn("slack did not stop a stream", zap.Error(explain(err)))
		}
		j.told = j.told || v == sent && a.msg.Final && a.growth.leads && !j.stream.broken
		s.closed(j) // if it is still open, the edit reports that
	default:
		return false
	}
	s.requeue(j)
	return true
}

// goOn queues a stream's next call if it needs one already.
func (s *queue) goOn(j *job, now time.Time) {
	j.newer = false
	if len(j.growth().chunks) > 0 || j.closes(now) {
		s.enqueue(j)
	}
}

// notStarted records that a message cannot begin as a stream: it is posted.
func (s *Scheduler) notStarted(j *job, a attempt, v verdict, wait time.Duration, err error, now time.Time) {
	j.edited = true
	place := a.msg.Channel
	switch {
	case v == limited:
		s.pause(a.method, now, wait, j)
		j.retryAt = time.Time{} // posting is another method
		return
	case v == content:
		s.chunksRefused(err)
		return
	case RefusedAs(err, noStreamCodes...):
		place = ""
	case !RefusedAs(err, noStreamHereCodes...):
		s.o.Log.Warn("slack did not begin a stream", zap.String("channel", a.msg.Channel), zap.Error(explain(err)))
		return
	}
	s.noStreams[place] = now.Add(streamsAgain)
	s.o.Log.Info("slack has no streams here; messages are edited", zap.String("channel", place), zap.Error(explain(err)))
}

// chunksRefused records that Slack rejects streams' content: edits show what is possible.
func (s *Scheduler) chunksRefused(err error) {
	if RefusedAs(err, "msg_too_long") {
		return
	}
	refused, _ := errors.AsType[slack.SlackErrorResponse](err)
	named := slices.ContainsFunc(refused.ResponseMetadata.Messages, func(m string) bool { return strings.Contains(m, "unsupported") })
	s.refusals.learn(inStream, []string{anyKind}, named)
	s.o.Log.Error("slack does not take what a stream is made of", zap.Error(explain(err)))
}
