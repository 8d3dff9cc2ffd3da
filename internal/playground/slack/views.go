package slack

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	triggerLife   = 3 * time.Second
	maxViewStack  = 3
	maxViewBytes  = 250 << 10
	maxViewTitle  = 24
	maxCallbackID = 255
	maxPrivate    = 3000
)

// view is a modal or a home tab as it stands.
type view struct {
	ID       string `json:"id"`
	User     string `json:"user"`
	Type     string `json:"type"` // modal or home
	Def      object `json:"def"`  // as the app gave it, blocks completed
	Hash     string `json:"hash"`
	Root     string `json:"root,omitempty"`
	Previous string `json:"previous,omitempty"`
	State    stateValues
}

// trigger is what lets the app open a modal in answer to a person's act.
type trigger struct {
	user   string
	until  time.Time
	used   bool
	viewID string // the modal it came from, for views.push
}

// newTrigger makes a trigger id for a person's act.
func (s *Server) newTrigger(person, viewID string) string {
	for id, t := range s.triggers {
		if now().Sub(t.until) > time.Minute {
			delete(s.triggers, id)
		}
	}
	id := fmt.Sprintf("%s.%s.%s", randomString(13, digits), randomString(12, digits), randomString(32, lowerHex))
	s.triggers[id] = &trigger{user: person, until: now().Add(triggerLife), viewID: viewID}
	return id
}

// redeemTrigger finds the trigger that a call names. It is used up by useTrigger,
// so that a refused view leaves it intact.
func (s *Server) redeemTrigger(id string) (*trigger, error) {
	t := s.triggers[id]
	switch {
	case id == "":
		return nil, failBecause("invalid_arguments", "missing required field: trigger_id")
	case t == nil && strings.Count(id, ".") != 2:
		return nil, fail("invalid_trigger_id")
	case t == nil || now().After(t.until):
		return nil, fail("expired_trigger_id")
	case t.used:
		return nil, fail("exchanged_trigger_id")
	}
	return t, nil
}

// viewArg reads and checks the argument "view".
func (s *Server) viewArg(c *call, kinds ...string) (object, error) {
	raw, err := c.value("view")
	if err != nil {
		return nil, failBecause("invalid_arguments", "view is not valid JSON [json-pointer:/view]")
	}
	def, ok := raw.(object)
	if !ok {
		return nil, failBecause("invalid_arguments", "missing required field: view [json-pointer:/view]")
	}
	if len(mustJSON(def)) > maxViewBytes {
		return nil, fail("view_too_large")
	}
	if list, ok := def["blocks"].([]any); ok {
		if err := s.refuseBlocks(list, placeOf(c.method, text(def["type"])), "/view/blocks", "invalid_arguments"); err != nil {
			return nil, err
		}
	}
	def, problems := checkView(def, kinds, s.fileKnown)
	if len(problems) > 0 {
		return nil, failBecause("invalid_arguments", problems...)
	}
	if id := text(def["external_id"]); id != "" {
		for _, stack := range s.stacks {
			for _, v := range stack {
				if text(v.Def["external_id"]) == id && v.ID != c.str("view_id") && c.str("external_id") != id {
					return nil, fail("duplicate_external_id")
				}
			}
		}
	}
	return def, nil
}

// checkView checks a view and completes its blocks.
func checkView(def object, kinds []string, fileKnown func(string) bool) (object, []string) {
	p := &problems{}
	kind := text(def["type"])
	if !slices.Contains(kinds, kind) {
		p.add("/view/type", "unsupported type: "+kind)
		return nil, p.list
	}
	allowed := []string{"type", "blocks", "private_metadata", "callback_id", "external_id"}
	if kind == "modal" {
		allowed = append(allowed, "title", "submit", "close", "clear_on_close", "notify_on_close", "submit_disabled")
		p.textObject(def["title"], "/view/title", true, maxViewTitle, plainOnly)
		p.textObject(def["submit"], "/view/submit", false, maxViewTitle, plainOnly)
		p.textObject(def["close"], "/view/close", false, maxViewTitle, plainOnly)
	}
	p.only(def, "/view", allowed...)
	p.length(def, "/view", "private_metadata", 0, maxPrivate)
	p.length(def, "/view", "callback_id", 0, maxCallbackID)
	p.length(def, "/view", "external_id", 0, maxCallbackID)
	list, ok := def["blocks"].([]any)
	if !ok {
		p.add("/view", "missing required field: blocks")
		return nil, p.list
	}
	surface := surfaceModal
	if kind == "home" {
		surface = surfaceHome
	}
	checked, found := checkBlocks(list, surface, "/view/blocks", fileKnown)
	p.list = append(p.list, found...)
	if kind == "modal" && def["submit"] == nil {
		for i, b := range checked {
			if b.(object)["type"] == "input" {
				p.add("/view", fmt.Sprintf("`submit` is required because block %d is an input", i))
				break
			}
		}
	}
	if len(p.list) > 0 {
		return nil, p.list
	}
	def = clone(def)
	def["blocks"] = checked
	return def, nil
}

// newView makes a view of a checked definition.
func newView(person string, def object) *view {
	v := &view{ID: newID("V"), User: person, Type: text(def["type"])}
	v.set(def)
	v.Root = v.ID
	return v
}

// set gives a view new contents. What people entered stays where the block and
// the element are still there.
func (v *view) set(def object) {
	v.Def = def
	v.Hash = fmt.Sprintf("%d.%s", now().Unix(), randomString(8, lowerAlnum))
	old := v.State
	v.State = stateValues{}
	eachInput(blocksOf(def), func(blockID string, e object) {
		if kept, ok := old.get(blockID, text(e["action_id"])); ok && kept["type"] == e["type"] {
			v.State.set(blockID, text(e["action_id"]), kept)
		} else {
			v.State.set(blockID, text(e["action_id"]), initialState(e))
		}
	})
}

