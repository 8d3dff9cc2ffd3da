package slack

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// wireChannel renders a conversation as conversations.info does.
func (s *Server) wireChannel(c *channel) object {
	if c.Kind == kindIM {
		return object{
			"id": c.ID, "created": c.Created, "is_archived": false, "is_im": true, "is_org_shared": false,
			"context_team_id": TeamID, "updated": c.Created * 1000, "user": c.peer(), "is_user_deleted": false,
			"is_open": true, "priority": 0, "last_read": "0000000000.000000",
		}
	}
	private := c.Kind == kindPrivate
	o := object{
		"id": c.ID, "name": c.Name, "name_normalized": c.Name, "created": c.Created, "creator": UserAda,
		"updated": c.Created * 1000, "context_team_id": TeamID, "is_channel": !private, "is_group": private,
		"is_im": false, "is_mpim": false, "is_private": private, "is_archived": c.Archived,
		"is_general": c.ID == ChannelGeneral, "is_member": c.has(BotUser), "unlinked": 0,
		"is_shared": c.ExtShared, "is_ext_shared": c.ExtShared, "is_org_shared": false,
		"is_pending_ext_shared": false, "pending_shared": []any{}, "parent_conversation": nil,
		"shared_team_ids": []any{TeamID}, "previous_names": []any{},
		"topic":   object{"value": c.Topic, "creator": UserAda, "last_set": c.Created},
		"purpose": object{"value": c.Purpose, "creator": UserAda, "last_set": c.Created},
	}
	if c.ExtShared {
		o["shared_team_ids"] = []any{TeamID, OtherTeamID}
		o["connected_team_ids"] = []any{OtherTeamID}
		o["conversation_host_id"] = TeamID
	}
	return o
}

// readScopes are the scopes for looking at conversations, by kind.
var readScopes = map[string]string{kindPublic: "channels:read", kindPrivate: "groups:read", kindIM: "im:read"}

// readable finds a conversation that the app may look at, with the scope for its kind.
func (s *Server) readable(c *call) (*channel, error) {
	ch, err := s.conversationByID(c.str("channel"))
	if err != nil {
		return nil, err
	}
	return ch, s.scoped(readScopes[ch.Kind])
}

// conversationByID is for the methods that take no names and no people.
func (s *Server) conversationByID(id string) (*channel, error) {
	if s.ws.channel(id) == nil {
		return nil, fail("channel_not_found")
	}
	return s.conversation(id)
}

// page cuts a list for a cursor and a limit. Cursors are opaque to apps.
func page[T any](c *call, list []T, missing, most int) ([]T, object, error) {
	limit, err := c.number("limit", missing, most)
	if err != nil {
		return nil, nil, err
	}
	from := 0
	if cur := c.str("cursor"); cur != "" {
		raw, err := base64.StdEncoding.DecodeString(cur)
		at, ok := strings.CutPrefix(string(raw), "next:")
		if err != nil || !ok {
			return nil, nil, fail("invalid_cursor")
		}
		if from, err = strconv.Atoi(at); err != nil || from < 0 || from > len(list) {
			return nil, nil, fail("invalid_cursor")
		}
	}
	next := ""
	to := min(from+limit, len(list))
	if to < len(list) {
		next = base64.StdEncoding.EncodeToString([]byte("next:" + strconv.Itoa(to)))
	}
	return list[from:to], object{"next_cursor": next}, nil
}

