package slack

import (
	"fmt"
	"slices"
	"strconv"
)

// common are the fields that every block has.
func common(more ...string) []string { return append([]string{"type", "block_id"}, more...) }

func (p *problems) section(b object, at string) {
	p.only(b, at, common("text", "fields", "accessory", "expand")...)
	fields, _ := b["fields"].([]any)
	if b["text"] == nil && len(fields) == 0 {
		p.add(at+"/type", "must define either `text` or `fields`")
		return
	}
	p.textObject(b["text"], at+"/text", false, maxSectionText, anyText)
	if list, ok := p.items(b, at, "fields", 0, maxFields); ok {
		for i, f := range list {
			p.textObject(f, fmt.Sprintf("%s/fields/%d", at, i), true, maxFieldText, anyText)
		}
	}
	if b["accessory"] != nil {
		p.element(b["accessory"], at+"/accessory", inSection)
	}
	p.flags(b, at, "expand")
}

func (p *problems) context(b object, at string) {
	p.only(b, at, common("elements")...)
	list, _ := p.items(b, at, "elements", 1, maxContext)
	for i, e := range list {
		here := fmt.Sprintf("%s/elements/%d", at, i)
		if o, ok := e.(object); ok && o["type"] == "image" {
			p.element(e, here, inContext)
			continue
		}
		p.textObject(e, here, true, maxSectionText, anyText)
	}
}

func (p *problems) actions(b object, at string) {
	p.only(b, at, common("elements")...)
	list, _ := p.items(b, at, "elements", 1, maxActions)
	for i, e := range list {
		p.element(e, fmt.Sprintf("%s/elements/%d", at, i), inActions)
	}
}

func (p *problems) contextActions(b object, at string) {
	p.only(b, at, common("elements")...)
	list, _ := p.items(b, at, "elements", 1, 5)
	for i, e := range list {
		p.element(e, fmt.Sprintf("%s/elements/%d", at, i), inContextActions)
	}
}

func (p *problems) header(b object, at string) {
	p.only(b, at, common("text", "level")...)
	p.textObject(b["text"], at+"/text", true, maxHeaderText, plainOnly)
}

func (p *problems) imageBlock(b object, at string) {
	p.only(b, at, common("image_url", "slack_file", "alt_text", "title")...)
	p.image(b, at)
	p.textObject(b["title"], at+"/title", false, 2000, plainOnly)
}

// image checks what image blocks and image elements have in common.
func (p *problems) image(o object, at string) {
	p.length(o, at, "alt_text", 1, 2000)
	switch f, isFile := o["slack_file"].(object); {
	case o["image_url"] != nil:
		p.link(o, at, "image_url", true)
	case isFile:
		if id := text(f["id"]); id != "" && !p.fileKnown(id) {
			p.add(at+"/slack_file", "invalid slack file")
		}
	default:
		p.add(at, "must define either `image_url` or `slack_file`")
	}
}

func (p *problems) input(b object, at string) {
	p.only(b, at, common("label", "element", "dispatch_action", "hint", "optional")...)
	p.textObject(b["label"], at+"/label", true, 2000, plainOnly)
	p.textObject(b["hint"], at+"/hint", false, 2000, plainOnly)
	p.flags(b, at, "dispatch_action", "optional")
	if b["element"] == nil {
		p.add(at, "missing required field: element")
		return
	}
	p.element(b["element"], at+"/element", inInput)
}

func (p *problems) markdown(b object, at string) {
	p.only(b, at, common("text")...)
	p.length(b, at, "text", 1, maxMarkdownText)
}

// richSections are the elements of a rich_text block.
var richSections = []string{"rich_text_section", "rich_text_list", "rich_text_preformatted", "rich_text_quote"}

func (p *problems) richText(b object, at string) {
	p.only(b, at, common("elements")...)
	list, _ := p.items(b, at, "elements", 0, 10000)
	for i, raw := range list {
		p.richSection(raw, fmt.Sprintf("%s/elements/%d", at, i), 0)
	}
}

func (p *problems) richSection(raw any, at string, depth int) {
	o := p.object(raw, at)
	if o == nil {
		return
	}
	kind := text(o["type"])
	if !slices.Contains(richSections, kind) {
		p.add(at+"/type", "unsupported type: "+kind)
		return
	}
	list, _ := p.items(o, at, "elements", 0, 10000)
	for i, e := range list {
		here := fmt.Sprintf("%s/elements/%d", at, i)
		if kind == "rich_text_list" {
			if depth > 8 {
				p.add(at, "lists are nested too deeply")
				return
			}
			p.richSection(e, here, depth+1)
			continue
		}
		p.richElement(e, here)
	}
	if kind == "rich_text_list" {
		p.enum(o, at, "style", "bullet", "ordered", "checked")
	}
}

