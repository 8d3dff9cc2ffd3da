package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// onRequest skips what takes minutes, or the machine's network: `make machines` runs it.
func onRequest(t *testing.T) {
	t.Helper()
	if os.Getenv("DECKHAND_TEST_MACHINES") == "" {
		t.Skip("it is run by hand: make machines")
	}
}

// TestMachinesShareSlacksRates: three replicas stream into nine threads, for two minutes, at
// a Slack that allows what Slack allows. Messages move as fast as those of one replica
// would, and hardly a call is too many. DECKHAND_TEST_PROGRAM names another bot to compare.
func TestMachinesShareSlacksRates(t *testing.T) {
	onRequest(t)
	c := newChaos(t, chaosPlan{replicas: 3, slots: 6, idle: time.Hour, program: os.Getenv("DECKHAND_TEST_PROGRAM")})
	c.DatabaseURL = c.directly
	defer c.stop()
	var threads []string
	for range 9 {
		threads = append(threads, c.post(ada, shop, "", "@deckhand slow: 50\nsay: "+strings.Repeat("It streams on and on. ", 400)))
	}
	on := map[*chaosReplica]int{}
	for _, ts := range threads {
		c.says(shop, ts, "streams on")
		on[c.owner(ts)]++
	}
	if len(on) < 3 {
		t.Errorf("nine threads are on %d of three replicas", len(on))
	}
	began := time.Now()
	time.Sleep(2 * time.Minute) // a window of Slack's is a minute
	all, refused := c.slackCalls(began)
	t.Logf("calls in 2 minutes: %v; refused with 429: %v", all, refused)
	if n := all["chat.update"] - refused["chat.update"]; n < 60 || refused["chat.update"] > 2 {
		t.Errorf("of %d edits in two minutes %d were too many", all["chat.update"], refused["chat.update"])
	}
}

// slackCalls counts what was called of Slack since a moment, and how often it said 429.
func (c *chaos) slackCalls(since time.Time) (all, refused map[string]int) {
	c.t.Helper()
	var out struct {
		Calls []struct {
			Time   time.Time
			Method string
			Status int
		}
	}
	c.must(http.MethodGet, "/_control/calls", nil, &out)
	all, refused = map[string]int{}, map[string]int{}
	for _, call := range out.Calls {
		if call.Time.Before(since) {
			continue
		}
		all[call.Method]++
		if call.Status == http.StatusTooManyRequests {
			refused[call.Method]++
		}
	}
	return all, refused
}
