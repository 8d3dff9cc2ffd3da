package slack

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// errRefused is a control request that the workspace cannot do; its text is the answer.
type errRefused struct{ text string }

func (e errRefused) Error() string { return e.text }

func refuse(format string, args ...any) error { return errRefused{fmt.Sprintf(format, args...)} }

// person finds the person who acts.
func (s *Server) person(id string) (*user, error) {
	u := s.ws.user(id)
	switch {
	case id == "":
		return nil, refuse("user: who acts? Give a user id of GET /_control/state")
	case u == nil:
		return nil, refuse("user %q: nobody in this workspace has that id", id)
	case u.Bot:
		return nil, refuse("user %q is the app itself; people act here", id)
	}
	return u, nil
}

// place finds a conversation that a person can see.
func (s *Server) place(id string, u *user) (*channel, error) {
	c := s.ws.channel(id)
	if c == nil {
		c = s.ws.channelNamed(strings.TrimPrefix(id, "#"))
	}
	switch {
	case id == "":
		return nil, refuse("channel: which one? Give a channel id of GET /_control/state")
	case c == nil:
		return nil, refuse("channel %q: there is no such channel", id)
	case !c.has(u.ID):
		return nil, refuse("%s is not a member of %s", u.RealName, c.ID)
	}
	return c, nil
}

// acting finds who acts and where.
func (s *Server) acting(person, where string) (*user, *channel, error) {
	u, err := s.person(person)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.place(where, u)
	return u, c, err
}

// messageFor finds a message that a person can see, ephemeral ones included.
func (s *Server) messageFor(u *user, c *channel, ts string) (*message, error) {
	if m := s.ws.message(c.ID, ts); m != nil {
		return m, nil
	}
	if m := s.ephemeral(c.ID, ts); m != nil {
		if m.EphemeralTo != u.ID {
			return nil, refuse("message %s is visible to somebody else only", ts)
		}
		return m, nil
	}
	return nil, refuse("message %q: there is none in %s", ts, c.ID)
}

// click is an element that a person uses.
type click struct {
	User      string `json:"user"`
	Channel   string `json:"channel"`
	MessageTS string `json:"message_ts"`
	ViewID    string `json:"view_id"`
	ActionID  string `json:"action_id"`
	BlockID   string `json:"block_id"`
	Value     any    `json:"value"`
	Selected  any    `json:"selected"`
	Expect    string `json:"expect"` // view, ephemeral or message: wait for one
	// Stale clicks in a window that has not heard of the message's last edit.
	Stale bool `json:"stale"`
}

// found is an element in its block.
type found struct {
	block   string
	element object
}

// findElement finds the element that a click means: by its action id, and its
// block or its value when several share one.
func findElement(blocks []any, c click) (found, error) {
	var hits []found
	var known []string
	eachElement(blocks, func(block string, e object) {
		if !visibleTo(e, c.User) {
			return
		}
		known = append(known, text(e["action_id"]))
		if text(e["action_id"]) == c.ActionID && (c.BlockID == "" || c.BlockID == block) {
			hits = append(hits, found{block: block, element: e})
		}
	})
	switch {
	case c.ActionID == "":
		return found{}, refuse("action_id: which element? This one has: %s", strings.Join(known, ", "))
	case len(hits) == 0 && len(known) == 0:
		return found{}, refuse("there is nothing to click here, so no %q either", c.ActionID)
	case len(hits) == 0:
		return found{}, refuse("there is no element %q here; there are: %s", c.ActionID, strings.Join(known, ", "))
	}
	if c.Value != nil { // several buttons may share an action id
		for _, h := range hits {
			if text(h.element["value"]) == text(c.Value) {
				return h, nil
			}
		}
		if hits[0].element["type"] == "button" {
			return found{}, refuse("no button %q has the value %q", c.ActionID, text(c.Value))
		}
	}
	return hits[0], nil
}

