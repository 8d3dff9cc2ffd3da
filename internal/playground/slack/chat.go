package slack

import (
	"strings"
	"unicode/utf8"
)

// Limits of messages, in characters.
const (
	maxUpdateText   = 4000
	maxPostText     = 40000
	maxMarkdownText = 12000
	maxMetadata     = 16 << 10 // bytes, encoded
)

// conversation finds the conversation that a call names: an id, a name, or a
// person for a direct message. The app must be able to see it.
func (s *Server) conversation(name string) (*channel, error) {
	if name == "" {
		return nil, fail("channel_not_found")
	}
	if u := s.ws.user(name); u != nil {
		if u.Bot || u.Stranger {
			return nil, fail("channel_not_found")
		}
		return s.ws.openIM(u.ID, now()), nil
	}
	c := s.ws.channel(name)
	if c == nil {
		c = s.ws.channelNamed(strings.TrimPrefix(name, "#"))
	}
	if c == nil || (c.Kind != kindPublic && !c.has(BotUser)) {
		return nil, fail("channel_not_found")
	}
	return c, nil
}

// postable finds a conversation that the app may post to.
func (s *Server) postable(name string) (*channel, error) {
	c, err := s.conversation(name)
	if err != nil {
		return nil, err
	}
	if c.Archived {
		return nil, fail("is_archived")
	}
	if !c.has(BotUser) && s.scoped("chat:write.public") != nil {
		return nil, fail("not_in_channel")
	}
	return c, nil
}

// content is what a message says, checked.
type content struct {
	text        string
	blocks      []any
	attachments []any
	metadata    any
	hasText     bool
	hasBlocks   bool
	hasAttached bool
}

// empty says whether there is nothing to show.
func (m content) empty() bool {
	return strings.TrimSpace(m.text) == "" && len(m.blocks) == 0 && len(m.attachments) == 0
}

// content reads and checks text, markdown_text, blocks, attachments and metadata.
func (s *Server) content(c *call) (content, error) {
	var m content
	m.hasText = c.has("text")
	m.text = c.str("text")
	if err := s.refuseText(m.text, placeOf(c.method, "")); err != nil {
		return m, err
	}
	markdown := c.str("markdown_text")
	if markdown != "" {
		if m.text != "" || c.has("blocks") {
			return m, fail("markdown_text_conflict")
		}
		if utf8.RuneCountInString(markdown) > maxMarkdownText {
			return m, fail("msg_too_long")
		}
		list := []any{object{"type": "markdown"}}
		if err := s.refuseBlocks(list, placeOf(c.method, ""), "/blocks", "invalid_blocks"); err != nil {
			return m, err
		}
		m.text, m.hasText = markdown, true
		m.blocks, m.hasBlocks = []any{object{"type": "markdown", "block_id": newBlockID(), "text": markdown}}, true
	} else if c.has("blocks") {
		blocks, err := s.blocksArg(c, surfaceMessage)
		if err != nil {
			return m, err
		}
		m.blocks, m.hasBlocks = blocks, blocks != nil
	}
	attachments, err := c.list("attachments")
	if err != nil {
		return m, fail("invalid_attachments")
	}
	if len(attachments) > 100 {
		return m, fail("too_many_attachments")
	}
	for i, a := range attachments {
		o, ok := a.(object)
		if !ok {
			return m, fail("invalid_attachments")
		}
		o = clone(o)
		o["id"] = i + 1
		if o["fallback"] == nil {
			o["fallback"] = "[no preview available]"
		}
		if raw, ok := o["blocks"].([]any); ok {
			checked, problems := checkBlocks(raw, surfaceMessage, "/attachments/"+itoa(i)+"/blocks", s.fileKnown)
			if len(problems) > 0 {
				return m, failBecause("invalid_attachments", problems...)
			}
			o["blocks"] = checked
		}
		attachments[i] = o
	}
	m.attachments, m.hasAttached = attachments, attachments != nil
	if m.metadata, err = c.value("metadata"); err != nil {
		return m, fail("invalid_metadata_format")
	}
	if m.metadata != nil {
		o, ok := m.metadata.(object)
		if !ok || len(o) > 0 && (text(o["event_type"]) == "" || o["event_payload"] == nil) {
			return m, fail("invalid_metadata_schema")
		}
		if len(mustJSON(o)) > maxMetadata {
			return m, fail("metadata_too_large")
		}
	}
	return m, nil
}

