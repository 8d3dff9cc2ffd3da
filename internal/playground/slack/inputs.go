package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// stateValues is what people entered, by block and action.
type stateValues map[string]map[string]object

func (v stateValues) get(block, action string) (object, bool) {
	o, ok := v[block][action]
	return o, ok
}

func (v stateValues) set(block, action string, state object) {
	if v[block] == nil {
		v[block] = map[string]object{}
	}
	v[block][action] = state
}

// wire copies the values, for a payload.
func (v stateValues) wire() object {
	out := object{}
	for block, actions := range v {
		o := object{}
		for action, state := range actions {
			o[action] = state
		}
		out[block] = o
	}
	return out
}

// stateKey is where each type of element keeps its value, and what an empty one is.
var stateKey = map[string]struct {
	key   string
	many  bool
	first string // the element's field with the initial value
}{
	"plain_text_input":           {"value", false, "initial_value"},
	"email_text_input":           {"value", false, "initial_value"},
	"url_text_input":             {"value", false, "initial_value"},
	"number_input":               {"value", false, "initial_value"},
	"rich_text_input":            {"rich_text_value", false, "initial_value"},
	"static_select":              {"selected_option", false, "initial_option"},
	"external_select":            {"selected_option", false, "initial_option"},
	"users_select":               {"selected_user", false, "initial_user"},
	"conversations_select":       {"selected_conversation", false, "initial_conversation"},
	"channels_select":            {"selected_channel", false, "initial_channel"},
	"multi_static_select":        {"selected_options", true, "initial_options"},
	"multi_external_select":      {"selected_options", true, "initial_options"},
	"multi_users_select":         {"selected_users", true, "initial_users"},
	"multi_conversations_select": {"selected_conversations", true, "initial_conversations"},
	"multi_channels_select":      {"selected_channels", true, "initial_channels"},
	"radio_buttons":              {"selected_option", false, "initial_option"},
	"checkboxes":                 {"selected_options", true, "initial_options"},
	"datepicker":                 {"selected_date", false, "initial_date"},
	"timepicker":                 {"selected_time", false, "initial_time"},
	"datetimepicker":             {"selected_date_time", false, "initial_date_time"},
	"file_input":                 {"files", true, ""},
}

// initialState is what an element holds before anybody touched it.
func initialState(e object) object {
	k := stateKey[text(e["type"])]
	state := object{"type": e["type"], k.key: nil}
	if k.many {
		state[k.key] = []any{}
	}
	if k.first != "" && e[k.first] != nil {
		state[k.key] = e[k.first]
	}
	return state
}

// eachElement visits the interactive elements of blocks with their block's id.
func eachElement(blocks []any, visit func(blockID string, e object)) {
	for _, raw := range blocks {
		b, ok := raw.(object)
		if !ok {
			continue
		}
		id := text(b["block_id"])
		one := func(v any) {
			if e, ok := v.(object); ok && e["action_id"] != nil {
				visit(id, e)
			}
		}
		one(b["accessory"])
		one(b["element"])
		for _, k := range []string{"elements", "actions"} {
			if list, ok := b[k].([]any); ok {
				for _, e := range list {
					one(e)
				}
			}
		}
		if list, ok := b["child_blocks"].([]any); ok {
			eachElement(list, visit)
		}
		if list, ok := b["elements"].([]any); ok && b["type"] == "carousel" {
			eachElement(list, visit)
		}
	}
}

// eachInput visits the elements that hold a value.
func eachInput(blocks []any, visit func(blockID string, e object)) {
	eachElement(blocks, func(id string, e object) {
		if _, ok := stateKey[text(e["type"])]; ok {
			visit(id, e)
		}
	})
}

// optionsOf are all options of an element, its groups' too.
func optionsOf(e object) []any {
	list, _ := e["options"].([]any)
	groups, _ := e["option_groups"].([]any)
	for _, g := range groups {
		if o, ok := g.(object); ok {
			more, _ := o["options"].([]any)
			list = append(slices.Clip(list), more...)
		}
	}
	return list
}

// optionWith finds an option by its value, or failing that by its text.
func optionWith(e object, value string) object {
	for _, byText := range []bool{false, true} {
		for _, raw := range optionsOf(e) {
			o, _ := raw.(object)
			label, _ := o["text"].(object)
			if !byText && text(o["value"]) == value || byText && text(label["text"]) == value {
				return o
			}
		}
	}
	return nil
}

