package slack

import (
	"slices"
	"strings"
)

// message is one message of a conversation.
type message struct {
	TS          string     `json:"ts"`
	Channel     string     `json:"channel"`
	User        string     `json:"user"`
	Bot         bool       `json:"bot,omitempty"`
	Username    string     `json:"username,omitempty"`
	IconEmoji   string     `json:"icon_emoji,omitempty"`
	IconURL     string     `json:"icon_url,omitempty"`
	Text        string     `json:"text"`
	Blocks      []any      `json:"blocks,omitempty"`
	Attachments []any      `json:"attachments,omitempty"`
	ThreadTS    string     `json:"thread_ts,omitempty"` // the root's, for a reply
	Broadcast   bool       `json:"broadcast,omitempty"` // a reply that the channel shows too
	Subtype     string     `json:"subtype,omitempty"`
	Reactions   []reaction `json:"reactions,omitempty"`
	EditedBy    string     `json:"edited_by,omitempty"`
	EditedTS    string     `json:"edited_ts,omitempty"`
	Edits       int        `json:"edits,omitempty"`
	Stream      *stream    `json:"stream,omitempty"`
	Files       []string   `json:"files,omitempty"`
	Metadata    any        `json:"metadata,omitempty"`
	ClientMsgID string     `json:"client_msg_id,omitempty"`
	EphemeralTo string     `json:"ephemeral_to,omitempty"`

	// former are the blocks before the last edit that had anything to click: what
	// a window still shows that has not heard of the edit.
	former []any
}

// reaction is one emoji under a message and who gave it, in order.
type reaction struct {
	Name  string   `json:"name"`
	Users []string `json:"users"`
}

// root is the timestamp of the thread that a message belongs to.
func (m *message) root() string {
	if m.ThreadTS != "" {
		return m.ThreadTS
	}
	return m.TS
}

// topLevel says whether the channel itself shows the message.
func (m *message) topLevel() bool { return m.ThreadTS == "" || m.Broadcast }

// add appends a new message to its conversation.
func (w *workspace) add(m *message) {
	w.Messages[m.Channel] = append(w.Messages[m.Channel], m)
	w.indexOne(m)
}

// remove takes a message away. A root with replies leaves a tombstone.
func (w *workspace) remove(m *message) {
	if m.ThreadTS == "" && len(w.replies(m.Channel, m.TS)) > 0 {
		*m = message{
			TS: m.TS, Channel: m.Channel, User: "USLACKBOT", Subtype: "tombstone",
			Text: "This message was deleted.",
		}
		return
	}
	gone := func(x *message) bool { return x == m }
	w.Messages[m.Channel] = slices.DeleteFunc(w.Messages[m.Channel], gone)
	if k := (threadKey{m.Channel, m.ThreadTS}); m.ThreadTS != "" {
		w.threads[k] = slices.DeleteFunc(w.threads[k], gone)
	}
}

// wire renders a message as the Web API and events do.
func (s *Server) wire(m *message) object {
	o := object{"type": "message", "user": m.User, "ts": m.TS, "text": m.Text, "team": s.teamOf(m.User)}
	if m.Subtype != "" {
		o["subtype"] = m.Subtype
	}
	if m.ClientMsgID != "" {
		o["client_msg_id"] = m.ClientMsgID
	}
	if m.Bot {
		o["bot_id"] = BotID
		o["app_id"] = AppID
		o["bot_profile"] = s.botProfile()
	}
	if m.Username != "" {
		o["username"] = m.Username
	}
	if m.IconEmoji != "" || m.IconURL != "" {
		icons := object{}
		if m.IconEmoji != "" {
			icons["emoji"] = m.IconEmoji
		} else {
			icons["image_48"] = m.IconURL
		}
		o["icons"] = icons
	}
	if m.Blocks != nil {
		o["blocks"] = m.Blocks
	}
	if m.Attachments != nil {
		o["attachments"] = m.Attachments
	}
	if m.EditedTS != "" {
		o["edited"] = object{"user": m.EditedBy, "ts": m.EditedTS}
	}
	if m.Metadata != nil {
		o["metadata"] = m.Metadata
	}
	if len(m.Files) > 0 {
		o["files"] = s.wireFiles(m.Files)
		o["upload"] = false
		o["display_as_bot"] = false
	}
	if len(m.Reactions) > 0 {
		o["reactions"] = wireReactions(m.Reactions)
	}
	if m.Stream != nil && m.Stream.State == streamLive {
		o["streaming_state"] = "in_progress"
	} else if m.Stream != nil {
		o["streaming_state"] = "completed"
	}
	if m.ThreadTS != "" {
		o["thread_ts"] = m.ThreadTS
		if root := s.ws.message(m.Channel, m.ThreadTS); root != nil {
			o["parent_user_id"] = root.User
		}
		if m.Broadcast {
			o["subtype"] = "thread_broadcast"
		}
		return o
	}
	if replies := s.ws.replies(m.Channel, m.TS); len(replies) > 0 && m.EphemeralTo == "" {
		users := authors(replies)
		o["thread_ts"] = m.TS
		o["reply_count"] = len(replies)
		o["reply_users_count"] = len(users)
		o["reply_users"] = users[:min(len(users), 5)]
		o["latest_reply"] = replies[len(replies)-1].TS
		o["is_locked"] = false
		o["subscribed"] = slices.Contains(users, BotUser) || m.User == BotUser
	}
	return o
}

