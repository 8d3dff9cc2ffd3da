package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/judge"
)

// TestChaos: whatever breaks, and whenever, people get what they were promised. Random
// histories of people and accidents on one to three replicas with the real CLI, each
// judged from outside (see package judge):
//
//	make chaos SEED=42 SEEDS=1
//
// That of make test is short: two replicas, both killed while the model is asked.
func TestChaos(t *testing.T) {
	t.Parallel()
	seeds, steps := chaosSeeds(t)
	var mu sync.Mutex
	held, broken := 0, map[judge.Rule][]uint64{}
	t.Cleanup(func() {
		fmt.Printf("chaos: %d of %d histories hold; broken, by seeds: %v\n", held, len(seeds), broken)
	})
	if os.Getenv("DECKHAND_TEST_CHAOS") == "" && runtime.GOOS != "linux" {
		need(t, "the process table is read as Linux has it")
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			violations := playChaos(t, seed, steps)
			mu.Lock()
			defer mu.Unlock()
			for _, v := range violations {
				broken[v.Rule] = append(broken[v.Rule], seed)
			}
			if !t.Failed() {
				held++
			}
		})
	}
}

// chaosSeeds are the histories to play, and how many steps each has.
func chaosSeeds(t *testing.T) (seeds []uint64, steps int) {
	t.Helper()
	asked := os.Getenv("DECKHAND_TEST_CHAOS")
	if asked == "" {
		return []uint64{2204}, 6
	}
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := number(os.Getenv("DECKHAND_TEST_SEED"))
	for i := range number(asked) {
		seeds = append(seeds, first+i)
	}
	return seeds, 20
}

func playChaos(t *testing.T, seed uint64, steps int) []judge.Violation {
	p := drawChaos(seed, steps)
	var told []string
	for _, s := range p.steps {
		told = append(told, s.String())
	}
	t.Logf("seed %d: %d replicas, own postgres %v, bwrap %v, idle %v, %d slots: %s", seed, p.replicas, p.postgres, p.sandboxed, p.idle, p.slots, strings.Join(told, ", "))
	c := newChaos(t, p)
	t.Cleanup(func() {
		select {
		case <-c.over:
		default: // it failed on the way
			c.stop()
		}
	})
	c.running.Go(func() { c.decide(seed) })
	c.play()
	c.note("nothing more happens")
	c.must(http.MethodDelete, "/_control/faults", nil, nil)
	c.mu.Lock()
	c.calm, c.ambushes = true, nil
	threads := c.threads
	c.mu.Unlock()
	if c.settle() {
		c.note("each thread is written to once more")
		for i, th := range threads {
			n := 9000 + i
			text := fmt.Sprintf("say: answer-%04d", n)
			if th.channel == tree {
				text = fmt.Sprintf("tool: Bash {\"command\":\"%s look t%04d-0\"}\n%s", c.script(tree), n, text)
			}
			c.post(ada, th.channel, th.ts, text)
		}
		c.settle()
	}
	c.stop()
	e, err := c.look()
	if err != nil {
		t.Fatal(err)
	}
	violations := e.Judge()
	c.report(e, violations)
	return violations
}

// settle waits until nothing waits any more; it reports false when something does for as
// long as nobody would wait for it.
func (c *chaos) settle() bool {
	limit := 5 * time.Minute
	if asked, err := time.ParseDuration(os.Getenv("DECKHAND_TEST_PATIENCE")); err == nil {
		limit = asked
	}
	deadline := time.Now().Add(limit)
	quiet := 0
	for {
		e, err := c.look()
		if err == nil && len(e.Unsettled()) == 0 {
			if quiet++; quiet == 2 {
				return true
			}
		} else {
			quiet = 0
		}
		if time.Now().After(deadline) {
			c.note("it does not settle in %v: %v %v", limit, err, e.Unsettled())
			return false
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// report tells of each violation with its thread's story, and of what no bot may say.
func (c *chaos) report(e judge.Evidence, violations []judge.Violation) {
	stories := map[string]bool{}
	for _, v := range violations {
		c.t.Errorf("%s", v)
		stories[v.Thread] = true
	}
	for thread := range stories {
		c.t.Logf("the story of thread %s:\n%s", thread, e.Story(thread))
	}
	for _, r := range c.replicas {
		log, err := os.ReadFile(r.log())
		if err != nil {
			c.t.Error(err)
		}
		for _, word := range []string{"panic: ", "DATA RACE", "fatal error: "} {
			if i := bytes.Index(log, []byte(word)); i >= 0 {
				c.t.Errorf("replica %d: %.3000s", r.n, log[i:])
			}
		}
		if c.t.Failed() {
			c.t.Logf("the end of replica %d's log:\n%s", r.n, log[max(0, len(log)-6000):])
		}
	}
}
