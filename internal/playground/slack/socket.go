package slack

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"
)

const (
	pingEvery       = 10 * time.Second
	pongWithin      = 30 * time.Second
	writeWithin     = 10 * time.Second
	maxConnections  = 10
	ticketLife      = 30 * time.Second
	outgoingFrames  = 1024
	maxFrame        = 1 << 20
	maxAckFrame     = 20 * 1024 // larger acknowledgements are dropped without a word
	disconnectGrace = 10 * time.Second
)

// socket is one Socket Mode connection. Its reader runs in the HTTP handler's
// goroutine, its writer in one of its own.
type socket struct {
	conn *websocket.Conn
	out  chan []byte
	done chan struct{} // closed once, by the switchboard, under its mutex
	gone bool          // guarded by the switchboard's mutex

	pending map[string]*delivery // by envelope id, guarded by the switchboard's mutex
}

var upgrader = websocket.Upgrader{
	HandshakeTimeout: 10 * time.Second,
	// The ticket is the credential; Slack's own clients send Slack's origin.
	CheckOrigin: func(*http.Request) bool { return true },
}

// serveSocket is the far end of the address that apps.connections.open gave.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if !s.sockets.redeem(r.URL.Query().Get("ticket")) {
		http.Error(w, "invalid or used ticket", http.StatusForbidden)
		return
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		s.log.Debug("socket not upgraded", zap.Error(err))
		return
	}
	c := &socket{conn: conn, out: make(chan []byte, outgoingFrames), done: make(chan struct{}), pending: map[string]*delivery{}}
	if !s.sockets.join(c, r.Host) {
		_ = conn.Close() // the server is closing
		return
	}
	s.liveConnections()
	s.sockets.read(c)
	s.sockets.leave(c)
	s.liveConnections()
}

// read handles the app's frames until the connection ends.
func (b *switchboard) read(c *socket) {
	c.conn.SetReadLimit(maxFrame)
	alive := func() { _ = c.conn.SetReadDeadline(time.Now().Add(pongWithin)) }
	alive()
	c.conn.SetPongHandler(func(string) error { alive(); return nil })
	c.conn.SetPingHandler(func(data string) error {
		alive()
		err := c.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWithin))
		if errors.Is(err, websocket.ErrCloseSent) {
			return nil
		}
		return err
	})
	for {
		kind, raw, err := c.conn.ReadMessage()
		if err != nil {
			return
		}
		alive()
		if kind != websocket.TextMessage {
			continue
		}
		if len(raw) > maxAckFrame {
			b.log.Warn("dropped a Socket Mode response that is over 20 KB, as Slack does", zap.Int("bytes", len(raw)))
			continue
		}
		var frame struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal(raw, &frame); err != nil || frame.EnvelopeID == "" {
			b.log.Debug("ignored a frame that is no acknowledgement", zap.Int("bytes", len(raw)))
			continue
		}
		b.acknowledge(c, frame.EnvelopeID, frame.Payload)
	}
}

// write sends queued frames and pings until the connection is let go.
func (b *switchboard) write(c *socket) {
	defer func() { _ = c.conn.Close() }() // wakes the reader
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			for { // what was queued before, a disconnect frame above all, still goes out
				select {
				case raw := <-c.out:
					if !c.send(raw) {
						return
					}
					continue
				default:
				}
				break
			}
			_ = c.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
			return
		case raw := <-c.out:
			if !c.send(raw) {
				return
			}
		case <-tick.C:
			if c.conn.WriteControl(websocket.PingMessage, []byte("Ping from playground"), time.Now().Add(writeWithin)) != nil {
				return
			}
		}
	}
}

func (c *socket) send(raw []byte) bool {
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeWithin))
	return c.conn.WriteMessage(websocket.TextMessage, raw) == nil
}
