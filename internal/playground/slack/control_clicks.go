package slack

import (
	"encoding/json"
	"net/http"
)

// notTaken warns a person that the app did not take a click.
const notTaken = "Deckhand did not answer in time. Slack does not repeat a click: try again."

func (s *Server) postAction(w http.ResponseWriter, r *http.Request) (any, error) {
	var in click
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	if id := r.PathValue("id"); id != "" {
		in.ViewID = id
	}
	switch in.Expect {
	case "", "view", "ephemeral", "message":
	default:
		return nil, refuse("expect %q: view, ephemeral or message", in.Expect)
	}
	return s.perform(envelopeInteractive, in, func(u *user) (object, error) {
		if in.ViewID != "" {
			return s.clickView(u, in)
		}
		return s.clickMessage(u, in)
	}, nil)
}

// perform has a person do something that the app is told of at once: it sends the
// payload that is made under the workspace's mutex and gathers what results. What
// an acknowledgement says is given to onAck, which may be nil.
func (s *Server) perform(kind string, in click, payload func(*user) (object, error), onAck func(sent object, answer json.RawMessage)) (any, error) {
	s.mu.Lock()
	u, err := s.person(in.User)
	var sent object
	if err == nil {
		sent, err = payload(u)
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	// A channel may have been given by its name; effects are told by its id.
	if c, ok := sent["channel"].(object); ok {
		in.Channel = text(c["id"])
	} else if id := text(sent["channel_id"]); id != "" {
		in.Channel = id
	}
	watch := s.watchEffects(u.ID, in)
	defer watch.stop()
	done := s.sockets.click(kind, sent)
	s.mu.Unlock()
	result := watch.await(done, func(answer json.RawMessage) {
		if onAck != nil {
			onAck(sent, answer)
		}
	})
	if !result.acked {
		warning := notTaken
		if kind == envelopeSlash {
			warning = text(sent["command"]) + " failed because the app did not respond."
		}
		s.warn(u.ID, warning)
	}
	return watch.answer(result), nil
}

func (s *Server) warn(person, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.liveWarning(person, text)
}

func (s *Server) postStateValues(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User      string `json:"user"`
		Channel   string `json:"channel"`
		MessageTS string `json:"message_ts"`
		ViewID    string `json:"view_id"`
		Values    object `json:"values"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.person(in.User)
	if err != nil {
		return nil, err
	}
	if in.ViewID != "" {
		v, err := s.viewFor(u, in.ViewID)
		if err != nil {
			return nil, err
		}
		if err := v.State.enterAll(blocksOf(v.Def), in.Values); err != nil {
			return nil, refuse("%s", err)
		}
		return object{"values": v.State.wire()}, nil
	}
	c, err := s.place(in.Channel, u)
	if err != nil {
		return nil, err
	}
	m, err := s.messageFor(u, c, in.MessageTS)
	if err != nil {
		return nil, err
	}
	state := s.messageState(u.ID, m)
	if err := state.enterAll(m.Blocks, in.Values); err != nil {
		return nil, refuse("%s", err)
	}
	return object{"values": state.wire()}, nil
}

func (s *Server) postSlash(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User     string `json:"user"`
		Channel  string `json:"channel"`
		Text     string `json:"text"`
		ThreadTS string `json:"thread_ts"`
		Expect   string `json:"expect"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	what := click{User: in.User, Channel: in.Channel, Expect: in.Expect}
	return s.perform(envelopeSlash, what, func(u *user) (object, error) {
		c, err := s.place(in.Channel, u)
		if err != nil {
			return nil, err
		}
		return s.slashPayload(u, c, in.ThreadTS, in.Text), nil
	}, s.slashAnswer)
}
