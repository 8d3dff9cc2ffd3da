package slack

import (
	"io"
	"net/http"
	"time"
)

const (
	hookLife = 30 * time.Minute
	hookUses = 5
)

// hook is a response URL: five answers within half an hour.
type hook struct {
	user    string
	channel string
	thread  string
	message *message // what it may replace; nil for a slash command
	until   time.Time
	left    int
}

// newHook makes a response URL.
func (s *Server) newHook(kind, person, channel, thread string, m *message) string {
	for id, h := range s.hooks {
		if now().After(h.until) {
			delete(s.hooks, id)
		}
	}
	id := randomString(12, digits) + "/" + randomString(24, lowerAlnum)
	s.hooks[id] = &hook{user: person, channel: channel, thread: thread, message: m, until: now().Add(hookLife), left: hookUses}
	return s.base() + "/hooks/" + kind + "/" + TeamID + "/" + id
}

// serveHook takes an answer at a response URL.
func (s *Server) serveHook(w http.ResponseWriter, r *http.Request) {
	started := now()
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	body := object{}
	if err == nil {
		err = decodeJSON(raw, &body)
	}
	status, answer := http.StatusOK, object{"ok": true}
	if err != nil {
		status, answer = http.StatusBadRequest, object{"ok": false, "error": "invalid_payload"}
	}
	s.mu.Lock()
	if err == nil {
		if e := s.respond(r.PathValue("id")+"/"+r.PathValue("secret"), body); e != nil {
			status, answer = http.StatusNotFound, s.errorAnswer(e)
			if answer["error"] != "used_url" && answer["error"] != "expired_url" {
				status = http.StatusBadRequest
			}
		}
	}
	s.calls.add(&callRecord{Time: started, Method: "response_url", Args: body, Status: status, Answer: answer, Millis: now().Sub(started).Milliseconds()})
	s.mu.Unlock()
	if status == http.StatusOK {
		_, _ = io.WriteString(w, "ok")
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(mustJSON(answer))
}

// respond does what an answer at a response URL asks for.
func (s *Server) respond(id string, body object) error {
	h := s.hooks[id]
	switch {
	case h == nil || now().After(h.until):
		return fail("expired_url")
	case h.left == 0:
		return fail("used_url")
	}
	ch := s.ws.channel(h.channel)
	if ch == nil {
		return fail("channel_not_found")
	}
	if body["delete_original"] == true {
		if h.message == nil {
			return fail("no_text")
		}
		h.left--
		s.withdraw(ch, h.message)
		return nil
	}
	said, err := s.content(&call{args: args{values: body}})
	if err != nil {
		return err
	}
	if said.empty() {
		return fail("no_text")
	}
	h.left--
	if m := h.message; m != nil && body["replace_original"] != false && text(body["response_type"]) == "" {
		if m.EphemeralTo != "" || s.ws.message(m.Channel, m.TS) == m {
			s.edit(m, BotUser, func() {
				m.Text, m.Blocks, m.Attachments = said.text, said.blocks, said.attachments
			})
			return nil
		}
	}
	m := &message{
		TS: s.ws.nextTS(now()), Channel: ch.ID, User: BotUser, Bot: true, Text: said.text,
		Blocks: said.blocks, Attachments: said.attachments, ThreadTS: h.thread,
	}
	if t := text(body["thread_ts"]); t != "" {
		if m.ThreadTS, err = s.threadOf(ch, t); err != nil {
			return err
		}
	}
	if text(body["response_type"]) == "in_channel" {
		s.post(m)
		return nil
	}
	m.EphemeralTo = h.user
	s.whisper(m)
	return nil
}

// withdraw deletes a message, ephemeral or not.
func (s *Server) withdraw(ch *channel, m *message) {
	if m.EphemeralTo == "" {
		if s.ws.message(ch.ID, m.TS) == m {
			s.unpost(ch, m)
		}
		return
	}
	for i, x := range s.ephemerals {
		if x == m {
			s.ephemerals = append(s.ephemerals[:i:i], s.ephemerals[i+1:]...)
			s.liveDeleted(m)
			return
		}
	}
}