// richFields are the elements of rich text, with the field that each must have.
var richFields = map[string]string{
	"text": "text", "link": "url", "user": "user_id", "usergroup": "usergroup_id", "channel": "channel_id",
	"emoji": "name", "broadcast": "range", "color": "value", "date": "timestamp", "team": "team_id",
	"citation": "", "file": "", "workflow": "", "canvas": "", "message": "", "list_record": "", "work_object": "",
}

func (p *problems) richElement(raw any, at string) {
	o := p.object(raw, at)
	if o == nil {
		return
	}
	field, ok := richFields[text(o["type"])]
	switch {
	case !ok:
		p.add(at+"/type", "unsupported type: "+text(o["type"]))
	case field != "" && o[field] == nil:
		p.add(at, "missing required field: "+field)
	case field == "text":
		p.length(o, at, field, 1, maxPostText)
	}
}

func (p *problems) richTextObject(v any, at string) {
	if v == nil {
		return
	}
	o := p.object(v, at)
	if o == nil {
		return
	}
	if o["type"] != "rich_text" {
		p.add(at+"/type", "unsupported type: "+text(o["type"]))
		return
	}
	p.richText(o, at)
}

func (p *problems) table(b object, at string) {
	p.only(b, at, common("rows", "column_settings")...)
	p.rows(b, at, "raw_text", "rich_text", "raw_number")
	if list, ok := p.items(b, at, "column_settings", 0, maxTableColumns); ok {
		for i, raw := range list {
			if raw == nil {
				continue
			}
			here := fmt.Sprintf("%s/column_settings/%d", at, i)
			if o := p.object(raw, here); o != nil {
				p.only(o, here, "align", "is_wrapped")
				p.enum(o, here, "align", "left", "center", "right")
				p.flags(o, here, "is_wrapped")
			}
		}
	}
}

// rows checks the cells of a table.
func (p *problems) rows(b object, at string, kinds ...string) {
	rows, _ := p.items(b, at, "rows", 1, maxTableRows)
	for i, raw := range rows {
		here := fmt.Sprintf("%s/rows/%d", at, i)
		cells, ok := raw.([]any)
		switch {
		case !ok:
			p.add(here, "must provide an array")
			continue
		case len(cells) == 0 || len(cells) > maxTableColumns:
			p.addf(here, "no more than %d items allowed", maxTableColumns)
			continue
		}
		for j, cell := range cells {
			here := fmt.Sprintf("%s/%d", here, j)
			o := p.object(cell, here)
			if o == nil {
				continue
			}
			switch kind := text(o["type"]); {
			case !slices.Contains(kinds, kind):
				p.add(here+"/type", "unsupported type: "+kind)
			case kind == "raw_text":
				p.length(o, here, "text", 1, maxPostText)
			case kind == "rich_text":
				p.richText(o, here)
			case kind == "raw_number":
				p.finite(o, here, "value")
			}
		}
	}
}

// finite checks a field that must be a number.
func (p *problems) finite(o object, at, key string) {
	if _, err := strconv.ParseFloat(text(o[key]), 64); err != nil {
		p.add(at+"/"+key, "must provide a number")
	}
}

func (p *problems) taskCard(b object, at string) {
	p.only(b, at, common("task_id", "title", "status", "details", "output", "sources", "hide_title")...)
	p.length(b, at, "task_id", 1, maxBlockID)
	p.length(b, at, "title", 1, maxTaskText)
	p.enum(b, at, "status", taskStatuses...)
	for _, k := range []string{"details", "output"} {
		p.richTextObject(b[k], at+"/"+k)
		if textSize(b[k]) > maxTaskText {
			p.addf(at+"/"+k, "must be less than %d characters", maxTaskText+1)
		}
	}
	list, _ := p.items(b, at, "sources", 0, 50)
	for i, raw := range list {
		here := fmt.Sprintf("%s/sources/%d", at, i)
		if o := p.object(raw, here); o != nil {
			p.enum(o, here, "type", "url")
			p.link(o, here, "url", true)
			p.length(o, here, "text", 1, maxTaskText)
		}
	}
	p.flags(b, at, "hide_title")
}

func (p *problems) plan(b object, at string) {
	p.only(b, at, common("title", "tasks", "plan_id")...)
	p.length(b, at, "title", 1, maxTaskText)
	list, _ := p.items(b, at, "tasks", 0, maxMessageBlocks)
	for i, raw := range list {
		here := fmt.Sprintf("%s/tasks/%d", at, i)
		if o := p.object(raw, here); o != nil {
			if o["type"] != "task_card" {
				p.add(here+"/type", "unsupported type: "+text(o["type"]))
				continue
			}
			p.taskCard(o, here)
		}
	}
}