func hasElements(blocks []any) bool {
	found := false
	eachElement(blocks, func(string, object) { found = true })
	return found
}

// visibleTo says whether an element is shown to a person: some name those who
// may see them.
func visibleTo(e object, person string) bool {
	only, ok := e["visible_to_user_ids"].([]any)
	return !ok || slices.Contains(only, any(person))
}

// act is what a click sends: the action as the payload's actions array has it.
func (s *Server) act(h *found, c click, state stateValues) (object, error) {
	e := h.element
	kind := text(e["type"])
	a := object{"type": kind, "action_id": e["action_id"], "block_id": h.block, "action_ts": formatTS(now().UnixMicro())}
	value := c.Selected
	if value == nil {
		value = c.Value
	}
	switch kind {
	case "button", "workflow_button", "icon_button":
		a["text"] = e["text"]
		if e["value"] != nil {
			a["value"] = e["value"]
		}
		if e["style"] != nil {
			a["style"] = e["style"]
		}
		if e["url"] != nil {
			a["url"] = e["url"]
		}
	case "overflow":
		if o, ok := value.(object); ok {
			value = o["value"]
		}
		o := optionWith(e, text(value))
		if o == nil {
			return nil, refuse("the menu %q has no option %q", c.ActionID, text(value))
		}
		a["selected_option"] = o
	case "feedback_buttons":
		for _, k := range []string{"positive_button", "negative_button"} {
			o, _ := e[k].(object)
			if text(value) == text(o["value"]) || text(value) == strings.TrimSuffix(k, "_button") {
				a["text"], a["value"] = o["text"], o["value"]
			}
		}
		if a["value"] == nil {
			return nil, refuse("feedback %q: the value of one of the two buttons is needed", text(value))
		}
	default:
		entered, err := enter(e, value)
		if err != nil {
			return nil, refuse("%s", err)
		}
		state.set(h.block, text(e["action_id"]), entered)
		maps.Copy(a, entered)
		if e["placeholder"] != nil {
			a["placeholder"] = e["placeholder"]
		}
	}
	if e["confirm"] != nil {
		a["confirm"] = e["confirm"]
	}
	return a, nil
}

// maxStates is how many people's entries in messages are remembered.
const maxStates = 5000

// stateKeyOf names what one person entered in one message.
func stateKeyOf(person string, m *message) string { return person + "/" + m.Channel + "/" + m.TS }

// messageState is what a person entered in a message so far, for the elements
// that it has now.
func (s *Server) messageState(person string, m *message) stateValues {
	key := stateKeyOf(person, m)
	old, state := s.msgState[key], stateValues{}
	eachInput(m.Blocks, func(block string, e object) {
		id := text(e["action_id"])
		if kept, ok := old.get(block, id); ok && kept["type"] == e["type"] {
			state.set(block, id, kept)
		} else {
			state.set(block, id, initialState(e))
		}
	})
	if len(s.msgState) > maxStates {
		clear(s.msgState) // what was chosen and never sent, long ago
	}
	s.msgState[key] = state
	return state
}

// wireActor is the user of an interaction's payload.
func wireActor(u *user) object {
	return object{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.TeamID}
}

func wireTeam() object { return object{"id": TeamID, "domain": teamDomain} }

func channelName(c *channel) string {
	switch c.Kind {
	case kindIM:
		return "directmessage"
	case kindPrivate:
		return "privategroup"
	default:
		return c.Name
	}
}

// interaction is what every interactive payload has.
func (s *Server) interaction(kind string, u *user) object {
	return object{
		"type": kind, "user": wireActor(u), "api_app_id": AppID, "token": "playground-verification-token",
		"team": wireTeam(), "enterprise": nil, "is_enterprise_install": false,
	}
}