// enter makes the state of an element that a person set to a value. The value
// is Slack's own state object, or simply the text, the option's value, or a list
// of such.
func enter(e object, value any) (object, error) {
	kind := text(e["type"])
	k, ok := stateKey[kind]
	if !ok {
		return nil, fmt.Errorf("a %s holds no value", kind)
	}
	if o, ok := value.(object); ok && o[k.key] != nil {
		value = o[k.key]
	}
	if value == nil {
		return object{"type": kind, k.key: initialState(object{"type": kind})[k.key]}, nil
	}
	if !k.many {
		v, err := enterOne(e, kind, value)
		if err != nil {
			return nil, err
		}
		return object{"type": kind, k.key: v}, nil
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	out := []any{}
	for _, item := range list {
		v, err := enterOne(e, kind, item)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	if most, ok := e["max_selected_items"].(json.Number); ok {
		if n, err := most.Int64(); err == nil && int64(len(out)) > n {
			return nil, fmt.Errorf("%s takes at most %d items", text(e["action_id"]), n)
		}
	}
	return object{"type": kind, k.key: out}, nil
}

func enterOne(e object, kind string, value any) (any, error) {
	switch {
	case strings.Contains(kind, "static_select") || kind == "radio_buttons" || kind == "checkboxes":
		want := text(value)
		if o, ok := value.(object); ok {
			want = text(o["value"])
		}
		o := optionWith(e, want)
		if o == nil {
			return nil, fmt.Errorf("%s has no option %q", text(e["action_id"]), want)
		}
		return o, nil
	case strings.Contains(kind, "external_select"):
		if o, ok := value.(object); ok {
			return o, nil
		}
		return object{"text": object{"type": "plain_text", "text": text(value), "emoji": true}, "value": text(value)}, nil
	case kind == "rich_text_input":
		if o, ok := value.(object); ok {
			return o, nil
		}
		return richText(text(value)), nil
	case kind == "datetimepicker":
		n := json.Number(text(value))
		if _, err := n.Int64(); err != nil {
			return nil, fmt.Errorf("%s takes a time as Unix seconds", text(e["action_id"]))
		}
		return n, nil
	case kind == "file_input":
		return value, nil
	default:
		if _, ok := value.(object); ok {
			return nil, fmt.Errorf("%s takes a text", text(e["action_id"]))
		}
		return text(value), nil
	}
}

// enterAll sets several values, given by block and action or by action alone.
func (v stateValues) enterAll(blocks []any, values object) error {
	left := map[string]bool{}
	for k := range values {
		left[k] = true
	}
	var failed error
	eachInput(blocks, func(block string, e object) {
		action := text(e["action_id"])
		value, ok := values[action]
		if ok {
			delete(left, action)
		}
		if inner, isBlock := values[block].(object); isBlock {
			if x, has := inner[action]; has {
				value, ok = x, true
				delete(left, block)
			}
		}
		if !ok || failed != nil {
			return
		}
		state, err := enter(e, value)
		if err != nil {
			failed = err
			return
		}
		v.set(block, action, state)
	})
	if failed != nil {
		return failed
	}
	if len(left) > 0 {
		var names []string
		for k := range left {
			names = append(names, k)
		}
		slices.Sort(names)
		return fmt.Errorf("no such input here: %s", strings.Join(names, ", "))
	}
	return nil
}

// missing says, by block, what a person must still fill in before a modal can be
// submitted: what Slack's own client checks.
func (v stateValues) missing(blocks []any) map[string]string {
	out := map[string]string{}
	for _, raw := range blocks {
		b, ok := raw.(object)
		if !ok || b["type"] != "input" {
			continue
		}
		e, _ := b["element"].(object)
		state, _ := v.get(text(b["block_id"]), text(e["action_id"]))
		value := state[stateKey[text(e["type"])].key]
		list, isList := value.([]any)
		empty := value == nil || value == "" || isList && len(list) == 0
		switch {
		case empty && b["optional"] != true:
			out[text(b["block_id"])] = "Please complete this required field."
		case !empty && e["type"] == "plain_text_input":
			n := lengthOf(text(value))
			if low, ok := intOf(e["min_length"]); ok && n < low {
				out[text(b["block_id"])] = fmt.Sprintf("Must be at least %d characters.", low)
			}
			high, ok := intOf(e["max_length"])
			if !ok {
				high = maxInputText
			}
			if n > high {
				out[text(b["block_id"])] = fmt.Sprintf("Must be at most %d characters.", high)
			}
		}
	}
	return out
}
