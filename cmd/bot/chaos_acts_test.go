package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/needtest"
)

// play does a plan's steps, one after another; what lasts ends beside them.
func (c *chaos) play(steps []chaosStep) {
	for _, s := range steps {
		time.Sleep(s.after) // accidents come when they come: this is no wait for anything
		r := c.replicas[s.whose%uint64(len(c.replicas))]
		switch s.what {
		case "mention", "reply":
			c.say(s)
			continue
		case "fault":
			c.note("%s", s)
			c.must(http.MethodPost, "/_control/faults", s.fault, nil)
			continue
		}
		if s.what == "ambush" {
			c.mu.Lock()
			c.ambushes = append(c.ambushes, s)
			c.mu.Unlock()
			continue
		}
		c.note("%s of replica %d for %v", s.what, r.n, s.long)
		c.act(s, r)
	}
}

// later does something when an accident is over.
func (c *chaos) later(s chaosStep, do func()) {
	c.running.Go(func() {
		select {
		case <-time.After(s.long):
		case <-c.over:
		}
		c.note("%s is over", s.what)
		do()
	})
}

func (c *chaos) act(s chaosStep, r *chaosReplica) {
	switch s.what {
	case "stop", "order":
		if t, ok := c.aThread(s.whose); ok {
			if s.what == "stop" {
				c.mayCut(0, time.Minute)
			}
			_ = c.do(http.MethodPost, "/_control/messages", map[string]any{"user": ada, "channel": t.channel, "thread_ts": t.ts, "text": "@deckhand " + cmp.Or(s.text, "stop")}, nil)
		}
	case "cut model":
		c.mayCut(-10*time.Second, 30*time.Second)
		c.cutModel()
	case "restart bot":
		c.mayCut(0, time.Minute) // until it has ended
		r.signal(syscall.SIGTERM)
	case "kill bot":
		r.mu.Lock()
		r.pause = s.long
		r.mu.Unlock()
		r.signal(syscall.SIGKILL)
	case "freeze bot":
		r.signal(syscall.SIGSTOP)
		c.later(s, func() { r.signal(syscall.SIGCONT) })
	case "kill CLI":
		for _, pid := range r.pids(needtest.Claude(c.t)) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	case "freeze CLI":
		pids := r.pids(needtest.Claude(c.t))
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		c.later(s, func() {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		})
	case "kill reaper":
		self, err := os.Executable()
		if err != nil {
			c.t.Fatal(err)
		}
		for _, pid := range r.pids(self) {
			if pid != r.pid() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	case "cut database":
		r.wire.cut()
		c.later(s, r.wire.heal)
	case "part database":
		r.wire.part()
		c.later(s, r.wire.heal)
	case "fill disk":
		c.later(s, r.fillDisk())
	case "kill postgres":
		_ = syscall.Kill(c.database.current().PID(), syscall.SIGKILL)
	default:
		c.t.Fatalf("nobody knows how to %s", s.what)
	}
}

// pids are the replica's processes that run a program.
func (r *chaosReplica) pids(program string) (out []int) {
	program, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil
	}
	for _, pid := range descendants(r.pid()) {
		if exe, err := os.Readlink(filepath.Join("/proc", fmt.Sprint(pid), "exe")); err == nil && exe == program {
			out = append(out, pid)
		}
	}
	return out
}

func (c *chaos) aThread(which uint64) (chaosThread, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.threads) == 0 {
		return chaosThread{}, false
	}
	return c.threads[which%uint64(len(c.threads))], true
}

// say posts a prompt: a mention begins a thread, a reply goes on in one.
func (c *chaos) say(s chaosStep) {
	t, _ := c.aThread(s.whose)
	if s.what == "mention" {
		t = chaosThread{channel: s.in}
	}
	text := strings.ReplaceAll(s.text, "%s", c.script(t.channel))
	if s.what == "mention" {
		text = "@deckhand " + text
	}
	ts := c.post(s.user, t.channel, t.ts, text)
	if s.what == "mention" {
		c.mu.Lock()
		c.threads = append(c.threads, chaosThread{channel: s.in, ts: ts})
		c.mu.Unlock()
	}
}

// decide is the people who look at cards, until the history is over.
func (c *chaos) decide(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 13))
	due := map[string]time.Time{} // when each open card is decided about (again)
	for {
		select {
		case <-c.over:
			return
		case <-time.After(250 * time.Millisecond):
		}
		late := false
		for _, at := range due {
			late = late || time.Now().After(at)
		}
		if !c.news.Swap(false) && !late {
			continue
		}
		c.mu.Lock()
		threads, calm := c.threads, c.calm
		c.mu.Unlock()
		open := map[string]time.Time{}
		for _, t := range threads {
			var out struct{ Messages []message }
			if c.do(http.MethodGet, "/_control/messages?"+url.Values{"channel": {t.channel}, "thread_ts": {t.ts}}.Encode(), nil, &out) != nil {
				c.news.Store(true)
				continue
			}
			for _, m := range out.Messages {
				if !m.has("approve") && !m.has("pick") {
					continue
				}
				at, known := due[m.TS]
				if !known && !calm {
					at = time.Now().Add(time.Duration(r.IntN(3000)) * time.Millisecond)
				}
				if time.Now().After(at) {
					at = time.Now().Add(3 * time.Second)
					c.decideCard(r, t, m, calm)
				}
				open[m.TS] = at
			}
		}
		due = open
	}
}

func (c *chaos) decideCard(r *rand.Rand, t chaosThread, m message, calm bool) {
	people := []string{ada, grace}
	r.Shuffle(len(people), func(i, j int) { people[i], people[j] = people[j], people[i] })
	clickBy := func(user, action string, more map[string]any) {
		in := map[string]any{"user": user, "channel": t.channel, "message_ts": m.TS, "action_id": action, "stale": true}
		maps.Copy(in, more)
		_ = c.do(http.MethodPost, "/_control/actions", in, nil) // the card may have ended meanwhile
	}
	click := func(action string, more map[string]any) { clickBy(people[0], action, more) }
	if m.has("pick") {
		var blocks []map[string]any
		_ = json.Unmarshal(m.Blocks, &blocks) // the playground made it
		block := ""
		for _, b := range blocks {
			if strings.Contains(flatten(b["elements"]), "pick\n") {
				block, _ = b["block_id"].(string)
			}
		}
		click("pick", map[string]any{"block_id": block, "value": "1"})
		click("answer", nil)
		return
	}
	switch n := r.IntN(10); {
	case calm || n < 7:
		click("approve", nil)
	case n == 7:
		click("deny", nil)
	default: // two at once, who do not agree
		other := people[r.IntN(2)]
		c.running.Go(func() { clickBy(other, "deny", nil) })
		click("approve", nil)
	}
}