// blocksArg reads and checks the argument "blocks".
func (s *Server) blocksArg(c *call, surface surface) ([]any, error) {
	raw, err := c.list("blocks")
	if err != nil {
		return nil, fail("invalid_blocks_format")
	}
	if raw == nil {
		return nil, nil
	}
	if err := s.refuseBlocks(raw, placeOf(c.method, ""), "/blocks", "invalid_blocks"); err != nil {
		return nil, err
	}
	checked, problems := checkBlocks(raw, surface, "/blocks", s.fileKnown)
	if len(problems) > 0 {
		return nil, failBecause("invalid_blocks", problems...)
	}
	if blocksTooLong(checked) {
		return nil, fail("msg_blocks_too_long")
	}
	return checked, nil
}

// customised reads username and icon, which take a scope of their own.
func (s *Server) customised(c *call, m *message) error {
	if !c.has("username") && !c.has("icon_emoji") && !c.has("icon_url") {
		return nil
	}
	if err := s.scoped("chat:write.customize"); err != nil {
		return err
	}
	m.Username, m.IconEmoji, m.IconURL = c.str("username"), c.str("icon_emoji"), c.str("icon_url")
	return nil
}

// threadOf finds the root of the thread that an argument names. A reply's own
// timestamp stands for its thread.
func (s *Server) threadOf(c *channel, ts string) (string, error) {
	if ts == "" {
		return "", nil
	}
	if !validTS(ts) {
		return "", fail("invalid_thread_ts")
	}
	m := s.ws.message(c.ID, ts)
	if m == nil {
		return "", fail("thread_not_found")
	}
	return m.root(), nil
}

// validTS says whether a text has the shape of a timestamp.
func validTS(ts string) bool {
	seconds, micro, ok := strings.Cut(ts, ".")
	onlyDigits := func(s string) bool { return s != "" && strings.Trim(s, digits) == "" }
	return ok && len(micro) == 6 && len(seconds) >= 10 && onlyDigits(seconds) && onlyDigits(micro)
}

// saying makes the message that a call to post asks for.
func (s *Server) saying(c *call, ch *channel) (*message, error) {
	body, err := s.content(c)
	if err != nil {
		return nil, err
	}
	if body.empty() {
		return nil, fail("no_text")
	}
	thread, err := s.threadOf(ch, c.str("thread_ts"))
	if err != nil {
		return nil, err
	}
	m := &message{
		Channel: ch.ID, User: BotUser, Bot: true, Text: cutRunes(body.text, maxPostText), ThreadTS: thread,
		Blocks: body.blocks, Attachments: body.attachments, Metadata: body.metadata,
	}
	if err := s.customised(c, m); err != nil {
		return nil, err
	}
	m.TS = s.ws.nextTS(now())
	return m, nil
}

func (s *Server) chatPostMessage(c *call) (object, error) {
	ch, err := s.postable(c.str("channel"))
	if err != nil {
		return nil, err
	}
	m, err := s.saying(c, ch)
	if err != nil {
		return nil, err
	}
	m.Broadcast = m.ThreadTS != "" && c.flag("reply_broadcast")
	s.post(m)
	return object{"channel": ch.ID, "ts": m.TS, "message": s.wire(m)}, nil
}

// post makes a message appear: to the people and to the app.
func (s *Server) post(m *message) {
	s.ws.add(m)
	if m.Bot {
		s.clearStatus(m.Channel, m.root()) // an answer ends the status line
	}
	s.liveMessage(m)
	s.emitMessage(m)
	s.notify(m)
	s.touch()
}

// own finds a message of the app's for a call that changes it.
func (s *Server) own(c *call, notOwn string) (*channel, *message, error) {
	ch, err := s.conversation(c.str("channel"))
	if err != nil {
		return nil, nil, err
	}
	m := s.ws.message(ch.ID, c.str("ts"))
	if m == nil || m.Subtype == "tombstone" {
		return nil, nil, fail("message_not_found")
	}
	if !m.Bot {
		return nil, nil, fail(notOwn)
	}
	return ch, m, nil
}

