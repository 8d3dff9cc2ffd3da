package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/needtest"
)

// TestThreeReplicas, each with a data folder of its own: threads are spread over them. What
// one has that is killed in mid-turn goes on elsewhere when its lease's time is over; so
// does what one has that the database does not hear any more, or that is frozen, when it
// has no process left; and one that is told to stop hands its threads to the others.
func TestThreeReplicas(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		needtest.Missing(t, "the process table is read as Linux has it")
	}
	c := newChaos(t, chaosPlan{replicas: 3, slots: 4, idle: time.Hour, settings: []string{"DECKHAND_LEASE_TIME=8s", "DECKHAND_DRAIN_TIMEOUT=1s"}})
	c.DatabaseURL = c.directly
	defer c.stop()

	threads := c.spread()
	comesNoMore := func(r *chaosReplica, s syscall.Signal) {
		r.mu.Lock()
		r.pause = time.Hour
		r.mu.Unlock()
		r.signal(s)
	}
	c.takenOver(threads[0], "killed", func(r *chaosReplica) { comesNoMore(r, syscall.SIGKILL) })
	cut := c.owner(threads[1])
	c.takenOver(threads[1], "cut off", func(r *chaosReplica) { r.wire.part() })
	cut.wire.heal()
	frozen := c.owner(threads[2])
	c.takenOver(threads[2], "frozen", func(r *chaosReplica) { r.signal(syscall.SIGSTOP) })
	frozen.signal(syscall.SIGCONT)
	// It finds out, and lives again; nothing of what it had is shown or run by it any more.
	c.eventually("the one that was frozen to live again", func() bool {
		return c.text(`SELECT alive::text FROM replicas WHERE id = '`+frozen.id()+`'`) == "true"
	})
	left, working := 0, 0
	for _, m := range c.messages(shop, threads[2]) {
		if strings.Contains(m.all(), "goes on below") {
			left++
		}
		if m.has("stop") {
			working++
		}
	}
	if left != 1 || working != 1 {
		t.Errorf("of the thread of one that was frozen %d messages go on below, and %d have a Stop button", left, working)
	}
	var stopped int
	c.takenOver(threads[2], "stopped", func(r *chaosReplica) {
		stopped = r.pid()
		comesNoMore(r, syscall.SIGTERM)
	})
	// A second signal would end it at once.
	c.eventually("the one that was stopped to have ended", func() bool { return !lives(stopped) })
}

// takesItsTime is said so often that it is posted before the command has ended.
const takesItsTime = "It takes its time."

// spread posts until each of three replicas has a thread, whose command takes longer than
// any test.
func (c *chaos) spread() (threads []string) {
	c.t.Helper()
	spread := map[*chaosReplica]bool{}
	for posted := 0; len(threads) < 3; posted++ {
		if posted == 12 {
			c.t.Fatalf("%d threads are on %d of three replicas", posted, len(spread))
		}
		thread := c.post(ada, shop, "", "@deckhand say: "+strings.Repeat(takesItsTime+" ", 50)+"\ntool: Bash {\"command\":\"./run.sh free t0000-0 600\",\"timeout\":600000}")
		c.says(shop, thread, takesItsTime)
		// One that is slow to hear of a thread that suits it loses it to another.
		if r := c.owner(thread); r != nil && !spread[r] {
			spread[r] = true
			threads = append(threads, thread)
		}
	}
	return threads
}

// takenOver has an accident happen to the replica of a thread from spread, whose turn goes
// on elsewhere when it has no process left where it was.
func (c *chaos) takenOver(thread, what string, accident func(*chaosReplica)) {
	c.t.Helper()
	from := c.owner(thread)
	pids := from.pids(from.cli)
	began := time.Now()
	accident(from)
	c.eventually("the thread of one that is "+what+" to be taken over", func() bool {
		now := c.owner(thread)
		return now != nil && now != from
	})
	taken := time.Since(began)
	for _, pid := range pids { // one that is told to stop hands back thread by thread
		if what != "stopped" && lives(pid) {
			c.t.Errorf("when the thread of one that is %s is taken over, its process %d lives", what, pid)
		}
	}
	left := c.find(shop, thread, "the interrupted message to say so", func(m message) bool {
		return strings.Contains(m.all(), "goes on below") && !m.has("stop")
	})
	told := time.Since(began)
	c.find(shop, thread, "the turn to go on", func(m message) bool {
		return m.TS > left.TS && m.has("stop") && strings.Contains(m.all(), takesItsTime)
	})
	c.t.Logf("%s, with %d processes: taken over after %s, told after %s, goes on after %s", what, len(pids), taken.Round(100*time.Millisecond), told.Round(100*time.Millisecond), time.Since(began).Round(100*time.Millisecond))
}

// owner is the replica that holds the thread, or nil.
func (c *chaos) owner(thread string) *chaosReplica {
	id := c.text(`SELECT coalesce(max(lease_owner), '') FROM threads WHERE thread_ts = '` + thread + `'`)
	for _, r := range c.replicas {
		if id != "" && r.id() == id {
			return r
		}
	}
	return nil
}

// id is by what the replica is known to the others; empty until it has begun.
func (r *chaosReplica) id() string {
	b, _ := os.ReadFile(filepath.Join(r.dir, "data", "replica-id"))
	return strings.TrimSpace(string(b))
}