// authors are those who wrote messages, each once, in order.
func authors(list []*message) []string {
	var users []string
	for _, m := range list {
		if !slices.Contains(users, m.User) {
			users = append(users, m.User)
		}
	}
	return users
}

func wireReactions(list []reaction) []any {
	out := make([]any, 0, len(list))
	for _, r := range list {
		out = append(out, object{"name": r.Name, "users": slices.Clone(r.Users), "count": len(r.Users)})
	}
	return out
}

func (s *Server) teamOf(id string) string {
	if u := s.ws.user(id); u != nil {
		return u.TeamID
	}
	return TeamID
}

func (s *Server) botProfile() object {
	bot := s.ws.user(BotUser)
	icon := s.avatarURL(BotUser)
	return object{
		"id": BotID, "app_id": AppID, "user_id": BotUser, "name": bot.Name, "deleted": false,
		"updated": 1732000000, "team_id": TeamID,
		"icons": object{"image_36": icon, "image_48": icon, "image_72": icon},
	}
}

// shown renders a message for the control API.
func (s *Server) shown(m *message) object {
	o := object{
		"ts": m.TS, "channel": m.Channel, "user": m.User, "text": m.Text,
		"blocks": nonNil(m.Blocks), "reactions": wireReactions(m.Reactions), "edits": m.Edits,
		"files": s.wireFiles(m.Files), "reply_count": 0,
	}
	if m.Bot {
		o["bot_id"] = BotID
	}
	switch u := s.ws.user(m.User); {
	case m.Username != "":
		o["username"] = m.Username
	case u != nil:
		o["username"] = u.RealName
	default:
		o["username"] = m.User
	}
	if m.IconEmoji != "" {
		o["icon_emoji"] = m.IconEmoji
	}
	if m.IconURL != "" {
		o["icon_url"] = m.IconURL
	}
	if m.Attachments != nil {
		o["attachments"] = m.Attachments
	}
	if m.ThreadTS != "" {
		o["thread_ts"] = m.ThreadTS
	} else if m.EphemeralTo == "" {
		if replies := s.ws.replies(m.Channel, m.TS); len(replies) > 0 {
			o["thread_ts"] = m.TS
			o["reply_count"] = len(replies)
			o["latest_reply"] = replies[len(replies)-1].TS
			o["reply_users"] = authors(replies)
		}
	}
	if m.Broadcast {
		o["broadcast"] = true
	}
	if m.Subtype != "" {
		o["subtype"] = m.Subtype
	}
	if m.EditedTS != "" {
		o["edited"] = object{"user": m.EditedBy, "ts": m.EditedTS}
	}
	if m.Stream != nil {
		o["stream"] = object{"state": m.Stream.State, "task_display_mode": m.Stream.Display}
	}
	if m.EphemeralTo != "" {
		o["ephemeral_to"] = m.EphemeralTo
	}
	if m.Metadata != nil {
		o["metadata"] = m.Metadata
	}
	if st := s.statuses[statusKey(m.Channel, m.TS)]; st != nil && m.ThreadTS == "" {
		o["status"] = st.Text
	}
	if sess := s.sessions[statusKey(m.Channel, m.TS)]; sess != nil && m.ThreadTS == "" {
		o["session"] = sess.shown()
	}
	return o
}

// permalink is where the page shows a message.
func (s *Server) permalink(m *message) string {
	u := s.base() + "/archives/" + m.Channel + "/p" + strings.ReplaceAll(m.TS, ".", "")
	if m.ThreadTS != "" {
		u += "?thread_ts=" + m.ThreadTS + "&cid=" + m.Channel
	}
	return u
}
