package slack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// place is where an element stands; it decides which ones may.
type place int

const (
	inSection place = 1 << iota
	inActions
	inInput
	inContext
	inContextActions
)

// elementType says where a type of element may stand and how it is checked.
type elementType struct {
	where place
	check func(*problems, object, string)
}

var elementTypes = map[string]elementType{
	"button":                     {inSection | inActions, (*problems).button},
	"workflow_button":            {inSection | inActions, (*problems).workflowButton},
	"image":                      {inSection | inContext, (*problems).imageElement},
	"static_select":              {inSection | inActions | inInput, (*problems).selectMenu},
	"external_select":            {inSection | inActions | inInput, (*problems).selectMenu},
	"users_select":               {inSection | inActions | inInput, (*problems).selectMenu},
	"conversations_select":       {inSection | inActions | inInput, (*problems).selectMenu},
	"channels_select":            {inSection | inActions | inInput, (*problems).selectMenu},
	"multi_static_select":        {inSection | inActions | inInput, (*problems).selectMenu},
	"multi_external_select":      {inSection | inActions | inInput, (*problems).selectMenu},
	"multi_users_select":         {inSection | inActions | inInput, (*problems).selectMenu},
	"multi_conversations_select": {inSection | inActions | inInput, (*problems).selectMenu},
	"multi_channels_select":      {inSection | inActions | inInput, (*problems).selectMenu},
	"overflow":                   {inSection | inActions, (*problems).overflow},
	"radio_buttons":              {inSection | inActions | inInput, (*problems).choices},
	"checkboxes":                 {inSection | inActions | inInput, (*problems).choices},
	"plain_text_input":           {inInput, (*problems).textInput},
	"email_text_input":           {inInput, (*problems).lineInput},
	"url_text_input":             {inInput, (*problems).lineInput},
	"number_input":               {inInput, (*problems).numberInput},
	"rich_text_input":            {inActions | inInput, (*problems).richInput},
	"file_input":                 {inInput, (*problems).fileInput},
	"datepicker":                 {inSection | inActions | inInput, (*problems).datePicker},
	"timepicker":                 {inSection | inActions | inInput, (*problems).timePicker},
	"datetimepicker":             {inActions | inInput, (*problems).dateTimePicker},
	"feedback_buttons":           {inContextActions, (*problems).feedback},
	"icon_button":                {inContextActions, (*problems).iconButton},
}

// element checks an element where it stands.
func (p *problems) element(raw any, at string, where place) {
	e := p.object(raw, at)
	if e == nil {
		return
	}
	kind := text(e["type"])
	t, ok := elementTypes[kind]
	switch {
	case e["type"] == nil:
		p.add(at, "missing required field: type")
	case !ok || t.where&where == 0:
		p.add(at+"/type", "unsupported type: "+kind)
	default:
		if kind != "image" {
			p.length(e, at, "action_id", 0, maxBlockID)
		}
		t.check(p, e, at)
	}
}

// element's own fields.
func elementFields(more ...string) []string { return append([]string{"type", "action_id"}, more...) }

func (p *problems) button(e object, at string) {
	p.only(e, at, elementFields("text", "url", "value", "style", "confirm", "accessibility_label", "agent_prompt", "agent_prompt_display", "visible_to_user_ids")...)
	p.textObject(e["text"], at+"/text", true, 75, plainOnly)
	p.link(e, at, "url", false)
	p.length(e, at, "value", 0, 2000)
	p.length(e, at, "accessibility_label", 0, 75)
	p.enum(e, at, "style", "primary", "danger")
	p.confirm(e["confirm"], at+"/confirm")
}

func (p *problems) workflowButton(e object, at string) {
	p.only(e, at, elementFields("text", "workflow", "style", "accessibility_label")...)
	p.textObject(e["text"], at+"/text", true, 75, plainOnly)
	p.enum(e, at, "style", "primary", "danger")
	if e["workflow"] == nil {
		p.add(at, "missing required field: workflow")
	}
}

func (p *problems) imageElement(e object, at string) {
	p.only(e, at, "type", "image_url", "slack_file", "alt_text")
	p.image(e, at)
}

// confirm checks a confirmation dialog, if there is one.
func (p *problems) confirm(v any, at string) {
	if v == nil {
		return
	}
	o := p.object(v, at)
	if o == nil {
		return
	}
	p.only(o, at, "title", "text", "confirm", "deny", "style")
	p.textObject(o["title"], at+"/title", true, 100, plainOnly)
	p.textObject(o["text"], at+"/text", true, 300, anyText)
	p.textObject(o["confirm"], at+"/confirm", true, 30, plainOnly)
	p.textObject(o["deny"], at+"/deny", false, 30, plainOnly)
	p.enum(o, at, "style", "primary", "danger")
}

