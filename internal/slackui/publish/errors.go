package publish

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// ErrTooMany is passed to Call.OnEnd when Options.MaxCalls calls are already waiting: Slack has been unreachable
// for long.
var ErrTooMany = errors.New("too many calls to Slack are waiting")

// Code is Slack's word for why it refused a call; empty if it did not.
func Code(err error) string {
	refused, _ := errors.AsType[slack.SlackErrorResponse](err)
	return refused.Err
}

// RefusedAs reports whether Slack refused a call with one of these codes.
func RefusedAs(err error, codes ...string) bool {
	return err != nil && slices.Contains(codes, Code(err))
}

// verdict classifies an attempt's error.
type verdict int

const (
	sent      verdict = iota
	limited           // wait as long as Slack says, then continue; not a failure
	passing           // may work later
	content           // Slack does not accept this content
	permanent         // will never work
)

// Slack's error codes by verdict. Codes in no list are permanent.
var (
	limitedCodes = []string{"ratelimited", "rate_limited", "message_limit_exceeded"}
	passingCodes = []string{
		"internal_error", "fatal_error", "service_unavailable", "request_timeout",
		"team_added_to_org", "external_channel_migrating", "accesslimited",
	}
	contentCodes = []string{
		"msg_too_long", "msg_blocks_too_long", "invalid_blocks", "invalid_blocks_format",
		"no_text", "markdown_text_conflict", "only_one_table_allowed", "invalid_attachments",
		"too_many_attachments", "invalid_arguments", "invalid_arg_value",
		"unsupported_block_type", "unknown_block_type", "view_too_large", "invalid_chunks",
	}
	// doneCodes mean that the intended state exists already.
	doneCodes = []string{"already_reacted", "no_reaction"}
)

// judge classifies an attempt's error; the duration is Slack's Retry-After, or zero.
func judge(err error) (verdict, time.Duration) {
	if err == nil {
		return sent, 0
	}
	if rl, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return limited, rl.RetryAfter
	}
	if refused, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		code := refused.Err
		switch {
		case slices.Contains(doneCodes, code):
			return sent, 0
		case slices.Contains(limitedCodes, code):
			return limited, 0
		case slices.Contains(passingCodes, code):
			return passing, 0
		case slices.Contains(contentCodes, code):
			return content, 0
		}
		return permanent, 0
	}
	if status, ok := errors.AsType[slack.StatusCodeError](err); ok {
		if status.Code >= 500 || status.Code == 408 {
			return passing, 0
		}
		return permanent, 0
	}
	if _, ok := errors.AsType[permanentError](err); ok {
		return permanent, 0
	}
	// A network error, a timeout, or an answer that is not JSON.
	return passing, 0
}

// Refuses reports whether Slack rejects the content.
func Refuses(err error) bool {
	v, _ := judge(err)
	return v == content
}

// RetryAfter reports whether an error of Slack's API may disappear on a retry, and how long Slack wants us to wait; 0
// if it does not say.
func RetryAfter(err error) (after time.Duration, ok bool) {
	v, after := judge(err)
	return after, v == limited || v == passing
}

// permanentError marks an error that a retry cannot cure.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent wraps an error of Call.Do so that the call is not retried.
func Permanent(err error) error { return permanentError{err} }

// IsTemporary reports whether something was given up for an error that may disappear later: Slack was unreachable, or
// had trouble. Otherwise it has refused permanently.
func IsTemporary(err error) bool {
	_, ok := RetryAfter(err)
	return ok || errors.Is(err, ErrTooMany)
}

// explain adds Slack's details about the rejected part of a request.
func explain(err error) error {
	refused, ok := errors.AsType[slack.SlackErrorResponse](err)
	if !ok || len(refused.ResponseMetadata.Messages) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(refused.ResponseMetadata.Messages, "; "))
}