// clickMessage makes the payload of a click in a message.
func (s *Server) clickMessage(u *user, c click) (object, error) {
	ch, err := s.place(c.Channel, u)
	if err != nil {
		return nil, err
	}
	m, err := s.messageFor(u, ch, c.MessageTS)
	if err != nil {
		return nil, err
	}
	blocks := m.Blocks
	if c.Stale && m.former != nil {
		blocks = m.former
	}
	for _, a := range m.Attachments {
		if o, ok := a.(object); ok {
			if more, ok := o["blocks"].([]any); ok {
				blocks = append(slices.Clip(blocks), more...)
			}
		}
	}
	h, err := findElement(blocks, c)
	if err != nil {
		return nil, err
	}
	state := s.messageState(u.ID, m)
	action, err := s.act(&h, c, state)
	if err != nil {
		return nil, err
	}
	p := s.interaction("block_actions", u)
	container := object{"type": "message", "message_ts": m.TS, "channel_id": ch.ID, "is_ephemeral": m.EphemeralTo != ""}
	if m.ThreadTS != "" {
		container["thread_ts"] = m.ThreadTS
	}
	p["container"] = container
	p["channel"] = object{"id": ch.ID, "name": channelName(ch)}
	said := s.wire(m)
	if m.EphemeralTo != "" {
		said["is_ephemeral"] = true
	}
	p["message"] = said
	p["state"] = object{"values": state.wire()}
	p["response_url"] = s.newHook("actions", u.ID, ch.ID, m.ThreadTS, m)
	p["trigger_id"] = s.newTrigger(u.ID, "")
	p["actions"] = []any{action}
	return p, nil
}

// viewFor finds a modal or home tab that is a person's.
func (s *Server) viewFor(u *user, id string) (*view, error) {
	v := s.openView(id)
	if v == nil || v.User != u.ID {
		return nil, refuse("view %q is not open for %s", id, u.RealName)
	}
	return v, nil
}

// clickView makes the payload of a click in a modal or a home tab.
func (s *Server) clickView(u *user, c click) (object, error) {
	v, err := s.viewFor(u, c.ViewID)
	if err != nil {
		return nil, err
	}
	h, err := findElement(blocksOf(v.Def), c)
	if err != nil {
		return nil, err
	}
	action, err := s.act(&h, c, v.State)
	if err != nil {
		return nil, err
	}
	p := s.interaction("block_actions", u)
	p["container"] = object{"type": "view", "view_id": v.ID}
	p["view"] = s.wireView(v)
	p["trigger_id"] = s.newTrigger(u.ID, pick(v.Type == "modal", v.ID, ""))
	p["actions"] = []any{action}
	return p, nil
}

// slashPayload makes the payload of a slash command.
func (s *Server) slashPayload(u *user, c *channel, thread, line string) object {
	command := "/deckhand"
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "/") {
		command, line, _ = strings.Cut(line, " ")
	}
	p := object{
		"token": "playground-verification-token", "team_id": TeamID, "team_domain": teamDomain,
		"channel_id": c.ID, "channel_name": channelName(c), "user_id": u.ID, "user_name": u.Name,
		"command": command, "text": strings.TrimSpace(s.composed(line)), "api_app_id": AppID, "is_enterprise_install": "false",
		"response_url": s.newHook("commands", u.ID, c.ID, thread, nil), "trigger_id": s.newTrigger(u.ID, ""),
	}
	if thread != "" {
		p["thread_ts"] = thread
	}
	return p
}

// slashAnswer does what an acknowledgement of a slash command says.
func (s *Server) slashAnswer(p object, raw json.RawMessage) {
	body := object{}
	if len(raw) == 0 || decodeJSON(raw, &body) != nil || (body["text"] == nil && body["blocks"] == nil && body["attachments"] == nil) {
		return
	}
	u := text(p["response_url"])
	i := strings.Index(u, "/"+TeamID+"/")
	if err := s.respond(u[i+len(TeamID)+2:], body); err != nil {
		s.liveWarning(text(p["user_id"]), "The app's answer to "+text(p["command"])+" was refused: "+err.Error())
	}
}
