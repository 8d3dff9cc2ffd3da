package slack

import (
	"encoding/json"
	"net/http"
	"time"
)

const (
	effectsWithin = 3 * time.Second // how long the effects of an act are awaited at most
	effectsIdle   = time.Second     // … and how long after the acknowledgement, if nothing happens
)

// effects gathers what an act led to.
type effects struct {
	s      *Server
	user   string
	click  click
	ch     chan liveEvent
	views  []any
	whisps []any
	msgs   []any
	home   any
	hit    bool // something that ends the wait
}

func (s *Server) watchEffects(person string, c click) *effects {
	ch, _ := s.live.watch()
	return &effects{s: s, user: person, click: c, ch: ch, views: []any{}, whisps: []any{}, msgs: []any{}}
}

func (e *effects) stop() { e.s.live.unwatch(e.ch) }

// take notes one live event.
func (e *effects) take(ev liveEvent) {
	switch {
	case ev.kind == "view" && ev.user == e.user:
		if v := ev.body["view"]; v != nil {
			e.views = append(e.views, v)
			e.hit = e.hit || e.click.Expect == "" || e.click.Expect == "view"
		}
	case ev.kind == "home" && ev.user == e.user:
		e.home = ev.body["view"]
		e.hit = true
	case ev.kind == "message" && ev.user == e.user:
		e.whisps = replaceByTS(e.whisps, ev.body["message"])
		e.hit = e.hit || e.click.Expect == "" || e.click.Expect == "ephemeral"
	case ev.kind == "message" && ev.user == "" && ev.channel == e.click.Channel && ev.channel != "":
		e.msgs = replaceByTS(e.msgs, ev.body["message"])
		if ev.ts == e.click.MessageTS {
			e.hit = e.hit || e.click.Expect == "" || e.click.Expect == "message"
		}
	case ev.kind == "deleted" && ev.channel == e.click.Channel && ev.ts == e.click.MessageTS:
		e.hit = true
	}
}

func replaceByTS(list []any, m any) []any {
	for i := range list {
		if list[i].(object)["ts"] == m.(object)["ts"] {
			list[i] = m
			return list
		}
	}
	return append(list, m)
}

// await waits for the acknowledgement, lets its payload have its effect (under
// the workspace's mutex), and waits for something to result. It is not cut short
// when the client goes: it takes no longer than effectsWithin, and what the app
// answered must be done.
func (e *effects) await(done <-chan clickResult, onAck func(json.RawMessage)) clickResult {
	var result clickResult
	limit := time.NewTimer(effectsWithin + 100*time.Millisecond)
	defer limit.Stop()
	var idle <-chan time.Time
	acked := false
	for {
		if acked && e.hit {
			e.drain()
			return result
		}
		select {
		case ev, ok := <-e.ch:
			if !ok {
				e.ch = nil // too much happened at once; the acknowledgement still counts
				continue
			}
			e.take(ev)
		case result = <-done:
			done, acked = nil, true
			if !result.acked {
				return result
			}
			e.s.mu.Lock()
			onAck(result.payload)
			e.s.mu.Unlock()
			if e.click.Expect == "" {
				idle = time.After(effectsIdle)
			}
		case <-idle:
			return result
		case <-limit.C:
			return result
		}
	}
}

// awaitHome waits for the home tab to be published.
func (e *effects) awaitHome(r *http.Request) {
	limit := time.NewTimer(effectsWithin)
	defer limit.Stop()
	for e.home == nil {
		select {
		case ev, ok := <-e.ch:
			if !ok {
				return
			}
			e.take(ev)
		case <-limit.C:
			return
		case <-r.Context().Done():
			return
		case <-e.s.ctx.Done():
			return
		}
	}
}

// drain notes what has happened in the same instant.
func (e *effects) drain() {
	for {
		select {
		case ev, ok := <-e.ch:
			if !ok {
				return
			}
			e.take(ev)
		default:
			return
		}
	}
}

func (e *effects) answer(result clickResult) object {
	return object{"views": e.views, "ephemerals": e.whisps, "messages": e.msgs, "acked": result.acked}
}
