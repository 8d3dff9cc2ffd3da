package slack

import (
	"slices"
	"strings"
)

// target finds the message that a reaction or a pin is about.
func (s *Server) target(c *call) (*channel, *message, error) {
	if c.str("channel") == "" || c.str("timestamp") == "" {
		return nil, nil, fail("no_item_specified")
	}
	ch, err := s.conversation(c.str("channel"))
	if err != nil {
		return nil, nil, err
	}
	if !validTS(c.str("timestamp")) {
		return nil, nil, fail("bad_timestamp")
	}
	m := s.ws.message(ch.ID, c.str("timestamp"))
	if m == nil || m.Subtype == "tombstone" {
		return nil, nil, fail("message_not_found")
	}
	if !ch.has(BotUser) {
		return nil, nil, fail("not_in_channel")
	}
	return ch, m, nil
}

func (s *Server) reactionsAdd(c *call) (object, error) {
	_, m, err := s.target(c)
	if err != nil {
		return nil, err
	}
	return nil, s.react(m, BotUser, c.str("name"))
}

func (s *Server) reactionsRemove(c *call) (object, error) {
	_, m, err := s.target(c)
	if err != nil {
		return nil, err
	}
	return nil, s.unreact(m, BotUser, c.str("name"))
}

func (s *Server) reactionsGet(c *call) (object, error) {
	ch, m, err := s.target(c)
	if err != nil {
		return nil, err
	}
	return object{"type": "message", "channel": ch.ID, "message": s.wire(m)}, nil
}

// react adds a person's reaction.
func (s *Server) react(m *message, person, name string) error {
	name = strings.Trim(name, ":")
	if !validEmoji(name) {
		return fail("invalid_name")
	}
	i := slices.IndexFunc(m.Reactions, func(r reaction) bool { return r.Name == name })
	switch {
	case i < 0 && len(m.Reactions) >= 23:
		return fail("too_many_emoji")
	case i < 0:
		m.Reactions = append(m.Reactions, reaction{Name: name, Users: []string{person}})
	case slices.Contains(m.Reactions[i].Users, person):
		return fail("already_reacted")
	default:
		m.Reactions[i].Users = append(m.Reactions[i].Users, person)
	}
	s.liveMessage(m)
	s.emitReaction("reaction_added", person, name, m)
	s.touch()
	return nil
}

// unreact takes a person's reaction away.
func (s *Server) unreact(m *message, person, name string) error {
	name = strings.Trim(name, ":")
	if !validEmoji(name) {
		return fail("invalid_name")
	}
	i := slices.IndexFunc(m.Reactions, func(r reaction) bool { return r.Name == name })
	if i < 0 || !slices.Contains(m.Reactions[i].Users, person) {
		return fail("no_reaction")
	}
	m.Reactions[i].Users = slices.DeleteFunc(m.Reactions[i].Users, func(u string) bool { return u == person })
	if len(m.Reactions[i].Users) == 0 {
		m.Reactions = slices.Delete(m.Reactions, i, i+1)
	}
	s.liveMessage(m)
	s.emitReaction("reaction_removed", person, name, m)
	s.touch()
	return nil
}

// validEmoji says whether a name has the shape of an emoji's. Which emoji a
// workspace has is not modelled.
func validEmoji(name string) bool {
	base, tone, _ := strings.Cut(name, "::")
	if tone != "" && !strings.HasPrefix(tone, "skin-tone-") {
		return false
	}
	return base != "" && len(base) <= 100 && strings.Trim(base, lowerAlnum+"_-+'") == ""
}

func (s *Server) pinsAdd(c *call) (object, error) {
	ch, m, err := s.target(c)
	if err != nil {
		return nil, err
	}
	if slices.Contains(ch.Pins, m.TS) {
		return nil, fail("already_pinned")
	}
	ch.Pins = append(ch.Pins, m.TS)
	return nil, nil
}

func (s *Server) pinsRemove(c *call) (object, error) {
	ch, m, err := s.target(c)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(ch.Pins, m.TS) {
		return nil, fail("no_pin")
	}
	ch.Pins = slices.DeleteFunc(ch.Pins, func(ts string) bool { return ts == m.TS })
	return nil, nil
}

func (s *Server) pinsList(c *call) (object, error) {
	ch, err := s.conversation(c.str("channel"))
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, ts := range ch.Pins {
		if m := s.ws.message(ch.ID, ts); m != nil {
			items = append(items, object{"type": "message", "channel": ch.ID, "message": s.wire(m), "created": ch.Created, "created_by": BotUser})
		}
	}
	return object{"items": items}, nil
}
