package slack

import (
	"encoding/json"
	"net/http"
)

// Shortcut is a shortcut of the app, as its manifest has it.
type Shortcut struct {
	Name        string `json:"name" yaml:"name"`
	Type        string `json:"type" yaml:"type"` // message or global
	CallbackID  string `json:"callback_id" yaml:"callback_id"`
	Description string `json:"description" yaml:"description"`
}

// Shortcuts are those of the app's manifest.
func Shortcuts() []Shortcut {
	return []Shortcut{
		{"Ask Deckhand about this", "message", "ask_about", "Gives Deckhand work about this message, in its thread"},
		{"Ask Deckhand", "global", "ask", "Gives Deckhand work in a channel, or alone with you"},
	}
}

// postShortcut has a person use a shortcut of the app: one of a message's when
// message_ts is given, else a global one.
func (s *Server) postShortcut(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User       string `json:"user"`
		CallbackID string `json:"callback_id"`
		Channel    string `json:"channel"`
		MessageTS  string `json:"message_ts"`
		Expect     string `json:"expect"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	what := click{User: in.User, Channel: in.Channel, MessageTS: in.MessageTS, Expect: in.Expect}
	return s.perform(envelopeInteractive, what, func(u *user) (object, error) {
		return s.shortcutPayload(u, in.CallbackID, in.Channel, in.MessageTS)
	}, nil)
}

func (s *Server) shortcutPayload(u *user, callback, where, ts string) (object, error) {
	if callback == "" {
		return nil, refuse("callback_id: which shortcut?")
	}
	p := s.interaction("shortcut", u)
	p["callback_id"] = callback
	p["action_ts"] = formatTS(now().UnixMicro())
	p["trigger_id"] = s.newTrigger(u.ID, "")
	if ts == "" {
		return p, nil
	}
	c, err := s.place(where, u)
	if err != nil {
		return nil, err
	}
	m, err := s.messageFor(u, c, ts)
	if err != nil {
		return nil, err
	}
	p["type"] = "message_action"
	p["channel"] = object{"id": c.ID, "name": channelName(c)}
	p["message"] = s.wire(m)
	p["message_ts"] = m.TS
	p["response_url"] = s.newHook("app", u.ID, c.ID, m.ThreadTS, nil)
	return p, nil
}

// postOptions has a person type into a menu whose options the app supplies.
func (s *Server) postOptions(w http.ResponseWriter, r *http.Request) (any, error) {
	var in click
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	u, err := s.person(in.User)
	var payload object
	if err == nil {
		payload, err = s.suggestionPayload(u, in)
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	done := s.sockets.click(envelopeInteractive, payload)
	s.mu.Unlock()
	result := <-done
	answer := object{"acked": result.acked, "options": []any{}}
	if !result.acked {
		return answer, nil
	}
	var body struct {
		Options []any           `json:"options"`
		Groups  json.RawMessage `json:"option_groups"`
	}
	if len(result.payload) > 0 && decodeJSON(result.payload, &body) == nil {
		p := &problems{}
		o := object{"options": body.Options}
		if body.Options != nil {
			p.options(o, "", 0, 100, plainOnly)
		}
		if len(p.list) > 0 {
			answer["problem"] = p.list
			return answer, nil
		}
		answer["options"] = nonNil(body.Options)
		if len(body.Groups) > 0 {
			answer["option_groups"] = body.Groups
		}
	}
	return answer, nil
}

func (s *Server) suggestionPayload(u *user, in click) (object, error) {
	p := s.interaction("block_suggestion", u)
	var blocks []any
	if in.ViewID != "" {
		v, err := s.viewFor(u, in.ViewID)
		if err != nil {
			return nil, err
		}
		blocks = blocksOf(v.Def)
		p["container"] = object{"type": "view", "view_id": v.ID}
		p["view"] = s.wireView(v)
	} else {
		c, err := s.place(in.Channel, u)
		if err != nil {
			return nil, err
		}
		m, err := s.messageFor(u, c, in.MessageTS)
		if err != nil {
			return nil, err
		}
		blocks = m.Blocks
		p["container"] = object{"type": "message", "message_ts": m.TS, "channel_id": c.ID, "is_ephemeral": m.EphemeralTo != ""}
		p["channel"] = object{"id": c.ID, "name": channelName(c)}
		p["message"] = s.wire(m)
	}
	typed := text(in.Value)
	in.Value = nil
	h, err := findElement(blocks, in)
	if err != nil {
		return nil, err
	}
	if k := text(h.element["type"]); k != "external_select" && k != "multi_external_select" {
		return nil, refuse("%q is a %s: its options do not come from the app", in.ActionID, k)
	}
	p["block_id"], p["action_id"], p["value"] = h.block, h.element["action_id"], typed
	return p, nil
}