func (s *Server) chatUpdate(c *call) (object, error) {
	if raw, err := c.list("blocks"); err == nil { // what a block may be is looked at before where it is to go
		if err := s.refuseBlocks(raw, placeOf(c.method, ""), "/blocks", "invalid_blocks"); err != nil {
			return nil, err
		}
	}
	ch, m, err := s.own(c, "cant_update_message")
	if err != nil {
		return nil, err
	}
	if m.Stream != nil && m.Stream.State == streamLive {
		return nil, fail("streaming_state_conflict")
	}
	body, err := s.content(c)
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(body.text) > maxUpdateText {
		return nil, fail("msg_too_long")
	}
	if strings.TrimSpace(body.text) == "" && !body.hasBlocks && !body.hasAttached {
		return nil, fail("no_text")
	}
	s.edit(m, BotUser, func() {
		if body.hasText || body.hasBlocks {
			m.Text = body.text
		}
		// Blocks and attachments that are not mentioned stay, unless they are
		// what Slack itself made of a stream.
		if body.hasBlocks || m.Stream != nil {
			if hasElements(m.Blocks) {
				m.former = m.Blocks
			}
			m.Blocks = body.blocks
		}
		if body.hasAttached {
			m.Attachments = body.attachments
		}
		if o, ok := body.metadata.(object); ok {
			m.Metadata = body.metadata
			if len(o) == 0 {
				m.Metadata = nil
			}
		}
	})
	return object{"channel": ch.ID, "ts": m.TS, "text": m.Text, "message": s.wire(m)}, nil
}

// edit changes a message and tells everybody.
func (s *Server) edit(m *message, by string, change func()) {
	before := s.wire(m)
	change()
	m.Edits++
	m.EditedBy, m.EditedTS = by, formatTS(now().Unix()*1e6)
	s.liveMessage(m)
	if m.EphemeralTo == "" {
		s.emitChanged(m, before)
	}
	s.touch()
}

func (s *Server) chatDelete(c *call) (object, error) {
	ch, m, err := s.own(c, "cant_delete_message")
	if err != nil {
		return nil, err
	}
	if m.Stream != nil && m.Stream.State == streamLive {
		return nil, fail("cant_delete_message")
	}
	ts := m.TS
	s.unpost(ch, m)
	return object{"channel": ch.ID, "ts": ts}, nil
}

// unpost makes a message disappear.
func (s *Server) unpost(ch *channel, m *message) {
	if m.Stream != nil {
		m.Stream.stopTimer()
	}
	before, ts, thread := s.wire(m), m.TS, m.ThreadTS
	s.liveDeleted(m)
	s.ws.remove(m)
	for _, changed := range []string{ts, thread} { // a tombstone, or the root of one reply less
		if x := s.ws.message(ch.ID, changed); x != nil {
			s.liveMessage(x)
		}
	}
	s.emitDeleted(ch, ts, before)
	s.touch()
}

func (s *Server) chatPostEphemeral(c *call) (object, error) {
	ch, err := s.postable(c.str("channel"))
	if err != nil {
		return nil, err
	}
	person := c.str("user")
	if u := s.ws.user(person); u == nil || u.Bot || !ch.has(person) {
		return nil, fail("user_not_in_channel")
	}
	m, err := s.saying(c, ch)
	if err != nil {
		return nil, err
	}
	m.EphemeralTo = person
	s.whisper(m)
	return object{"message_ts": m.TS}, nil
}

// maxEphemerals is how many ephemeral messages are kept; clients forget them
// even sooner.
const maxEphemerals = 1000

// whisper shows a message to one person only.
func (s *Server) whisper(m *message) {
	if len(s.ephemerals) >= maxEphemerals {
		s.ephemerals = append([]*message{}, s.ephemerals[1:]...)
	}
	s.ephemerals = append(s.ephemerals, m)
	s.liveMessage(m)
}

// ephemeral finds an ephemeral message.
func (s *Server) ephemeral(channel, ts string) *message {
	for _, m := range s.ephemerals {
		if m.Channel == channel && m.TS == ts {
			return m
		}
	}
	return nil
}

func (s *Server) chatGetPermalink(c *call) (object, error) {
	ch, err := s.conversation(c.str("channel"))
	if err != nil {
		return nil, err
	}
	m := s.ws.message(ch.ID, c.str("message_ts"))
	if m == nil {
		return nil, fail("message_not_found")
	}
	return object{"channel": ch.ID, "permalink": s.permalink(m)}, nil
}

// cutRunes shortens a text to so many characters.
func cutRunes(t string, most int) string {
	n := 0
	for i := range t {
		if n == most {
			return t[:i]
		}
		n++
	}
	return t
}
