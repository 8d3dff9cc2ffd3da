package publish_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"deckhand/internal/slackui/publish"
)

// record collects what ran, in order.
type record struct {
	mu  sync.Mutex
	did []string
}

func (r *record) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did = append(r.did, s)
}

func (r *record) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.did)
}

// step returns a call that takes a second.
func (r *record) step(key, what string) publish.Call {
	return publish.Call{Method: publish.SetStatus, Key: key, What: what, Do: func(context.Context) error {
		time.Sleep(time.Second)
		r.add(what)
		return nil
	}}
}

func TestCallsOfOneKeyKeepTheirOrder(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		var r record
		h.Once(r.step("m1", "add eyes"))
		remove := r.step("m1", "remove eyes")
		remove.Method = publish.RemoveReaction
		h.Once(remove)
		h.Once(r.step("m1", "add tick"))
		h.Once(r.step("m2", "other"))
		h.rest()
		got := r.all()
		want := []string{"add eyes", "remove eyes", "add tick"}
		if i := slices.Index(got, "other"); i > 1 {
			t.Errorf("order %v: the other key waited", got)
		} else if diff := cmp.Diff(want, slices.Delete(got, i, i+1)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReplaceDropsCallsThatHaveNotBegun(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		var r record
		for _, what := range []string{"reading", "writing", "thinking", "testing"} {
			c := r.step("status", what)
			c.Replace = true
			h.Once(c)
			synctest.Wait()
		}
		h.rest()
		if diff := cmp.Diff([]string{"reading", "testing"}, r.all()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCallIsRetriedAFewTimes(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		var tries int
		var lost error
		h.Once(publish.Call{
			Method: publish.PostEphemeral,
			Do:     func(context.Context) error { tries++; return errors.New("connection reset") },
			OnEnd:  func(err error) { lost = err },
		})
		h.rest()
		if tries != 5 || lost == nil {
			t.Errorf("%d tries, error %v: want 5 and an error", tries, lost)
		}
	})
}

func TestCallWaitsForTheRateLimitWithoutLosingTries(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		var tries int
		h.Once(publish.Call{
			Method: publish.PostEphemeral,
			Do: func(context.Context) error {
				tries++
				if tries < 20 {
					return &slack.RateLimitedError{RetryAfter: time.Second}
				}
				return nil
			},
			OnEnd: func(err error) {
				if err != nil {
					t.Errorf("given up: %v", err)
				}
			},
		})
		h.rest()
		if tries != 20 {
			t.Errorf("%d tries, want 20", tries)
		}
	})
}

func TestCallThatCannotWorkIsNotRepeated(t *testing.T) {
	for name, err := range map[string]error{
		"slack's code": slack.SlackErrorResponse{Err: "user_not_in_channel"},
		"the caller's": publish.Permanent(errors.New("no file")),
		"http 404":     slack.StatusCodeError{Code: 404, Status: "404"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, publish.Options{}, func(h *house) {
				var tries int
				var lost error
				h.Once(publish.Call{
					Method: publish.PostEphemeral,
					Do:     func(context.Context) error { tries++; return err },
					OnEnd:  func(err error) { lost = err },
				})
				h.rest()
				if tries != 1 || !errors.Is(lost, errors.Unwrap(err)) && !errors.Is(lost, err) && lost == nil {
					t.Errorf("%d tries, error %v", tries, lost)
				}
			})
		})
	}
}

func TestReactionThatIsThereAlreadyIsFine(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		h.Once(publish.Call{
			Method: publish.AddReaction,
			Do:     func(context.Context) error { return slack.SlackErrorResponse{Err: "already_reacted"} },
			OnEnd: func(err error) {
				if err != nil {
					t.Errorf("given up: %v", err)
				}
			},
		})
		h.rest()
	})
}

func TestTooManyCallsAreRefused(t *testing.T) {
	t.Parallel()
	s := publish.New(slack.New("xoxb-test"), publish.Options{MaxCalls: 3})
	var refused int
	for range 5 {
		s.Once(publish.Call{
			Method: publish.AddReaction,
			Do:     func(context.Context) error { return nil },
			OnEnd: func(err error) {
				if !errors.Is(err, publish.ErrTooMany) {
					t.Errorf("error %v", err)
				}
				refused++
			},
		})
	}
	if refused != 2 || s.Pending() != 3 {
		t.Errorf("%d refused, %d pending", refused, s.Pending())
	}
}

func TestAnswersToClicksGoBeforeReactions(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		var r record
		for range 30 {
			c := r.step("", "low")
			c.Priority = publish.Live
			h.Once(c)
		}
		synctest.Wait()
		c := r.step("", "high")
		c.Priority = publish.Click
		h.Once(c)
		h.rest()
		if i := slices.Index(r.all(), "high"); i > 12 {
			t.Errorf("the urgent call came %dth", i+1)
		}
	})
}

// A patient call outlives an outage that is longer than a few tries, and tells its end
// once.
func TestAPatientCallOutlivesAnOutage(t *testing.T) {
	in(t, publish.Options{}, func(h *house) {
		began := time.Now()
		var ends []error
		h.Once(publish.Call{
			Method: publish.AddReaction, What: "add tick", Patient: true,
			Do: func(context.Context) error {
				if time.Since(began) < 5*time.Minute {
					return errors.New("connection refused")
				}
				return nil
			},
			OnEnd: func(err error) { ends = append(ends, err) },
		})
		h.rest()
		if len(ends) != 1 || ends[0] != nil {
			t.Errorf("it ended with %v", ends)
		}
	})
}
