package publish_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"deckhand/internal/slackui/publish"
)

func TestRateLimitPausesTheMethodAndKeepsTheLatestState(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.Show(live("a", "a1"))
		h.Show(live("b", "b1"))
		h.rest()
		h.slack.answer = func(_ int, c call) error {
			if c.method == publish.UpdateMessage && c.at < 5*time.Second {
				return &slack.RateLimitedError{RetryAfter: 10 * time.Second}
			}
			return nil
		}
		h.Show(live("a", "a2"))
		time.Sleep(60 * time.Millisecond)
		h.Show(live("a", "a3"))
		h.Show(final("b", "b2"))
		h.Show(final("c", "c1")) // another method is not paused
		h.rest()
		calls := h.slack.all()
		var updates []string
		for _, c := range calls[3:] {
			if c.method == publish.UpdateMessage {
				updates = append(updates, c.args.Get("text"))
				if c.at < 10*time.Second || c.at > 16*time.Second {
					t.Errorf("%v: want it after the pause", c)
				}
			} else if c.at > time.Second {
				t.Errorf("%v: the post was held up", c)
			}
		}
		// The final state first, then the newest live one.
		if diff := cmp.Diff([]string{"b2", "a3"}, updates); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRateLimitInTheAnswerIsARateLimit(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.slack.answer = func(n int, _ call) error {
			if n <= 2 {
				return slack.SlackErrorResponse{Err: "ratelimited"}
			}
			return nil
		}
		h.Show(final("a", "a1"))
		h.rest()
		calls := h.slack.all()
		if len(calls) != 3 || calls[1].at < 5*time.Second || calls[2].at-calls[1].at < 10*time.Second {
			t.Errorf("calls %v, want growing pauses", calls)
		}
	})
}

func TestRefusedBlocksAreSentAsSections(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.slack.answer = func(_ int, c call) error {
			if strings.Contains(c.args.Get("blocks"), "markdown") {
				return slack.SlackErrorResponse{
					Err:              "invalid_blocks",
					ResponseMetadata: slack.ResponseMetadata{Messages: []string{"[ERROR] /blocks/0"}},
				}
			}
			return nil
		}
		h.Show(live("k", "one"))
		h.rest()
		h.Show(live("k", "two"))
		h.rest()
		h.Show(final("k", "three"))
		h.rest()
		var got []string
		for _, c := range h.slack.all() {
			got = append(got, fmt.Sprintf("%s %s %s", c.method, c.args.Get("text"), c.args.Get("blocks")))
		}
		want := []string{
			`chat.postMessage one [{"type":"markdown","text":"one"}]`,
			`chat.postMessage one [{"type":"section","text":{"type":"mrkdwn","text":"one","verbatim":true}}]`,
			`chat.update two [{"type":"section","text":{"type":"mrkdwn","text":"two","verbatim":true}}]`,
			`chat.update three [{"type":"markdown","text":"three"}]`,
			`chat.update three [{"type":"section","text":{"type":"mrkdwn","text":"three","verbatim":true}}]`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if keys, _, _ := h.Now(); keys != 0 {
			t.Errorf("%d keys are left", keys)
		}
	})
}

func TestTextThatIsRefusedTooIsGivenUp(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.slack.answer = func(int, call) error { return slack.SlackErrorResponse{Err: "msg_too_long"} }
		var lost atomic.Pointer[error]
		m := final("k", "one")
		m.OnEnd = func(err error) {
			if err != nil {
				lost.Store(&err)
			}
		}
		h.Show(m)
		h.rest()
		if n := len(h.slack.all()); n != 3 { // all of it, text alone, a sentence
			t.Errorf("%d calls, want 3", n)
		}
		if e := lost.Load(); e == nil || !strings.Contains((*e).Error(), "msg_too_long") {
			t.Errorf("OnEnd got %v", e)
		}
	})
}