func blocksOf(def object) []any {
	list, _ := def["blocks"].([]any)
	return list
}

// wireView renders a view as the Web API and interactions do.
func (s *Server) wireView(v *view) object {
	o := object{
		"id": v.ID, "team_id": TeamID, "type": v.Type, "blocks": blocksOf(v.Def),
		"private_metadata": text(v.Def["private_metadata"]), "callback_id": text(v.Def["callback_id"]),
		"external_id": text(v.Def["external_id"]), "state": object{"values": v.State.wire()}, "hash": v.Hash,
		"title": v.Def["title"], "close": v.Def["close"], "submit": v.Def["submit"],
		"clear_on_close": v.Def["clear_on_close"] == true, "notify_on_close": v.Def["notify_on_close"] == true,
		"submit_disabled": v.Def["submit_disabled"] == true, "previous_view_id": nil, "root_view_id": v.Root,
		"app_id": AppID, "app_installed_team_id": TeamID, "bot_id": BotID,
	}
	if v.Type == "home" {
		o["title"] = object{"type": "plain_text", "text": "View Title", "emoji": true}
	}
	if v.Previous != "" {
		o["previous_view_id"] = v.Previous
	}
	return o
}

// shownView renders a view for the control API.
func (s *Server) shownView(v *view) object {
	o := s.wireView(v)
	o["user"] = v.User
	return o
}

// topView is the modal that a person sees.
func (s *Server) topView(person string) *view {
	stack := s.stacks[person]
	if len(stack) == 0 {
		return nil
	}
	return stack[len(stack)-1]
}

// openView finds an open modal or a published home tab by its id.
func (s *Server) openView(id string) *view {
	for _, stack := range s.stacks {
		for _, v := range stack {
			if v.ID == id {
				return v
			}
		}
	}
	for _, v := range s.ws.Homes {
		if v.ID == id {
			return v
		}
	}
	return nil
}

// popView takes the topmost modal away, or all of them.
func (s *Server) popView(person string, all bool) {
	stack := s.stacks[person]
	if all || len(stack) <= 1 {
		delete(s.stacks, person)
	} else {
		s.stacks[person] = stack[:len(stack)-1]
	}
	s.liveView(person)
}

// pushView puts a modal on top of a person's stack.
func (s *Server) pushView(person string, v *view) {
	if top := s.topView(person); top != nil {
		v.Previous, v.Root = top.ID, top.Root
	}
	s.stacks[person] = append(s.stacks[person], v)
	s.liveView(person)
}

func (s *Server) viewsOpen(c *call) (object, error) {
	t, err := s.redeemTrigger(c.str("trigger_id"))
	if err != nil {
		return nil, err
	}
	def, err := s.viewArg(c, "modal")
	if err != nil {
		return nil, err
	}
	t.used = true
	v := newView(t.user, def)
	delete(s.stacks, t.user)
	s.pushView(t.user, v)
	return object{"view": s.wireView(v)}, nil
}

func (s *Server) viewsPush(c *call) (object, error) {
	t, err := s.redeemTrigger(c.str("trigger_id"))
	if err != nil {
		return nil, err
	}
	stack := s.stacks[t.user]
	switch {
	case t.viewID == "" || len(stack) == 0:
		return nil, fail("not_found")
	case len(stack) >= maxViewStack:
		return nil, fail("push_limit_reached")
	}
	def, err := s.viewArg(c, "modal")
	if err != nil {
		return nil, err
	}
	t.used = true
	v := newView(t.user, def)
	s.pushView(t.user, v)
	return object{"view": s.wireView(v)}, nil
}

func (s *Server) viewsUpdate(c *call) (object, error) {
	var v *view
	if id := c.str("view_id"); id != "" {
		v = s.openView(id)
	} else if ext := c.str("external_id"); ext != "" {
		for _, stack := range s.stacks {
			for _, x := range stack {
				if text(x.Def["external_id"]) == ext {
					v = x
				}
			}
		}
	} else {
		return nil, failBecause("invalid_arguments", "missing required field: view_id")
	}
	if v == nil {
		return nil, fail("not_found")
	}
	if h := c.str("hash"); h != "" && h != v.Hash {
		return nil, fail("hash_conflict")
	}
	def, err := s.viewArg(c, v.Type)
	if err != nil {
		return nil, err
	}
	v.set(def)
	if v.Type == "home" {
		s.liveHome(v)
	} else {
		s.liveView(v.User)
	}
	return object{"view": s.wireView(v)}, nil
}

func (s *Server) viewsPublish(c *call) (object, error) {
	u := s.ws.user(c.str("user_id"))
	if u == nil || u.Bot || u.Stranger {
		return nil, failBecause("invalid_arguments", "invalid `user_id` [json-pointer:/user_id]")
	}
	v := s.ws.Homes[u.ID]
	if h := c.str("hash"); h != "" && (v == nil || h != v.Hash) {
		return nil, fail("hash_conflict")
	}
	def, err := s.viewArg(c, "home")
	if err != nil {
		return nil, err
	}
	if v == nil {
		v = newView(u.ID, def)
		s.ws.Homes[u.ID] = v
	} else {
		v.set(def)
	}
	s.liveHome(v)
	return object{"view": s.wireView(v)}, nil
}

func (s *Server) liveHome(v *view) {
	s.live.publish(liveEvent{kind: "home", user: v.User, body: object{"user": v.User, "view": s.shownView(v)}})
}

// lengthOf counts a text's characters.
func lengthOf(t string) int { return utf8.RuneCountInString(t) }