func (p *problems) chart(b object, at string) {
	p.only(b, at, common("title", "chart")...)
	p.length(b, at, "title", 1, 50)
	if b["chart"] == nil {
		p.add(at, "missing required field: chart")
		return
	}
	c := p.object(b["chart"], at+"/chart")
	if c == nil {
		return
	}
	at += "/chart"
	point := func(raw any, here, label string) {
		if o := p.object(raw, here); o != nil {
			p.length(o, here, label, 1, 20)
			p.finite(o, here, "value")
		}
	}
	switch kind := text(c["type"]); kind {
	case "pie":
		p.only(c, at, "type", "segments")
		list, _ := p.items(c, at, "segments", 1, 20)
		for i, raw := range list {
			point(raw, fmt.Sprintf("%s/segments/%d", at, i), "label")
		}
	case "bar", "area", "line":
		p.only(c, at, "type", "series", "axis_config")
		list, _ := p.items(c, at, "series", 1, 6)
		for i, raw := range list {
			here := fmt.Sprintf("%s/series/%d", at, i)
			if o := p.object(raw, here); o != nil {
				p.length(o, here, "name", 1, 20)
				data, _ := p.items(o, here, "data", 1, 20)
				for j, d := range data {
					point(d, fmt.Sprintf("%s/data/%d", here, j), "label")
				}
			}
		}
		axis := p.object(c["axis_config"], at+"/axis_config")
		if axis == nil {
			return
		}
		names, _ := p.items(axis, at+"/axis_config", "categories", 1, 20)
		for i, n := range names {
			if t, ok := n.(string); !ok || t == "" || lengthOf(t) > 20 {
				p.addf(at+"/axis_config/categories/"+itoa(i), "must be less than %d characters", 21)
			}
		}
	default:
		p.add(at+"/type", "unsupported type: "+kind)
	}
}

func (p *problems) video(b object, at string) {
	p.only(b, at, common("video_url", "thumbnail_url", "alt_text", "title", "title_url", "author_name", "provider_name", "provider_icon_url", "description")...)
	p.link(b, at, "video_url", true)
	p.link(b, at, "thumbnail_url", true)
	p.link(b, at, "title_url", false)
	p.length(b, at, "alt_text", 1, 2000)
	p.length(b, at, "author_name", 0, 49)
	p.textObject(b["title"], at+"/title", true, 199, plainOnly)
	p.textObject(b["description"], at+"/description", false, 200, plainOnly)
}

func (p *problems) fileBlock(b object, at string) {
	p.only(b, at, common("external_id", "source", "file_id")...)
	if b["external_id"] == nil && b["file_id"] == nil {
		p.add(at, "missing required field: external_id")
	}
	if b["source"] == nil {
		p.add(at, "missing required field: source")
	}
}

func (p *problems) alert(b object, at string) {
	p.only(b, at, common("text", "level")...)
	p.textObject(b["text"], at+"/text", true, maxSectionText, anyText)
	p.enum(b, at, "level", "default", "info", "warning", "error", "success")
}

func (p *problems) card(b object, at string) {
	p.only(b, at, common("hero_image", "icon", "slack_icon", "title", "subtitle", "body", "subtext", "actions")...)
	for _, k := range []string{"title", "subtitle", "subtext"} {
		p.textObject(b[k], at+"/"+k, false, 150, anyText)
	}
	p.textObject(b["body"], at+"/body", false, 200, anyText)
	list, _ := p.items(b, at, "actions", 0, 3)
	for i, e := range list {
		p.element(e, fmt.Sprintf("%s/actions/%d", at, i), inActions)
	}
}

func (p *problems) carousel(b object, at string) {
	p.only(b, at, common("elements")...)
	list, _ := p.items(b, at, "elements", 1, 10)
	for i, raw := range list {
		here := fmt.Sprintf("%s/elements/%d", at, i)
		if o := p.object(raw, here); o != nil {
			if o["type"] != "card" {
				p.add(here+"/type", "unsupported type: "+text(o["type"]))
				continue
			}
			p.card(o, here)
		}
	}
}

func (p *problems) container(b object, at string) {
	p.only(b, at, common("title", "rich_text_title", "subtitle", "icon", "width", "is_collapsible", "default_collapsed", "has_header_divider", "child_blocks")...)
	p.textObject(b["title"], at+"/title", false, 150, plainOnly)
	p.textObject(b["subtitle"], at+"/subtitle", false, 150, anyText)
	p.richTextObject(b["rich_text_title"], at+"/rich_text_title")
	p.flags(b, at, "is_collapsible", "default_collapsed", "has_header_divider")
	list, ok := p.items(b, at, "child_blocks", 1, maxMessageBlocks)
	if !ok {
		return
	}
	children := make([]any, 0, len(list))
	for i, raw := range list {
		here := fmt.Sprintf("%s/child_blocks/%d", at, i)
		o := p.object(raw, here)
		if o == nil {
			continue
		}
		if o["type"] == "container" {
			p.add(here+"/type", "unsupported type: container")
			continue
		}
		if child := p.block(o, here); child != nil {
			children = append(children, child)
		}
	}
	b["child_blocks"] = children
}

func (p *problems) dataTable(b object, at string) {
	p.only(b, at, common("caption", "rows", "page_size", "row_header_column_index")...)
	p.length(b, at, "caption", 1, maxFieldText)
	p.rows(b, at, "raw_text", "rich_text", "raw_number", "action")
}
