package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestMachines: three replicas and two database servers, each on a machine of its own: a
// network, a user, a folder. One replica is unplugged: its processes have ended before
// others take its threads. Then the primary is: the standby is promoted, everything goes on
// there, and nothing is written elsewhere. Then that one is killed and the first, which
// follows it by now but lacks the last it had, takes over again.
func TestMachines(t *testing.T) {
	onRequest(t)
	n := newNetwork(t)
	one, two := n.server(11), n.server(12)
	one.begins()
	two.follows(one)
	// As docs/scaling.md says: several hosts, and whichever takes writes.
	database := fmt.Sprintf("postgres://deckhand@%s,%s/deckhand?sslmode=disable&target_session_attrs=read-write", one.address, two.address)
	c := newChaos(t, chaosPlan{slots: 8, idle: time.Hour, database: database})
	c.DatabaseURL = database
	hosts := map[*chaosReplica]*host{}
	defer c.stop()
	for number := range 3 {
		r, h := n.replica(c, number, database)
		hosts[r] = h
		c.launch(r)
	}

	threads := c.spread()
	c.takenOver(threads[0], "unplugged", func(r *chaosReplica) { hosts[r].unplug() })
	for _, h := range hosts {
		h.plug()
	}
	c.allReady()

	asks := c.post(linus, shop, "", "@deckhand tool: Bash {\"command\":\"echo asked\"}\nsay: it was asked")
	card := c.card(shop, asks)
	goesOn := func(what string) {
		t.Helper()
		began := time.Now()
		thread := c.post(ada, shop, "", "@deckhand say: answered after the primary was "+what)
		c.says(shop, thread, "answered after the primary was "+what)
		c.done(shop, thread, thread)
		answered := time.Since(began)
		c.allReady()
		t.Logf("primary %s: a mention is answered after %s, all are ready after %s", what, answered.Round(100*time.Millisecond), time.Since(began).Round(100*time.Millisecond))
	}
	one.unplug()
	two.promote()
	goesOn("unplugged")
	c.click(ada, shop, card.TS, "approve")
	c.says(shop, asks, "it was asked")
	c.done(shop, asks, asks)
	for _, thread := range threads {
		c.find(shop, thread, "a turn to go on", func(m message) bool { return m.has("stop") && strings.Contains(m.all(), takesItsTime) })
	}

	// What the first one had is what it had when it was unplugged.
	last := two.asks("SELECT max(id) FROM inbox")
	if had := one.asks("SELECT max(id) FROM inbox"); had >= last && len(had) >= len(last) {
		t.Errorf("the primary that was unplugged has inbox rows to %s, the new one to %s", had, last)
	}
	one.kill()
	one.plug()
	one.follows(two)
	c.eventually("the first server to have everything", func() bool { return one.asks("SELECT max(id) FROM inbox") == last })

	var pids []int
	for _, r := range c.replicas {
		pids = append(pids, r.pids(r.cli)...)
	}
	two.kill()
	one.promote()
	goesOn("killed")
	lived := 0
	for _, pid := range pids {
		if lives(pid) {
			lived++
		}
	}
	t.Logf("of %d sessions %d have lived through it", len(pids), lived)
	if lived == 0 {
		t.Error("a failover within moments has ended every session")
	}

	// A standby that lags: what it lacks is gone, and nothing is wedged by that.
	two.follows(one)
	two.does("psql", "-h", two.socket, "-U", "deckhand", "-c", "ALTER SYSTEM SET primary_conninfo = ''", "-c", "SELECT pg_reload_conf()", "deckhand")
	c.eventually("the standby to hear nothing", func() bool { return one.asks("SELECT count(*) FROM pg_stat_replication") == "0" })
	lost := c.post(ada, shop, "", "@deckhand say: this is forgotten")
	c.says(shop, lost, "this is forgotten")
	c.done(shop, lost, lost)
	one.kill()
	two.promote()
	goesOn("killed while the standby lagged")
	c.post(ada, shop, lost, "@deckhand say: and this is not")
	c.says(shop, lost, "and this is not")
}

// allReady waits until every replica says that nothing is wrong.
func (c *chaos) allReady() {
	c.t.Helper()
	for _, r := range c.replicas {
		c.eventually("a replica to say that nothing is wrong", func() bool {
			var said struct{ Status string }
			resp, err := http.Get(r.ready) //nolint:noctx // it is looked at again
			if err != nil {
				return false
			}
			defer resp.Body.Close() //nolint:errcheck // it was read
			return json.NewDecoder(resp.Body).Decode(&said) == nil && said.Status == "ready"
		})
	}
}
