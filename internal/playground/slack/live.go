package slack

import (
	"encoding/json"
	"net/http"
	"sync"
)

// watcherBuffer is how many events a slow page may be behind before it is cut
// off; it then reconnects and reads the state anew.
const watcherBuffer = 1024

// maxWarnings is how many warnings are remembered.
const maxWarnings = 100

// liveEvent is something that a person's client would show.
type liveEvent struct {
	kind    string // message, deleted, view, home, status, warning, session, connections, notification, person
	user    string // whom it concerns, if one person only
	channel string
	ts      string
	body    object // as GET /_control/events sends it
}

// hub spreads live events to those who watch. It never blocks the workspace.
type hub struct {
	mu       sync.Mutex
	closed   bool
	seq      int
	watchers map[chan liveEvent]bool
	warnings []object // the latest ones, for those who do not watch
}

func newHub() *hub { return &hub{watchers: map[chan liveEvent]bool{}} }

// watch registers a watcher; the channel is closed when it falls behind or the
// hub closes.
func (h *hub) watch() (chan liveEvent, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := make(chan liveEvent, watcherBuffer)
	if h.closed {
		close(ch)
		return ch, h.seq
	}
	h.watchers[ch] = true
	return ch, h.seq
}

func (h *hub) unwatch(ch chan liveEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, ch)
}

func (h *hub) publish(e liveEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq++
	e.body["kind"] = e.kind
	e.body["seq"] = h.seq
	if e.kind == "warning" {
		h.warnings = append(h.warnings, e.body)
		h.warnings = h.warnings[max(0, len(h.warnings)-maxWarnings):]
	}
	for ch := range h.watchers {
		select {
		case ch <- e:
		default:
			delete(h.watchers, ch)
			close(ch)
		}
	}
}

// warned are the latest warnings to a person, or to everybody if none is named.
func (h *hub) warned(person string) []any {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []any{}
	for _, w := range h.warnings {
		if person == "" || w["user"] == person {
			out = append(out, w)
		}
	}
	return out
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for ch := range h.watchers {
		delete(h.watchers, ch)
		close(ch)
	}
}

// liveMessage tells the watchers of a new or changed message. The caller holds
// the workspace's mutex, as for all live… methods except liveConnections.
func (s *Server) liveMessage(m *message) {
	s.live.publish(liveEvent{kind: "message", user: m.EphemeralTo, channel: m.Channel, ts: m.TS, body: object{"message": s.shown(m)}})
	if m.ThreadTS != "" && m.EphemeralTo == "" {
		if root := s.ws.message(m.Channel, m.ThreadTS); root != nil {
			s.live.publish(liveEvent{kind: "message", channel: root.Channel, ts: root.TS, body: object{"message": s.shown(root)}})
		}
	}
}

func (s *Server) liveDeleted(m *message) {
	s.live.publish(liveEvent{kind: "deleted", user: m.EphemeralTo, channel: m.Channel, ts: m.TS, body: object{"channel": m.Channel, "ts": m.TS}})
}

// liveView tells of a person's open modal, or that there is none any more.
func (s *Server) liveView(person string) {
	body := object{"user": person, "view": nil}
	if v := s.topView(person); v != nil {
		body["view"] = s.shownView(v)
	}
	s.live.publish(liveEvent{kind: "view", user: person, body: body})
}

func (s *Server) liveWarning(person, text string) {
	s.live.publish(liveEvent{kind: "warning", user: person, body: object{"user": person, "text": text, "time": now().UTC()}})
}

// liveConnections tells whether the app is there. It takes no lock of the workspace.
func (s *Server) liveConnections() {
	s.live.publish(liveEvent{kind: "connections", body: object{"connections": s.sockets.count()}})
}

// serveEvents streams live events as server-sent events.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	ch, seq := s.live.watch()
	defer s.live.unwatch(ch)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	send := func(body object) bool {
		raw, err := json.Marshal(body)
		if err != nil {
			return false
		}
		if _, err := w.Write(append(append([]byte("data: "), raw...), '\n', '\n')); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	if !send(object{"kind": "hello", "seq": seq, "connections": s.sockets.count()}) {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case e, ok := <-ch:
			if !ok || !send(e.body) {
				return
			}
		}
	}
}