// kindsArg reads the argument "types" into kinds.
func kindsArg(c *call) ([]string, error) {
	names := c.strs("types")
	if len(names) == 0 {
		names = []string{"public_channel"}
	}
	var kinds []string
	for _, n := range names {
		k, ok := map[string]string{"public_channel": kindPublic, "private_channel": kindPrivate, "im": kindIM, "mpim": "mpim"}[n]
		if !ok {
			return nil, fail("invalid_types")
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

// listChannels answers conversations.list and users.conversations.
func (s *Server) listChannels(c *call, keep func(*channel) bool) (object, error) {
	kinds, err := kindsArg(c)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		scope := readScopes[k]
		if scope == "" {
			scope = "mpim:read"
		}
		if err := s.scoped(scope); err != nil {
			return nil, err
		}
	}
	var list []*channel
	for _, ch := range s.ws.Channels {
		visible := ch.Kind == kindPublic || ch.has(BotUser)
		if visible && slices.Contains(kinds, ch.Kind) && (!ch.Archived || !c.flag("exclude_archived")) && keep(ch) {
			list = append(list, ch)
		}
	}
	part, meta, err := page(c, list, 100, 1000)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, ch := range part {
		o := s.wireChannel(ch)
		if ch.Kind != kindIM {
			o["num_members"] = len(ch.Members)
		}
		out = append(out, o)
	}
	return object{"channels": out, "response_metadata": meta}, nil
}

func (s *Server) conversationsList(c *call) (object, error) {
	return s.listChannels(c, func(*channel) bool { return true })
}

func (s *Server) usersConversations(c *call) (object, error) {
	who := c.str("user")
	if who == "" {
		who = BotUser
	}
	if s.ws.user(who) == nil {
		return nil, fail("user_not_found")
	}
	return s.listChannels(c, func(ch *channel) bool { return ch.has(who) })
}

func (s *Server) conversationsInfo(c *call) (object, error) {
	ch, err := s.readable(c)
	if err != nil {
		return nil, err
	}
	o := s.wireChannel(ch)
	if c.flag("include_num_members") && ch.Kind != kindIM {
		o["num_members"] = len(ch.Members)
	}
	return object{"channel": o}, nil
}

func (s *Server) conversationsMembers(c *call) (object, error) {
	ch, err := s.readable(c)
	if err != nil {
		return nil, err
	}
	part, meta, err := page(c, ch.Members, 100, 1000)
	if err != nil {
		return nil, err
	}
	return object{"members": slices.Clone(part), "response_metadata": meta}, nil
}

// heard finds a conversation whose messages the app may read.
func (s *Server) heard(c *call) (*channel, error) {
	ch, err := s.conversationByID(c.str("channel"))
	if err != nil {
		return nil, err
	}
	scope := map[string]string{kindPublic: "channels:history", kindPrivate: "groups:history", kindIM: "im:history"}[ch.Kind]
	if err := s.scoped(scope); err != nil {
		return nil, err
	}
	if !ch.has(BotUser) {
		return nil, fail("not_in_channel")
	}
	return ch, nil
}

// between keeps the messages from oldest to latest.
func between(c *call, list []*message) []*message {
	oldest, latest, inclusive := c.str("oldest"), c.str("latest"), c.flag("inclusive")
	keep := func(m *message) bool {
		if oldest != "" && oldest != "0" {
			if d := compareTS(m.TS, padTS(oldest)); d < 0 || (d == 0 && !inclusive) {
				return false
			}
		}
		if latest != "" && latest != "now" {
			if d := compareTS(m.TS, padTS(latest)); d > 0 || (d == 0 && !inclusive) {
				return false
			}
		}
		return true
	}
	return slices.DeleteFunc(slices.Clone(list), func(m *message) bool { return !keep(m) })
}

// padTS completes a timestamp that was given in whole seconds.
func padTS(ts string) string {
	seconds, micro, _ := strings.Cut(ts, ".")
	return seconds + "." + (micro + "000000")[:6]
}

func (s *Server) conversationsHistory(c *call) (object, error) {
	ch, err := s.heard(c)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(s.ws.Messages[ch.ID]), func(m *message) bool { return !m.topLevel() })
	list = between(c, list)
	slices.Reverse(list)
	part, meta, err := page(c, list, 100, 1000)
	if err != nil {
		return nil, err
	}
	return s.messagesAnswer(c, part, meta, object{"pin_count": len(ch.Pins)}), nil
}

func (s *Server) conversationsReplies(c *call) (object, error) {
	ch, err := s.heard(c)
	if err != nil {
		return nil, err
	}
	m := s.ws.message(ch.ID, c.str("ts"))
	if m == nil {
		return nil, fail("thread_not_found")
	}
	if m.ThreadTS != "" { // a reply's ts gives just that reply
		return s.messagesAnswer(c, []*message{m}, object{"next_cursor": ""}, object{}), nil
	}
	part, meta, err := page(c, between(c, s.ws.replies(ch.ID, m.TS)), 1000, 1000)
	if err != nil {
		return nil, err
	}
	return s.messagesAnswer(c, append([]*message{m}, part...), meta, object{}), nil
}

func (s *Server) messagesAnswer(c *call, list []*message, meta, o object) object {
	out := []any{}
	for _, m := range list {
		w := s.wire(m)
		if !c.flag("include_all_metadata") {
			delete(w, "metadata")
		}
		out = append(out, w)
	}
	o["messages"] = out
	o["has_more"] = meta["next_cursor"] != ""
	if meta["next_cursor"] != "" {
		o["response_metadata"] = meta
	}
	return o
}

func (s *Server) conversationsJoin(c *call) (object, error) {
	ch, err := s.conversationByID(c.str("channel"))
	switch {
	case err != nil:
		return nil, err
	case ch.Kind != kindPublic:
		return nil, fail("method_not_supported_for_channel_type")
	case ch.Archived:
		return nil, fail("is_archived")
	case ch.has(BotUser):
		return object{"channel": s.wireChannel(ch), "warning": "already_in_channel", "response_metadata": object{"warnings": []string{"already_in_channel"}}}, nil
	}
	s.join(ch, BotUser, "")
	return object{"channel": s.wireChannel(ch)}, nil
}

// join makes somebody a member.
func (s *Server) join(ch *channel, who, inviter string) {
	ch.Members = append(ch.Members, who)
	s.emitJoined(ch, who, inviter)
	s.liveChannels()
	s.touch()
}

// part ends a membership.
func (s *Server) part(ch *channel, who string) {
	ch.Members = slices.DeleteFunc(ch.Members, func(m string) bool { return m == who })
	s.liveChannels()
	s.touch()
}

func (s *Server) conversationsLeave(c *call) (object, error) {
	ch, err := s.conversationByID(c.str("channel"))
	switch {
	case err != nil:
		return nil, err
	case ch.ID == ChannelGeneral:
		return nil, fail("cant_leave_general")
	case ch.Kind == kindIM:
		return nil, fail("method_not_supported_for_channel_type")
	case !ch.has(BotUser):
		return object{"not_in_channel": true}, nil
	}
	s.part(ch, BotUser)
	return nil, nil
}

func (s *Server) conversationsOpen(c *call) (object, error) {
	if err := s.scoped("im:write"); err != nil { // there are no other conversations to open
		return nil, err
	}
	if id := c.str("channel"); id != "" {
		ch, err := s.conversationByID(id)
		if err != nil {
			return nil, err
		}
		return object{"no_op": true, "already_open": true, "channel": s.wireChannel(ch)}, nil
	}
	users := c.strs("users")
	if len(users) != 1 {
		return nil, fail("users_list_not_supplied")
	}
	u := s.ws.user(users[0])
	switch {
	case u == nil:
		return nil, fail("user_not_found")
	case u.Bot:
		return nil, fail("cannot_dm_bot")
	case u.Deleted:
		return nil, fail("user_disabled")
	}
	ch := s.ws.openIM(u.ID, now())
	if c.flag("return_im") {
		return object{"channel": s.wireChannel(ch)}, nil
	}
	return object{"channel": object{"id": ch.ID}}, nil
}

// liveChannels tells the page to look at the list of channels again.
func (s *Server) liveChannels() {
	s.live.publish(liveEvent{kind: "channels", body: object{}})
}