// option checks one option of a menu.
func (p *problems) option(v any, at string, mrkdwn bool, more ...string) {
	o := p.object(v, at)
	if o == nil {
		return
	}
	p.only(o, at, append([]string{"text", "value", "description"}, more...)...)
	p.textObject(o["text"], at+"/text", true, 75, mrkdwn)
	p.length(o, at, "value", 1, 150)
	p.textObject(o["description"], at+"/description", false, 75, mrkdwn)
	p.link(o, at, "url", false)
}

// options checks a list of options.
func (p *problems) options(e object, at string, least, most int, mrkdwn bool, more ...string) {
	list, _ := p.items(e, at, "options", least, most)
	for i, o := range list {
		p.option(o, fmt.Sprintf("%s/options/%d", at, i), mrkdwn, more...)
	}
}

func (p *problems) selectMenu(e object, at string) {
	kind := text(e["type"])
	base, multi := strings.CutPrefix(kind, "multi_")
	fields := elementFields("placeholder", "confirm", "focus_on_load")
	if multi {
		fields = append(fields, "max_selected_items")
		if n, ok := e["max_selected_items"]; ok {
			if v, isInt := intOf(n); !isInt || v < 1 {
				p.add(at+"/max_selected_items", "must be greater than 0")
			}
		}
	} else {
		fields = append(fields, "response_url_enabled")
	}
	p.textObject(e["placeholder"], at+"/placeholder", false, 150, plainOnly)
	p.confirm(e["confirm"], at+"/confirm")
	p.flags(e, at, "focus_on_load", "response_url_enabled", "default_to_current_conversation")
	one, many := "initial_option", "initial_options"
	switch base {
	case "static_select":
		fields = append(fields, "options", "option_groups", pick(multi, many, one))
		p.staticOptions(e, at)
		p.initial(e, at, pick(multi, many, one))
	case "external_select":
		fields = append(fields, "min_query_length", pick(multi, many, one))
	case "users_select":
		fields = append(fields, pick(multi, "initial_users", "initial_user"))
	case "conversations_select":
		fields = append(fields, "default_to_current_conversation", "filter", pick(multi, "initial_conversations", "initial_conversation"))
	case "channels_select":
		fields = append(fields, pick(multi, "initial_channels", "initial_channel"))
	}
	p.only(e, at, fields...)
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

func (p *problems) staticOptions(e object, at string) {
	switch {
	case e["options"] != nil && e["option_groups"] != nil:
		p.add(at, "must define either `options` or `option_groups`, not both")
	case e["option_groups"] != nil:
		groups, _ := p.items(e, at, "option_groups", 1, 100)
		for i, raw := range groups {
			here := fmt.Sprintf("%s/option_groups/%d", at, i)
			if g := p.object(raw, here); g != nil {
				p.only(g, here, "label", "options")
				p.textObject(g["label"], here+"/label", true, 75, plainOnly)
				p.options(g, here, 1, 100, plainOnly)
			}
		}
	default:
		p.options(e, at, 1, 100, plainOnly)
	}
}

// initial checks that the options chosen beforehand are among the options.
func (p *problems) initial(e object, at, key string) {
	v := e[key]
	if v == nil {
		return
	}
	list, many := v.([]any)
	if !many {
		list = []any{v}
	}
	for _, raw := range list {
		o, _ := raw.(object)
		found := false
		for _, have := range optionsOf(e) {
			h, _ := have.(object)
			found = found || o != nil && h != nil && text(h["value"]) == text(o["value"])
		}
		if !found {
			p.add(at+"/"+key, "must be one of the options")
		}
	}
}

func (p *problems) overflow(e object, at string) {
	p.only(e, at, elementFields("options", "confirm")...)
	p.options(e, at, 1, 5, plainOnly, "url")
	p.confirm(e["confirm"], at+"/confirm")
}

func (p *problems) choices(e object, at string) {
	key := pick(e["type"] == "checkboxes", "initial_options", "initial_option")
	p.only(e, at, elementFields("options", key, "confirm", "focus_on_load", "visible_to_user_ids")...)
	p.options(e, at, 1, 10, anyText)
	p.initial(e, at, key)
	p.confirm(e["confirm"], at+"/confirm")
	p.flags(e, at, "focus_on_load")
}

// dispatch checks when an input tells the app of what is typed.
func (p *problems) dispatch(e object, at string) {
	if v := e["dispatch_action_config"]; v != nil {
		if o := p.object(v, at+"/dispatch_action_config"); o != nil {
			p.only(o, at+"/dispatch_action_config", "trigger_actions_on")
		}
	}
	p.textObject(e["placeholder"], at+"/placeholder", false, 150, plainOnly)
	p.flags(e, at, "focus_on_load")
}

func (p *problems) textInput(e object, at string) {
	p.only(e, at, elementFields("placeholder", "initial_value", "multiline", "min_length", "max_length", "dispatch_action_config", "focus_on_load")...)
	p.length(e, at, "initial_value", 0, maxInputText)
	p.flags(e, at, "multiline")
	p.dispatch(e, at)
	low, high := 0, maxInputText
	for key, into := range map[string]*int{"min_length": &low, "max_length": &high} {
		if v, ok := e[key]; ok {
			n, isInt := intOf(v)
			if !isInt || n < 0 || n > maxInputText || key == "max_length" && n < 1 {
				p.addf(at+"/"+key, "must be a number up to %d", maxInputText)
				return
			}
			*into = n
		}
	}
	if low > high {
		p.add(at+"/min_length", "must not be more than max_length")
	}
}

func (p *problems) lineInput(e object, at string) {
	p.only(e, at, elementFields("placeholder", "initial_value", "dispatch_action_config", "focus_on_load")...)
	p.length(e, at, "initial_value", 0, maxInputText)
	p.dispatch(e, at)
}

func (p *problems) numberInput(e object, at string) {
	p.only(e, at, elementFields("placeholder", "is_decimal_allowed", "initial_value", "min_value", "max_value", "dispatch_action_config", "focus_on_load")...)
	if _, ok := e["is_decimal_allowed"].(bool); !ok {
		p.add(at, "missing required field: is_decimal_allowed")
	}
	for _, k := range []string{"initial_value", "min_value", "max_value"} {
		if e[k] != nil {
			p.finite(e, at, k)
		}
	}
	p.dispatch(e, at)
}

func (p *problems) richInput(e object, at string) {
	p.only(e, at, elementFields("placeholder", "initial_value", "dispatch_action_config", "focus_on_load", "min_lines", "max_lines")...)
	p.richTextObject(e["initial_value"], at+"/initial_value")
	p.dispatch(e, at)
}

func (p *problems) fileInput(e object, at string) {
	p.only(e, at, elementFields("filetypes", "max_files")...)
	if v, ok := e["max_files"]; ok {
		if n, isInt := intOf(v); !isInt || n < 1 || n > 10 {
			p.add(at+"/max_files", "must be between 1 and 10")
		}
	}
}

var (
	datePattern = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	timePattern = regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d$`)
)

func (p *problems) datePicker(e object, at string) {
	p.only(e, at, elementFields("placeholder", "initial_date", "confirm", "focus_on_load")...)
	if v, ok := e["initial_date"]; ok && !datePattern.MatchString(text(v)) {
		p.add(at+"/initial_date", "must match pattern YYYY-MM-DD")
	}
	p.picker(e, at)
}

func (p *problems) timePicker(e object, at string) {
	p.only(e, at, elementFields("placeholder", "initial_time", "confirm", "focus_on_load", "timezone")...)
	if v, ok := e["initial_time"]; ok && !timePattern.MatchString(text(v)) {
		p.add(at+"/initial_time", "must match pattern HH:mm")
	}
	p.picker(e, at)
}

func (p *problems) dateTimePicker(e object, at string) {
	p.only(e, at, elementFields("initial_date_time", "confirm", "focus_on_load")...)
	if v, ok := e["initial_date_time"]; ok {
		if n, isNumber := v.(json.Number); !isNumber || len(n.String()) != 10 {
			p.add(at+"/initial_date_time", "must be a Unix time in seconds, of 10 digits")
		}
	}
	p.picker(e, at)
}

func (p *problems) picker(e object, at string) {
	p.textObject(e["placeholder"], at+"/placeholder", false, 150, plainOnly)
	p.confirm(e["confirm"], at+"/confirm")
	p.flags(e, at, "focus_on_load")
}

func (p *problems) feedback(e object, at string) {
	p.only(e, at, elementFields("positive_button", "negative_button")...)
	for _, k := range []string{"positive_button", "negative_button"} {
		if e[k] == nil {
			p.add(at, "missing required field: "+k)
			continue
		}
		if o := p.object(e[k], at+"/"+k); o != nil {
			p.only(o, at+"/"+k, "text", "value", "accessibility_label")
			p.textObject(o["text"], at+"/"+k+"/text", true, 75, plainOnly)
			p.length(o, at+"/"+k, "value", 1, 2000)
		}
	}
}

func (p *problems) iconButton(e object, at string) {
	p.only(e, at, elementFields("icon", "text", "value", "confirm", "accessibility_label", "visible_to_user_ids")...)
	p.enum(e, at, "icon", "trash")
	p.textObject(e["text"], at+"/text", true, 75, plainOnly)
	p.length(e, at, "value", 0, 2000)
	p.confirm(e["confirm"], at+"/confirm")
}