func TestMessageThatIsGoneIsGivenUp(t *testing.T) {
	for _, code := range []string{"message_not_found", "cant_update_message", "channel_not_found", "is_archived", "not_in_channel"} {
		t.Run(code, func(t *testing.T) {
			in(t, publish.Options{}, func(h *house) {
				h.slack.answer = func(int, call) error { return slack.SlackErrorResponse{Err: code} }
				var lost atomic.Int32
				m := live("k", "one")
				m.TS = "9.0"
				m.OnEnd = func(err error) {
					lost.Add(1)
					if !strings.Contains(err.Error(), code) {
						t.Errorf("error %v does not say %s", err, code)
					}
				}
				h.Show(m)
				h.rest()
				h.Show(live("k", "two"))
				h.Show(final("k", "three"))
				h.rest()
				if n := len(h.slack.all()); n != 1 || lost.Load() != 1 {
					t.Errorf("%d calls, %d errors: want one of each", n, lost.Load())
				}
			})
		})
	}
}

func TestFinalStateSurvivesAnOutage(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.slack.answer = func(_ int, c call) error {
			switch {
			case c.at < 5*time.Minute:
				return slack.StatusCodeError{Code: 502, Status: "502 Bad Gateway"}
			case c.at < 10*time.Minute:
				return errors.New("connection refused")
			}
			return nil
		}
		h.Show(live("k", "one"))
		time.Sleep(time.Minute)
		h.Show(final("k", "two"))
		h.rest()
		calls := h.slack.all()
		last := calls[len(calls)-1]
		if last.args.Get("text") != "two" || last.at < 10*time.Minute || last.at > 11*time.Minute {
			t.Errorf("last call %v, want two soon after the outage", last)
		}
		if len(calls) > 30 {
			t.Errorf("%d attempts: no backoff", len(calls))
		}
	})
}

func TestOutageWithoutEndIsGivenUp(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.slack.answer = func(_ int, c call) error {
			if c.at < time.Hour {
				return errors.New("connection refused")
			}
			return nil
		}
		var lost atomic.Int32
		f, l := final("final", "one"), live("live", "one")
		f.OnEnd = func(err error) {
			if err != nil {
				lost.Add(1)
			}
		}
		l.OnEnd = f.OnEnd
		h.Show(f)
		h.Show(l)
		h.rest()
		if at := time.Since(h.slack.start); at < 15*time.Minute || at > 17*time.Minute {
			t.Errorf("given up after %v, want 15 minutes", at)
		}
		if keys, _, _ := h.Now(); lost.Load() != 2 || keys != 1 {
			t.Errorf("%d errors, %d keys: want 2 given up and the live key kept", lost.Load(), keys)
		}
		time.Sleep(time.Hour)
		h.Show(final("live", "two")) // only a state was lost, not the message
		h.rest()
		texts := h.slack.texts()
		if texts[len(texts)-1] != "two" {
			t.Errorf("texts %v, want two at the end", texts)
		}
	})
}

// TestLostAnswerToAPost documents the choice: it is posted again.
func TestLostAnswerToAPost(t *testing.T) {
	in(t, publish.Options{CallTimeout: time.Second}, func(h *house) {
		h.slack.latency = 2 * time.Second
		h.Show(final("k", "one"))
		time.Sleep(1100 * time.Millisecond)
		h.slack.mu.Lock()
		h.slack.latency = 0
		h.slack.mu.Unlock()
		h.rest()
		if diff := cmp.Diff([]string{"one", "one"}, h.slack.texts()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestKnownMessageIsEdited(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		m := final("approval/1", "approved")
		m.TS = "7.7"
		m.OnPosted = func(string) { t.Error("OnPosted was called for an edit") }
		h.Show(m)
		h.rest()
		if c := h.slack.all(); len(c) != 1 || c[0].method != publish.UpdateMessage || c[0].ts != "7.7" {
			t.Errorf("calls %v, want an update of 7.7", c)
		}
	})
}
