package agent

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TestHistories holds that the ledger is the model's bill, whatever happens: random
// histories of people, accidents and restarts on the real CLI, each compared with the
// bill of the playground's model (see verify). A seed makes the same history again:
//
//	make histories N=1 SEED=42 CLI=2.1.276
//
// Those of make test are few, from seeds whose histories have most of what can happen.
func TestHistories(t *testing.T) {
	t.Parallel()
	type run struct {
		version  string
		seed     uint64
		n, steps int
	}
	runs := []run{{pinnedCLI, 744, 4, 6}, {"2.1.276", 1, 2, 3}}
	if asked := os.Getenv("DECKHAND_TEST_HISTORIES"); asked != "" {
		n, err := strconv.Atoi(asked)
		if err != nil {
			t.Fatal(err)
		}
		version := os.Getenv("DECKHAND_TEST_HISTORIES_CLI")
		if version == "" {
			version = pinnedCLI
		}
		runs = []run{{version, 1, n, 8}}
	}
	if asked := os.Getenv("DECKHAND_TEST_SEED"); asked != "" {
		seed, err := strconv.ParseUint(asked, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for i := range runs {
			runs[i].seed = seed
		}
	}
	for _, r := range runs {
		t.Run(r.version, func(t *testing.T) {
			t.Parallel()
			cliOf(t, r.version)
			var mu sync.Mutex
			var sum verdict
			held := 0
			t.Cleanup(func() {
				fmt.Printf("histories on Claude Code %s, seeds %d to %d: %d of %d hold; %s\n", r.version, r.seed, r.seed+uint64(r.n)-1, held, r.n, sum)
			})
			for i := range r.n {
				seed := r.seed + uint64(i)
				t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					t.Parallel()
					v := playHistory(t, r.version, seed, r.steps)
					mu.Lock()
					defer mu.Unlock()
					if sum.add(v); !t.Failed() {
						held++
					}
				})
			}
		})
	}
}

func playHistory(t *testing.T, version string, seed uint64, n int) verdict {
	r := rand.New(rand.NewPCG(seed, 5))
	steps := plan(r, n/2+1+r.IntN(n), version)
	var told []string
	for _, s := range steps {
		told = append(told, s.String())
	}
	t.Logf("seed %d: %s", seed, strings.Join(told, ", "))
	w := newWorld(t, version)
	for _, s := range steps {
		w.play(s)
	}
	w.await("the model's calls to end", w.model.idle)
	w.quit()
	v := w.verify()
	t.Log(v)
	if t.Failed() {
		t.Logf("the history:\n%s\n%s", w.tellStore(), w.tell())
	}
	return v
}
