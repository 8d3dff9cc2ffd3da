package slack

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

func sortByTS(list []*message) {
	slices.SortFunc(list, func(a, b *message) int { return compareTS(a.TS, b.TS) })
}

// given is a file that a person sends with a message.
type given struct {
	Name    string `json:"name"`
	Content string `json:"content_base64"`
	Text    string `json:"text"`
	Type    string `json:"mimetype"`
}

func (s *Server) postMessage(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User     string  `json:"user"`
		Channel  string  `json:"channel"`
		Text     string  `json:"text"`
		ThreadTS string  `json:"thread_ts"`
		Files    []given `json:"files"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	var contents [][]byte
	for _, f := range in.Files {
		raw := []byte(f.Text)
		if f.Content != "" {
			var err error
			if raw, err = base64.StdEncoding.DecodeString(f.Content); err != nil {
				return nil, refuse("file %q: content_base64 is not base64", f.Name)
			}
		}
		if f.Name == "" || len(raw) == 0 || len(raw) > maxUpload {
			return nil, refuse("file %q: a name and contents of up to 64 MB are needed", f.Name)
		}
		contents = append(contents, raw)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, c, err := s.acting(in.User, in.Channel)
	if err != nil {
		return nil, err
	}
	if in.Text == "" && len(in.Files) == 0 {
		return nil, refuse("text: a message needs some, or a file")
	}
	thread := ""
	if in.ThreadTS != "" {
		root := s.ws.message(c.ID, in.ThreadTS)
		if root == nil {
			return nil, refuse("thread_ts %q: there is no such message in %s", in.ThreadTS, c.ID)
		}
		thread = root.root()
	}
	said := cutRunes(s.composed(in.Text), maxPostText)
	m := &message{
		Channel: c.ID, User: u.ID, Text: said, Blocks: composedBlocks(said), ThreadTS: thread, ClientMsgID: uuid.NewString(),
	}
	for i, g := range in.Files {
		f := &file{ID: newID("F"), Name: g.Name, Title: g.Name, User: u.ID, Type: g.Type, Size: len(contents[i]), Channels: []string{c.ID}, content: contents[i]}
		if f.Type == "" {
			f.Type = guessType(f.Name, f.content)
		}
		if err := s.keepFile(f); err != nil {
			return nil, err
		}
		m.Files = append(m.Files, f.ID)
		m.Subtype = "file_share"
	}
	m.TS = s.ws.nextTS(now())
	for _, id := range m.Files {
		s.emitFileShared(s.ws.Files[id], c)
	}
	s.post(m)
	if !c.has(BotUser) && strings.Contains(m.Text, "<@"+BotUser+">") {
		s.liveWarning(u.ID, "Deckhand is not in #"+c.Name+", so it does not see this. Invite it first.")
	}
	return object{"ts": m.TS, "channel": c.ID, "message": s.shown(m)}, nil
}

// ownMessage finds a message that a person wrote.
func (s *Server) ownMessage(person, channel, ts string) (*channelMessage, error) {
	u, c, err := s.acting(person, channel)
	if err != nil {
		return nil, err
	}
	m := s.ws.message(c.ID, ts)
	if m == nil || m.User != u.ID {
		return nil, refuse("message %q is not one of %s's in %s", ts, u.RealName, c.ID)
	}
	return &channelMessage{c, m}, nil
}

type channelMessage struct {
	channel *channel
	message *message
}

func (s *Server) editMessage(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct{ User, Channel, TS, Text string }
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own, err := s.ownMessage(in.User, in.Channel, in.TS)
	if err != nil {
		return nil, err
	}
	if in.Text == "" {
		return nil, refuse("text: a message needs some")
	}
	s.edit(own.message, in.User, func() {
		own.message.Text = cutRunes(s.composed(in.Text), maxPostText)
		own.message.Blocks = composedBlocks(own.message.Text)
	})
	return object{"ts": in.TS, "message": s.shown(own.message)}, nil
}

func (s *Server) deleteMessage(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct{ User, Channel, TS string }
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	own, err := s.ownMessage(in.User, in.Channel, in.TS)
	if err != nil {
		return nil, err
	}
	s.unpost(own.channel, own.message)
	return object{"ts": in.TS}, nil
}

func (s *Server) postReaction(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User    string `json:"user"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
		Name    string `json:"name"`
		Remove  bool   `json:"remove"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, c, err := s.acting(in.User, in.Channel)
	if err != nil {
		return nil, err
	}
	m := s.ws.message(c.ID, in.TS)
	if m == nil {
		return nil, refuse("message %q: there is none in %s", in.TS, c.ID)
	}
	if in.Remove {
		err = s.unreact(m, u.ID, in.Name)
	} else {
		err = s.react(m, u.ID, in.Name)
	}
	if err != nil {
		return nil, err
	}
	return object{"message": s.shown(m)}, nil
}

func (s *Server) postMember(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User    string `json:"user"`
		Channel string `json:"channel"`
		Remove  bool   `json:"remove"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, u := s.ws.channel(in.Channel), s.ws.user(in.User)
	if c == nil || u == nil || c.Kind == kindIM {
		return nil, refuse("a user and a channel of GET /_control/state are needed")
	}
	switch {
	case in.Remove && c.has(u.ID):
		s.part(c, u.ID)
	case !in.Remove && !c.has(u.ID):
		s.join(c, u.ID, UserAda)
	}
	return object{"channel": shownChannel(c)}, nil
}

// postStop is the Stop button that Slack shows while an agent's session is busy.
func (s *Server) postStop(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		User     string `json:"user"`
		Channel  string `json:"channel"`
		ThreadTS string `json:"thread_ts"`
	}
	if err := readControl(w, r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, c, err := s.acting(in.User, in.Channel)
	if err != nil {
		return nil, err
	}
	root := s.ws.message(c.ID, in.ThreadTS)
	if root == nil {
		return nil, refuse("thread_ts %q: there is no such message in %s", in.ThreadTS, c.ID)
	}
	halted := []string{}
	for _, m := range s.ws.liveStreams() {
		if m.Channel == c.ID && m.root() == root.TS {
			halted = append(halted, m.TS)
			s.endStream(m, streamStopped)
		}
	}
	// The session goes on until the app says otherwise.
	event := object{"type": "agent_session_stopped", "channel": c.ID, "thread_ts": root.TS, "user": u.ID, "streaming_message_ts": halted}
	s.emit(event, c)
	return object{"streams": halted}, nil
}
