package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/judge"
	"deckhand/internal/needtest"
)

// TestChaos: whatever breaks, and whenever, people get what they were promised. Random
// histories of people and accidents on one to three replicas with the real CLI, each
// judged from outside (see package judge):
//
//	make chaos SEED=42 SEEDS=1
//
// Those of make race are short, each the beginning of the one that make chaos plays, and
// those with as many replicas come one after another in one world: the processes that
// outlived an accident go on in the next. make test has the first of them.
func TestChaos(t *testing.T) {
	t.Parallel()
	played, asked := chaosOf(t)
	var mu sync.Mutex
	histories, held, broken := 0, 0, map[judge.Rule][]uint64{}
	t.Cleanup(func() {
		fmt.Printf("chaos: %d of %d histories hold; broken, by seeds: %v\n", held, histories, broken)
	})
	if !asked && runtime.GOOS != "linux" {
		needtest.Missing(t, "the process table is read as Linux has it")
	}
	play := func(series chaosSeries) {
		t.Run(series.String(), func(t *testing.T) {
			if asked {
				t.Parallel()
			}
			violations := series.play(t)
			mu.Lock()
			defer mu.Unlock()
			fell := map[uint64]bool{}
			for _, v := range violations {
				broken[v.Rule] = append(broken[v.Rule], v.seed)
				fell[v.seed] = true
			}
			if !t.Failed() || len(fell) > 0 {
				held += len(series) - len(fell)
			}
		})
	}
	var worlds sync.WaitGroup
	for _, series := range played {
		histories += len(series)
		if asked {
			play(series)
			continue
		}
		// They wait far more than they work: all worlds of short ones count as one test.
		worlds.Go(func() { play(series) })
	}
	worlds.Wait()
}

// chaosSeries are histories that are played one after another, in the world of the first.
type chaosSeries []chaosPlan

func (s chaosSeries) String() string {
	if len(s) == 1 {
		return fmt.Sprintf("seed=%d", s[0].seed)
	}
	return fmt.Sprintf("replicas=%d", s[0].replicas)
}

// shortChaos are the seeds of short histories, and how many steps each has. The first of one,
// two and three replicas have the worlds that cost the fewest starts of a CLI. In 2204 both
// replicas are killed while the model is asked, and in 440 PostgreSQL is.
var shortChaos = []struct {
	seed  uint64
	steps int
}{
	{13, 3},
	{440, 3},
	{14, 3},
	{2204, 6},
	{1, 3},
	{2, 3},
	{3, 3},
	{4, 3},
	{5, 3},
	{6, 3},
	{7, 3},
	{8, 3},
	{9, 3},
	{10, 3},
	{11, 3},
	{12, 3},
	{15, 3},
	{16, 3},
	{17, 3},
	{18, 3},
}

// fewChaos is how many of them make test plays.
const fewChaos = 6

// chaosOf are the histories to play: those that make chaos asks for, or short ones.
func chaosOf(t *testing.T) (out []chaosSeries, asked bool) {
	t.Helper()
	count := os.Getenv("DECKHAND_TEST_CHAOS")
	if count == "" || count == "short" {
		played := shortChaos
		if count == "" {
			played = played[:fewChaos]
		}
		by := map[int]int{} // place in out, by replicas
		for _, short := range played {
			p := drawChaos(short.seed, short.steps, 0)
			i, known := by[p.replicas]
			if !known {
				i = len(out)
				by[p.replicas], out = i, append(out, nil)
			}
			// Each has numbers of its own.
			out[i] = append(out[i], drawChaos(short.seed, short.steps, 100*len(out[i])))
		}
		return out, false
	}
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := number(os.Getenv("DECKHAND_TEST_SEED"))
	for i := range number(count) {
		out = append(out, chaosSeries{drawChaos(first+i, 20, 0)})
	}
	return out, true
}

// world is where all of them can be played.
func (s chaosSeries) world() chaosPlan {
	p := s[0]
	for _, other := range s {
		p.unwritten = max(p.unwritten, other.unwritten)
		p.postgres = p.postgres || slices.ContainsFunc(other.steps, func(s chaosStep) bool { return s.what == "kill postgres" })
	}
	return p
}

