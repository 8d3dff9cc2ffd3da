// Package upkeep keeps a part of the bot running that fails for reasons outside of
// it, such as a connection: it is started again for as long as it takes, with pauses
// that grow. What is wrong is said with its cure, to the log once and then seldom,
// and to whoever asks.
//
//	starting ── it works ──► up ── it ends ──► down ── pause ── it works ──► up
//	starting ── it ends ──► down
//
// It starts no goroutine: [Part.Keep] runs on its caller's.
package upkeep

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// firstPause is how long is waited after a first failure. It doubles with each
	// further one up to maxPause, and begins anew after maxPause of work.
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// quiet is how long nothing more is said in the log of the same trouble.
	quiet = 10 * time.Minute
)

// State is how a part is. The zero value: nothing is known yet.
type State struct {
	Up    bool
	Since time.Time // since when it is up, or down
	Err   error     // why it is down; nil while it is up
	Cure  string    // what a person can do about Err
}

// Down reports whether the part has failed and does not work yet.
func (s State) Down() bool { return s.Err != nil }

// Part is something that is kept running. Its methods are safe for concurrent use.
type Part struct {
	name string
	cure func(error) string
	log  *zap.Logger

	mu    sync.Mutex
	state State
	pause time.Duration // before the next try, at most
	told  string        // the cure that the log told last
	at    time.Time     // when
	owed  bool          // the log told of trouble, and not yet of its end
}

// New returns a part that nobody keeps yet. name begins sentences in the log, and cure
// says what to do about an error.
func New(name string, cure func(error) string, log *zap.Logger) *Part {
	return &Part{name: name, cure: cure, log: log, pause: firstPause}
}

// State is how the part is now.
func (p *Part) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Keep calls run until ctx ends, again whenever it returns, and returns after it. run
// calls tell with nil as soon as it does what it is for, and with an error when it
// does not any more and takes a while to end.
func (p *Part) Keep(ctx context.Context, run func(ctx context.Context, tell func(error)) error) {
	for {
		err := run(ctx, p.tell)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it ended by itself")
		}
		p.tell(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.nextPause()):
		}
	}
}

// nextPause is up to half shorter than it could be, so that replicas do not come all
// at once.
func (p *Part) nextPause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := p.pause/2 + rand.N(p.pause/2)
	p.pause = min(2*p.pause, maxPause)
	return pause
}

func (p *Part) tell(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.works()
	} else {
		p.failed(err)
	}
}

func (p *Part) works() {
	if p.state.Up {
		return
	}
	if p.owed {
		p.log.Info(p.name+" works again", zap.Duration("after", time.Since(p.state.Since).Round(time.Second)))
	}
	p.state, p.owed = State{Up: true, Since: time.Now()}, false
}

func (p *Part) failed(err error) {
	now, since := time.Now(), p.state.Since
	if !p.state.Down() {
		since = now
	}
	steady := p.state.Up && now.Sub(p.state.Since) >= maxPause
	if steady {
		p.pause = firstPause
	}
	p.state = State{Since: since, Err: err, Cure: p.cure(err)}
	if p.state.Cure == p.told && now.Sub(p.at) < quiet && !steady {
		return
	}
	p.told, p.at, p.owed = p.state.Cure, now, true
	p.log.Warn(p.name+" does not work; it is tried again and again", zap.Error(err), zap.String("cure", p.state.Cure))
}
