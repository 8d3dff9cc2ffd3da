package costs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"deckhand/internal/jobs"
	"deckhand/internal/playground/slack"
	"deckhand/internal/store/pg"
)

// reports are how many digests stand in a channel.
func (h *house) reports(t *testing.T, channel string) (n int) {
	t.Helper()
	history, err := h.api.GetConversationHistoryContext(t.Context(), &slackgo.GetConversationHistoryParameters{ChannelID: channel, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, msg := range history.Messages {
		if strings.Contains(msg.Text, "Costs of") {
			n++
		}
	}
	return n
}

// TestADigestIsSentOnceOrNotAtAll: late, too late, passed over, forgotten, and after a
// crash between Slack's answer and ours.
func TestADigestIsSentOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	d := Digest{Every: Daily, Hour: time.Now().UTC().Hour(), To: slack.ChannelEngineering, Question: "by user"}
	h := newHouse(t, d)
	last := d.last(time.Now(), time.UTC)
	due := digestDue{Digest: d.key(time.UTC), Due: last}
	send := func(what string, due digestDue, again bool, want int) {
		t.Helper()
		if err := h.runDigest(t.Context(), due, again); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n := h.reports(t, d.To); n != want {
			t.Errorf("%s: it stands there %d times, want %d", what, n, want)
		}
	}
	old := due
	old.Due = last.AddDate(0, 0, -1)
	send("one that a later one has overtaken", old, false, 0)
	send("in time", due, false, 1)
	send("after a crash", due, true, 1)

	foreign := digestDue{Digest: "another", Due: time.Now()}
	if err := h.runDigest(t.Context(), foreign, false); !errors.Is(err, jobs.Again(digestAgain)) {
		t.Errorf("one of another configuration: %v", err)
	}
	foreign.Due = foreign.Due.Add(-2 * time.Hour)
	send("one that nobody knows any more", foreign, false, 1)
}

// TestADigestThatIsTooLate: a monthly one whose day has passed is not sent.
func TestADigestThatIsTooLate(t *testing.T) {
	t.Parallel()
	d := Digest{Every: Monthly, To: slack.ChannelEngineering}
	h := newHouse(t, d)
	late := time.Now().Add(-25 * time.Hour)
	// Where the month is a day old it would be overtaken, which the test above holds. That is
	// not so at both ends of the world at once: they are 26 hours apart.
	h.ledger.zone = time.FixedZone("far east", 14*60*60)
	if d.last(time.Now(), h.ledger.zone).After(late) {
		h.ledger.zone = time.FixedZone("far west", -12*60*60)
	}
	due := digestDue{Digest: d.key(h.ledger.zone), Due: late}
	if err := h.runDigest(t.Context(), due, false); err != nil {
		t.Fatal(err)
	}
	if n := h.reports(t, d.To); n != 0 {
		t.Errorf("it was sent %d times", n)
	}
}

// TestADigestToNowhere is given up, and not tried for days.
func TestADigestToNowhere(t *testing.T) {
	t.Parallel()
	d := Digest{Every: Daily, To: "C0NOWHERE"}
	h := newHouse(t, d)
	due := digestDue{Digest: d.key(time.UTC), Due: d.last(time.Now(), time.UTC)}
	if err := h.runDigest(t.Context(), due, false); err != nil {
		t.Errorf("it would be tried again: %v", err)
	}
}

// TestADigestToAPerson: an admin's comes by direct message with all names and its file, and
// after a crash not again, unless the app may not look into direct messages: better twice
// than never. One to a guest is not sent.
func TestADigestToAPerson(t *testing.T) {
	t.Parallel()
	d := Digest{Every: Daily, Hour: time.Now().UTC().Hour(), To: slack.UserAda, Question: "by channel as csv"}
	due := digestDue{Digest: d.key(time.UTC), Due: d.last(time.Now(), time.UTC)}
	blind := slices.DeleteFunc(slack.DefaultScopes(), func(scope string) bool { return scope == "im:write" })
	for times, scopes := range map[int][]string{1: slack.DefaultScopes(), 2: blind} {
		h := newHouseWith(t, scopes, d)
		for _, again := range []bool{false, true} {
			before := len(h.sent())
			if err := h.runDigest(t.Context(), due, again); err != nil {
				t.Fatal(err)
			}
			if again && times == 1 {
				continue
			}
			waitFor(t, func() bool { return len(h.sent()) == before+2 })
			sent := h.sent()[before:]
			if sent[0].Channel != slack.UserAda || !strings.Contains(sent[0].Text, "private-ops") || sent[1].How != "file" {
				t.Errorf("sent %+v", sent)
			}
		}
		if sent := h.sent(); len(sent) != 2*times {
			t.Errorf("sent %+v", sent)
		}
	}

	d.To = slack.UserGuest
	h := newHouse(t, d)
	due.Digest = d.key(time.UTC)
	if err := h.runDigest(t.Context(), due, false); err != nil || len(h.sent()) != 0 {
		t.Errorf("a guest was sent %+v, %v", h.sent(), err)
	}
}

// TestDigestsAreKeptScheduled: each once when the bot starts, by one handler.
func TestDigestsAreKeptScheduled(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Digest{Every: Daily, To: slack.ChannelEngineering}, Digest{Every: Weekly, To: slack.UserAda})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.KeepDigestsScheduled(ctx) }()
	scheduled := func() []pg.Job {
		h.ledger.mu.Lock()
		defer h.ledger.mu.Unlock()
		return slices.Clone(h.ledger.jobs)
	}
	waitFor(t, func() bool { return len(scheduled()) == 2 })
	stop()
	<-done
	for _, j := range scheduled() {
		if !j.Once || !j.At.After(time.Now()) || j.Args.Kind() != "digest" {
			t.Errorf("scheduled %+v", j)
		}
	}
	if n := len(h.JobHandlers()); n != 1 {
		t.Errorf("%d handlers", n)
	}
}
