package slack

import (
	"time"
	"unicode/utf8"
)

// statusLife is how long a status line stays without a message.
const statusLife = 2 * time.Minute

// threadStatus is the line under a thread that says what the app is doing.
type threadStatus struct {
	Text    string
	Loading []string
	timer   *time.Timer
}

func (t *threadStatus) stopTimer() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// agentSession is a thread as agents.sessions.* knows it.
type agentSession struct {
	Status string
	Title  string
	By     string
}

func (a *agentSession) shown() object {
	return object{"status": a.Status, "title": a.Title, "initiator": a.By}
}

func statusKey(channel, thread string) string { return channel + "/" + thread }

// agentThread finds the thread that an agent method names.
func (s *Server) agentThread(c *call) (*channel, string, error) {
	ch, err := s.conversation(c.str("channel_id"))
	if err != nil {
		return nil, "", err
	}
	if !ch.has(BotUser) {
		return nil, "", fail("not_in_channel")
	}
	if c.str("thread_ts") == "" {
		return nil, "", fail("invalid_thread_ts")
	}
	thread, err := s.threadOf(ch, c.str("thread_ts"))
	return ch, thread, err
}

func (s *Server) threadsSetStatus(c *call) (object, error) {
	ch, thread, err := s.agentThread(c)
	if err != nil {
		return nil, err
	}
	if !c.has("status") {
		return nil, failBecause("invalid_arguments", "missing required field: status [json-pointer:/status]")
	}
	loading := c.strs("loading_messages")
	if len(loading) > 10 {
		return nil, failBecause("invalid_arguments", "no more than 10 items allowed [json-pointer:/loading_messages]")
	}
	line := c.str("status")
	if line == "" {
		s.clearStatus(ch.ID, thread)
		return nil, nil
	}
	key := statusKey(ch.ID, thread)
	if old := s.statuses[key]; old != nil {
		old.stopTimer()
	}
	st := &threadStatus{Text: cutRunes(line, 255), Loading: loading}
	st.timer = s.later(statusLife, func() {
		if s.statuses[key] == st {
			s.clearStatus(ch.ID, thread)
		}
	})
	s.statuses[key] = st
	s.liveStatus(ch.ID, thread, st.Text, loading)
	return nil, nil
}

// clearStatus ends a status line, if there is one.
func (s *Server) clearStatus(channel, thread string) {
	key := statusKey(channel, thread)
	if st := s.statuses[key]; st != nil {
		st.stopTimer()
		delete(s.statuses, key)
		s.liveStatus(channel, thread, "", nil)
	}
}

func (s *Server) liveStatus(channel, thread, line string, loading []string) {
	body := object{"channel": channel, "thread_ts": thread, "status": line}
	if len(loading) > 0 {
		body["loading_messages"] = loading
	}
	s.live.publish(liveEvent{kind: "status", channel: channel, ts: thread, body: body})
}

func (s *Server) threadsSetTitle(c *call) (object, error) {
	ch, thread, err := s.agentThread(c)
	if err != nil {
		return nil, err
	}
	if c.str("title") == "" {
		return nil, failBecause("invalid_arguments", "missing required field: title [json-pointer:/title]")
	}
	s.session(ch.ID, thread).Title = cutRunes(c.str("title"), 255)
	s.liveSession(ch.ID, thread)
	return nil, nil
}

func (s *Server) threadsSetPrompts(c *call) (object, error) {
	ch, err := s.conversation(c.str("channel_id"))
	if err != nil {
		return nil, err
	}
	prompts, err := c.list("prompts")
	if err != nil || len(prompts) == 0 {
		return nil, failBecause("invalid_arguments", "must provide an array of prompts [json-pointer:/prompts]")
	}
	if len(prompts) > 4 {
		return nil, failBecause("invalid_arguments", "no more than 4 items allowed [json-pointer:/prompts]")
	}
	for i, p := range prompts {
		o, ok := p.(object)
		if !ok || text(o["title"]) == "" || text(o["message"]) == "" {
			return nil, failBecause("invalid_arguments", "title and message are required [json-pointer:/prompts/"+itoa(i)+"]")
		}
	}
	s.live.publish(liveEvent{kind: "prompts", channel: ch.ID, ts: c.str("thread_ts"), body: object{
		"channel": ch.ID, "thread_ts": c.str("thread_ts"), "title": c.str("title"), "prompts": prompts,
	}})
	return nil, nil
}

// session finds or makes the session of a thread.
func (s *Server) session(channel, thread string) *agentSession {
	key := statusKey(channel, thread)
	if s.sessions[key] == nil {
		s.sessions[key] = &agentSession{Status: "active"}
	}
	return s.sessions[key]
}

func (s *Server) liveSession(channel, thread string) {
	s.live.publish(liveEvent{kind: "session", channel: channel, ts: thread, body: object{
		"channel": channel, "thread_ts": thread, "session": s.session(channel, thread).shown(),
	}})
}

func (s *Server) sessionsSetStatus(c *call) (object, error) {
	ch, thread, err := s.agentThread(c)
	if err != nil {
		return nil, err
	}
	status := c.str("status")
	switch status {
	case "active", "processing", "suspended", "closed":
	default:
		return nil, failBecause("invalid_arguments", "must be one of active, processing, suspended, closed [json-pointer:/status]")
	}
	if utf8.RuneCountInString(c.str("title")) > 200 {
		return nil, failBecause("invalid_arguments", "must be less than 201 characters [json-pointer:/title]")
	}
	_, known := s.sessions[statusKey(ch.ID, thread)]
	sess := s.session(ch.ID, thread)
	if !known {
		if by := c.str("initiator_user_id"); by != "" && !ch.has(by) {
			delete(s.sessions, statusKey(ch.ID, thread))
			return nil, fail("user_not_in_channel")
		}
		sess.Title, sess.By = c.str("title"), c.str("initiator_user_id")
	}
	sess.Status = status
	s.liveSession(ch.ID, thread)
	return object{"status": status, "agent_status": status, "title": sess.Title}, nil
}

func (s *Server) sessionsRename(c *call) (object, error) {
	ch, thread, err := s.agentThread(c)
	if err != nil {
		return nil, err
	}
	title := c.str("title")
	if title == "" || utf8.RuneCountInString(title) > 200 {
		return nil, failBecause("invalid_arguments", "must be between 1 and 200 characters [json-pointer:/title]")
	}
	if s.sessions[statusKey(ch.ID, thread)] == nil {
		return nil, fail("session_not_found")
	}
	s.session(ch.ID, thread).Title = title
	s.liveSession(ch.ID, thread)
	return object{"title": title}, nil
}
