package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"deckhand/internal/agent/claude"
)

// pulse is since when nothing was heard in a turn. After a fifth of the limit people see it
// in the turn's status; after all of it the thread is told, once.
type pulse struct {
	limit time.Duration
	at    time.Time // when something was heard last
	timer *time.Timer
	shown bool
	told  bool
}

func newPulse(limit time.Duration) pulse {
	return pulse{limit: limit, at: time.Now(), timer: time.NewTimer(limit / 5)}
}

// beat notes that something was heard.
func (p *pulse) beat() {
	p.at, p.shown = time.Now(), false
	p.timer.Reset(p.limit / 5)
}

// faint fires when nothing was heard for some time.
func (t *turn) faint() <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.pulse.timer.C
}

// onFaint shows that nothing is heard of the turn, and tells of it. One that waits for people,
// or for a budget, says so itself.
func (w *worker) onFaint(ctx context.Context) {
	t, p := w.turn, &w.turn.pulse
	if len(t.desk.Open()) > 0 || t.stopping() || t.meter.HeldFor() != "" {
		p.beat()
		return
	}
	quiet := time.Since(p.at)
	if !p.shown {
		p.shown = true
		w.show()
	}
	if quiet >= p.limit && !p.told {
		p.told = true
		w.say(ctx, fmt.Sprintf("Nothing was heard from %s for %s. It may be at work. If you do not want to wait, press Stop or write “stop”.", t.silent(), p.limit))
	}
	if quiet < p.limit {
		p.timer.Reset(p.limit - quiet)
	}
}

// silent names what the turn waits for: the tool that runs, or the model.
func (t *turn) silent() string {
	for _, it := range slices.Backward(t.content.Items) {
		if it.Tool != nil && it.Tool.State == claude.ToolRunning {
			return it.Tool.Name
		}
	}
	return "the model"
}

// quiet is TurnView.Quiet.
func (t *turn) quiet() *Quiet {
	if open := t.desk.Open(); len(open) > 0 {
		return &Quiet{Since: open[0].CreatedAt}
	}
	if t.pulse.shown {
		return &Quiet{Since: t.pulse.at, Of: t.silent()}
	}
	return nil
}