// brokenBy is a promise that a history has broken.
type brokenBy struct {
	judge.Violation
	seed uint64
}

func (s chaosSeries) play(t *testing.T) (out []brokenBy) {
	p := s.world()
	t.Logf("%d replicas, own postgres %v, bwrap %v, idle %v, %d slots", p.replicas, p.postgres, p.sandboxed, p.idle, p.slots)
	c := newChaos(t, p)
	t.Cleanup(func() {
		select {
		case <-c.over:
		default: // it failed on the way
			c.stop()
		}
	})
	c.running.Go(func() { c.decide(p.seed) })
	whose := map[string]uint64{} // the seed, by thread
	last := p.seed
	for i, p := range s {
		last = p.seed
		settled := c.history(p)
		for _, th := range c.threads {
			whose[th.ts] = p.seed
		}
		if left := len(s) - i - 1; !settled && left > 0 {
			t.Errorf("something waits for ever after seed %d: %d more are not played", last, left)
			break
		}
	}
	c.stop()
	e, err := c.look()
	if err != nil {
		t.Fatal(err)
	}
	cut := 0
	for _, b := range e.Rows.Ledger {
		if !b.Complete {
			cut++
		}
	}
	t.Logf("%d calls of the model were billed; the ledger has %d, %d of which were cut", len(e.Bill), len(e.Rows.Ledger), cut)
	violations := e.Judge()
	for command, rule := range map[string]judge.Rule{"report": judge.Booked, "audit": judge.Chained} {
		if out, problem, code := program(t, []string{"DATABASE_URL=" + c.directly}, command, "verify"); code != 0 {
			violations = append(violations, judge.Violation{Rule: rule, What: fmt.Sprintf("bot %s verify says: %s%s", command, problem, out)})
		}
	}
	c.report(e, violations)
	for _, v := range violations {
		seed, known := whose[v.Thread]
		if !known {
			seed = last
		}
		out = append(out, brokenBy{v, seed})
	}
	return out
}

// history plays one, and reports whether nothing waits any more.
func (c *chaos) history(p chaosPlan) bool {
	c.mu.Lock()
	c.threads, c.calm = nil, false
	c.mu.Unlock()
	var told []string
	for _, s := range p.steps {
		told = append(told, s.String())
	}
	c.t.Logf("seed %d: %s", p.seed, strings.Join(told, ", "))
	c.note("seed %d begins", p.seed)
	c.play(p.steps)
	c.note("nothing more happens")
	c.must(http.MethodDelete, "/_control/faults", nil, nil)
	c.mu.Lock()
	c.calm, c.ambushes = true, nil
	threads := c.threads
	c.mu.Unlock()
	if !c.settle() {
		return false
	}
	c.note("each thread is written to once more")
	for i, th := range threads {
		n := p.posts + 50 + i
		text := fmt.Sprintf("say: answer-%04d", n)
		if th.channel == tree {
			text = fmt.Sprintf("tool: Bash {\"command\":\"%s look t%04d-0\"}\n%s", c.script(tree), n, text)
		}
		c.post(ada, th.channel, th.ts, text)
	}
	return c.settle()
}

// settle waits until nothing waits any more. It gives up, and reports false, when what waits has not
// changed for longer than anybody would wait.
func (c *chaos) settle() bool {
	since := "" // what was settled before this history began is judged at the end
	if len(c.threads) > 0 {
		since = c.threads[0].ts
	}
	limit := 5 * time.Minute
	if asked, err := time.ParseDuration(os.Getenv("DECKHAND_TEST_PATIENCE")); err == nil {
		limit = asked
	}
	var waits string
	var deadline time.Time
	quiet, end := 0, time.Now().Add(3*limit)
	for {
		e, err := judge.Glance(context.Background(), c.place(), since)
		if now := fmt.Sprint(err, e.Unsettled()); now != waits {
			waits, deadline = now, time.Now().Add(limit) // it goes on, however slowly
		}
		if err == nil && len(e.Unsettled()) == 0 {
			if quiet++; quiet == 2 {
				return true
			}
		} else {
			quiet = 0
		}
		if now := time.Now(); now.After(deadline) || now.After(end) {
			c.note("it does not settle in %v: %s", limit, waits)
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
	}
}
