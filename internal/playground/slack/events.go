package slack

import "strings"

// emit sends one event to the app. The caller holds the workspace's mutex.
func (s *Server) emit(event object, c *channel) {
	at := now()
	if event["event_ts"] == nil {
		event["event_ts"] = formatTS(at.UnixMicro())
	}
	kind, _ := event["type"].(string)
	ref := object{"et": kind, "tid": TeamID, "aid": AppID}
	payload := object{
		"token": "playground-verification-token", "team_id": TeamID,
		"context_team_id": TeamID, "context_enterprise_id": nil,
		"api_app_id": AppID, "event": event, "type": "event_callback",
		"event_id": newID("Ev"), "event_time": at.Unix(),
		"authorizations": []any{object{
			"enterprise_id": nil, "team_id": TeamID, "user_id": BotUser,
			"is_bot": true, "is_enterprise_install": false,
		}},
		"is_ext_shared_channel": c != nil && c.ExtShared,
	}
	if c != nil {
		ref["cid"] = c.ID
	}
	payload["event_context"] = "4-" + encodeContext(ref)
	s.sockets.event(payload)
}

// emitMessage tells the app of a new message: once as a message and, when a
// person mentions the app outside a direct message, once more as a mention.
func (s *Server) emitMessage(m *message) {
	c := s.ws.channel(m.Channel)
	if c == nil || !c.has(BotUser) || m.EphemeralTo != "" {
		return
	}
	event := s.messageEvent(m, c)
	if s.hears(c.Kind) {
		s.emit(event, c)
	}
	if !m.Bot && c.Kind != kindIM && strings.Contains(m.Text, "<@"+BotUser+">") && s.scoped("app_mentions:read") == nil {
		mention := s.messageEvent(m, c)
		mention["type"] = "app_mention"
		delete(mention, "channel_type")
		delete(mention, "subtype")
		s.emit(mention, c)
	}
}

// hears says whether the app has the scope for messages of a kind of conversation.
func (s *Server) hears(kind string) bool {
	scope := map[string]string{kindPublic: "channels:history", kindPrivate: "groups:history", kindIM: "im:history"}[kind]
	return s.scoped(scope) == nil
}

// messageEvent is a message as an event carries it.
func (s *Server) messageEvent(m *message, c *channel) object {
	o := s.wire(m)
	for _, k := range []string{"reply_count", "reply_users_count", "reply_users", "latest_reply", "is_locked", "subscribed", "reactions"} {
		delete(o, k)
	}
	if m.ThreadTS == "" {
		delete(o, "thread_ts")
	}
	o["channel"] = c.ID
	o["channel_type"] = c.Kind
	o["event_ts"] = m.TS
	if team := s.teamOf(m.User); team != TeamID {
		o["user_team"] = team
		o["source_team"] = team
	}
	return o
}

// emitChanged tells the app that a message was edited.
func (s *Server) emitChanged(m *message, previous object) {
	c := s.ws.channel(m.Channel)
	if c == nil || !c.has(BotUser) || !s.hears(c.Kind) {
		return
	}
	ts := s.ws.nextTS(now())
	s.emit(object{
		"type": "message", "subtype": "message_changed", "message": s.wire(m), "previous_message": previous,
		"channel": m.Channel, "channel_type": c.Kind, "hidden": true, "ts": ts, "event_ts": ts,
	}, c)
}

// emitDeleted tells the app that a message is gone.
func (s *Server) emitDeleted(c *channel, deletedTS string, previous object) {
	if !c.has(BotUser) || !s.hears(c.Kind) {
		return
	}
	ts := s.ws.nextTS(now())
	s.emit(object{
		"type": "message", "subtype": "message_deleted", "deleted_ts": deletedTS, "previous_message": previous,
		"channel": c.ID, "channel_type": c.Kind, "hidden": true, "ts": ts, "event_ts": ts,
	}, c)
}

// emitReaction tells the app of a reaction, if it may know.
func (s *Server) emitReaction(kind, person, name string, m *message) {
	c := s.ws.channel(m.Channel)
	if c == nil || !c.has(BotUser) || s.scoped("reactions:read") != nil {
		return
	}
	s.emit(object{
		"type": kind, "user": person, "reaction": name, "item_user": m.User,
		"item": object{"type": "message", "channel": m.Channel, "ts": m.TS},
	}, c)
}

// emitJoined tells the app that somebody, or the app itself, joined a channel.
func (s *Server) emitJoined(c *channel, person, inviter string) {
	if !c.has(BotUser) {
		return
	}
	e := object{
		"type": "member_joined_channel", "user": person, "channel": c.ID,
		"channel_type": map[string]string{kindPublic: "C", kindPrivate: "G"}[c.Kind], "team": s.teamOf(person),
	}
	if inviter != "" {
		e["inviter"] = inviter
	}
	s.emit(e, c)
}

// emitFileShared tells the app of a file in a conversation.
func (s *Server) emitFileShared(f *file, c *channel) {
	if !c.has(BotUser) || s.scoped("files:read") != nil {
		return
	}
	s.emit(object{
		"type": "file_shared", "file_id": f.ID, "user_id": f.User, "file": object{"id": f.ID}, "channel_id": c.ID,
	}, c)
}

// eventLost tells the page that the app never took an event.
func (s *Server) eventLost(payload object) {
	event, _ := payload["event"].(object)
	person, _ := event["user"].(string)
	s.liveWarning(person, "The app did not take an event ("+text(event["type"])+"); Slack has given up sending it.")
}
